//! Received data that is not handled yet: a buffer with a start and an end.

use std::io::{self, IoSliceMut};

use hoistway_nbd::OPTION_BYTES_MAX;

use crate::socket::Socket;

/// Room for the longest option with its header, and for many requests.
const BYTES: usize = OPTION_BYTES_MAX as usize + 4096;

/// Received bytes, in order.
pub struct Input {
    memory: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Default for Input {
    fn default() -> Self {
        Input { memory: vec![0; BYTES].into_boxed_slice(), start: 0, end: 0 }
    }
}

/// The result of receiving.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiveStatus {
    /// There may be more data.
    More,
    /// Everything that has arrived so far.
    All,
    /// The end of the stream.
    End,
}

impl Input {
    /// The bytes in the buffer.
    pub fn buffered(&self) -> &[u8] {
        &self.memory[self.start..self.end]
    }

    /// The first `count` bytes have been handled.
    pub fn consume(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.end, "only what is there");
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Moves as much as fits to `buffer`, and returns the number of bytes.
    pub fn move_into(&mut self, buffer: &mut [u8]) -> usize {
        let count = buffer.len().min(self.end - self.start);
        buffer[..count].copy_from_slice(&self.buffered()[..count]);
        self.consume(count);
        count
    }

    /// Receives: first into `first`, then into this buffer. Returns the number of bytes in `first`.
    ///
    /// # Errors
    /// If the socket is broken.
    pub fn receive(&mut self, socket: &mut Socket, first: &mut [u8]) -> io::Result<(usize, ReceiveStatus)> {
        debug_assert!(first.is_empty() || self.start == self.end, "what came before goes before");
        if self.start > 0 {
            self.memory.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let first_len = first.len();
        let room = first_len + self.memory.len() - self.end;
        let received = loop {
            let mut slices = [IoSliceMut::new(first), IoSliceMut::new(&mut self.memory[self.end..])];
            match socket.receive(if first_len == 0 { &mut slices[1..] } else { &mut slices }) {
                Ok(0) => return Ok((0, ReceiveStatus::End)),
                Ok(received) => break received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok((0, ReceiveStatus::All)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        self.end += received.saturating_sub(first_len);
        // A short read has emptied the socket; the poller reports later data.
        let status = if received < room && !socket.has_ended() { ReceiveStatus::All } else { ReceiveStatus::More };
        Ok((received.min(first_len), status))
    }
}
