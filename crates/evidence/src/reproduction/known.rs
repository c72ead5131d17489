//! Loads whose right decision is known without a measurement: why is in a sentence for each.

use hoistway_experiment::{Comparison, Error, Guests, Vary};

use super::decisions::DecisionRule;
use super::runs::{Variables, load};

/// Runs of each variant.
const REPEATS: u32 = 3;

/// A load with its right decision.
struct KnownDecisionCase {
    file: &'static str,
    text: &'static str,
    device: &'static str,
    /// What is right, by its label.
    right: &'static str,
    why: &'static str,
    /// The other options of the comparison.
    options: fn() -> Comparison,
}

const KNOWN: [KnownDecisionCase; 6] = [
    KnownDecisionCase {
        file: "shops-one-dump.fio",
        text: include_str!("../../known/shops-one-dump.fio"),
        device: "sata-ssd",
        right: "none",
        why: "under mq-deadline the writes of the shops wait seconds behind the dump, under none 24 ms; bfq all but stops the dump and \
              stalls the shops for a second at times",
        options: Comparison::default,
    },
    KnownDecisionCase {
        file: "groups-one-noisy.fio",
        text: include_str!("../../known/groups-one-noisy.fio"),
        device: "sata-ssd",
        right: "none",
        why: "as above, of nineteen groups beside a noisy one",
        options: Comparison::default,
    },
    KnownDecisionCase {
        file: "twenty-guests.fio",
        text: include_str!("../../known/twenty-guests.fio"),
        device: "sata-ssd",
        right: "none-over-none",
        why: "as above, of guests: the reference is the default of the host",
        options: || Comparison {
            guests: Guests { schedulers: vec!["none".to_owned()], ..Guests::default() },
            schedulers: ["none", "mq-deadline", "kyber", "bfq"].map(str::to_owned).into(),
            ..Comparison::default()
        },
    },
    KnownDecisionCase {
        file: "commit-beside-copy.fio",
        text: include_str!("../../known/commit-beside-copy.fio"),
        device: "hdd",
        right: "bfq",
        why: "a commit is a write and its fsync: ten seconds fewer of these outweigh a few ms more of that",
        options: || Comparison { journal: true, ..Comparison::default() },
    },
    KnownDecisionCase {
        file: "small-sequential-reads.fio",
        text: include_str!("../../known/small-sequential-reads.fio"),
        device: "sata-ssd",
        right: "mq-deadline",
        why: "a scheduler merges the reads, none does not",
        options: || Comparison {
            schedulers: ["none", "mq-deadline"].map(str::to_owned).into(),
            runtime_ns: Some(300_000_000),
            ..Comparison::default()
        },
    },
    KnownDecisionCase {
        file: "kyber-targets.fio",
        text: include_str!("../../known/kyber-targets.fio"),
        device: "nvme",
        right: "kyber read_lat_nsec=2000000",
        why: "no different: the default of the tunable stays, wherever it stands in the list",
        options: || Comparison {
            schedulers: vec!["kyber".to_owned()],
            vary: vec![Vary {
                of: "kyber".to_owned(),
                name: "read_lat_nsec".to_owned(),
                texts: ["100000", "2000000"].map(str::to_owned).into(),
            }],
            runtime_ns: Some(500_000_000),
            ..Comparison::default()
        },
    },
];

/// What a comparison recommends for a load whose right decision is known.
#[derive(Clone, PartialEq, Debug)]
pub struct KnownDecision {
    /// The job file.
    pub load: &'static str,
    /// The device.
    pub device: &'static str,
    /// What is right, by its label.
    pub right: &'static str,
    /// Why.
    pub why: &'static str,
    /// What the verdict recommends, by its label.
    pub recommended: String,
    /// The schedulers of the device that are compared.
    pub schedulers: Vec<String>,
    /// Whether the verdict is about a latency.
    pub is_latency: bool,
}

impl KnownDecision {
    /// Whether what a rule chooses is right; None if that was not compared, or nothing else was.
    #[must_use]
    pub fn is_right(&self, rule: DecisionRule) -> Option<bool> {
        let always = |name: &str| {
            let can_choose = self.schedulers.len() > 1 && self.schedulers.iter().any(|scheduler| scheduler == name);
            can_choose.then(|| self.right.rsplit("-over-").next() == Some(name))
        };
        match rule {
            DecisionRule::OurFigures | DecisionRule::OurFiguresOrSimplest => Some(self.recommended == self.right),
            DecisionRule::Always(name) => always(name),
            DecisionRule::BfqForLatency => always(if self.is_latency { "bfq" } else { "none" }),
        }
    }
}

/// All of them.
///
/// # Errors
/// As [`Table::reproduce`](super::Table::reproduce).
pub fn known() -> Result<Vec<KnownDecision>, Error> {
    KNOWN.iter().map(KnownDecisionCase::decide).collect()
}

impl KnownDecisionCase {
    fn decide(&self) -> Result<KnownDecision, Error> {
        let comparison = Comparison {
            load: load(self.file, self.text),
            devices: vec![self.device.into()],
            repeats: REPEATS,
            ..(self.options)()
        };
        let document = comparison.run(&Variables(&[]))?;
        let verdict = document.verdicts.first();
        let mut schedulers: Vec<String> = Vec::new();
        for run in &document.runs {
            let host = run.scheduler.rsplit("-over-").next().unwrap_or(&run.scheduler);
            if !schedulers.iter().any(|known| known == host) {
                schedulers.push(host.to_owned());
            }
        }
        Ok(KnownDecision {
            load: self.file,
            device: self.device,
            right: self.right,
            why: self.why,
            recommended: verdict.map(|verdict| verdict.recommended.clone()).unwrap_or_default(),
            schedulers,
            is_latency: verdict
                .is_some_and(|verdict| verdict.focus.iter().any(|focus| focus.figure.figure.is_latency())),
        })
    }
}
