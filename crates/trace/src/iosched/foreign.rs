//! Recognises files that are not recordings, for a helpful error.

use std::borrow::Cow;

use serde::Deserialize;

use super::FORMAT;
use super::error::Problem;

/// First bytes of formats that users are likely to pass.
const SIGNATURES: &[(&[u8], &str)] = &[
    // The magic number 0x65617400 with the format version in its last byte, in both byte orders.
    (b"\x07tae", "a binary blktrace file"),
    (b"eat\x07", "a binary blktrace file"),
    (b"\x17\x08\x44tracing", "a binary trace-cmd file"),
    (b"PERFILE2", "a perf.data file"),
    (b"fio version ", "a fio iolog"),
    (b"# tracer:", "ftrace text"),
    (b"\x28\xb5\x2f\xfd", "zstd data (unpack it first)"),
    (b"\xfd7zXZ\0", "xz data (unpack it first)"),
    (b"BZh", "bzip2 data (unpack it first)"),
    (b"PK\x03\x04", "a zip archive (unpack it first)"),
    (b"\x1f\x8b", "gzip data inside gzip data"),
];

/// Returns an error unless `line`, the first of a file, is the header of a recording.
pub(super) fn check(line: &[u8]) -> Result<(), Problem> {
    #[derive(Deserialize)]
    struct Format<'a> {
        #[serde(borrow)]
        format: Option<Cow<'a, str>>,
    }
    if !looks_like_json(line) {
        return Err(Problem::Foreign { found: describe(line).to_owned() });
    }
    let Format { format } = serde_json::from_slice(line).map_err(|error| Problem::from_json(&error, line))?;
    let found = match format.as_deref() {
        Some(FORMAT) => return Ok(()),
        Some(other) if other.starts_with("iosched-trace/") => {
            format!("the version \"{}\", which this reader does not know", other.escape_debug())
        }
        Some(other) => format!("\"format\":\"{}\"", other.chars().take(80).collect::<String>().escape_debug()),
        None => "JSON without a `format` key".to_owned(),
    };
    Err(Problem::Foreign { found })
}

/// Whether `line` could at all be a JSON object.
pub(super) fn looks_like_json(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"{")
}

/// The apparent format of a file with this first line.
pub(super) fn describe(line: &[u8]) -> &'static str {
    if let Some((_, name)) = SIGNATURES.iter().find(|(start, _)| line.starts_with(start)) {
        return name;
    }
    let start = &line[..line.len().min(512)];
    // Text that is cut in the middle of a character is still text.
    let text = match std::str::from_utf8(start) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&start[..error.valid_up_to()]).unwrap_or(""),
        Err(_) => return "binary data of an unknown kind",
    };
    if text.chars().any(|c| c.is_control() && !c.is_whitespace()) {
        "binary data of an unknown kind"
    } else if text.trim_start().starts_with('[') {
        "a JSON array"
    } else {
        "plain text"
    }
}
