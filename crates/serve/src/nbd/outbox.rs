//! The send queue of a connection: headers in one buffer, data in place.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use hoistway_engine::Buffer;

use crate::stream::socket::Socket;

/// Maximum pieces per call; the kernel accepts up to 1024.
const PIECES_MAX: usize = 256;

/// Maximum bytes that are sent before other connections run: the kernel copies them on the worker's thread.
const TURN_BYTES: usize = 256 << 10;

/// Data to be sent, in order.
#[derive(Default)]
pub struct Outbox {
    /// All unsent headers, contiguous, preceded by at most as many bytes of sent ones.
    headers: Vec<u8>,
    /// Bytes of `headers` that have been sent.
    headers_sent: usize,
    pieces: VecDeque<Piece>,
    /// For each piece, the replies that end with it or within it.
    replies: VecDeque<u32>,
    /// Replies that have been sent and not reported.
    sent_replies: u32,
    /// Bytes of the first piece that have been sent, if it is data.
    first_sent: usize,
    /// Unsent bytes of all pieces.
    unsent_bytes: usize,
}

enum Piece {
    /// A number of bytes in `headers`.
    Header(usize),
    Data(Buffer),
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Piece::Header(len) => *len,
            Piece::Data(buffer) => buffer.len(),
        }
    }
}

impl Outbox {
    /// Adds a header written by `write`.
    pub fn header(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.headers.len();
        write(&mut self.headers);
        let written = self.headers.len() - before;
        self.unsent_bytes += written;
        match self.pieces.back_mut() {
            Some(Piece::Header(len)) => *len += written,
            _ if written > 0 => self.push(Piece::Header(written)),
            _ => {}
        }
    }

    /// Adds data.
    pub fn data(&mut self, buffer: Buffer) {
        self.unsent_bytes += buffer.len();
        self.push(Piece::Data(buffer));
    }

    fn push(&mut self, piece: Piece) {
        self.pieces.push_back(piece);
        self.replies.push_back(0);
    }

    /// What has been added ends a reply.
    pub fn reply_ends(&mut self) {
        match self.replies.back_mut() {
            Some(replies) => *replies += 1,
            None => self.sent_replies += 1,
        }
    }

    /// The replies that have been sent since the last call.
    pub fn take_sent_replies(&mut self) -> u32 {
        std::mem::take(&mut self.sent_replies)
    }

    /// Frees the memory of an empty outbox.
    pub fn shrink(&mut self) {
        if self.is_empty() {
            *self = Outbox { sent_replies: self.sent_replies, ..Outbox::default() };
        }
    }

    /// Bytes that have not been sent.
    pub fn bytes(&self) -> usize {
        self.unsent_bytes
    }

    /// Whether everything has been sent.
    pub fn is_empty(&self) -> bool {
        self.unsent_bytes == 0
    }

    /// Sends as much as the socket accepts and a turn allows. `spent` gets each buffer that has been sent completely. Returns whether
    /// the socket may accept more.
    ///
    /// # Errors
    /// If the socket is broken. A full socket is not an error.
    pub fn send(&mut self, socket: &mut Socket, mut spent: impl FnMut(Buffer)) -> io::Result<bool> {
        let before = self.unsent_bytes;
        while self.unsent_bytes > 0 {
            if before - self.unsent_bytes >= TURN_BYTES {
                return Ok(true);
            }
            let mut slices: [IoSlice<'_>; PIECES_MAX] = std::array::from_fn(|_| IoSlice::new(&[]));
            let mut count = 0;
            let mut header_at = self.headers_sent;
            for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
                let piece_bytes: &[u8] = match piece {
                    Piece::Header(len) => {
                        let start = header_at;
                        header_at += len;
                        &self.headers[start..header_at]
                    }
                    Piece::Data(buffer) => buffer,
                };
                *slice = IoSlice::new(if count == 0 { &piece_bytes[self.first_sent..] } else { piece_bytes });
                count += 1;
            }
            match socket.send(&slices[..count]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => self.remove_sent(sent, &mut spent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Removes bytes that have been sent.
    fn remove_sent(&mut self, mut sent: usize, spent: &mut impl FnMut(Buffer)) {
        self.unsent_bytes -= sent;
        sent += self.first_sent;
        while let Some(first) = self.pieces.front() {
            let len = first.len();
            if sent < len {
                break;
            }
            sent -= len;
            self.sent_replies += self.replies.pop_front().unwrap_or_default();
            match self.pieces.pop_front() {
                Some(Piece::Header(len)) => self.headers_sent += len,
                Some(Piece::Data(buffer)) => spent(buffer),
                None => {}
            }
        }
        self.first_sent = match self.pieces.front_mut() {
            // The header piece may never be sent completely: later replies are added to it.
            Some(Piece::Header(len)) => {
                *len -= sent;
                self.headers_sent += sent;
                0
            }
            _ => sent,
        };
        // Moves at most as many bytes as have been sent.
        if self.headers_sent > self.headers.len() / 2 {
            self.headers.drain(..self.headers_sent);
            self.headers_sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;

    #[test]
    fn an_outbox_delivers_all_in_order_and_returns_its_buffers() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut socket = Socket::unix(near).unwrap();
        far.set_nonblocking(true).unwrap();
        let (mut outbox, mut expected, mut received, mut spent) = (Outbox::default(), Vec::new(), Vec::new(), 0);
        for round in 0..200_usize {
            let header = vec![round as u8; round % 7];
            let data = vec![!round as u8; 4096 * (round % 5 + 1) + round];
            expected.extend(header.iter().chain(&data));
            outbox.header(|out| out.extend(&header));
            outbox.data(Buffer::from(&data[..]));
            outbox.header(|out| out.extend([1, 2]));
            outbox.header(|out| out.extend([3]));
            outbox.reply_ends();
            expected.extend([1, 2, 3]);
            outbox.send(&mut socket, |_| spent += 1).unwrap();
            // A reader slower than the writer.
            let mut some = [0; 9999];
            if let Ok(count) = far.read(&mut some) {
                received.extend_from_slice(&some[..count]);
            }
        }
        assert!(!outbox.is_empty(), "the socket was never full, so this proves nothing");
        assert_eq!(outbox.bytes() + received.len() + in_socket(&mut far, &mut received), expected.len());
        while !outbox.is_empty() {
            outbox.send(&mut socket, |_| spent += 1).unwrap();
            in_socket(&mut far, &mut received);
        }
        assert!(received == expected && spent == 200 && outbox.headers.is_empty());
        assert_eq!((outbox.take_sent_replies(), outbox.take_sent_replies()), (200, 0));
    }

    #[test]
    fn sent_data_takes_no_memory_even_if_the_reader_lags() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut socket = Socket::unix(near).unwrap();
        far.set_nonblocking(true).unwrap();
        for has_data in [false, true] {
            let (mut outbox, mut expected, mut received, mut most) = (Outbox::default(), Vec::new(), Vec::new(), 0);
            let mut add = |outbox: &mut Outbox, number: u32| {
                outbox.header(|out| out.extend([number.to_le_bytes(); 4].concat()));
                expected.extend([number.to_le_bytes(); 4].concat());
                if has_data {
                    outbox.data(Buffer::from(&[number as u8; 100][..]));
                    expected.extend([number as u8; 100]);
                }
            };
            // More than a socket holds.
            (0..30_000).for_each(|number| add(&mut outbox, number));
            outbox.send(&mut socket, |_| {}).unwrap();
            let mut some = vec![0; if has_data { 116 } else { 16 } * 100];
            for number in 30_000..200_000 {
                add(&mut outbox, number);
                if number % 100 == 0 {
                    let count = far.read(&mut some).unwrap();
                    received.extend_from_slice(&some[..count]);
                    outbox.send(&mut socket, |_| {}).unwrap();
                    assert!(!outbox.is_empty(), "all was sent, so this proves nothing");
                    let left: usize =
                        outbox.pieces.iter().filter(|one| matches!(one, Piece::Header(_))).map(Piece::len).sum();
                    let sent = outbox.headers.len() - left;
                    assert!(sent <= left, "{sent} bytes that have been sent, {left} that have not");
                    most = most.max(sent);
                }
            }
            while !outbox.is_empty() {
                outbox.send(&mut socket, |_| {}).unwrap();
                in_socket(&mut far, &mut received);
            }
            assert!(most > 0 && received == expected);
        }
    }

    /// Empties the socket, and returns how much there was.
    fn in_socket(far: &mut UnixStream, received: &mut Vec<u8>) -> usize {
        let (before, mut some) = (received.len(), vec![0; 1 << 20]);
        while let Ok(count) = far.read(&mut some) {
            received.extend_from_slice(&some[..count]);
        }
        received.len() - before
    }

    #[test]
    fn a_peer_that_has_gone_is_an_error() {
        let (near, far) = UnixStream::pair().unwrap();
        let mut socket = Socket::unix(near).unwrap();
        drop(far);
        let mut outbox = Outbox::default();
        outbox.header(|out| out.push(1));
        assert!(outbox.send(&mut socket, |_| {}).is_err());
    }
}
