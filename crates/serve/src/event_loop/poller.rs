//! How a worker waits for a set of descriptors.

use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

use super::Ready;

/// Maximum events returned by one call.
const EVENTS: usize = 64;
/// The key of the timer.
const ALARM: u64 = u64::MAX;
/// Longer sleeps may be rounded up to whole ms, as epoll does.
const EXACT_MAX: Duration = Duration::from_millis(100);

/// Which readiness of a descriptor is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watched {
    /// Readable, level-triggered.
    UntilTaken,
    /// Readable, edge-triggered.
    EachTime,
    /// Readable, writable or closed, edge-triggered.
    Socket,
}

/// Polls descriptors, each of which has a key less than [`u64::MAX`].
pub trait Poller: Send + Sync + fmt::Debug {
    /// Adds a descriptor. Readiness that it has already is reported, too.
    ///
    /// # Errors
    /// If it is polled already or cannot be, or the system is out of memory.
    fn add(&self, descriptor: BorrowedFd<'_>, key: u64, watched: Watched) -> io::Result<()>;

    /// Removes a descriptor. Closing one that has not been duplicated removes it, too.
    fn remove(&self, descriptor: BorrowedFd<'_>);

    /// A descriptor that is readable as long as one of them is ready, if there is such a descriptor.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Waits until a descriptor is ready, at most for `timeout`, and appends keys and readiness.
    fn wait(&self, timeout: Option<Duration>, events: &mut Vec<(u64, Ready)>);
}

/// Linux's epoll, with a timer of finer resolution than its timeouts.
#[derive(Debug)]
pub struct Epoll {
    set: OwnedFd,
    /// A timer in the set, since timeouts of epoll are whole ms.
    alarm: OwnedFd,
}

impl Epoll {
    /// An empty set.
    ///
    /// # Errors
    /// If the system refuses a descriptor.
    pub fn new() -> io::Result<Epoll> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let alarm = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let epoll = Epoll { set: epoll::create(epoll::CreateFlags::CLOEXEC)?, alarm };
        // An expiry after an earlier sleep has ended costs one spurious wake-up.
        epoll.add(epoll.alarm.as_fd(), ALARM, Watched::EachTime)?;
        Ok(epoll)
    }
}

impl Poller for Epoll {
    fn add(&self, descriptor: BorrowedFd<'_>, key: u64, watched: Watched) -> io::Result<()> {
        use epoll::EventFlags as F;
        let flags = match watched {
            Watched::UntilTaken => F::IN,
            Watched::EachTime => F::IN | F::ET,
            // Edge-triggered: readiness that a connection does not need now costs nothing.
            Watched::Socket => F::IN | F::OUT | F::RDHUP | F::ET,
        };
        Ok(epoll::add(&self.set, descriptor, epoll::EventData::new_u64(key), flags)?)
    }

    fn remove(&self, descriptor: BorrowedFd<'_>) {
        // A descriptor that is not in the set is no error.
        let _ = epoll::delete(&self.set, descriptor);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.set.as_fd())
    }

    fn wait(&self, timeout: Option<Duration>, ready: &mut Vec<(u64, Ready)>) {
        let mut epoll_timeout = timeout.map(timespec);
        if let Some(timeout) = timeout.filter(|timeout| !timeout.is_zero() && *timeout < EXACT_MAX) {
            let once = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: timespec(timeout) };
            if timerfd_settime(&self.alarm, TimerfdTimerFlags::empty(), &once).is_ok() {
                epoll_timeout = None;
            }
        }
        let mut events = [const { MaybeUninit::uninit() }; EVENTS];
        // An interrupted wait returns no events; the caller waits again.
        let Ok((events, _)) = epoll::wait(&self.set, &mut events, epoll_timeout.as_ref()) else { return };
        for event in events {
            use epoll::EventFlags as F;
            // The structure is packed, so its fields are copied.
            let (flags, key) = (event.flags, event.data.u64());
            let to_receive = flags.intersects(F::IN | F::RDHUP | F::HUP | F::ERR);
            let to_send = flags.intersects(F::OUT | F::HUP | F::ERR);
            let has_hung_up = flags.intersects(F::RDHUP | F::HUP | F::ERR);
            let has_left = flags.intersects(F::HUP | F::ERR);
            if key != ALARM {
                ready.push((key, Ready { to_receive, to_send, has_hung_up, has_left }));
            }
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: i64::from(duration.subsec_nanos()) }
}
