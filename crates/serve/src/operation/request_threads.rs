//! Short requests, each served on its own thread, so that a silent peer does not block others.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Weak};
use std::thread;

use rustix::net::{Shutdown, shutdown};

use crate::ground::stop::Stop;
use crate::nbd::listener::back_off_after;
use crate::server::server_state::ServerState;

/// Maximum simultaneous requests. A further one replaces the oldest.
const CONCURRENT_REQUESTS_MAX: usize = 16;

/// Serves each accepted stream on its own thread until `stop` is set; `serve_stream` must return when its stream ends.
pub(crate) fn serve<L: AsFd, S: AsFd + Send + Sync>(
    listener: &L,
    server: &ServerState,
    stop: &Stop,
    accept: impl Fn(&L) -> io::Result<S>,
    serve_stream: impl Fn(&S) + Sync,
) {
    let serve_stream = &serve_stream;
    thread::scope(|scope| {
        let mut connected: VecDeque<Weak<S>> = VecDeque::new();
        while !stop.is_stopped() {
            stop.wait_or(listener.as_fd());
            let stream = match accept(listener) {
                Ok(stream) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => {
                    back_off_after(server, &error);
                    continue;
                }
            };
            connected.retain(|weak_stream| weak_stream.strong_count() > 0);
            if connected.len() >= CONCURRENT_REQUESTS_MAX
                && let Some(oldest) = connected.pop_front().and_then(|weak_stream| weak_stream.upgrade())
            {
                let _ = shutdown(&*oldest, Shutdown::Both);
            }
            let stream = Arc::new(stream);
            connected.push_back(Arc::downgrade(&stream));
            // If no thread can be created, the stream is closed.
            let _ = thread::Builder::new().spawn_scoped(scope, move || serve_stream(&stream));
        }
    });
}
