//! Places the files of processes on devices.
//!
//! A file with a name (`filename`) is a device. Files without a name are placed one after the other on a device that is
//! named after their directory.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use hoistway_load::{Amount, OwnFile, Pattern, PlacedFile, Purpose, Stream};

use crate::JobFileError;
use crate::options::Job;

/// The distinct devices, and the space used by unnamed files.
#[derive(Default)]
pub(super) struct Files {
    names: Vec<String>,
    by_name: HashMap<String, u32>,
    /// For each device, the offset of the next unnamed file, bytes.
    free_bytes: Vec<u64>,
    /// Files named by `filename_format`, by device and name.
    generated: HashMap<(u32, String), OwnFile>,
    own_files: u64,
}

/// The files of a process.
#[derive(Clone)]
pub(super) struct ProcessFiles {
    /// The devices, each once.
    pub(super) devices: Arc<[u32]>,
    pub(super) placed: Arc<[PlacedFile]>,
}

/// Maximum devices of one process.
const DEVICES_MAX: usize = hoistway_load::limits::DEVICES;
/// Maximum unnamed files of all processes.
const OWN_FILES_MAX: u64 = 1 << 20;

impl Files {
    /// The files of a job that names them; all its clones share them.
    pub(super) fn named(&mut self, job: &Job<'_>) -> Result<ProcessFiles, JobFileError> {
        let settings = &job.settings.files;
        let directory = settings.directories.first();
        let mut indices: Vec<u32> = Vec::with_capacity(settings.names.len());
        for name in &settings.names {
            indices.push(match directory {
                Some(directory) => self.index(&format!("{directory}/{name}")),
                None => self.index(name),
            });
        }
        let (devices, positions) = deduplicate(&indices).ok_or_else(|| {
            job.error("filename", &format!("names more than {DEVICES_MAX} devices")).with_hint("use several jobs")
        })?;
        let placed = positions.into_iter().map(|device| PlacedFile { device, own: None }).collect();
        Ok(ProcessFiles { devices, placed })
    }

    /// The devices of a replay, and the device of each of its files.
    pub(super) fn replay_devices(
        &mut self,
        job: &Job<'_>,
        names: &[String],
    ) -> Result<(Arc<[u32]>, Vec<u8>), JobFileError> {
        let indices: Vec<u32> = match &job.settings.replay.redirect {
            Some(device) => vec![self.index(device); names.len()],
            None => names.iter().map(|name| self.index(name)).collect(),
        };
        deduplicate(&indices).ok_or_else(|| job.error("read_iolog", "the log has too many files"))
    }

    /// The unnamed files of a clone.
    pub(super) fn allocate_unnamed(
        &mut self,
        job: &Job<'_>,
        pattern: &Pattern,
        clone: u32,
        process: u32,
    ) -> Result<ProcessFiles, JobFileError> {
        let settings = &job.settings.files;
        let directories = &settings.directories;
        let directory = directories.get(clone as usize % directories.len().max(1)).map_or(".", String::as_str);
        let device = self.index(directory);
        let mut sizes = Stream::new(0, u64::from(process), Purpose::FileSize);
        let count = settings.count();
        let mut placed = Vec::with_capacity(count as usize);
        for number in 0..count {
            let bytes = unnamed_file_bytes(job, pattern, clone, &mut sizes)?;
            let own = match &settings.format {
                Some(format) => {
                    let name = generated_name(format, &job.section.name, clone, number);
                    self.generated_file(job, device, name, bytes)?
                }
                None => self.allocate(job, device, bytes)?,
            };
            placed.push(PlacedFile { device: 0, own: Some(own) });
        }
        Ok(ProcessFiles { devices: Arc::new([device]), placed: placed.into() })
    }

    /// The file with this name from `filename_format`, which an earlier process may already have.
    fn generated_file(
        &mut self,
        job: &Job<'_>,
        device: u32,
        name: String,
        bytes: u64,
    ) -> Result<OwnFile, JobFileError> {
        if let Some(&existing) = self.generated.get(&(device, name.clone())) {
            if existing.bytes < bytes {
                let message = format!("{name:?} has {} bytes in an earlier process, but {bytes} here", existing.bytes);
                return Err(job
                    .error("filename_format", &message)
                    .with_hint("give the processes that share files the same size"));
            }
            return Ok(OwnFile { bytes, ..existing });
        }
        let own = self.allocate(job, device, bytes)?;
        if let Entry::Vacant(entry) = self.generated.entry((device, name)) {
            entry.insert(own);
        }
        Ok(own)
    }

    /// Allocates space for a file.
    fn allocate(&mut self, job: &Job<'_>, device: u32, bytes: u64) -> Result<OwnFile, JobFileError> {
        let start_bytes = self.free_bytes[device as usize];
        let end = start_bytes.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(ALIGN_BYTES));
        let Some(end) = end.filter(|_| self.own_files < OWN_FILES_MAX) else {
            return Err(job.error("size", "the files of the jobs are too large, or too many"));
        };
        self.free_bytes[device as usize] = end;
        self.own_files += 1;
        Ok(OwnFile { start_bytes, bytes })
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

    /// The number of unnamed files.
    pub(super) fn own_files(&self) -> u64 {
        self.own_files
    }

    /// The paths of regular files that lie in one directory, and so probably on one disk, though each is a device here: by directory.
    pub(super) fn neighbours(&self) -> Vec<(&str, Vec<&str>)> {
        let mut by_directory: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for name in self.names.iter().filter(|name| name.starts_with('/') && !name.starts_with("/dev/")) {
            if let Some((directory, _)) = name.rsplit_once('/') {
                by_directory.entry(directory).or_default().push(name);
            }
        }
        by_directory.into_iter().filter(|(_, names)| names.len() > 1).collect()
    }

    pub(super) fn into_names(self) -> Vec<String> {
        self.names
    }
}

/// The distinct indices, and the position of each of `indices` among them; `None` if there are too many.
fn deduplicate(indices: &[u32]) -> Option<(Arc<[u32]>, Vec<u8>)> {
    let mut devices: Vec<u32> = Vec::with_capacity(1);
    let mut positions = Vec::with_capacity(indices.len());
    for &index in indices {
        let position = devices.iter().position(|&known| known == index).unwrap_or(devices.len());
        if position == devices.len() {
            devices.push(index);
        }
        if devices.len() > DEVICES_MAX {
            return None;
        }
        positions.push(position as u8);
    }
    Some((devices.into(), positions))
}

/// The size of an unnamed file of a clone.
fn unnamed_file_bytes(job: &Job<'_>, pattern: &Pattern, clone: u32, sizes: &mut Stream) -> Result<u64, JobFileError> {
    let volume = &pattern.volume;
    if let Some((least, most)) = volume.file_bytes {
        return Ok((least + sizes.below(most - least + 1)) & !511);
    }
    let size = volume.size.map(|size| size.part_of(job.settings.files.count()));
    let bytes = match (size, volume.offset, volume.offset_increment) {
        (Some(Amount::Bytes(size)), Amount::Bytes(offset), Amount::Bytes(increment)) => {
            increment.checked_mul(u64::from(clone)).and_then(|i| i.checked_add(offset)?.checked_add(size))
        }
        _ => {
            let error = job.error("size", "the job has no filename, so its size must be given in bytes");
            return Err(error.with_hint("set filename to the device, or size in bytes for each process"));
        }
    };
    // A file occupies whole sectors.
    let bytes = bytes.and_then(|bytes| bytes.checked_next_multiple_of(512));
    bytes.ok_or_else(|| job.error("size", "the files of the jobs are too large"))
}

/// Expands `filename_format` to a file's name.
fn generated_name(format: &str, job: &str, clone: u32, number: u64) -> String {
    format.replace("$jobname", job).replace("$jobnum", &clone.to_string()).replace("$filenum", &number.to_string())
}

/// Files start at multiples of this, as a file system places them.
const ALIGN_BYTES: u64 = 4096;
