//! Where results go: standard output, or a file that is either complete or not there.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::ValueEnum;

/// Waiting longer than this for the reader of a FIFO prints its name.
const PATIENCE: Duration = Duration::from_secs(1);

/// How results are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
}

/// The same where results stand in documents, too.
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

/// The place for results.
pub enum Output {
    /// Standard output.
    Standard,
    /// An ordinary file: written beside its place and renamed at the end.
    File {
        /// As the user named it.
        name: PathBuf,
        /// Where it is, behind all symbolic links.
        place: PathBuf,
        /// Where it is written before.
        beside: PathBuf,
    },
    /// A device, a pipe or the like, which has to stay what it is.
    Special {
        /// As the user named it.
        name: PathBuf,
        /// It, open for writing.
        file: fs::File,
    },
}

impl Output {
    /// Checks that `file`, if given, can be written, before any work is done.
    pub fn open(file: Option<&Path>) -> Result<Output> {
        let Some(name) = file.map(Path::to_owned) else { return Ok(Output::Standard) };
        let kind = fs::metadata(&name).map(|metadata| metadata.file_type());
        if kind.as_ref().is_ok_and(fs::FileType::is_dir) {
            return Err(anyhow!("{}: is a directory (expected a file to write the results to)", name.display()));
        }
        if let Ok(kind) = kind.as_ref()
            && !kind.is_file()
        {
            // Opening one waits for its reader.
            let opened = patiently(kind.is_fifo(), &name, || fs::OpenOptions::new().write(true).open(&name));
            let file = opened.with_context(|| cannot_be_written(&name))?;
            return Ok(Output::Special { name, file });
        }
        let place = behind_links(&name).with_context(|| cannot_be_written(&name))?;
        let last = place
            .file_name()
            .ok_or_else(|| anyhow!("{}: expected the name of a file to write the results to", name.display()))?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(last);
        hidden.push(format!(".{}.part", std::process::id()));
        let beside = place.with_file_name(hidden);
        // Only a trial: whatever ends this process later leaves nothing behind.
        fs::write(&beside, b"").and_then(|()| fs::remove_file(&beside)).with_context(|| cannot_be_written(&name))?;
        Ok(Output::File { name, place, beside })
    }

    /// The same of a file for something that goes beside the `results`, as an option asks for.
    pub fn beside(option: &str, file: &Path, results: &Output) -> Result<Output> {
        let output = Output::open(Some(file))?;
        if output.is_same_file(results) {
            return Err(anyhow!("{option} {}: the results go to this file (expected another one)", file.display()));
        }
        Ok(output)
    }

    /// Writes the results.
    pub fn write(self, content: impl AsRef<[u8]>) -> Result<()> {
        match &self {
            Output::File { name, place, beside } => replace(place, beside, content.as_ref()).or_else(|error| {
                // The folder has gone meanwhile, or is full: what took so long to reckon is not thrown away.
                Output::Standard.write_there(content.as_ref())?;
                Err(error).context("the results are on standard output instead").context(cannot_be_written(name))
            }),
            Output::Standard | Output::Special { .. } => self.write_there(content),
        }
    }

    /// Writes what goes beside the results, and nowhere else: a page or a picture is of no use on a terminal.
    pub fn write_there(self, content: impl AsRef<[u8]>) -> Result<()> {
        let bytes = content.as_ref();
        match &self {
            Output::Standard => {
                let mut out = io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush()).context("standard output: cannot be written")
            }
            Output::File { name, place, beside } => {
                replace(place, beside, bytes).with_context(|| cannot_be_written(name))
            }
            Output::Special { name, file } => (&*file).write_all(bytes).with_context(|| cannot_be_written(name)),
        }
    }

    /// Opens it to be written bit by bit.
    pub fn stream(self) -> Result<Stream> {
        let (name, opened) = match &self {
            Output::Standard => return Err(anyhow!("expected the name of a file")),
            Output::File { name, beside, .. } => (name.clone(), fs::File::create(beside)),
            Output::Special { name, file } => (name.clone(), file.try_clone()),
        };
        let file = opened.with_context(|| cannot_be_written(&name))?;
        Ok(Stream { output: self, name, file, bytes: 0 })
    }

    /// Whether both are the same file.
    pub fn is_same_file(&self, other: &Output) -> bool {
        match (self, other) {
            (Output::File { name: one, .. }, Output::File { name: other, .. }) => is_one_place(one, other),
            _ => false,
        }
    }

    fn is_terminal(&self) -> bool {
        matches!(self, Output::Standard) && io::stdout().is_terminal()
    }

    /// Columns of what the results are shown on, if anything says so: the terminal, or else `COLUMNS`.
    fn columns(&self) -> Option<u16> {
        if self.is_terminal() {
            return Some(console::Term::stdout().size().1);
        }
        let columns = std::env::var("COLUMNS").ok()?.parse().ok()?;
        (columns > 0).then_some(columns)
    }

    /// Characters of a line of prose.
    pub fn text_width(&self) -> usize {
        usize::from(self.columns().unwrap_or(80)).clamp(40, 100)
    }

    /// How tables look there.
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
        if let Output::File { beside, .. } = self {
            // After a successful write it is no longer there.
            let _ = fs::remove_file(beside);
        }
    }
}

/// A place that is written bit by bit. Until it is [finished](Stream::finish), its file has another name.
pub struct Stream {
    output: Output,
    name: PathBuf,
    file: fs::File,
    bytes: u64,
}

impl Stream {
    /// As the user named it.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Puts the file in its place. Returns its length in bytes.
    pub fn finish(self) -> Result<u64> {
        if let Output::File { place, beside, .. } = &self.output {
            // Complete, or absent: also after a loss of power.
            let renamed = self.file.sync_all().and_then(|()| fs::rename(beside, place));
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

/// Opens a file, and names a FIFO that has no reader after a second.
fn patiently<T>(is_fifo: bool, name: &Path, open: impl FnOnce() -> T) -> T {
    if !is_fifo {
        return open();
    }
    let (opened, waits) = mpsc::channel::<()>();
    let shown = name.display().to_string();
    let watch = thread::spawn(move || {
        if waits.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            eprintln!("waiting for a reader of the FIFO {shown:?}");
        }
    });
    let result = open();
    drop(opened);
    // It ends at once.
    let _ = watch.join();
    result
}

/// Where a file is, or will be: a link that leads to nothing yet is followed as well.
fn behind_links(name: &Path) -> io::Result<PathBuf> {
    const LINKS_MAX: usize = 40;
    let mut place = name.to_owned();
    for _ in 0..LINKS_MAX {
        if let Ok(there) = fs::canonicalize(&place) {
            return Ok(there);
        }
        match fs::read_link(&place) {
            // A relative link starts from its own folder, an absolute one replaces it.
            Ok(target) => place = place.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(place),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Replaces the file at `place` by one with these bytes, or leaves it as it is.
fn replace(place: &Path, beside: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::write(beside, bytes).and_then(|()| fs::rename(beside, place))
}

/// Whether both names lead, or will lead, to one place.
pub fn is_one_place(one: &Path, other: &Path) -> bool {
    let place = |name: &Path| {
        let place = std::path::absolute(behind_links(name).ok()?).ok()?;
        Some(fs::canonicalize(place.parent()?).ok()?.join(place.file_name()?))
    };
    one == other || place(one).is_some_and(|one| place(other) == Some(one))
}

/// Refuses one file for two things: options, and the files that they name.
pub fn different(files: &[(&str, &Option<PathBuf>)]) -> Result<()> {
    let given: Vec<_> = files.iter().filter_map(|(option, file)| Some((option, file.as_ref()?))).collect();
    for (number, (option, file)) in given.iter().enumerate() {
        if let Some((other, _)) = given[..number].iter().find(|(_, other)| is_one_place(other, file)) {
            return Err(anyhow!("{option} {}: {other} goes to this file (expected another one)", file.display()));
        }
    }
    Ok(())
}

/// How an error says so.
pub fn cannot_be_written(name: &Path) -> String {
    format!("{}: cannot be written (expected a file in a folder that exists and may be written to)", name.display())
}

/// Whether `error` is only that nobody reads our output any more.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
