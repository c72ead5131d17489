//! Where a worker waits, as the system has it: a set of descriptors.

use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

use super::Ready;

/// Events that one look takes.
const EVENTS: usize = 64;
/// What the alarm is called among the descriptors.
const ALARM: u64 = u64::MAX;
/// Sleeps that last longer are rounded up to whole ms by epoll, and nobody minds.
const EXACT_MAX: Duration = Duration::from_millis(100);

/// What of a descriptor is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watched {
    /// That there is something to take, until it has been taken.
    UntilTaken,
    /// That something has come, once each time.
    EachTime,
    /// Whatever happens at a socket, once each time.
    Socket,
}

/// Where a worker waits for descriptors, each of which has a name, less than [`u64::MAX`].
pub trait Waiting: Send + Sync + fmt::Debug {
    /// From now on this descriptor is watched, and what is there already is told.
    ///
    /// # Errors
    /// If it is watched already or cannot be, or the system has no room for it.
    fn add(&self, descriptor: BorrowedFd<'_>, name: u64, what: Watched) -> io::Result<()>;

    /// No longer. One that nobody else has need not be removed before it is closed.
    fn remove(&self, descriptor: BorrowedFd<'_>);

    /// Waits until something has happened, but no longer than `most`, and tells of which and what.
    fn look(&self, most: Option<Duration>, events: &mut Vec<(u64, Ready)>);
}

/// The kernel's way.
#[derive(Debug)]
pub struct Epoll {
    set: OwnedFd,
    /// Rings in the set: epoll's own timeouts are whole ms.
    alarm: OwnedFd,
}

impl Epoll {
    /// Of nothing yet.
    ///
    /// # Errors
    /// If the system refuses a descriptor.
    pub fn new() -> io::Result<Epoll> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let alarm = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let epoll = Epoll { set: epoll::create(epoll::CreateFlags::CLOEXEC)?, alarm };
        // One that rings for a sleep that ended before costs a look later.
        epoll.add(epoll.alarm.as_fd(), ALARM, Watched::EachTime)?;
        Ok(epoll)
    }
}

impl Waiting for Epoll {
    fn add(&self, descriptor: BorrowedFd<'_>, name: u64, what: Watched) -> io::Result<()> {
        use epoll::EventFlags as F;
        let flags = match what {
            Watched::UntilTaken => F::IN,
            Watched::EachTime => F::IN | F::ET,
            // Told once for each change: what a visitor does not care about now costs nothing.
            Watched::Socket => F::IN | F::OUT | F::RDHUP | F::ET,
        };
        Ok(epoll::add(&self.set, descriptor, epoll::EventData::new_u64(name), flags)?)
    }

    fn remove(&self, descriptor: BorrowedFd<'_>) {
        // One that is not watched need not be removed.
        let _ = epoll::delete(&self.set, descriptor);
    }

    fn look(&self, most: Option<Duration>, told: &mut Vec<(u64, Ready)>) {
        let mut timeout = most.map(timespec);
        if let Some(most) = most.filter(|most| !most.is_zero() && *most < EXACT_MAX) {
            let once = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: timespec(most) };
            if timerfd_settime(&self.alarm, TimerfdTimerFlags::empty(), &once).is_ok() {
                timeout = None;
            }
        }
        let mut events = [const { MaybeUninit::uninit() }; EVENTS];
        // Interrupted is as good as nothing: whoever sleeps looks again.
        let Ok((events, _)) = epoll::wait(&self.set, &mut events, timeout.as_ref()) else { return };
        for event in events {
            use epoll::EventFlags as F;
            // The structure is packed: its fields are copied out.
            let (flags, name) = (event.flags, event.data.u64());
            let to_receive = flags.intersects(F::IN | F::RDHUP | F::HUP | F::ERR);
            let to_send = flags.intersects(F::OUT | F::HUP | F::ERR);
            let has_hung_up = flags.intersects(F::RDHUP | F::HUP | F::ERR);
            if name != ALARM {
                told.push((name, Ready { to_receive, to_send, has_hung_up }));
            }
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: i64::from(duration.subsec_nanos()) }
}
