//! A debugging aid: replays cfq without corrections and compares its messages with the kernel's. The first difference
//! is almost always the cause.

use hoistway_trace::iosched::EventKind;

use super::CfqReplay;
use crate::conform::consistency::Consistent;

/// Replays cfq without corrections, and returns the first message or decision that differs from the kernel's; `None` if
/// all are equal.
#[must_use]
pub fn first_difference(recording: &Consistent<'_>) -> Option<String> {
    let mut replay = CfqReplay::new(recording);
    let mut messages = MessageComparison::default();
    for (index, event) in recording.trace().events.iter().enumerate() {
        if let EventKind::Msg { text, .. } = &event.kind {
            messages.kernel.push((event.line, text.to_string()));
        }
        replay.event(index, event);
        messages.ours.extend(replay.logged.drain(..).map(|message| (event.line, message.to_string())));
        if let Some(difference) = messages.compare() {
            return Some(difference);
        }
        if let Some(mismatch) = replay.bench.outcome.mismatches.first() {
            return Some(format!(
                "line {}: the kernel dispatched {}, we dispatched {} ({})",
                mismatch.line, mismatch.kernel, mismatch.ours, mismatch.reason
            ));
        }
    }
    let [kernel, ours] = [messages.kernel.len(), messages.ours.len()];
    (kernel.abs_diff(ours) > MESSAGES_MISSING_MAX)
        .then(|| format!("the kernel logged {kernel} messages, we logged {ours}"))
}

/// A recording may end between an event and its messages; at most this many may be missing at the end.
const MESSAGES_MISSING_MAX: usize = 8;

/// The two sequences of messages, with the lines of the recording that they belong to.
#[derive(Default)]
struct MessageComparison {
    kernel: Vec<(u64, String)>,
    ours: Vec<(u64, String)>,
    /// Number of messages compared so far.
    compared: usize,
}

/// Maximum difference of measured times, ns: the kernel's execution time between two clock readings.
const TOLERANCE: u64 = 200_000;

impl MessageComparison {
    /// The first difference among the messages since the last call.
    fn compare(&mut self) -> Option<String> {
        while let (Some(kernel), Some(ours)) = (self.kernel.get(self.compared), self.ours.get(self.compared)) {
            if !are_equivalent(&kernel.1, &ours.1) {
                let context: Vec<String> = self.ours[self.compared.saturating_sub(12)..self.compared]
                    .iter()
                    .map(|(line, text)| format!("    {line} {text}\n"))
                    .collect();
                return Some(format!(
                    "{}  the kernel logged (line {}): {}\n  we logged (line {}): {}",
                    context.concat(),
                    kernel.0,
                    kernel.1,
                    ours.0,
                    ours.1
                ));
            }
            self.compared += 1;
        }
        None
    }
}

/// Whether two messages are equivalent. Measured times may differ slightly; virtual times are ignored.
fn are_equivalent(kernel: &str, ours: &str) -> bool {
    // Addresses are hidden in the recordings.
    let kernel = kernel.split("(____").next().unwrap_or(kernel).trim_end();
    if kernel.starts_with("served:") && ours.starts_with("served:") {
        return true;
    }
    let measured = ["resid=", "sl_used=", "think_time:"].iter().any(|key| kernel.contains(key));
    if !measured {
        return kernel == ours;
    }
    let split = |text: &str| -> Vec<String> { text.split([' ', '=', ':']).map(str::to_owned).collect() };
    let (kernel, ours) = (split(kernel), split(ours));
    kernel.len() == ours.len()
        && kernel.iter().zip(&ours).all(|(kernel, ours)| match (kernel.parse::<i64>(), ours.parse::<i64>()) {
            (Ok(kernel), Ok(ours)) => kernel.abs_diff(ours) <= TOLERANCE,
            _ => kernel == ours,
        })
}
