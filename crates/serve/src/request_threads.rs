//! Short requests, each served on its own thread, so that a silent peer does not block others.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Weak};
use std::thread;

use rustix::net::{Shutdown, shutdown};

use crate::listener::pause_after;
use crate::site::Site;
use crate::stop::Stop;

/// Maximum simultaneous requests. A further one replaces the oldest.
const AT_ONCE: usize = 16;

/// Serves each accepted stream on its own thread until `stop` is set; `attend` must return when its stream ends.
pub(crate) fn serve<L: AsFd, S: AsFd + Send + Sync>(
    listener: &L,
    site: &Site,
    stop: &Stop,
    accept: impl Fn(&L) -> io::Result<S>,
    attend: impl Fn(&S) + Sync,
) {
    let attend = &attend;
    thread::scope(|scope| {
        let mut there: VecDeque<Weak<S>> = VecDeque::new();
        while !stop.is_stopped() {
            stop.wait_or(listener.as_fd());
            let stream = match accept(listener) {
                Ok(stream) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => {
                    pause_after(site, &error);
                    continue;
                }
            };
            there.retain(|asker| asker.strong_count() > 0);
            if there.len() >= AT_ONCE
                && let Some(oldest) = there.pop_front().and_then(|asker| asker.upgrade())
            {
                let _ = shutdown(&*oldest, Shutdown::Both);
            }
            let stream = Arc::new(stream);
            there.push_back(Arc::downgrade(&stream));
            // If no thread can be created, the stream is closed.
            let _ = thread::Builder::new().spawn_scoped(scope, move || attend(&stream));
        }
    });
}
