//! Reconfiguration of a frozen and empty queue: its scheduler (BL-101, BL-102, BL-109) and number of requests (BL-53 to
//! BL-55). A change is [exclusive](crate::ground::ReadMostly) with other calls.

use super::state::QueueState;
use super::{ConfigError, Device, NR_REQUESTS_MAX, NR_REQUESTS_MIN, Queue, QueueConfig, make_elevator};
use crate::drive::effects::{Effect, Effects};
use crate::elevator::Elevator;
use crate::ground::ids::CpuId;
use crate::ground::sharing::{ReadMostly, Sharing};
use crate::schedulers::{Layer, NONE, scaled};
use crate::sysfs::{AttributeError, number};

/// Number of characters of a scheduler's name that the kernel compares.
const NAME_CHARS_MAX: usize = 15;

/// Why a queue was not changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangeError {
    /// The queue is not frozen, or not empty (EBUSY).
    Busy,
    /// There is no such scheduler, or the value is out of range (EINVAL).
    Invalid,
    /// The new scheduler cannot be created.
    Failed(ConfigError),
}

impl From<ChangeError> for AttributeError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Busy => AttributeError::Busy,
            ChangeError::Invalid => AttributeError::Invalid,
            ChangeError::Failed(why) => AttributeError::Failed(why.to_string()),
        }
    }
}

impl std::fmt::Display for ChangeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ChangeError::Busy => f.write_str("the queue is in use"),
            ChangeError::Invalid => f.write_str("invalid argument"),
            ChangeError::Failed(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for ChangeError {}

impl<Sh: Sharing> Queue<Sh> {
    /// Whether a write of `text` to `queue/scheduler` would change the scheduler; only then must the queue be frozen and
    /// drained.
    ///
    /// # Errors
    /// If there is no such scheduler; nothing changes then.
    pub fn would_switch(&self, text: &str) -> Result<bool, ChangeError> {
        let name = self.device.resolve_scheduler_name(text).ok_or(ChangeError::Invalid)?;
        Ok(name != self.scheduler())
    }

    /// The same for another file that requires an empty queue.
    pub fn would_change(&self, file: &str, text: &str) -> Result<bool, AttributeError> {
        let device = &self.device;
        match file {
            "scheduler" => Ok(self.would_switch(text)?),
            "async_depth" => {
                self.during(CpuId(0), |queue| device.effective_async_depth(queue.state, text)).map(|_| true)
            }
            _ => {
                let requested = number(text)?;
                self.during(CpuId(0), |queue| {
                    Ok(device.effective_nr_requests(queue.state, requested)? != queue.state.nr_requests)
                })
            }
        }
    }

    /// Changes the scheduler of a [drained](Self::is_drained) queue, as a write to `queue/scheduler` does. The new one
    /// starts with default tunables and the default `nr_requests`; nothing is carried over. Naming the current one changes
    /// nothing.
    ///
    /// # Errors
    /// If there is no such scheduler, the queue is in use, or the new one cannot be made; nothing changes then.
    pub fn switch_scheduler(&self, text: &str, effects: &mut Effects) -> Result<(), ChangeError> {
        let device = &self.device;
        let name = device.resolve_scheduler_name(text).ok_or(ChangeError::Invalid)?;
        self.state.change(|state| {
            if name == state.elevator.name() {
                return Ok(());
            }
            if !device.is_drained(state) {
                return Err(ChangeError::Busy);
            }
            let rules = state.rules.clone();
            // The new scheduler uses the current values of the device's files.
            let config = QueueConfig { nr_requests: None, limits: rules.limits.clone(), ..device.config.clone() };
            let elevator = make_elevator(&config, name, state.async_depth).map_err(ChangeError::Failed)?;
            if state.elevator.weights().is_some() || elevator.weights().is_some() {
                effects.push(Effect::Arbitrate(elevator.weights()));
            }
            *state = QueueState::new(device, rules, elevator, None);
            device.wbt_follows_scheduler(state);
            effects.push(Effect::CancelTimer);
            Ok(())
        })
    }

    /// Changes the number of requests of each hardware queue, as a write to `queue/nr_requests` does. Numbers below 4
    /// become 4; without a scheduler the maximum is the number of the device's tags.
    ///
    /// # Errors
    /// If the number is out of range or the queue is in use; nothing changes then.
    pub fn set_nr_requests(&self, nr_requests: u32) -> Result<(), ChangeError> {
        let device = &self.device;
        self.state.change(|state| {
            let effective = device.effective_nr_requests(state, nr_requests)?;
            if effective == state.nr_requests {
                return Ok(());
            }
            if !device.is_drained(state) {
                return Err(ChangeError::Busy);
            }
            let mut elevator = std::mem::replace(&mut state.elevator, Elevator::none());
            elevator.grow(effective * device.config.scheduler_maps());
            // The ratio is kept, rounded down each time.
            let async_depth = scaled(state.async_depth, effective, state.nr_requests);
            elevator.depth_updated(effective, device.generation.queue_async_depth.then_some(async_depth));
            *state = QueueState::new(device, state.rules.clone(), elevator, Some(effective));
            state.async_depth = async_depth;
            device.wbt_follows_scheduler(state);
            Ok(())
        })
    }

    /// Changes the number of scheduler tags for everything except sync reads, as a write to `queue/async_depth` does.
    ///
    /// # Errors
    /// If there is no such file, no scheduler, or the kernel would reject the number.
    pub fn set_async_depth(&self, text: &str) -> Result<(), AttributeError> {
        self.state.change(|state| {
            let depth = self.device.effective_async_depth(state, text)?;
            state.async_depth = depth;
            state.elevator.depth_updated(state.nr_requests, Some(depth));
            state.announce_min_shallow();
            Ok(())
        })
    }
}

impl<Sh: Sharing> Device<Sh> {
    /// The scheduler that a write to `queue/scheduler` selects: the kernel strips white space, compares 15 characters,
    /// knows aliases, and treats anything that begins with "none" as "none".
    fn resolve_scheduler_name(&self, text: &str) -> Option<&'static str> {
        let name = text.trim();
        let name = name.char_indices().nth(NAME_CHARS_MAX).map_or(name, |(end, _)| &name[..end]);
        if name.starts_with(NONE.name) {
            return Some(NONE.name);
        }
        let mut candidates = self.config.schedulers.of(Layer::MultiQueue);
        candidates.find(|row| row.name == name || row.aliases.contains(&name)).map(|row| row.name)
    }

    /// The effective value of a number written to `queue/nr_requests`.
    fn effective_nr_requests(&self, state: &QueueState<Sh>, requested: u32) -> Result<u32, ChangeError> {
        let effective = requested.max(NR_REQUESTS_MIN);
        let nr_requests_max = if state.elevator.is_none() { self.config.queue_depth } else { NR_REQUESTS_MAX };
        if effective <= nr_requests_max { Ok(effective) } else { Err(ChangeError::Invalid) }
    }

    /// The effective value of a text written to `queue/async_depth`.
    fn effective_async_depth(&self, state: &QueueState<Sh>, text: &str) -> Result<u32, AttributeError> {
        if !self.generation.queue_async_depth {
            return Err(AttributeError::Unknown);
        }
        match number(text)? {
            _ if state.elevator.is_none() => Err(AttributeError::Invalid),
            0 => Err(AttributeError::Invalid),
            depth => Ok(depth.min(state.nr_requests)),
        }
    }
}
