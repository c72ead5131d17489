//! What is said of each scheduler, tunable and file: one file for each scheduler in `texts/`. Defaults, ranges and units
//! are not in there: they come from the policies themselves, see [`crate::facts`].

use hoistway_blk::{Kernel, all_schedulers};
use serde::Deserialize;

const SCHEDULERS: [&str; 7] = [
    include_str!("../texts/none.toml"),
    include_str!("../texts/mq-deadline.toml"),
    include_str!("../texts/kyber.toml"),
    include_str!("../texts/bfq.toml"),
    include_str!("../texts/noop.toml"),
    include_str!("../texts/deadline.toml"),
    include_str!("../texts/cfq.toml"),
];
const QUEUE: &str = include_str!("../texts/queue.toml");
const NOTES: &str = include_str!("../texts/notes.toml");

/// A scheduler.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SchedulerText {
    pub(crate) name: String,
    /// What it is, in a few words.
    pub(crate) title: String,
    /// The block layer that it belongs to.
    pub(crate) front: String,
    /// The Linux releases that have it.
    pub(crate) linux: String,
    /// A sentence each.
    pub(crate) promises: String,
    pub(crate) costs: String,
    /// Which part of an I/O priority it honours.
    pub(crate) ioprio: String,
    /// Which weights of cgroups it honours.
    pub(crate) weights: String,
    /// Devices that get it if nobody chooses.
    pub(crate) default_for: String,
    /// What it does.
    pub(crate) what: String,
    /// When to use it.
    pub(crate) when: String,
    /// How releases differ.
    pub(crate) versions: Vec<String>,
    #[serde(rename = "tunable", default)]
    pub(crate) tunables: Vec<TunableText>,
}

/// A tunable.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TunableText {
    pub(crate) name: String,
    /// What it is, in one line.
    pub(crate) line: String,
    /// What it does.
    pub(crate) what: String,
    /// What a higher and a lower value does.
    pub(crate) higher: String,
    pub(crate) lower: String,
    /// When to change it.
    pub(crate) when: String,
    /// How releases differ, beyond what the policies tell.
    pub(crate) versions: Vec<String>,
}

/// A file of `queue/` that is not the scheduler's.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileText {
    pub(crate) name: String,
    pub(crate) line: String,
    pub(crate) what: String,
    pub(crate) default: String,
    pub(crate) range: String,
    pub(crate) higher: String,
    pub(crate) lower: String,
    pub(crate) when: String,
    /// What stands for it in a simulation.
    pub(crate) here: String,
}

/// Something that is asked about and not simulated.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoteText {
    pub(crate) name: String,
    /// Other names that lead here.
    pub(crate) aliases: Vec<String>,
    pub(crate) title: String,
    pub(crate) text: String,
}

/// All texts.
#[derive(Debug)]
pub(crate) struct Texts {
    pub(crate) schedulers: Vec<SchedulerText>,
    pub(crate) files: Vec<FileText>,
    pub(crate) notes: Vec<NoteText>,
}

impl Texts {
    /// Reads them.
    pub(crate) fn read() -> Texts {
        #[derive(Deserialize)]
        struct Queue {
            file: Vec<FileText>,
        }
        #[derive(Deserialize)]
        struct Notes {
            note: Vec<NoteText>,
        }
        const KNOWN: &str = "a test reads all texts";
        Texts {
            schedulers: SCHEDULERS.iter().map(|text| toml::from_str(text).expect(KNOWN)).collect(),
            files: toml::from_str::<Queue>(QUEUE).expect(KNOWN).file,
            notes: toml::from_str::<Notes>(NOTES).expect(KNOWN).note,
        }
    }
}

impl SchedulerText {
    /// Whether this kernel has it.
    pub(crate) fn exists_in(&self, kernel: Kernel) -> bool {
        all_schedulers().find(&self.name).is_some_and(|row| row.exists_in(kernel))
    }

    /// The named kernels that have it, oldest first.
    pub(crate) fn kernels(&self) -> impl DoubleEndedIterator<Item = Kernel> + '_ {
        Kernel::EXAMPLES.into_iter().filter(|&kernel| self.exists_in(kernel))
    }

    /// The newest kernel that has it.
    pub(crate) fn newest_kernel(&self) -> Kernel {
        self.kernels().next_back().unwrap_or(Kernel::DEFAULT)
    }

    pub(crate) fn tunable(&self, name: &str) -> Option<&TunableText> {
        self.tunables.iter().find(|tunable| tunable.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_reads_and_says_something() {
        let texts = Texts::read();
        for scheduler in &texts.schedulers {
            assert!(scheduler.kernels().count() >= 3, "{scheduler:?}");
            let fields = [&scheduler.promises, &scheduler.costs, &scheduler.what, &scheduler.when, &scheduler.title];
            assert!(fields.iter().all(|text| text.len() > 10), "{scheduler:?}");
            assert!(scheduler.promises.ends_with('.') && scheduler.costs.ends_with('.'), "{scheduler:?}");
            for tunable in &scheduler.tunables {
                let fields = [&tunable.what, &tunable.higher, &tunable.lower, &tunable.when];
                assert!(fields.iter().all(|text| text.ends_with('.')), "{tunable:?}");
                assert!(tunable.line.len() <= 90 && !tunable.line.contains('\n'), "{tunable:?}");
            }
        }
        assert_eq!(texts.files.len(), 7);
        assert_eq!(texts.notes.len(), 2);
    }

    #[test]
    fn legacy_schedulers_end_with_the_legacy_queue() {
        let texts = Texts::read();
        let at = |kernel| -> Vec<&str> {
            let there = texts.schedulers.iter().filter(|scheduler| scheduler.exists_in(kernel));
            there.map(|scheduler| scheduler.name.as_str()).collect()
        };
        assert_eq!(at(Kernel::V4_4), ["none", "noop", "deadline", "cfq"]);
        assert_eq!(at(Kernel::V4_19).len(), 7);
        assert_eq!(at(Kernel::release(4, 12, 14)), at(Kernel::V4_19), "a stable release has what its series has");
        assert_eq!(at(Kernel::series(4, 20)), at(Kernel::V4_19));
        assert_eq!(at(Kernel::V6_18), hoistway_blk::SCHEDULERS);
    }
}
