//! bfq's lines about its internal state: debugging aids, which a scheduler need not reproduce.

use serde_json::{Map, Value};

use super::error::Problem;
use super::io::QueueName;

/// One line about bfq's internal state.
///
/// The fields depend on the kind and are kept unparsed, because only comparisons read them: see
/// `crates/evidence/traces/README.md`.
#[derive(Clone, PartialEq, Debug)]
pub struct BfqState {
    /// The kind of line, the file's `k`: `busy`, `serve`, `expire`, `vtime`, ...
    pub kind: Box<str>,
    /// The queue concerned; `None` if the line concerns the whole device.
    pub queue: Option<QueueName>,
    /// All other fields of the line. A `pid` here is a field of the kind (the waker), not the context of the event.
    pub fields: Map<String, Value>,
}

impl BfqState {
    /// The integer field `name`.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<i64> {
        self.fields.get(name)?.as_i64()
    }

    /// The text field `name`.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name)?.as_str()
    }

    pub(super) fn parse(line: &[u8]) -> Result<BfqState, Problem> {
        let mut fields: Map<String, Value> =
            serde_json::from_slice(line).map_err(|error| Problem::from_json(&error, line))?;
        // These were parsed before.
        fields.shift_remove("t");
        fields.shift_remove("e");
        let kind = match fields.shift_remove("k") {
            Some(Value::String(kind)) => kind.into_boxed_str(),
            Some(other) => return Err(Problem::bad_field("k", "the kind of a bfq line", other)),
            None => return Err(Problem::MissingField { event: "bfq", field: "k" }),
        };
        let queue = match fields.shift_remove("q") {
            None => None,
            Some(name) => match name.as_str().and_then(QueueName::parse) {
                None => return Err(Problem::bad_field("q", super::raw::QUEUE_NAME, name)),
                queue => queue,
            },
        };
        Ok(BfqState { kind, queue, fields })
    }
}
