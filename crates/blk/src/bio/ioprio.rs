//! I/O priorities: class, level and hint in the kernel's 16-bit encoding (BL-116, BL-117).

use std::fmt;

/// An I/O priority in the kernel's encoding: class (3 bits, shift 13), hint (10 bits, shift 3), level (3 bits).
/// The default value is *unset*.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct IoPriority(pub u16);

/// The class of an [`IoPriority`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum PriorityClass {
    /// Not set: derived from the nice level, which gives best effort for nearly all processes.
    None = 0,
    /// Real time.
    RealTime = 1,
    /// Best effort, the default of ordinary processes.
    BestEffort = 2,
    /// Served only when no other class needs the device.
    Idle = 3,
}

impl IoPriority {
    /// Not set.
    pub const UNSET: IoPriority = IoPriority(0);
    /// Priority of an ordinary process: best effort, level 4 (nice 0).
    pub const DEFAULT: IoPriority = IoPriority::new(PriorityClass::BestEffort, 4);

    /// The priority of `class` and `level`; only the low three bits of `level` count.
    #[must_use]
    pub const fn new(class: PriorityClass, level: u8) -> IoPriority {
        IoPriority((class as u16) << 13 | (level & 7) as u16)
    }

    /// The effective priority of a process without its own: best effort at level (nice + 20) / 5. `nice` is clamped to
    /// -20..=19.
    #[must_use]
    pub fn from_nice(nice: i8) -> IoPriority {
        let nice = nice.clamp(-20, 19);
        IoPriority::new(PriorityClass::BestEffort, ((nice + 20) / 5) as u8)
    }

    /// The class. The invalid values 4 to 7 count as none.
    #[must_use]
    pub const fn class(self) -> PriorityClass {
        match self.0 >> 13 {
            1 => PriorityClass::RealTime,
            2 => PriorityClass::BestEffort,
            3 => PriorityClass::Idle,
            _ => PriorityClass::None,
        }
    }

    /// The level, 0 (highest) to 7. Meaningful only for real time and best effort.
    #[must_use]
    pub const fn level(self) -> u8 {
        (self.0 & 7) as u8
    }
}

/// The policy in a cgroup's `io.prio.class`: how it changes the priority of its I/O (BL-118, CG-16).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CgroupPriority {
    /// Priorities are unchanged.
    #[default]
    NoChange = 0,
    /// Real time, level 4, unless already real time.
    PromoteToRealTime = 1,
    /// At most best effort.
    RestrictToBestEffort = 2,
    /// Idle.
    Idle = 3,
}

impl CgroupPriority {
    /// The file's texts, and an old name of one of them.
    pub const TEXTS: [(&str, CgroupPriority); 5] = [
        ("no-change", CgroupPriority::NoChange),
        ("promote-to-rt", CgroupPriority::PromoteToRealTime),
        ("restrict-to-be", CgroupPriority::RestrictToBestEffort),
        ("idle", CgroupPriority::Idle),
        ("none-to-rt", CgroupPriority::PromoteToRealTime),
    ];

    /// Parses a text written to the file; `None` if the kernel rejects it.
    #[must_use]
    pub fn parse(text: &str) -> Option<CgroupPriority> {
        CgroupPriority::TEXTS.into_iter().find(|&(known, _)| known == text.trim()).map(|(_, policy)| policy)
    }

    /// The resulting priority of I/O of the cgroup.
    #[must_use]
    pub fn applied_to(self, priority: IoPriority) -> IoPriority {
        let class = priority.class();
        match self {
            CgroupPriority::NoChange => priority,
            CgroupPriority::PromoteToRealTime if class == PriorityClass::RealTime => priority,
            CgroupPriority::PromoteToRealTime => IoPriority::new(PriorityClass::RealTime, 4),
            CgroupPriority::RestrictToBestEffort if class >= PriorityClass::BestEffort => priority,
            CgroupPriority::RestrictToBestEffort => IoPriority::new(PriorityClass::BestEffort, 0),
            CgroupPriority::Idle if class == PriorityClass::Idle => priority,
            CgroupPriority::Idle => IoPriority::new(PriorityClass::Idle, 0),
        }
    }
}

impl fmt::Debug for IoPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = match self.class() {
            PriorityClass::None => "none",
            PriorityClass::RealTime => "rt",
            PriorityClass::BestEffort => "be",
            PriorityClass::Idle => "idle",
        };
        write!(f, "{class}/{}", self.level())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ioprio_encoding_is_the_kernels() {
        assert_eq!(IoPriority::new(PriorityClass::RealTime, 0).0, 0x2000);
        assert_eq!(IoPriority::new(PriorityClass::BestEffort, 4).0, 0x4004);
        assert_eq!(IoPriority::new(PriorityClass::Idle, 0).0, 0x6000);
        assert_eq!(IoPriority::UNSET.0, 0);
    }

    #[test]
    fn restrict_to_be_and_promote_to_rt_replace_the_priority_class() {
        use PriorityClass::{BestEffort, Idle, None, RealTime};
        let applied = |text: &str, class, level| {
            let policy = CgroupPriority::parse(text).expect("a policy");
            let applied = policy.applied_to(IoPriority::new(class, level));
            (applied.class(), applied.level())
        };
        assert_eq!(applied("restrict-to-be", RealTime, 2), (BestEffort, 0));
        assert_eq!(applied("restrict-to-be", None, 0), (BestEffort, 0));
        assert_eq!(applied("restrict-to-be", Idle, 0), (Idle, 0));
        assert_eq!(applied("restrict-to-be", BestEffort, 6), (BestEffort, 6));
        for (class, level) in [(None, 0), (BestEffort, 7), (Idle, 0)] {
            assert_eq!(applied("promote-to-rt", class, level), (RealTime, 4));
            assert_eq!(applied("none-to-rt\n", class, level), (RealTime, 4));
            assert_eq!(applied("idle", class, level).0, Idle);
            assert_eq!(applied("no-change", class, level), (class, level));
        }
        assert_eq!(applied("promote-to-rt", RealTime, 1), (RealTime, 1));
        // CG-16: the class of the process does not help it.
        assert_eq!(applied("idle", RealTime, 4).0, Idle);
        assert_eq!(CgroupPriority::parse("realtime"), Option::None);
    }

    #[test]
    fn an_unset_priority_follows_the_nice_level() {
        let level = |nice| IoPriority::from_nice(nice).level();
        assert_eq!((level(-20), level(0), level(4), level(5), level(19)), (0, 4, 4, 5, 7));
    }
}
