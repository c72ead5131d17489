//! Several who ask at once, each with a few words: who has come and says nothing keeps nobody else waiting.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Weak};
use std::thread;

use rustix::net::{Shutdown, shutdown};

use crate::listener::pause_after;
use crate::served::Site;
use crate::stop::Stop;

/// So many are attended to at a time. Who comes then takes the place of who has been there for longest.
const AT_ONCE: usize = 16;

/// Attends to each who comes, in a thread of its own, until somebody stops that; `attend` ends when the stream does, or is stopped.
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
            // If the system has no thread to give, it is sent away.
            let _ = thread::Builder::new().spawn_scoped(scope, move || attend(&stream));
        }
    });
}
