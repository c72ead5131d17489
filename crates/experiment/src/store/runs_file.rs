//! A file of finished runs: a header line with the key and length of each, then the runs, one line each.

use std::path::Path;

use crate::sweep::{Key, RunRecord, Shard, VERSION};
use serde::{Deserialize, Serialize};

use crate::store::error::DatasetError;

/// The format at the start of the file. The number grows when old readers would misread the file.
const FORMAT: &str = "hoistway-runs/1";

/// Finished runs that are written as one file.
#[derive(Clone, Debug)]
pub struct RunsFile {
    shard: Shard,
    runs: Vec<(Key, u32)>,
    body: Vec<u8>,
}

/// The header line.
#[derive(Serialize, Deserialize)]
pub(crate) struct Header {
    format: String,
    pub(crate) version: String,
    pub(crate) shard: Shard,
    /// Hash of everything after the header line.
    body: Key,
    /// The runs: keys and bytes of their lines.
    pub(crate) runs: Vec<(Key, u32)>,
}

impl RunsFile {
    /// An empty file for the runs of this shard.
    #[must_use]
    pub fn new(shard: Shard) -> RunsFile {
        RunsFile { shard, runs: Vec::new(), body: Vec::new() }
    }

    /// Adds a run.
    pub fn push(&mut self, key: Key, record: &RunRecord<'_>) {
        let before = self.body.len();
        serde_json::to_writer(&mut self.body, record).expect("plain data, and memory takes all");
        self.body.push(b'\n');
        self.runs.push((key, (self.body.len() - before) as u32));
    }

    /// Number of runs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether it contains no runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let header = Header {
            format: FORMAT.to_owned(),
            version: VERSION.to_owned(),
            shard: self.shard,
            body: Key::of(&[&self.body]),
            runs: self.runs.clone(),
        };
        let mut bytes = serde_json::to_vec(&header).expect("plain data");
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// Returns the header line and the offset of the body, after a check of the hash. `None` for a file of another version, whose
/// content is unknown here.
///
/// # Errors
/// If it is damaged.
pub(crate) fn read_header(path: &Path, bytes: &[u8]) -> Result<Option<(Header, u64)>, DatasetError> {
    let damaged = |problem: String| DatasetError::Damaged { path: path.to_owned(), problem };
    let end =
        bytes.iter().position(|&byte| byte == b'\n').ok_or_else(|| damaged("its first line has no end".to_owned()))?;
    #[derive(Deserialize)]
    struct FileFormat {
        format: String,
        version: String,
    }
    let line = &bytes[..end];
    let written: FileFormat =
        serde_json::from_slice(line).map_err(|error| damaged(format!("its first line: {error}")))?;
    if written.version != VERSION {
        return Ok(None);
    }
    if written.format != FORMAT {
        return Err(damaged(format!("its format is {:?}, not {FORMAT:?}", written.format)));
    }
    let header: Header = serde_json::from_slice(line).map_err(|error| damaged(format!("its first line: {error}")))?;
    let body = &bytes[end + 1..];
    if Key::of(&[body]) != header.body
        || header.runs.iter().map(|(_, bytes)| *bytes as usize).sum::<usize>() != body.len()
    {
        return Err(damaged("its runs do not match its first line".to_owned()));
    }
    Ok(Some((header, end as u64 + 1)))
}
