//! Outputs: standard output, or a file that is either complete or absent.
//!
//! Used by: `ending`; crates `hoistway`, `evidence`.
//! Tests: `crates/hoistway/tests/cli/ending.rs`, `crates/hoistway/tests/cli/overwriting.rs`.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::ValueEnum;

use crate::closed::is_stdout_closed;

/// If a FIFO has no reader for this long, its name is printed.
const FIFO_NOTICE_DELAY: Duration = Duration::from_secs(1);

const CLOSED: &str = "standard output is closed (expected an open one)";

/// How results are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
}

/// Output format of results that are also pasted into documents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum DocumentFormat {
    /// For people.
    #[default]
    Table,
    /// Everything, for programs.
    Json,
    /// For web pages and issues.
    Markdown,
}

/// An output for results.
pub enum Output {
    /// Standard output.
    Standard,
    /// A regular file: written to a temporary file and renamed at the end.
    File {
        /// The name given by the user.
        name: PathBuf,
        /// Its path after resolving all symbolic links.
        path: PathBuf,
        /// The temporary file.
        temporary: PathBuf,
    },
    /// A device, a pipe or the like, which must not be replaced.
    Special {
        /// The name given by the user.
        name: PathBuf,
        /// The open file.
        file: fs::File,
    },
}

impl Output {
    /// Checks that `file`, if given, can be written, before any work is done.
    pub fn open(file: Option<&Path>) -> Result<Output> {
        let Some(name) = file.map(Path::to_owned) else {
            return if is_stdout_closed() { Err(anyhow!(CLOSED)) } else { Ok(Output::Standard) };
        };
        let kind = fs::metadata(&name).map(|metadata| metadata.file_type());
        if kind.as_ref().is_ok_and(fs::FileType::is_dir) {
            return Err(anyhow!("{}: is a directory (expected a file to write the results to)", name.display()));
        }
        if let Ok(kind) = kind.as_ref()
            && !kind.is_file()
        {
            // Opening a FIFO waits for its reader.
            let opened = open_with_notice(kind.is_fifo(), &name, || fs::OpenOptions::new().write(true).open(&name));
            let file = opened.with_context(|| cannot_be_written(&name))?;
            return Ok(Output::Special { name, file });
        }
        let path = resolve_links(&name).with_context(|| cannot_be_written(&name))?;
        let last = path
            .file_name()
            .ok_or_else(|| anyhow!("{}: expected the name of a file to write the results to", name.display()))?;
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(last);
        // Machines may share the folder, and know only their own processes.
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        prefix.push(format!(".{}.", host.trim()));
        remove_abandoned(&path, &prefix);
        let mut hidden = prefix;
        hidden.push(format!("{}.part", std::process::id()));
        let temporary = path.with_file_name(hidden);
        // Only checks that it can be created, so that a killed process leaves no temporary file.
        fs::write(&temporary, b"")
            .and_then(|()| fs::remove_file(&temporary))
            .with_context(|| cannot_be_written(&name))?;
        Ok(Output::File { name, path, temporary })
    }

    /// Opens the file of `option`, which must differ from that of `results`.
    pub fn beside(option: &str, file: &Path, results: &Output) -> Result<Output> {
        let output = Output::open(Some(file))?;
        if output.is_same_file(results) {
            return Err(anyhow!("{option} {}: is also the output file (expected another file)", file.display()));
        }
        Ok(output)
    }

    /// Writes the results.
    pub fn write(self, content: impl AsRef<[u8]>) -> Result<()> {
        match &self {
            Output::File { name, path, temporary } => replace(path, temporary, content.as_ref()).or_else(|error| {
                // The folder has disappeared or is full: print the results rather than lose them.
                Output::Standard.write_to_file_only(content.as_ref())?;
                Err(error).context("the results are on standard output instead").context(cannot_be_written(name))
            }),
            Output::Standard | Output::Special { .. } => self.write_to_file_only(content),
        }
    }

    /// Writes additional output to its file only: a page or picture is useless on a terminal.
    pub fn write_to_file_only(self, content: impl AsRef<[u8]>) -> Result<()> {
        let bytes = content.as_ref();
        match &self {
            Output::Standard if is_stdout_closed() => Err(anyhow!(CLOSED)),
            Output::Standard => {
                let mut out = io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush()).context("standard output: cannot be written")
            }
            Output::File { name, path, temporary } => {
                replace(path, temporary, bytes).with_context(|| cannot_be_written(name))
            }
            Output::Special { name, file } => (&*file).write_all(bytes).with_context(|| cannot_be_written(name)),
        }
    }

    /// Opens the output for incremental writing.
    pub fn stream(self) -> Result<Stream> {
        let (name, opened) = match &self {
            Output::Standard => return Err(anyhow!("expected the name of a file")),
            Output::File { name, temporary, .. } => (name.clone(), fs::File::create(temporary)),
            Output::Special { name, file } => (name.clone(), file.try_clone()),
        };
        let file = opened.with_context(|| cannot_be_written(&name))?;
        Ok(Stream { output: self, name, file, bytes: 0 })
    }

    /// Whether both outputs are the same regular file.
    pub fn is_same_file(&self, other: &Output) -> bool {
        match (self, other) {
            (Output::File { name: first, .. }, Output::File { name: second, .. }) => is_same_path(first, second),
            _ => false,
        }
    }

    fn is_terminal(&self) -> bool {
        matches!(self, Output::Standard) && io::stdout().is_terminal()
    }

    /// Width of the display, if known: the terminal, or else `COLUMNS`.
    fn columns(&self) -> Option<u16> {
        if self.is_terminal() {
            return Some(console::Term::stdout().size().1);
        }
        let columns = std::env::var("COLUMNS").ok()?.parse().ok()?;
        (columns > 0).then_some(columns)
    }

    /// Width of prose in characters.
    pub fn text_width(&self) -> usize {
        usize::from(self.columns().unwrap_or(80)).clamp(40, 100)
    }

    /// The style of tables on this output.
    pub fn style(&self) -> hoistway_render::text::Style {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        hoistway_render::text::Style {
            colour: self.is_terminal() && !plain,
            width: self.columns(),
            wide: false,
            ascii: false,
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Output::File { temporary, .. } = self {
            // After a successful write the temporary file no longer exists.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// An output for incremental writing. Until it is [finished](Stream::finish), its file has a temporary name.
pub struct Stream {
    output: Output,
    name: PathBuf,
    file: fs::File,
    bytes: u64,
}

impl Stream {
    /// The name given by the user.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Renames the file to its final name. Returns its length in bytes.
    pub fn finish(self) -> Result<u64> {
        if let Output::File { path, temporary, .. } = &self.output {
            // fsync before the rename, so that the file is complete or absent even after a power failure.
            let renamed = self.file.sync_all().and_then(|()| fs::rename(temporary, path));
            renamed.with_context(|| cannot_be_written(&self.name))?;
        }
        Ok(self.bytes)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Opens a file; after a second, prints the name of a FIFO without a reader.
fn open_with_notice<T>(is_fifo: bool, name: &Path, open: impl FnOnce() -> T) -> T {
    if !is_fifo {
        return open();
    }
    let (finished, wait) = mpsc::channel::<()>();
    let printed_name = name.display().to_string();
    let watch = thread::spawn(move || {
        if wait.recv_timeout(FIFO_NOTICE_DELAY) == Err(RecvTimeoutError::Timeout) {
            eprintln!("waiting for a reader of the FIFO {printed_name:?}");
        }
    });
    let result = open();
    drop(finished);
    // `finished` is dropped, so the thread ends at once.
    let _ = watch.join();
    result
}

/// The path after resolving symbolic links; the last one may be dangling.
fn resolve_links(name: &Path) -> io::Result<PathBuf> {
    const LINKS_MAX: usize = 40;
    let mut path = name.to_owned();
    for _ in 0..LINKS_MAX {
        if let Ok(canonical) = fs::canonicalize(&path) {
            return Ok(canonical);
        }
        match fs::read_link(&path) {
            // A relative link starts from its own folder, an absolute one replaces the path.
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Removes the temporary files of this output, such as `.out.json.HOST.123.part`, whose processes on this machine were killed.
fn remove_abandoned(path: &Path, prefix: &std::ffi::OsStr) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.as_bytes().strip_prefix(prefix.as_bytes()).and_then(|rest| rest.strip_suffix(b".part"));
        let process = process.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
            // A file that cannot be removed is in nobody's way.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Replaces the file at `path` atomically by one with these bytes.
fn replace(path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::write(temporary, bytes).and_then(|()| fs::rename(temporary, path))
}

/// Whether both names resolve to the same path.
pub fn is_same_path(first: &Path, second: &Path) -> bool {
    let resolved = |name: &Path| {
        let path = std::path::absolute(resolve_links(name).ok()?).ok()?;
        Some(fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?))
    };
    first == second || resolved(first).is_some_and(|first| resolved(second) == Some(first))
}

/// Rejects the same file for two options. Pairs of an option and its file.
pub fn different(files: &[(&str, &Option<PathBuf>)]) -> Result<()> {
    let given: Vec<_> = files.iter().filter_map(|(option, file)| Some((option, file.as_ref()?))).collect();
    for (number, (option, file)) in given.iter().enumerate() {
        if let Some((other, _)) = given[..number].iter().find(|(_, other)| is_same_path(other, file)) {
            return Err(anyhow!("{option} {}: is also the file of {other} (expected another file)", file.display()));
        }
    }
    Ok(())
}

/// The message for a file that cannot be written.
pub fn cannot_be_written(name: &Path) -> String {
    format!("{}: cannot be written (expected a file in a folder that exists and may be written to)", name.display())
}

/// Whether `error` only means that the reader has closed our output.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
