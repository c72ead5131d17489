//! How faithful is it? Replays recordings of real kernels (`iosched-trace/1`) and compares every decision.
//!
//! A recording says what was inside a scheduler at every moment, what it was asked and what it answered. The replay
//! builds the scheduler under test from the recording's header, feeds it the same events and asks it the same
//! questions; after each it goes on from the *kernel's* answer, so that one difference does not become many.
//!
//! Before that [`consistency`] sees to it that the events fit together.
//!
//! [`score`] holds the four numbers that come out, [`policy`] the replay of schedulers, [`cfq`] that of the one that
//! depends on allocations, exits and the microsecond, [`kyber`] that of the one that is no policy behind a lock,
//! [`none`] that of the block layer without one, [`report`] the documents.

mod bench;
pub mod bfq;
pub mod cfq;
pub mod consistency;

pub mod kyber;
mod kyber_domains;
pub mod none;
mod parts;
mod plugs;
pub mod policy;
pub mod report;
pub mod score;

use hoistway_blk::ground::{DeadlineGeneration, Kernel};
use hoistway_blk::schedulers::{MqDeadline, MqDeadlineConfig, Noop};
use hoistway_trace::iosched::{Header, Trace};

pub use consistency::{Consistent, Inconsistency};
pub use report::{Interrupted, Refused, Report, TraceReport};
pub use score::{Mismatch, Outcome, OwnController, Score};

/// Why a recording was not replayed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotReplayed {
    /// There is no scheduler of ours for it.
    Unsupported {
        /// The scheduler in force when the recording, or a part of it, starts.
        scheduler: String,
    },
    /// Its events contradict each other.
    Inconsistent(Inconsistency),
}

impl std::fmt::Display for NotReplayed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotReplayed::Unsupported { scheduler } => write!(
                f,
                "scheduler \"{}\" cannot be replayed yet (expected none, mq-deadline, kyber, bfq, noop, deadline or cfq)",
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

/// The release whose behaviour a recording shows, by the kernel string of its header: `Linux`, the release, and more. The
/// newest, if it cannot be read.
#[must_use]
pub fn kernel_of(header: &Header) -> Kernel {
    let mut words = header.kernel.split_whitespace();
    words.find_map(|word| word.parse().ok()).unwrap_or(Kernel::DEFAULT)
}

/// Replays a recording with our scheduler in the place of the kernel's.
///
/// # Errors
/// If there is no scheduler of ours for it, or if its events contradict each other.
pub fn replay(trace: &Trace) -> Result<Outcome, NotReplayed> {
    if !parts::switches(trace) {
        return replay_one(trace);
    }
    let mut outcome = Outcome::default();
    for part in parts::parts(trace) {
        let of_part = replay_one(&part)?;
        outcome.score.add(&of_part.score);
        outcome.unknown_events += of_part.unknown_events;
        let room = score::MISMATCHES_KEPT - outcome.mismatches.len();
        outcome.mismatches.extend(of_part.mismatches.into_iter().take(room));
    }
    Ok(outcome)
}

fn replay_one(trace: &Trace) -> Result<Outcome, NotReplayed> {
    let header = &trace.header;
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

/// The name under which a recording is pooled: its scheduler, or "switch" if that is changed on the way.
#[must_use]
pub fn pool_of(trace: &Trace) -> String {
    if parts::switches(trace) { "switch".to_owned() } else { trace.header.scheduler.clone() }
}
