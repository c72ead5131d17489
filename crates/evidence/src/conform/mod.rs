//! Conformance: replays recordings of real kernels (`iosched-trace/1`) and compares every decision.
//!
//! Used by: the program `hoistway-evidence`.
//! Tests: `crates/evidence/src/conform/kyber/tests.rs`, `crates/evidence/tests/bfq.rs`, `crates/evidence/tests/consistency.rs`.
//!
//! A recording shows which requests a scheduler holds, each call of its dispatch, and what it returned. The replay creates
//! the scheduler under test from the recording's header, feeds it the same events and lets it dispatch at the same points. After each decision it continues from the *kernel's* decision, so that one difference does not cause
//! others.
//!
//! [`consistency`] first checks that no event contradicts an earlier one, such as a second insertion of the same request.
//!
//! [`score`] defines the scores. [`policy`] replays schedulers whose decisions follow from their calls alone (mq-deadline,
//! deadline, noop). [`bfq`] and [`cfq`] also depend on facts that a recording only implies, such as exits of processes and
//! the exact time of a decision; [`kyber`] is a whole scheduler with a controller, and [`none`] the block layer without a
//! scheduler. [`report`] renders the results.

mod bench;
pub mod bfq;
pub mod cfq;
pub mod consistency;
pub mod diff;
pub mod kyber;
mod kyber_domains;
pub mod none;
mod parts;
mod plugs;
pub mod policy;
pub mod report;
pub mod rules;
pub mod score;

use hoistway_blk::ground::{DeadlineGeneration, Kernel};
use hoistway_blk::schedulers::{MqDeadline, MqDeadlineConfig, Noop};
use hoistway_trace::iosched::{Header, Trace};

pub use consistency::{Consistent, Inconsistency};
pub use report::{Interrupted, Refused, Report, TraceReport};
pub use score::{AppliedRule, Matches, Mismatch, OwnController, ReplayOutcome, Score};

/// Why a recording was not replayed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotReplayed {
    /// The scheduler is not implemented here.
    Unsupported {
        /// The scheduler at the start of the recording, or of a part of it.
        scheduler: String,
    },
    /// Its events are inconsistent.
    Inconsistent(Inconsistency),
}

impl std::fmt::Display for NotReplayed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotReplayed::Unsupported { scheduler } => write!(
                f,
                "scheduler \"{}\" cannot be replayed (expected none, mq-deadline, kyber, bfq, noop, deadline or cfq)",
                scheduler.chars().take(80).collect::<String>().escape_debug()
            ),
            NotReplayed::Inconsistent(inconsistency) => inconsistency.fmt(f),
        }
    }
}

impl std::error::Error for NotReplayed {}

impl From<Inconsistency> for NotReplayed {
    fn from(inconsistency: Inconsistency) -> Self {
        NotReplayed::Inconsistent(inconsistency)
    }
}

/// The release of a recording's kernel, from its header; the newest release if the header has none.
#[must_use]
pub fn kernel_of(header: &Header) -> Kernel {
    let mut words = header.kernel.split_whitespace();
    words.find_map(|word| word.parse().ok()).unwrap_or(Kernel::DEFAULT)
}

/// Replays a recording with our scheduler instead of the kernel's.
///
/// # Errors
/// If the scheduler is not implemented here, or the events are inconsistent.
pub fn replay(trace: &Trace) -> Result<ReplayOutcome, NotReplayed> {
    if !parts::switches(trace) {
        return replay_part(trace);
    }
    let mut outcome = ReplayOutcome::default();
    for part in parts::parts(trace) {
        let part_outcome = replay_part(&part)?;
        outcome.score.add(&part_outcome.score);
        outcome.unknown_events += part_outcome.unknown_events;
        for (rule, matches) in part_outcome.rules {
            outcome.rules.entry(rule).or_default().add(matches);
        }
        let room = score::MISMATCHES_KEPT - outcome.mismatches.len();
        outcome.mismatches.extend(part_outcome.mismatches.into_iter().take(room));
    }
    Ok(outcome)
}

fn replay_part(trace: &Trace) -> Result<ReplayOutcome, NotReplayed> {
    let header = &trace.header;
    // Only after the scheduler is known: an unsupported one is reported first.
    let check = || Consistent::check(trace);
    let mq_deadline = |generation| {
        let config = MqDeadlineConfig {
            generation,
            hz: header.hz,
            ..MqDeadlineConfig::new(&kernel_of(header).generation(), header.queue.nr_requests)
        };
        Ok(policy::replay(&check()?, |capacity| MqDeadline::new(config, capacity)))
    };
    match header.scheduler.as_str() {
        "none" => Ok(none::replay(&check()?)?),
        "noop" => Ok(policy::replay(&check()?, Noop::new)),
        "bfq" => Ok(bfq::replay(&check()?)),
        "cfq" => Ok(cfq::replay(&check()?)),
        "kyber" => Ok(kyber::replay(&check()?)),
        "deadline" => mq_deadline(DeadlineGeneration::A),
        "mq-deadline" => mq_deadline(kernel_of(header).generation().deadline),
        other => Err(NotReplayed::Unsupported { scheduler: other.to_owned() }),
    }
}

/// The group of a recording in reports: its scheduler, or "switch" if the scheduler changes during the recording.
#[must_use]
pub fn pool_of(trace: &Trace) -> String {
    if parts::switches(trace) { "switch".to_owned() } else { trace.header.scheduler.clone() }
}
