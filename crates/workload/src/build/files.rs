//! Which file a process uses, and where it lies.

use std::collections::HashMap;

use crate::JobFileError;
use crate::checks::JobContext;
use crate::plan::{JobPlan, OwnFile};
use crate::values::Amount;

/// The distinct files, and the space that files without a name take.
#[derive(Default)]
pub(super) struct Files {
    names: Vec<String>,
    by_name: HashMap<String, u32>,
    /// For each file: where the next file of a job without `filename` goes on it.
    free_bytes: Vec<u64>,
    own: u64,
}

impl Files {
    /// Index of the file of a clone, and where it lies if it is the clone's own.
    pub(super) fn of(
        &mut self,
        context: &JobContext<'_>,
        plan: &JobPlan,
        clone: u32,
    ) -> Result<(u32, Option<OwnFile>), JobFileError> {
        let settings = context.settings;
        let directory = settings.directory.as_deref();
        if let Some(name) = settings.filename.as_deref() {
            return Ok((self.index(&directory.map_or_else(|| name.to_owned(), |d| format!("{d}/{name}"))), None));
        }
        let file = self.index(directory.unwrap_or("."));
        let bytes = match (plan.size, plan.offset, plan.offset_increment) {
            (Some(Amount::Bytes(size)), Amount::Bytes(offset), Amount::Bytes(increment)) => {
                increment.checked_mul(u64::from(clone)).and_then(|i| i.checked_add(offset)?.checked_add(size))
            }
            _ => {
                let error = context.error("size", "the job has no filename, so its size must be given in bytes");
                return Err(error.hinting("set filename to the device, or size to the bytes of each process"));
            }
        };
        let start_bytes = self.free_bytes[file as usize];
        let end = bytes.and_then(|bytes| start_bytes.checked_add(bytes)?.checked_next_multiple_of(ALIGN_BYTES));
        let (Some(bytes), Some(end)) = (bytes, end) else {
            return Err(context.error("size", "the files of the jobs are too large"));
        };
        self.free_bytes[file as usize] = end;
        self.own += 1;
        Ok((file, Some(OwnFile { start_bytes, bytes })))
    }

    fn index(&mut self, name: &str) -> u32 {
        if let Some(&index) = self.by_name.get(name) {
            return index;
        }
        let index = self.names.len() as u32;
        self.by_name.insert(name.to_owned(), index);
        self.names.push(name.to_owned());
        self.free_bytes.push(0);
        index
    }

    /// How many files without a name there are.
    pub(super) fn own_files(&self) -> u64 {
        self.own
    }

    pub(super) fn into_names(self) -> Vec<String> {
        self.names
    }
}

/// Files start at multiples of this, as a file system places them.
const ALIGN_BYTES: u64 = 4096;
