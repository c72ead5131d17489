//! Options of verification. The content of blocks is not simulated, but reading them back is.

use hoistway_load::{Direction, Process};

use super::Job;
use super::Subject;
use super::{OptionSpec, Setter, U32_MAX, row};
use crate::JobFileError;

#[derive(Clone, Debug, Default)]
pub(crate) struct Verify {
    is_on: bool,
    /// `do_verify=0`
    is_disabled: bool,
    /// Writes between two verifications; 0 for a whole pass.
    backlog: i64,
    batch: i64,
}

pub(super) const SUBJECT: Subject =
    Subject { rows: ROWS, apply, fields: &[("plan.pattern.verify_backlog", |_| "verify")] };

const ROWS: &[OptionSpec] = &[
    row("verify", "0", Setter::Choice { words: METHODS, set: |s, i| s.verify.is_on = i > 0 })
        .doc("Read written blocks back at the end of each pass; the method makes no difference"),
    row("do_verify", "1", Setter::Bool(|s, on| s.verify.is_disabled = !on))
        .doc("Whether a job with verify reads back what it writes"),
    row("verify_backlog", "0", Setter::Int { min: 0, max: U32_MAX, set: |s, v| s.verify.backlog = v })
        .doc("Read back after every N writes; 0 for the end of the pass"),
    row("verify_backlog_batch", "", Setter::Int { min: 0, max: U32_MAX, set: |s, v| s.verify.batch = v })
        .doc("Blocks of the backlog to read at a time; only all of them is supported"),
];

fn apply(job: &Job<'_>, process: &mut Process) -> Result<(), JobFileError> {
    let s = &job.settings.verify;
    let pattern = process.plan.pattern_mut();
    if !s.is_on || s.is_disabled || matches!(pattern.direction, Direction::Read | Direction::Trim) {
        return Ok(());
    }
    if s.backlog > 0 && s.batch != 0 && s.batch != s.backlog {
        let error = job.error("verify_backlog_batch", "reading a part of the backlog at a time is not supported");
        return Err(error.with_hint("remove it: the whole backlog is read"));
    }
    pattern.verify_backlog = Some(if s.backlog == 0 { u64::MAX } else { s.backlog.unsigned_abs() });
    Ok(())
}

/// fio's methods; the first is none.
const METHODS: &[&str] = &[
    "0",
    "md5",
    "crc64",
    "crc32",
    "crc32c-intel",
    "crc32c",
    "crc16",
    "crc7",
    "sha1",
    "sha256",
    "sha512",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "xxhash",
    "meta",
    "pattern",
    "null",
];
