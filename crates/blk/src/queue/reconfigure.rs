//! What a queue is made of can be changed while it is frozen and empty: its scheduler (`block-layer.md` 22.2) and
//! the number of its requests (11.1).
//!
//! These calls take `&mut self`: that nobody else is in the queue is not only promised by the freeze, but proved to the
//! compiler.

use super::{ConfigError, NR_REQUESTS_MAX, NR_REQUESTS_MIN, Queue, QueueConfig};
use crate::attributes::{AttributeError, number};
use crate::effects::{Effect, Effects};
use crate::elevator::Elevator;
use crate::schedulers::{Layer, NONE, scaled};
use crate::sharing::{Sharing, Word};
use crate::tags::TagUser;

/// The kernel looks at so many characters of a scheduler's name.
const NAME_MAX: usize = 15;

/// Why a queue was not changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangeError {
    /// The queue is not frozen, or something is still inside (EBUSY).
    Busy,
    /// There is no such scheduler, or the value is out of range (EINVAL).
    Invalid,
    /// The new parts cannot be made. The queue has no scheduler now.
    Failed(ConfigError),
}

impl std::fmt::Display for ChangeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ChangeError::Busy => f.write_str("the queue is in use"),
            ChangeError::Invalid => f.write_str("invalid argument"),
            ChangeError::Failed(why) => write!(f, "{why}; the queue has no scheduler now"),
        }
    }
}

impl std::error::Error for ChangeError {}

impl<Sh: Sharing> Queue<Sh> {
    /// The scheduler that a write to `queue/scheduler` asks for: the kernel strips white space, looks at 15 characters,
    /// knows aliases, and takes anything that begins with "none" for "none".
    fn asked_for(&self, text: &str) -> Option<&'static str> {
        let name = text.trim();
        let name = name.char_indices().nth(NAME_MAX).map_or(name, |(end, _)| &name[..end]);
        if name.starts_with(NONE.name) {
            return Some(NONE.name);
        }
        let mut known = self.config.schedulers.of(Layer::MultiQueue);
        known.find(|row| row.name == name || row.aliases.contains(&name)).map(|row| row.name)
    }

    /// Whether a write of `text` to `queue/scheduler` would change anything: only then the queue must be frozen and
    /// emptied.
    ///
    /// # Errors
    /// If there is no such scheduler; nothing changes then.
    pub fn would_switch(&self, text: &str) -> Result<bool, ChangeError> {
        let name = self.asked_for(text).ok_or(ChangeError::Invalid)?;
        Ok(name != self.elevator.name())
    }

    /// The same for another file that is changed while the queue is empty.
    pub(crate) fn would_change(&self, file: &str, text: &str) -> Result<bool, AttributeError> {
        if file == "scheduler" {
            return Ok(self.would_switch(text)?);
        }
        match file {
            "async_depth" => self.wanted_async_depth(text).map(|_| true),
            _ => Ok(self.wanted_nr_requests(number(text)?)? != self.nr_requests()),
        }
    }

    /// What a number written to `queue/nr_requests` means.
    fn wanted_nr_requests(&self, nr_requests: u32) -> Result<u32, ChangeError> {
        let wanted = nr_requests.max(NR_REQUESTS_MIN);
        let most = if self.elevator.is_none() { self.config.queue_depth } else { NR_REQUESTS_MAX };
        if wanted <= most { Ok(wanted) } else { Err(ChangeError::Invalid) }
    }

    /// Changes the scheduler of a [drained](Self::is_drained) queue, as a write to `queue/scheduler` does. The new one
    /// starts with default tunables and the default `nr_requests`; nothing is carried over. The present one, named
    /// again, stays as it is.
    ///
    /// # Errors
    /// If there is no such scheduler or the queue is in use, nothing changes. If the new one cannot be made, there is
    /// none.
    pub fn switch_scheduler(&mut self, text: &str, effects: &mut Effects) -> Result<(), ChangeError> {
        let name = self.asked_for(text).ok_or(ChangeError::Invalid)?;
        if name == self.elevator.name() {
            return Ok(());
        }
        if !self.is_drained() {
            return Err(ChangeError::Busy);
        }
        effects.push(Effect::CancelTimer);
        let config = QueueConfig { nr_requests: None, ..self.config.clone() };
        // The new one sees the device as it is said to be now.
        let limits = self.rules.limits.clone();
        let made = Queue::make_elevator(&QueueConfig { limits, ..config.clone() }, name, self.async_depth())
            .and_then(|elevator| self.rebuild(config.clone(), elevator));
        made.map_err(|why| {
            // Without a scheduler there is nothing that could fail.
            let _ = self.rebuild(config, Elevator::none());
            ChangeError::Failed(why)
        })
    }

    /// Changes how many requests each hardware queue can have, as a write to `queue/nr_requests` does. Smaller numbers
    /// than 4 become 4; without a scheduler it can be no more than the device has tags.
    ///
    /// # Errors
    /// If the number is out of range or the queue is in use; nothing changes then.
    pub fn set_nr_requests(&mut self, nr_requests: u32) -> Result<(), ChangeError> {
        let wanted = self.wanted_nr_requests(nr_requests)?;
        if wanted == self.nr_requests() {
            return Ok(());
        }
        if !self.is_drained() {
            return Err(ChangeError::Busy);
        }
        let config = QueueConfig { nr_requests: Some(wanted), ..self.config.clone() };
        let mut elevator = std::mem::replace(&mut self.elevator, Elevator::none());
        elevator.grow(wanted * config.scheduler_maps());
        // Its ratio is kept, rounded down each time.
        let async_depth = scaled(self.async_depth(), wanted, self.nr_requests());
        elevator.depth_updated(wanted, config.kernel.generation().queue_async_depth.then_some(async_depth));
        self.rebuild(config, elevator).map_err(ChangeError::Failed)?;
        self.async_depth.store(u64::from(async_depth));
        Ok(())
    }

    /// What a text written to `queue/async_depth` means.
    fn wanted_async_depth(&self, text: &str) -> Result<u32, AttributeError> {
        if !self.generation.queue_async_depth {
            return Err(AttributeError::Unknown);
        }
        match number(text)? {
            _ if self.elevator.is_none() => Err(AttributeError::Invalid),
            0 => Err(AttributeError::Invalid),
            depth => Ok(depth.min(self.nr_requests())),
        }
    }

    /// Changes how many scheduler tags all but sync reads may use, as a write to `queue/async_depth` does.
    ///
    /// # Errors
    /// If there is no such file, no scheduler, or the number is none that the kernel takes.
    pub fn set_async_depth(&self, text: &str) -> Result<(), AttributeError> {
        let depth = self.wanted_async_depth(text)?;
        self.async_depth.store(u64::from(depth));
        self.elevator.depth_updated(self.nr_requests(), Some(depth));
        self.scheduler_tags.iter().for_each(|tags| tags.set_min_shallow(self.elevator.min_shallow()));
        Ok(())
    }

    /// Makes everything anew that depends on scheduler and number of requests, and keeps the rest: who waits at the
    /// gate, the hardware queues with their marks, the merge rules.
    fn rebuild(&mut self, config: QueueConfig, elevator: Elevator<Sh>) -> Result<(), ConfigError> {
        let fresh = TagUser::join(self.driver_tags.set());
        let new = Queue::build(&config, elevator, fresh)?;
        let old = std::mem::replace(self, new);
        // Others know it by its number.
        self.driver_tags = old.driver_tags;
        self.driver_tags.set_limit(if self.elevator.is_none() { self.nr_requests } else { config.queue_depth });
        self.gate = old.gate;
        self.hctxs = old.hctxs;
        self.rules = old.rules;
        self.quiesced = old.quiesced;
        self.affinity = old.affinity;
        self.timeouts = old.timeouts;
        self.wbt = old.wbt;
        self.wbt_follows_scheduler();
        Ok(())
    }
}
