//! The output files of a recording.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use hoistway_trace::block::{CpuFile, Device};
use rustix::fs::Access;

use super::error::RecordError;
use super::sidecar::{ENDING, RecordedHost};

/// Bytes to buffer before writing.
const BUFFER_BYTES: usize = 256 << 10;
/// Bytes of a blktrace record without its payload.
const HEADER_BYTES: usize = 48;
const PAYLOAD_BYTES_AT: usize = 46;

/// The path of a recording's file: its name with a suffix.
pub(crate) fn with_suffix(name: &Path, suffix: &str) -> PathBuf {
    let mut path = name.as_os_str().to_owned();
    path.push(suffix);
    PathBuf::from(path)
}

/// The folder of a recording with this name.
pub(crate) fn folder(name: &Path) -> &Path {
    name.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes the files of an earlier recording with this name, which may have had more CPUs.
///
/// # Errors
/// If the folder cannot be read, or a file cannot be removed.
pub(crate) fn remove_older(name: &Path) -> io::Result<()> {
    let Some(file) = name.file_name() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let mut prefix = file.as_encoded_bytes().to_vec();
    prefix.extend_from_slice(b".blktrace.");
    for entry in fs::read_dir(folder(name))? {
        let entry = entry?;
        let file_name = entry.file_name();
        let cpu = file_name.as_encoded_bytes().strip_prefix(&prefix[..]);
        if cpu.is_some_and(|cpu| !cpu.is_empty() && cpu.iter().all(u8::is_ascii_digit)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A file of blktrace records, written in large pieces. Even after an error it ends with a complete record.
#[derive(Debug)]
pub(crate) struct RecordFile {
    file: File,
    buffer: Vec<u8>,
    /// Bytes in the file.
    bytes: u64,
}

impl RecordFile {
    pub(crate) fn create(path: &Path) -> io::Result<RecordFile> {
        Ok(RecordFile { file: File::create(path)?, buffer: Vec::with_capacity(2 * BUFFER_BYTES), bytes: 0 })
    }

    /// Writes the buffer if it is large enough, or `in_any_case`.
    pub(crate) fn write_out(&mut self, force: bool) -> io::Result<()> {
        if !force && self.buffer.len() < BUFFER_BYTES {
            return Ok(());
        }
        let written = self.write_buffer();
        self.buffer.clear();
        written
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        let mut written = 0;
        while written < self.buffer.len() {
            match self.file.write(&self.buffer[written..]) {
                Ok(bytes) if bytes > 0 => written += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => {
                    self.bytes += complete_record_bytes(&self.buffer, written) as u64;
                    self.file.set_len(self.bytes)?;
                    return Err(result.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into()));
                }
            }
        }
        self.bytes += written as u64;
        Ok(())
    }

    /// Bytes of the file and the buffer.
    pub(crate) fn len(&self) -> u64 {
        self.bytes + self.buffer.len() as u64
    }
}

impl Write for RecordFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_out(true)
    }
}

/// Bytes of the complete records before `end`.
fn complete_record_bytes(records: &[u8], end: usize) -> usize {
    let mut at = 0;
    loop {
        let Some(length) = records.get(at + PAYLOAD_BYTES_AT..).and_then(|bytes| bytes.first_chunk()) else {
            return at;
        };
        let next = at + HEADER_BYTES + usize::from(u16::from_le_bytes(*length));
        if next > end {
            return at;
        }
        at = next;
    }
}

/// The files of a recording.
pub(crate) struct Files {
    /// The files of the CPUs that are online.
    pub(crate) cpu_files: Vec<CpuFile<RecordFile>>,
    /// All paths.
    pub(crate) paths: Vec<PathBuf>,
    /// The path of the host file.
    pub(crate) host: PathBuf,
}

impl Files {
    pub(crate) fn create(name: &Path, host: &RecordedHost, cpus: &[u32], device: Device) -> Result<Files, RecordError> {
        let mut files = Files { cpu_files: Vec::new(), paths: Vec::new(), host: with_suffix(name, ENDING) };
        let result = files.create_all(name, host, cpus, device);
        result.map_err(|error| {
            // Leave no incomplete files behind.
            files.paths.iter().chain([&files.host]).for_each(|path| drop(fs::remove_file(path)));
            RecordError::io(name.display().to_string(), &error, "a name in a writable folder")
        })?;
        Ok(files)
    }

    fn create_all(&mut self, name: &Path, host: &RecordedHost, cpus: &[u32], device: Device) -> io::Result<()> {
        remove_older(name)?;
        write_host(&self.host, host)?;
        // blkparse stops at the first missing number, so CPUs that are offline have empty files.
        for cpu in 0..=cpus.last().copied().unwrap_or(0) {
            let path = with_suffix(name, &format!(".blktrace.{cpu}"));
            let file = RecordFile::create(&path)?;
            self.paths.push(path);
            if cpus.contains(&cpu) {
                self.cpu_files.push(CpuFile::new(file, cpu, device));
            }
        }
        Ok(())
    }
}

/// Writes a temporary file and renames it.
pub(crate) fn write_host(path: &Path, host: &RecordedHost) -> io::Result<()> {
    let temporary = with_suffix(path, ".part");
    let text = serde_json::to_string_pretty(host).map_err(io::Error::other)? + "\n";
    let written = fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, path));
    written.inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// Rejects a recording name whose files cannot be created.
pub(crate) fn check_name(name: &Path) -> Result<(), RecordError> {
    let refuse = |problem: &str| {
        let expected = "NAME in an existing writable folder: the files are NAME.blktrace.N";
        Err(RecordError::new(name.display().to_string(), problem, expected))
    };
    let text = name.as_os_str().as_encoded_bytes();
    if name.file_name().is_none() || text.ends_with(b"/") || text.ends_with(b"/.") {
        return refuse("this is not a recording name");
    }
    let access = rustix::fs::access(folder(name), Access::WRITE_OK | Access::EXEC_OK);
    access.or_else(|error| refuse(&std::io::Error::from(error).to_string()))
}

#[cfg(test)]
mod tests {
    use hoistway_trace::block::{Action, Event};

    use super::*;

    #[test]
    fn a_file_that_cannot_be_finished_ends_with_a_whole_record() {
        let mut file = CpuFile::new(Vec::new(), 0, Device::default());
        file.event(&Event::new(Action::Queue)).unwrap();
        file.name(1, 2, b"task").unwrap();
        file.event(&Event::new(Action::Complete)).unwrap();
        let records = std::mem::take(file.get_mut());
        assert_eq!(records.len(), 48 + 64 + 48);
        for (end, whole) in [(0, 0), (47, 0), (48, 48), (111, 48), (112, 112), (159, 112), (160, 160)] {
            assert_eq!(complete_record_bytes(&records, end), whole, "{end}");
        }
    }

    #[test]
    fn an_older_recording_is_removed_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["x.blktrace.0", "x.blktrace.17", "x.blktrace.txt", "x.blktrace.", "xx.blktrace.0", "x"] {
            fs::write(folder.path().join(file), "").unwrap();
        }
        remove_older(&folder.path().join("x")).unwrap();
        let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["x", "x.blktrace.", "x.blktrace.txt", "xx.blktrace.0"]);
    }

    #[test]
    fn a_name_without_a_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["missing/x", "", ".", "x/"] {
            let error = check_name(&folder.path().join(name)).err().map(|error| error.to_string());
            let is_refused = error.is_some_and(|error| error.contains("expected NAME in an existing"));
            assert!(is_refused || name.is_empty() || name == ".", "{name}");
        }
        assert_eq!(check_name(&folder.path().join("x")), Ok(()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
