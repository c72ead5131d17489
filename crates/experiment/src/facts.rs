//! Facts about a scheduler's tunables in a kernel (defaults, ranges, parsing), found by reading and writing the policy itself.
//!
//! Used by: crate `hoistway`.
//! Tests: below.

use hoistway_blk::bio::Limits;
use hoistway_blk::elevator::Elevator;
use hoistway_blk::ground::{HctxId, Instant, Kernel, Local, NoMeter, StoreError, Tunable};
use hoistway_blk::policy::ElevatorCx;
use hoistway_blk::request::CpuMap;
use hoistway_blk::schedulers::{Attachment, NONE};
use hoistway_legacy::all_schedulers;

/// A device that defaults are queried for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Device {
    rotational: bool,
    /// Depth of its hardware queue.
    queue_depth: u32,
}

impl Device {
    /// The device properties that defaults depend on: rotating or not, shallow as SATA or deep.
    const ALL: [Device; 4] = [
        Device { rotational: false, queue_depth: 1024 },
        Device { rotational: false, queue_depth: 32 },
        Device { rotational: true, queue_depth: 1024 },
        Device { rotational: true, queue_depth: 32 },
    ];

    /// `nr_requests` of a scheduler on this device (BL-53 to BL-55).
    fn nr_requests(self) -> u32 {
        2 * self.queue_depth.min(128)
    }

    fn in_words(self) -> String {
        let kind = if self.rotational { "rotating" } else { "not rotating" };
        format!("{kind}, with nr_requests {}", self.nr_requests())
    }
}

/// Instantiates the scheduler of this kernel version for a device.
fn elevator(scheduler: &str, kernel: Kernel, device: Device) -> Elevator<Local> {
    let generation = kernel.generation();
    let limits = Limits { rotational: device.rotational, ..Limits::default() };
    let queue = Attachment {
        generation: &generation,
        limits: &limits,
        nr_requests: device.nr_requests(),
        default_nr_requests: device.nr_requests(),
        async_depth: device.nr_requests(),
        queue_depth: device.queue_depth,
        capacity: device.nr_requests(),
        arbitration: None,
        transport: None,
        seed: 0,
        now: generation.hz.now(Instant::ZERO),
    };
    let schedulers = all_schedulers();
    let row = schedulers.find(scheduler).unwrap_or(&NONE);
    Elevator::new(&schedulers, row, &queue, &CpuMap::of_one_type(&[HctxId(0)]))
}

/// The tunables of a scheduler in a kernel.
#[must_use]
pub fn tunables(scheduler: &str, kernel: Kernel) -> Vec<&'static Tunable> {
    elevator(scheduler, kernel, Device::ALL[0]).tunables()
}

/// The facts about one tunable in a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// The declaration of the policy.
    pub tunable: Tunable,
    /// The default, or the defaults with the devices that they apply to.
    pub defaults: Vec<(String, i128)>,
    /// How a write is parsed.
    pub grammar: Grammar,
    /// Examples: the text written, and the value shown afterwards.
    pub examples: Vec<(&'static str, Result<i128, StoreError>)>,
    /// Tick rate in Hz, if the tunable counts whole timer ticks.
    pub ticks_hz: Option<u32>,
}

/// How the text of a write is parsed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grammar {
    /// The leading decimal number; nothing is rejected.
    Leading,
    /// C notation.
    C,
    /// Decimal digits only.
    Digits,
    /// Decimal digits only, and values out of range are rejected.
    InRange,
}

impl Grammar {
    /// A description of the grammar.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Grammar::Leading => "Parses the leading decimal number (0 if there is none); never rejects input.",
            Grammar::C => {
                "A whole number in C notation (0x10, 010, -7); anything else is EINVAL, more than 32 bits ERANGE."
            }
            Grammar::Digits => "Decimal digits only; anything else is EINVAL, more than 64 bits ERANGE.",
            Grammar::InRange => {
                "Decimal digits, after a minus sign where the range has negative numbers; anything else is EINVAL, a number out of the \
                 range ERANGE."
            }
        }
    }
}

impl Facts {
    /// The facts about a tunable, if it exists in this kernel.
    #[must_use]
    pub fn of(scheduler: &str, name: &str, kernel: Kernel) -> Option<Facts> {
        let tunable = *tunables(scheduler, kernel).into_iter().find(|tunable| tunable.name == name)?;
        let now = kernel.generation().hz.now(Instant::ZERO);
        let written = |text: &str| {
            let elevator = elevator(scheduler, kernel, Device::ALL[0]);
            ElevatorCx::alone(now, |cx| elevator.set_tunable(&NoMeter, cx, name, text))?;
            elevator.tunable(name)
        };
        let grammar = match (written("12abc"), written("0x10")) {
            (Ok(_), _) => Grammar::Leading,
            (_, Ok(_)) => Grammar::C,
            _ if tunable.max < i128::from(u64::MAX) && written(&(tunable.max + 1).to_string()).is_err() => {
                Grammar::InRange
            }
            _ => Grammar::Digits,
        };
        let examples = ["7", "0", "0x10", "010", "-7", "12abc", "x"].map(|text| (text, written(text))).to_vec();
        // A value other than 7 was rounded to ticks, not clamped: no limit of a tunable lies near 7.
        let counts_ticks = tunable.max > 7 && written("7").is_ok_and(|shown| shown != 7);
        let ticks_hz = counts_ticks.then_some(kernel.generation().hz.0);
        Some(Facts { tunable, defaults: defaults(scheduler, name, kernel), grammar, examples, ticks_hz })
    }

    /// The default as text.
    #[must_use]
    pub fn default_text(&self) -> String {
        match &self.defaults[..] {
            [(_, value)] => value.to_string(),
            several => {
                let each = several.iter().map(|(device, value)| format!("{value} ({device})"));
                each.collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// The range as text.
    #[must_use]
    pub fn range_text(&self) -> String {
        format!("{} to {}", compact(self.tunable.min), compact(self.tunable.max))
    }
}

/// The default for each kind of device, distinguishing as few kinds as possible.
fn defaults(scheduler: &str, name: &str, kernel: Kernel) -> Vec<(String, i128)> {
    let default = |device| elevator(scheduler, kernel, device).tunable(name).unwrap_or_default();
    let [deep, shallow, deep_disk, shallow_disk] = Device::ALL.map(default);
    let rotation_matters = (deep, shallow) != (deep_disk, shallow_disk);
    let depth_matters = (deep, deep_disk) != (shallow, shallow_disk);
    match (rotation_matters, depth_matters) {
        (false, false) => vec![("any".to_owned(), deep)],
        (true, false) => vec![("rotating".to_owned(), deep_disk), ("not rotating".to_owned(), deep)],
        (false, true) => [Device::ALL[0], Device::ALL[1]]
            .map(|device| (format!("with nr_requests {}", device.nr_requests()), default(device)))
            .to_vec(),
        (true, true) => Device::ALL.map(|device| (device.in_words(), default(device))).to_vec(),
    }
}

/// Writes numbers as powers of two where that is easier to read.
fn compact(value: i128) -> String {
    for bits in [31, 32, 63, 64] {
        if value == (1 << bits) - 1 {
            return format!("2^{bits}-1");
        }
    }
    if value == -(1 << 31) { "-2^31".to_owned() } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texts::Texts;
    use hoistway_blk::ground::Sector;
    use hoistway_blk::queue::{Queue, QueueConfig, SCHEDULERS};
    use hoistway_blk::request::Merging;

    #[test]
    fn every_tunable_of_a_policy_is_explained_and_every_explained_one_exists() {
        for text in Texts::read().schedulers {
            let mut existing = Vec::new();
            for kernel in text.kernels().chain([text.newest_kernel()]) {
                for tunable in tunables(&text.name, kernel) {
                    assert!(text.tunable(tunable.name).is_some(), "{}.{} in {kernel}", text.name, tunable.name);
                    existing.push(tunable.name);
                }
            }
            for tunable in &text.tunables {
                assert!(existing.contains(&tunable.name.as_str()), "{}.{} is nowhere", text.name, tunable.name);
                let same = text.tunables.iter().filter(|other| other.name == tunable.name);
                assert_eq!(same.count(), 1, "{}.{} is explained twice", text.name, tunable.name);
            }
        }
    }

    #[test]
    fn the_elevators_here_are_those_that_a_queue_is_made_with() {
        for scheduler in SCHEDULERS {
            for kernel in Kernel::EXAMPLES {
                for device in Device::ALL {
                    let limits = hoistway_blk::bio::Limits {
                        rotational: device.rotational,
                        capacity: Sector(1 << 30),
                        ..hoistway_blk::bio::Limits::new(1, 8, 65_535, 2560, 128)
                    };
                    let config = QueueConfig {
                        kernel,
                        cpus: 1,
                        hw_queues: 1,
                        queue_depth: device.queue_depth,
                        nr_requests: None,
                        merging: Merging::Full,
                        limits,
                        ..QueueConfig::new(kernel)
                    };
                    assert_eq!(config.scheduler_depth(), device.nr_requests());
                    let Ok(queue) = Queue::<Local>::new(&config, scheduler) else { continue };
                    let ours = elevator(scheduler, kernel, device);
                    queue.elevator(|theirs| {
                        assert_eq!(theirs.tunables(), ours.tunables(), "{scheduler} in {kernel}");
                        for tunable in ours.tunables() {
                            let (theirs, ours) = (theirs.tunable(tunable.name), ours.tunable(tunable.name));
                            assert_eq!(theirs, ours, "{scheduler} in {kernel}");
                        }
                    });
                }
            }
        }
    }

    #[test]
    fn facts_are_those_of_the_rules() {
        let facts = |scheduler, name, kernel| Facts::of(scheduler, name, kernel).unwrap();
        let known = facts("mq-deadline", "read_expire", Kernel::V6_18);
        assert_eq!((known.default_text().as_str(), known.grammar, known.ticks_hz), ("500", Grammar::C, Some(250)));
        assert!(
            known.examples.contains(&("7", Ok(8))) && known.examples.contains(&("12abc", Err(StoreError::Invalid)))
        );
        let known = facts("mq-deadline", "async_depth", Kernel::V6_3);
        assert_eq!(known.default_text(), "192 (with nr_requests 256), 48 (with nr_requests 64)");
        assert_eq!(facts("mq-deadline", "fifo_batch", Kernel::V5_10).grammar, Grammar::Leading);
        assert!(Facts::of("mq-deadline", "prio_aging_expire", Kernel::V5_10).is_none());
        let known = facts("cfq", "slice_idle", Kernel::V4_19);
        assert_eq!((known.default_text().as_str(), known.ticks_hz), ("8 (rotating), 0 (not rotating)", None));
        assert_eq!(facts("cfq", "fifo_expire_sync", Kernel::V4_4).default_text(), "124");
        assert_eq!(facts("cfq", "quantum", Kernel::V4_19).range_text(), "1 to 2^32-1");
        assert_eq!(facts("bfq", "timeout_sync", Kernel::V6_18).default_text(), "124");
        assert_eq!(facts("bfq", "slice_idle", Kernel::V6_18).grammar, Grammar::Digits);
        assert_eq!(facts("kyber", "read_lat_nsec", Kernel::V6_18).range_text(), "0 to 2^64-1");
        let known = facts("k2", "max_inflight", Kernel::V6_18);
        assert_eq!((known.default_text().as_str(), known.grammar), ("32", Grammar::InRange));
        assert!(known.examples.contains(&("0", Err(StoreError::Range))));
    }
}
