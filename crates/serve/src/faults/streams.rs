//! In-memory connections, and the poller through which workers wait for them.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use hoistway_engine::faults::Random;
use rustix::event::{EventfdFlags, eventfd};

use crate::event_loop::{Poller, Ready, Watched};
use crate::stream::Stream;

#[derive(Debug)]
struct StreamState {
    to_server: VecDeque<u8>,
    to_client: VecDeque<u8>,
    /// Bytes that each direction holds.
    capacity: usize,
    /// Events that the server's worker has not seen yet.
    unread_readiness: Ready,
    /// Whether the client has finished sending.
    client_has_finished_sending: bool,
    /// Whether the client has closed its end.
    client_has_closed: bool,
    /// Whether the client's end broke, so that unread data was lost.
    is_broken: bool,
    server_has_closed: bool,
    random: Random,
}

type Shared = Arc<Mutex<StreamState>>;
/// A name or number, and the connection that it belongs to, as long as that exists.
type Named<N> = (N, Weak<Mutex<StreamState>>);

fn lock(shared: &Mutex<StreamState>) -> MutexGuard<'_, StreamState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All connections, by the descriptor number that represents the server's end.
#[derive(Clone, Default, Debug)]
pub struct Streams(Arc<Mutex<Vec<Named<i32>>>>);

impl Streams {
    /// A connection with buffers of this many bytes in each direction.
    pub fn pair(&self, capacity: usize, random: Random) -> (ServerEnd, ClientEnd) {
        let shared = Arc::new(Mutex::new(StreamState {
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            capacity,
            unread_readiness: Ready { to_send: true, ..Ready::default() },
            client_has_finished_sending: false,
            client_has_closed: false,
            is_broken: false,
            server_has_closed: false,
            random,
        }));
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let mut all = self.0.lock().unwrap();
        all.retain(|(_, shared)| shared.strong_count() > 0);
        all.push((descriptor.as_raw_fd(), Arc::downgrade(&shared)));
        (ServerEnd { shared: Arc::clone(&shared), descriptor }, ClientEnd(shared))
    }
}

/// The server's end.
#[derive(Debug)]
pub struct ServerEnd {
    shared: Shared,
    descriptor: OwnedFd,
}

impl Read for ServerEnd {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(into)])
    }

    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let state = &mut *lock(&self.shared);
        if state.is_broken {
            return Err(ErrorKind::ConnectionReset.into());
        }
        if state.random.one_in(40) {
            return Err(ErrorKind::Interrupted.into());
        }
        if state.to_server.is_empty() {
            return if state.client_has_finished_sending { Ok(0) } else { Err(ErrorKind::WouldBlock.into()) };
        }
        let mut count = 0;
        for slice in into {
            count += state.to_server.read(slice)?;
        }
        Ok(count)
    }
}

impl Write for ServerEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let state = &mut *lock(&self.shared);
        if state.client_has_closed || state.is_broken {
            return Err(ErrorKind::BrokenPipe.into());
        }
        if state.random.one_in(40) {
            return Err(ErrorKind::Interrupted.into());
        }
        let mut available = state.capacity - state.to_client.len();
        if available == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        if state.random.one_in(3) {
            available = 1 + state.random.below(available as u64) as usize;
        }
        let mut count = 0;
        for piece in pieces {
            let accepted = piece.len().min(available - count);
            state.to_client.extend(&piece[..accepted]);
            count += accepted;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for ServerEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Stream for ServerEnd {
    fn shut_down(&self) {
        lock(&self.shared).server_has_closed = true;
    }

    fn has_left(&self) -> bool {
        let state = lock(&self.shared);
        state.client_has_closed || state.is_broken
    }
}

impl Drop for ServerEnd {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// The client's end.
#[derive(Debug)]
pub struct ClientEnd(Shared);

impl ClientEnd {
    /// Sends as much as fits, and returns the number of bytes.
    pub fn send(&mut self, bytes: &[u8]) -> usize {
        let state = &mut *lock(&self.0);
        let count =
            if state.server_has_closed { bytes.len() } else { bytes.len().min(state.capacity - state.to_server.len()) };
        if count > 0 && !state.server_has_closed {
            state.to_server.extend(&bytes[..count]);
            state.unread_readiness.to_receive = true;
        }
        count
    }

    /// Receives at most this many bytes and appends them to `into`.
    pub fn receive(&mut self, bytes_max: usize, into: &mut Vec<u8>) {
        let state = &mut *lock(&self.0);
        let count = state.to_client.len().min(bytes_max);
        into.extend(state.to_client.drain(..count));
        state.unread_readiness.to_send |= count > 0;
    }

    /// Whether the stream has ended.
    pub fn has_ended(&self) -> bool {
        let state = lock(&self.0);
        state.server_has_closed && state.to_client.is_empty()
    }

    /// Finishes sending.
    pub fn finish(&mut self) {
        let state = &mut *lock(&self.0);
        state.client_has_finished_sending = true;
        (state.unread_readiness.to_receive, state.unread_readiness.has_hung_up) = (true, true);
    }

    /// Breaks the connection.
    pub fn break_connection(&mut self) {
        lock(&self.0).is_broken = true;
    }
}

impl Drop for ClientEnd {
    fn drop(&mut self) {
        let state = &mut *lock(&self.0);
        state.client_has_closed = true;
        state.client_has_finished_sending = true;
        state.unread_readiness = Ready { to_receive: true, to_send: true, has_hung_up: true, has_left: true };
    }
}

/// The poller of a worker for such connections.
#[derive(Debug)]
pub struct Watch {
    streams: Streams,
    watched: Mutex<Vec<Named<u64>>>,
}

impl Watch {
    pub fn new(streams: Streams) -> Self {
        Watch { streams, watched: Mutex::default() }
    }
}

impl Poller for Watch {
    fn add(&self, descriptor: BorrowedFd<'_>, key: u64, readiness: Watched) -> io::Result<()> {
        // No worker sleeps, so eventfds are not signaled.
        if readiness == Watched::Socket {
            let all = self.streams.0.lock().unwrap();
            let found = all.iter().rev().find(|(number, _)| *number == descriptor.as_raw_fd());
            self.watched.lock().unwrap().push((key, found.unwrap().1.clone()));
        }
        Ok(())
    }

    fn remove(&self, descriptor: BorrowedFd<'_>) {
        let all = self.streams.0.lock().unwrap();
        let Some((_, removed)) = all.iter().rev().find(|(number, _)| *number == descriptor.as_raw_fd()) else { return };
        self.watched.lock().unwrap().retain(|(_, stream)| !stream.ptr_eq(removed));
    }

    fn wait(&self, _: Option<Duration>, events: &mut Vec<(u64, Ready)>) {
        self.watched.lock().unwrap().retain(|(key, stream)| {
            let Some(stream) = stream.upgrade() else { return false };
            let unread_readiness = std::mem::take(&mut lock(&stream).unread_readiness);
            if unread_readiness != Ready::default() {
                events.push((*key, unread_readiness));
            }
            true
        });
    }
}
