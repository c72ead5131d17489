//! Who is treated fairly, and with which weight.

use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::ground::ids::{CgroupId, IoContextId};

/// A weight relative to a default: a flow whose value equals the default has weight 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::schedulers) struct Weight {
    pub(in crate::schedulers) value: u32,
    pub(in crate::schedulers) default: u32,
}

impl Weight {
    /// The weight of a group for which none was set.
    pub(in crate::schedulers) const GROUP_DEFAULT: u32 = 100;

    pub(in crate::schedulers) fn of_group(value: u64) -> Weight {
        Weight { value: (value as u32).max(1), default: Weight::GROUP_DEFAULT }
    }

    /// The weight of a priority: best-effort level p weighs 8 - p, real time as the best of these, idle as the least.
    pub(in crate::schedulers) fn of_priority(priority: IoPriority) -> Weight {
        let value = match priority.class() {
            PriorityClass::RealTime => 8,
            PriorityClass::BestEffort => 8 - u32::from(priority.level()),
            PriorityClass::None => 4,
            PriorityClass::Idle => 1,
        };
        Weight { value, default: 4 }
    }

    /// The weight of a level within its class.
    pub(in crate::schedulers) fn of_level(level: u8) -> Weight {
        Weight { value: 8 - u32::from(level.min(7)), default: 4 }
    }

    /// What a flow of this weight is charged for a cost.
    #[inline]
    pub(in crate::schedulers) fn over(self, cost: u64) -> u64 {
        cost.saturating_mul(u64::from(self.default)) / u64::from(self.value)
    }
}

/// The identity of a flow: an I/O context, or a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::schedulers) struct FlowKey(u64);

impl FlowKey {
    const GROUP: u64 = 1 << 32;
    const CLASS_SHIFT: u32 = 40;

    pub(in crate::schedulers) fn io_context(io_context: IoContextId) -> FlowKey {
        FlowKey(u64::from(io_context.0))
    }

    pub(in crate::schedulers) fn group(cgroup: CgroupId) -> FlowKey {
        FlowKey(FlowKey::GROUP | u64::from(cgroup.0))
    }

    /// The flow that has only the requests of this class.
    pub(in crate::schedulers) fn in_class(self, class: usize) -> FlowKey {
        FlowKey(self.0 | (class as u64) << FlowKey::CLASS_SHIFT)
    }

    pub(in crate::schedulers) fn as_group(self) -> Option<u32> {
        (self.0 & FlowKey::GROUP != 0).then_some(self.0 as u32)
    }
}
