//! Checking what was written. What is in the blocks does not matter here; that they are read again does.

use super::setter::{Setter, U32_MAX};
use super::spec::OptionSpec;

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

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "verify",
        "0",
        Setter::Choice { of: METHODS, set: |s, i| s.verify = i > 0 },
        "Read what was written again at the end of each pass; which method checks it makes no difference",
    ),
    OptionSpec::new(
        "do_verify",
        "1",
        Setter::Bool(|s, on| s.do_verify = on),
        "Whether a job with verify that writes reads it again",
    ),
    OptionSpec::new(
        "verify_backlog",
        "0",
        Setter::Int { min: 0, max: U32_MAX, set: |s, v| s.verify_backlog = v },
        "Read after each so many writes what they have written; 0 for at the end of the pass",
    ),
    OptionSpec::new(
        "verify_backlog_batch",
        "",
        Setter::Int { min: 0, max: U32_MAX, set: |s, v| s.verify_backlog_batch = v },
        "How many blocks of the backlog are read at a time: all of them is what is supported",
    ),
];
