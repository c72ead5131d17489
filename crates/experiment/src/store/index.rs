//! Index of the runs in a folder.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use crate::sweep::{Key, RunRecord, Shard};

use crate::store::error::DatasetError;
use crate::store::folder::{Folder, complete_files, read};
use crate::store::runs_file;

/// The location of each run; takes some 40 bytes of memory per run.
#[derive(Debug, Default)]
pub struct Index {
    files: Vec<PathBuf>,
    runs: HashMap<Key, Slot>,
    shards: BTreeSet<Shard>,
    /// Files of other versions, which are not read.
    other_versions: Vec<PathBuf>,
}

/// The location of a run's line.
#[derive(Clone, Copy, Debug)]
struct Slot {
    file: u32,
    bytes: u32,
    offset: u64,
}

impl Index {
    /// Reads every file once and verifies its checksum.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn of(folder: &Folder) -> Result<Index, DatasetError> {
        let mut index = Index::default();
        for path in complete_files(&folder.runs(), "jsonl")? {
            let bytes = read(&path)?;
            let Some((header, mut offset)) = runs_file::read_header(&path, &bytes)? else {
                index.other_versions.push(path);
                continue;
            };
            let file = index.files.len() as u32;
            for (key, bytes) in header.runs {
                index.runs.insert(key, Slot { file, bytes, offset });
                offset += u64::from(bytes);
            }
            index.shards.insert(header.shard);
            index.files.push(path);
        }
        Ok(index)
    }

    /// Whether the run exists.
    #[must_use]
    pub fn holds(&self, key: Key) -> bool {
        self.runs.contains_key(&key)
    }

    /// Files of other versions of Hoistway, which are not read.
    #[must_use]
    pub fn other_versions(&self) -> &[PathBuf] {
        &self.other_versions
    }

    /// The number of shards, if all files were made by shards of the same number.
    pub(crate) fn shards(&self) -> Option<u64> {
        let mut counts: Vec<u64> = self.shards.iter().map(|shard| shard.of()).collect();
        counts.dedup();
        if let [one] = counts[..] { Some(one) } else { None }
    }
}

/// Reads runs; keeps a limited number of files open.
pub(crate) struct Reader<'a> {
    index: &'a Index,
    open: BTreeMap<u32, Arc<File>>,
    line: Vec<u8>,
}

/// Maximum open files; below the limit of every system.
const OPEN_MAX: usize = 200;

impl<'a> Reader<'a> {
    pub(crate) fn new(index: &'a Index) -> Self {
        Reader { index, open: BTreeMap::new(), line: Vec::new() }
    }

    /// Reads a run, if it exists.
    pub(crate) fn read(&mut self, key: Key) -> Result<Option<RunRecord<'_>>, DatasetError> {
        let Some(&Slot { file: number, bytes, offset }) = self.index.runs.get(&key) else { return Ok(None) };
        let path = &self.index.files[number as usize];
        let file = match self.open.get(&number) {
            Some(file) => Arc::clone(file),
            None => {
                if self.open.len() >= OPEN_MAX {
                    self.open.clear();
                }
                let file = Arc::new(File::open(path).map_err(DatasetError::read(path))?);
                self.open.insert(number, Arc::clone(&file));
                file
            }
        };
        self.line.resize(bytes as usize, 0);
        file.read_exact_at(&mut self.line, offset).map_err(DatasetError::read(path))?;
        let damaged =
            |error: serde_json::Error| DatasetError::Damaged { path: path.clone(), problem: error.to_string() };
        serde_json::from_slice(&self.line).map(Some).map_err(damaged)
    }
}
