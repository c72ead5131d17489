//! Received data that is not handled yet: a buffer with a start and an end.

use std::cell::Cell;
use std::io::{self, IoSliceMut};

use hoistway_nbd::OPTION_BYTES_MAX;

use crate::stream::socket::Socket;

/// Room for the longest option with its header, and for many requests.
const BYTES: usize = OPTION_BYTES_MAX as usize + 4096;
/// Unit of the memory for what is buffered between turns.
const COMPACT_BYTES: usize = 256;

thread_local! {
    /// Memory for the connection that receives next on this thread, so that idle connections have none.
    static SPARE: Cell<Option<Box<[u8]>>> = const { Cell::new(None) };
}

/// Received bytes, in order.
#[derive(Default)]
pub struct Input {
    /// Empty if no bytes are buffered.
    memory: Box<[u8]>,
    start: usize,
    end: usize,
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
            self.give_back_memory();
        }
    }

    /// The memory that it keeps.
    pub fn memory_bytes(&self) -> usize {
        self.memory.len()
    }

    /// Keeps no more memory than what is buffered needs.
    pub fn compact(&mut self) {
        let bytes = (self.end - self.start).next_multiple_of(COMPACT_BYTES);
        if self.memory.is_empty() || bytes * 2 > self.memory.len() {
            return;
        }
        let mut compact = vec![0; bytes].into_boxed_slice();
        let buffered = self.buffered();
        compact[..buffered.len()].copy_from_slice(buffered);
        (self.start, self.end) = (0, buffered.len());
        let memory = std::mem::replace(&mut self.memory, compact);
        if memory.len() == BYTES {
            SPARE.set(Some(memory));
        }
    }

    /// Gets memory of full length, which has what is buffered.
    fn expand(&mut self) {
        if self.memory.len() < BYTES {
            let mut memory = SPARE.take().unwrap_or_else(|| vec![0; BYTES].into_boxed_slice());
            let buffered = self.buffered();
            memory[..buffered.len()].copy_from_slice(buffered);
            (self.start, self.end) = (0, buffered.len());
            self.memory = memory;
        }
    }

    fn give_back_memory(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        if memory.len() == BYTES {
            SPARE.set(Some(memory));
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
        let received = self.receive_into_memory(socket, first);
        if self.end == 0 {
            self.give_back_memory();
        }
        received
    }

    fn receive_into_memory(&mut self, socket: &mut Socket, first: &mut [u8]) -> io::Result<(usize, ReceiveStatus)> {
        self.expand();
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn connections_share_memory_and_keep_what_is_not_handled() {
        let pair = || UnixStream::pair().map(|(near, far)| (Socket::unix(near).unwrap(), far)).unwrap();
        let ((mut one_socket, mut one_peer), (mut other_socket, mut other_peer)) = (pair(), pair());
        let (mut one, mut other) = (Input::default(), Input::default());
        assert_eq!(one.receive(&mut one_socket, &mut []).unwrap(), (0, ReceiveStatus::All));
        assert!(one.memory.is_empty(), "nothing has arrived");
        one_peer.write_all(b"first").unwrap();
        other_peer.write_all(b"second").unwrap();
        one.receive(&mut one_socket, &mut []).unwrap();
        other.receive(&mut other_socket, &mut []).unwrap();
        assert_eq!((one.buffered(), other.buffered()), (&b"first"[..], &b"second"[..]));
        let shared = one.memory.as_ptr();
        one.consume(4);
        assert_eq!(one.buffered(), b"t");
        one.consume(1);
        assert!(one.buffered().is_empty() && one.memory.is_empty());
        one_peer.write_all(b"third").unwrap();
        one.receive(&mut one_socket, &mut []).unwrap();
        assert_eq!((one.buffered(), one.memory.as_ptr()), (&b"third"[..], shared));
        assert_eq!(other.buffered(), b"second");
    }
}
