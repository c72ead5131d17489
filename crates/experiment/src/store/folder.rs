//! A folder of files that are complete or absent.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sweep::{Key, Sweep, SweepError};

use crate::store::error::DatasetError;
use crate::store::runs_file::{self, RunsFile};

/// A data set on disk.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Creates the folder if it does not exist.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn create(path: &Path) -> Result<Folder, DatasetError> {
        let folder = Folder { path: path.to_owned() };
        for subfolder in [folder.sweeps(), folder.runs()] {
            fs::create_dir_all(&subfolder).map_err(DatasetError::written(path))?;
        }
        Ok(folder)
    }

    /// Opens an existing data set.
    ///
    /// # Errors
    /// If it contains no sweeps.
    pub fn open(path: &Path) -> Result<Folder, DatasetError> {
        fs::read_dir(path).map_err(DatasetError::read(path))?;
        let folder = Folder { path: path.to_owned() };
        if folder.sweeps().is_dir() && folder.runs().is_dir() {
            Ok(folder)
        } else {
            Err(DatasetError::NoSweep(folder.path))
        }
    }

    /// The path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn sweeps(&self) -> PathBuf {
        self.path.join("sweeps")
    }

    pub(crate) fn runs(&self) -> PathBuf {
        self.path.join("runs")
    }

    /// Adds a sweep. An existing sweep with the same key stays.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add_sweep(&self, sweep: &Sweep) -> Result<(), DatasetError> {
        let (text, key) = (sweep.to_json()?, sweep.key()?);
        let path = self.sweeps().join(format!("{key}.json"));
        if path.exists() {
            return self.read_sweep(&path).map(|_| ());
        }
        write_file(&path, text.as_bytes())
    }

    /// Returns the sweep with this key, or the only sweep of this version.
    ///
    /// # Errors
    /// If there is none, or if there are several and none is chosen.
    pub fn sweep(&self, requested: Option<Key>) -> Result<Sweep, DatasetError> {
        let mut sweeps = Vec::new();
        let mut other_version = None;
        for path in complete_files(&self.sweeps(), "json")? {
            let key = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if requested.is_some_and(|requested| requested.to_string() != key) {
                continue;
            }
            match self.read_sweep(&path) {
                Ok(sweep) => sweeps.push((key, sweep)),
                Err(error @ DatasetError::Sweep { .. }) => other_version = Some(error),
                Err(error) => return Err(error),
            }
        }
        match sweeps.len() {
            0 => Err(other_version.unwrap_or_else(|| DatasetError::NoSweep(self.path.clone()))),
            1 => Ok(sweeps.remove(0).1),
            _ => {
                let keys = sweeps.into_iter().map(|(key, _)| key).collect();
                Err(DatasetError::SeveralSweeps { path: self.path.clone(), keys })
            }
        }
    }

    fn read_sweep(&self, path: &Path) -> Result<Sweep, DatasetError> {
        let text = String::from_utf8(read(path)?)
            .map_err(|_| DatasetError::Damaged { path: path.to_owned(), problem: "it is not text".to_owned() })?;
        let key = Key::of(&[text.as_bytes()]).to_string();
        if path.file_stem().is_none_or(|stem| *stem != *key) {
            let problem = "its content does not match its name".to_owned();
            return Err(DatasetError::Damaged { path: path.to_owned(), problem });
        }
        Sweep::from_json(&text).map_err(|error| match error {
            SweepError::Damaged(problem) => DatasetError::Damaged { path: path.to_owned(), problem },
            error => DatasetError::Sweep { path: path.to_owned(), error },
        })
    }

    /// Adds finished runs. They are on disk when the call returns.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn add_runs(&self, runs: &RunsFile) -> Result<(), DatasetError> {
        let bytes = runs.bytes();
        write_file(&self.runs().join(format!("{}.jsonl", Key::of(&[&bytes]))), &bytes)
    }
}

impl Folder {
    /// Adds a [file of runs](RunsFile::bytes) from another machine, after a check for damage. Returns the number of runs
    /// in it.
    ///
    /// # Errors
    /// If it is damaged or of another version, or cannot be written.
    pub fn add_made(&self, bytes: &[u8]) -> Result<usize, DatasetError> {
        let path = self.runs().join(format!("{}.jsonl", Key::of(&[bytes])));
        let Some((header, _)) = runs_file::read_header(&path, bytes)? else {
            let problem = "another version of hoistway made it".to_owned();
            return Err(DatasetError::Damaged { path, problem });
        };
        if !header.runs.is_empty() {
            write_file(&path, bytes)?;
        }
        Ok(header.runs.len())
    }
}

/// Replaces a file atomically: it is either complete or unchanged.
///
/// # Errors
/// Errors of `write`, or if the file cannot be written.
pub fn complete_file<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, DatasetError>,
) -> Result<T, DatasetError> {
    let temporary = temporary_path(path);
    let written = || {
        let mut file = BufWriter::new(File::create(&temporary).map_err(DatasetError::written(path))?);
        let outcome = write(&mut file)?;
        let file = file.into_inner().map_err(|error| DatasetError::written(path)(error.into_error()))?;
        rename_into_place(&file, &temporary, path).map_err(DatasetError::written(path))?;
        Ok(outcome)
    };
    written().inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })
}

/// The complete files with this extension, by name.
pub(crate) fn complete_files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, DatasetError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(DatasetError::read(folder))? {
        let path = entry.map_err(DatasetError::read(folder))?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if !is_hidden && path.extension().is_some_and(|is| is == extension) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Reads a regular file. Anything else, such as a pipe, may have no end and is refused.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, DatasetError> {
    let is_file = fs::metadata(path).map(|metadata| metadata.is_file());
    let bytes = is_file.and_then(|is_file| if is_file { fs::read(path) } else { Err(io::Error::other("not a file")) });
    bytes.map_err(DatasetError::read(path))
}

/// Writes a file atomically and syncs it to disk.
fn write_file(path: &Path, bytes: &[u8]) -> Result<(), DatasetError> {
    complete_file(path, |file| file.write_all(bytes).map_err(DatasetError::written(path)))
}

/// A hidden name in the same folder, unique among all machines that share the folder.
fn temporary_path(path: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    path.with_file_name(format!(".{name}.{}.{}.{number}.part", host.trim(), std::process::id()))
}

/// Renames a temporary file to its final name. Both the file and its name must survive a power failure.
fn rename_into_place(file: &File, temporary: &Path, path: &Path) -> io::Result<()> {
    file.sync_all()?;
    fs::rename(temporary, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}
