//! Verification of written data. The content of blocks is not simulated, but reading them again is.

use hoistway_load::{Direction, Process};

use super::Job;
use super::Subject;
use super::{OptionSpec, Setter, U32_MAX, row};
use crate::JobFileError;

#[derive(Clone, Debug, Default)]
pub(crate) struct Verify {
    is_on: bool,
    /// `do_verify=0`
    is_left_out: bool,
    /// Number of writes; 0 for a whole pass.
    backlog: i64,
    batch: i64,
}

pub(super) const SUBJECT: Subject =
    Subject { rows: ROWS, land, fields: &[("plan.pattern.verify_backlog", |_| "verify")] };

const ROWS: &[OptionSpec] = &[
    row("verify", "0", Setter::Choice { of: METHODS, set: |s, i| s.verify.is_on = i > 0 })
        .doc("Read what was written again at the end of each pass; which method checks it makes no difference"),
    row("do_verify", "1", Setter::Bool(|s, on| s.verify.is_left_out = !on))
        .doc("Whether a job with verify that writes reads it again"),
    row("verify_backlog", "0", Setter::Int { min: 0, max: U32_MAX, set: |s, v| s.verify.backlog = v })
        .doc("Read back after every N writes; 0 for at the end of the pass"),
    row("verify_backlog_batch", "", Setter::Int { min: 0, max: U32_MAX, set: |s, v| s.verify.batch = v })
        .doc("How many blocks of the backlog are read at a time: all of them is what is supported"),
];

fn land(job: &Job<'_>, process: &mut Process) -> Result<(), JobFileError> {
    let s = &job.settings.verify;
    let pattern = process.plan.pattern_mut();
    if !s.is_on || s.is_left_out || matches!(pattern.direction, Direction::Read | Direction::Trim) {
        return Ok(());
    }
    if s.backlog > 0 && s.batch != 0 && s.batch != s.backlog {
        let error = job.error("verify_backlog_batch", "a part of the backlog at a time is not supported");
        return Err(error.with_hint("leave it out: the whole backlog is read"));
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
