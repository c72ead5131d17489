//! Judges the result of replaying an altered recording: it must be a score, or one error that names file and line.

use hoistway_evidence::conform::{Consistent, NotReplayed, cfq, replay};
use hoistway_trace::iosched::Trace;

/// The result of replaying a recording.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Received {
    /// It was replayed, or there is no scheduler for it.
    Replayed,
    /// The reader refused it.
    Unreadable,
    /// Its events contradict each other.
    Inconsistent,
}

/// Reads and replays `lines` as `hoistway conform` does. Returns an error that does not name file and line.
pub fn receive(lines: &[String]) -> Result<Received, String> {
    let text = lines.join("\n") + "\n";
    let trace = match Trace::read(text.as_bytes(), "altered.jsonl") {
        Ok(trace) => trace,
        Err(error) => {
            let error = error.to_string();
            let place = error.strip_prefix("altered.jsonl:").and_then(|rest| rest.split_once(": "));
            let line = place.and_then(|(line, _)| line.parse::<usize>().ok());
            let named = line.is_some_and(|line| (1..=lines.len()).contains(&line)) && !error.contains('\n');
            return if named { Ok(Received::Unreadable) } else { Err(error) };
        }
    };
    match replay(&trace) {
        Ok(_) => {
            if let ("cfq", Ok(recording)) = (trace.header.scheduler.as_str(), Consistent::check(&trace)) {
                let _ = cfq::first_difference(&recording);
            }
            Ok(Received::Replayed)
        }
        Err(NotReplayed::Unsupported { .. }) => Ok(Received::Replayed),
        Err(NotReplayed::Inconsistent(error)) => {
            let named = (1..=lines.len() as u64).contains(&error.line) && !error.problem.contains('\n');
            if named { Ok(Received::Inconsistent) } else { Err(error.to_string()) }
        }
    }
}
