//! Compares recorded lines of bfq's internal state with ours.

use hoistway_blk::schedulers::{BfqQueueLabel, BfqStateChange, BfqStateLine};
use hoistway_trace::iosched::{BfqState, QueueName};
use serde_json::Value;

/// A state line in comparable form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ComparedLine {
    /// The queue it is about.
    pub queue: Option<QueueName>,
    /// Its kind.
    pub kind: String,
    /// Its numbers and words, in the order of our fields.
    pub fields: Vec<(&'static str, String)>,
}

impl std::fmt::Display for ComparedLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(queue) = self.queue {
            write!(f, " {queue}")?;
        }
        self.fields.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

/// The compared fields of a kind of line; `None` if the kind is not compared.
fn fields_of(kind: &str) -> Option<&'static [&'static str]> {
    Some(match kind {
        "new" | "busy" | "idle" | "fifo" | "merge" | "split_queue" => &[],
        "serve" | "rebudget" | "max_budget" => &["budget"],
        "expire" => &["reason", "slow", "in_driver", "short_think"],
        "vtime" => &["start", "finish", "delta", "service", "weight"],
        "budget_inputs" => &["sync", "seeky", "last", "left", "queue_max", "min"],
        "budget" => &["head_n", "budget"],
        "raised" => &["since_ms", "max_ms", "coeff", "weight", "base_weight"],
        "merge_planned" => &["with"],
        "waker" | "waker_candidate" => &["pid"],
        "rate_reset" => &["samples", "sequential", "sectors"],
        _ => return None,
    })
}

/// A recorded line, if its kind is compared.
pub(super) fn recorded(state: &BfqState) -> Option<ComparedLine> {
    let fields = fields_of(&state.kind)?.iter().map(|&name| {
        let value = match state.fields.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        };
        (name, value)
    });
    Some(ComparedLine { queue: state.queue, kind: state.kind.to_string(), fields: fields.collect() })
}

/// One of our lines, if its kind is compared.
pub(super) fn ours(line: &BfqStateLine) -> Option<ComparedLine> {
    use BfqStateChange as Change;
    let bit = |flag: bool| u8::from(flag).to_string();
    let pid = |context: Option<hoistway_blk::ground::IoContextId>| match context {
        Some(context) => context.0.to_string(),
        None => "-1".to_owned(),
    };
    let (kind, values) = match &line.what {
        Change::New => ("new", vec![]),
        Change::Busy => ("busy", vec![]),
        Change::Idle => ("idle", vec![]),
        Change::Serve { budget } => ("serve", vec![budget.to_string()]),
        Change::Expire { reason, slow, in_driver, short_think } => {
            ("expire", vec![reason.text().to_owned(), bit(*slow), in_driver.to_string(), bit(*short_think)])
        }
        Change::Vtime { start, finish, delta, service, weight } => {
            ("vtime", [start, finish, delta, service, weight].map(u64::to_string).to_vec())
        }
        Change::BudgetInputs { sync, seeky, last, left, queue_max, min } => (
            "budget_inputs",
            vec![bit(*sync), bit(*seeky), last.to_string(), left.to_string(), queue_max.to_string(), min.to_string()],
        ),
        Change::Budget { head_n, budget } => ("budget", vec![head_n.to_string(), budget.to_string()]),
        Change::Rebudget { budget } => ("rebudget", vec![budget.to_string()]),
        Change::Raised { since_ms, max_ms, coeff, weight, base_weight } => {
            let mut values = vec![since_ms.to_string(), max_ms.to_string()];
            values.extend([coeff, weight, base_weight].map(u64::to_string));
            ("raised", values)
        }
        Change::MergePlanned { with } => ("merge_planned", vec![with.0.to_string()]),
        Change::Merge => ("merge", vec![]),
        Change::SplitQueue => ("split_queue", vec![]),
        Change::WakerCandidate { io_context } => ("waker_candidate", vec![pid(*io_context)]),
        Change::Waker { io_context } => ("waker", vec![pid(*io_context)]),
        Change::RateReset { samples, sequential, sectors } => {
            ("rate_reset", vec![samples.to_string(), sequential.to_string(), sectors.to_string()])
        }
        Change::MaxBudget { budget } => ("max_budget", vec![budget.to_string()]),
        Change::Fifo => ("fifo", vec![]),
        Change::Limit { .. } | Change::OverLimit { .. } | Change::Kick => return None,
    };
    let fields = fields_of(kind)?.iter().copied().zip(values).collect();
    let name =
        |label: BfqQueueLabel| QueueName { owner: label.io_context.map(|id| id.0), sync: label.sync, noidle: false };
    Some(ComparedLine { queue: line.queue.map(name), kind: kind.to_owned(), fields })
}

/// A difference between the two sequences.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LineDifference {
    /// Time of the recorded line, or of the last one before ours, ns.
    pub t_ns: u64,
    /// The recorded line; `None` if ours is superfluous.
    pub recorded: Option<ComparedLine>,
    /// Our line; `None` if it is missing.
    pub ours: Option<ComparedLine>,
}

/// Compares lines in order. After a difference it continues at the next common line, so that a missing line does not
/// affect the rest. Returns the number of equal lines, and the differences.
pub(super) fn compare(recorded: &[(u64, ComparedLine)], ours: &[ComparedLine]) -> (u64, Vec<LineDifference>) {
    /// Maximum number of lines to look ahead for the next common line; assumed.
    const AHEAD: usize = 40;
    let (mut i, mut j, mut equal) = (0, 0, 0);
    let mut differences = Vec::new();
    while i < recorded.len() || j < ours.len() {
        if i < recorded.len() && j < ours.len() && recorded[i].1 == ours[j] {
            (i, j, equal) = (i + 1, j + 1, equal + 1);
            continue;
        }
        let common_after = |skip: usize| {
            (0..=skip).find_map(|left| {
                let right = skip - left;
                let same = recorded.get(i + left).is_some_and(|(_, line)| ours.get(j + right) == Some(line));
                same.then_some((left, right))
            })
        };
        let (left, right) = (1..AHEAD).find_map(common_after).unwrap_or((1, 1));
        for step in 0..left.max(right) {
            let recorded_line = (step < left).then(|| recorded.get(i + step)).flatten();
            let our_line = (step < right).then(|| ours.get(j + step)).flatten();
            if recorded_line.is_some() || our_line.is_some() {
                let t_ns =
                    recorded_line.or(recorded.get(i.min(recorded.len().saturating_sub(1)))).map_or(0, |&(t, _)| t);
                let recorded = recorded_line.map(|(_, line)| line.clone());
                differences.push(LineDifference { t_ns, recorded, ours: our_line.cloned() });
            }
        }
        (i, j) = (i + left, j + right);
    }
    (equal, differences)
}
