//! Descriptions of each scheduler, tunable and file: one file per scheduler in `texts/`. Defaults, ranges and units come
//! from the policies themselves, see [`crate::facts`].
//!
//! Used by: crate `hoistway`.
//! Tests: below, `crates/experiment/tests/verdicts.rs`.

use hoistway_blk::ground::Kernel;
use hoistway_legacy::all_schedulers;
use serde::Deserialize;

const SCHEDULERS: [&str; 15] = [
    include_str!("../texts/none.toml"),
    include_str!("../texts/mq-deadline.toml"),
    include_str!("../texts/kyber.toml"),
    include_str!("../texts/bfq.toml"),
    include_str!("../texts/noop.toml"),
    include_str!("../texts/deadline.toml"),
    include_str!("../texts/cfq.toml"),
    include_str!("../texts/k2.toml"),
    include_str!("../texts/adios.toml"),
    include_str!("../texts/mqfq.toml"),
    include_str!("../texts/d2fq.toml"),
    include_str!("../texts/blk-switch.toml"),
    include_str!("../texts/tabs.toml"),
    include_str!("../texts/vfair.toml"),
    include_str!("../texts/cffq.toml"),
];
const QUEUE: &str = include_str!("../texts/queue.toml");
const NOTES: &str = include_str!("../texts/notes.toml");

/// A scheduler.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerText {
    /// Its name in sysfs.
    pub name: String,
    /// What it is, in a few words.
    pub title: String,
    /// The block layer that it runs on.
    pub front: String,
    /// The Linux releases that have it.
    pub linux: String,
    /// What it promises, in a sentence.
    pub promises: String,
    /// The cost of that, in a sentence.
    pub costs: String,
    /// Which part of an I/O priority it honours.
    pub ioprio: String,
    /// Which cgroup weights it honours.
    pub weights: String,
    /// Devices that get it by default.
    pub default_for: String,
    /// What it does.
    pub what: String,
    /// When to use it.
    pub when: String,
    /// How releases differ.
    pub versions: Vec<String>,
    /// Its tunables, in any kernel.
    #[serde(rename = "tunable", default)]
    pub tunables: Vec<TunableText>,
}

/// A tunable.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunableText {
    /// Its name in sysfs.
    pub name: String,
    /// What it is, in one line.
    pub line: String,
    /// What it does.
    pub what: String,
    /// What a higher value does.
    pub higher: String,
    /// What a lower value does.
    pub lower: String,
    /// When to change it.
    pub when: String,
    /// How releases differ, beyond what the policies declare.
    pub versions: Vec<String>,
}

/// A file of `queue/` that does not belong to a scheduler.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileText {
    /// Its name in sysfs.
    pub name: String,
    /// What it is, in one line.
    pub line: String,
    /// What it does.
    pub what: String,
    /// Its value after boot.
    pub default: String,
    /// The valid values.
    pub range: String,
    /// What a higher value does.
    pub higher: String,
    /// What a lower value does.
    pub lower: String,
    /// When to change it.
    pub when: String,
    /// Its equivalent in a simulation.
    pub here: String,
}

/// A frequently asked topic that is not simulated.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoteText {
    /// What `explain` calls it.
    pub name: String,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// A short description.
    pub title: String,
    /// The explanation.
    pub text: String,
}

/// All texts.
#[derive(Debug)]
pub struct Texts {
    /// Texts about schedulers, in the order of tables.
    pub schedulers: Vec<SchedulerText>,
    /// Texts about files of `queue/` that belong to no scheduler.
    pub files: Vec<FileText>,
    /// Texts about topics that are not simulated.
    pub notes: Vec<NoteText>,
}

impl Texts {
    /// Reads the texts.
    #[must_use]
    pub fn read() -> Texts {
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
    /// Whether this kernel has the scheduler.
    #[must_use]
    pub fn exists_in(&self, kernel: Kernel) -> bool {
        all_schedulers().find(&self.name).is_some_and(|row| row.exists_in(kernel))
    }

    /// Its publication, if no release of Linux has it.
    #[must_use]
    pub fn outside_linux(&self) -> Option<&'static str> {
        all_schedulers().find(&self.name)?.outside_linux()
    }

    /// The named kernels that have it, oldest first; empty if no release of Linux has it.
    pub fn kernels(&self) -> impl DoubleEndedIterator<Item = Kernel> + '_ {
        Kernel::EXAMPLES.into_iter().filter(|&kernel| self.exists_in(kernel))
    }

    /// The newest kernel that has it; the default kernel if none has it.
    #[must_use]
    pub fn newest_kernel(&self) -> Kernel {
        self.kernels().next_back().unwrap_or(Kernel::DEFAULT)
    }

    /// The tunable of this name.
    #[must_use]
    pub fn tunable(&self, name: &str) -> Option<&TunableText> {
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
            let kernels = scheduler.kernels().count();
            assert!(if scheduler.outside_linux().is_some() { kernels == 0 } else { kernels >= 3 }, "{scheduler:?}");
            let fields = [&scheduler.promises, &scheduler.costs, &scheduler.what, &scheduler.when, &scheduler.title];
            assert!(fields.iter().all(|text| text.len() > 10), "{scheduler:?}");
            assert!(scheduler.promises.ends_with('.') && scheduler.costs.ends_with('.'), "{scheduler:?}");
            for tunable in &scheduler.tunables {
                let fields = [&tunable.what, &tunable.higher, &tunable.lower, &tunable.when];
                assert!(fields.iter().all(|text| text.ends_with('.')), "{tunable:?}");
                assert!(tunable.line.len() <= 90 && !tunable.line.contains('\n'), "{tunable:?}");
            }
        }
        assert_eq!(texts.files.len(), 9);
        assert_eq!(texts.notes.len(), 6);
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
        assert_eq!(at(Kernel::V6_18), hoistway_blk::queue::SCHEDULERS);
    }
}
