//! Failed requests of an export, as they are logged: one line for each error in a while.

use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use hoistway_engine::Errno;

use crate::ground::log::Lines;

/// Errors that a client may cause by what it asks for, or the server by ending: not the disk's.
const OF_CLIENTS: [Errno; 5] = [Errno::PERM, Errno::INVAL, Errno::OPNOTSUPP, Errno::SHUTDOWN, Errno::CANCELED];

/// Failed requests of an export.
#[derive(Default, Debug)]
pub struct Failures {
    /// The errno of the last one that has not been looked at, or 0.
    last: AtomicI32,
    /// Rate limits by errno.
    lines: Mutex<Vec<(Errno, Lines)>>,
}

impl Failures {
    /// A request has failed.
    pub(crate) fn add(&self, errno: Errno) {
        if !OF_CLIENTS.contains(&errno) {
            self.last.store(errno.0, Relaxed);
        }
    }

    /// The last failure that is to be logged, and how many of its kind have been left out before.
    #[inline]
    pub(crate) fn take(&self) -> Option<(Errno, u64)> {
        if self.last.load(Relaxed) == 0 { None } else { self.take_last(Instant::now()) }
    }

    #[cold]
    fn take_last(&self, now: Instant) -> Option<(Errno, u64)> {
        let errno = Errno(self.last.swap(0, Relaxed));
        let mut all = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let index = all.iter().position(|&(other, _)| other == errno).unwrap_or_else(|| {
            all.push((errno, Lines::at_most(1)));
            all.len() - 1
        });
        all[index].1.count(now).map(|left_out| (errno, left_out))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ground::log::PERIOD;

    #[test]
    fn each_error_of_a_disk_is_logged_once_in_a_while_and_those_of_clients_never() {
        let (failures, now) = (Failures::default(), Instant::now());
        OF_CLIENTS.into_iter().for_each(|errno| failures.add(errno));
        assert_eq!(failures.take(), None);
        let taken = |errno, later| {
            failures.add(errno);
            failures.take_last(now + later)
        };
        assert_eq!(taken(Errno::IO, Duration::ZERO), Some((Errno::IO, 0)));
        assert_eq!((taken(Errno::IO, Duration::ZERO), taken(Errno::IO, PERIOD / 2)), (None, None));
        assert_eq!(taken(Errno::NOSPC, Duration::ZERO), Some((Errno::NOSPC, 0)));
        assert_eq!(taken(Errno::IO, PERIOD), Some((Errno::IO, 2)));
    }
}
