//! Input from users: files, standard input and the environment.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use hoistway_experiment::{CallerEnvironment, Field};
use hoistway_fio::{LogSource, log_in_memory};
use hoistway_terminal::files::{Identity, identity, spare};
use hoistway_trace::block::{Columns, Input, ReadError, Recording};

/// Maximum size of a file in bytes: stops endless input (`/dev/zero`).
const BYTES_MAX: u64 = 64 << 20;

/// After waiting this long for a file, its name is printed.
const OPEN_NOTICE_DELAY: Duration = Duration::from_secs(1);

/// The environment of the command line.
#[derive(Default)]
pub(crate) struct CommandLine {
    /// The files read so far.
    read: Mutex<Vec<Identity>>,
    /// Path and content of a pipe that was read to detect its type, for the next reader.
    buffered: Mutex<Option<(PathBuf, Vec<u8>)>>,
    /// Whether it belongs to `hoistway run`, where an option has a different name.
    is_real: bool,
}

impl CommandLine {
    /// The environment of `hoistway run`.
    pub(crate) fn of_real_runs() -> CommandLine {
        CommandLine { is_real: true, ..CommandLine::default() }
    }

    fn remember(&self, path: &Path) {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).extend(identity(path));
    }

    /// Refuses to overwrite a file that the command has read.
    pub(crate) fn spare(&self, output: &Path) -> Result<()> {
        spare(&self.read.lock().unwrap_or_else(PoisonError::into_inner), output)
    }
}

impl CallerEnvironment for CommandLine {
    /// The content of a file, or of standard input for `-`. The size is limited: a pipe or a file of the kernel may
    /// never end.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.remember(path);
        let buffered = self.buffered.lock().unwrap_or_else(PoisonError::into_inner).take();
        let bytes = match buffered.filter(|(buffered_path, _)| buffered_path == path) {
            Some((_, bytes)) => bytes,
            None => read_with_notice(path, read_limited)??,
        };
        if bytes.len() as u64 > BYTES_MAX {
            return Err(io::Error::other("longer than 64 MiB"));
        }
        Ok(bytes)
    }

    /// Standard input and pipes can be read only once: if the content is not a recording, it is held for
    /// [`CallerEnvironment::read`].
    fn recording(&self, path: &Path, columns: Option<&Columns>) -> Result<Option<Recording>, ReadError> {
        let is_standard_input = path == Path::new("-");
        let file_type = fs::metadata(path).map(|metadata| metadata.file_type());
        if !is_standard_input && file_type.as_ref().map_or(true, |file_type| file_type.is_file() || file_type.is_dir())
        {
            let recording = if file_type.is_ok() { Recording::open_if_any(path, columns)? } else { None };
            if recording.is_some() {
                self.remember(path);
            }
            return Ok(recording);
        }
        let name = if is_standard_input { "standard input".to_owned() } else { path.display().to_string() };
        let unreadable = |error: io::Error| ReadError::file(&name, error.to_string(), "a recording or a job file");
        let (input_name, columns) = (name.clone(), columns.cloned());
        let first = read_with_notice(path, move |reader| {
            let input = Input::new(&input_name, reader)?;
            match columns {
                Some(columns) => Recording::table(input, &columns).map(Ok),
                None => Recording::read_if_any(input),
            }
        });
        match first.map_err(unreadable)?? {
            Ok(recording) => Ok(Some(recording)),
            Err(rest) => {
                let bytes = read_limited(rest).map_err(unreadable)?;
                *self.buffered.lock().unwrap_or_else(PoisonError::into_inner) = Some((path.to_owned(), bytes));
                Ok(None)
            }
        }
    }

    /// A pipe can be read only once, so its content is held in memory.
    fn log(&self, path: &Path) -> io::Result<Arc<dyn LogSource>> {
        if fs::metadata(path)?.is_file() {
            self.remember(path);
            return Ok(Arc::new(LogFile(path.to_owned())));
        }
        self.read(path).map(log_in_memory)
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn name(&self, field: Field) -> String {
        if self.is_real && field == Field::Schedulers { "--scheduler".to_owned() } else { field.option().to_owned() }
    }
}

#[derive(Debug)]
struct LogFile(PathBuf);

impl LogSource for LogFile {
    fn open(&self) -> io::Result<Box<dyn BufRead + Send>> {
        Ok(Box::new(BufReader::new(File::open(&self.0)?)))
    }
}

/// Reads a file, or standard input for `-`, on a separate thread, and prints its name if that takes long.
fn read_with_notice<T: Send + 'static>(
    path: &Path,
    read: impl FnOnce(Box<dyn Read + Send>) -> T + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = mpsc::channel();
    let owned_path = path.to_owned();
    thread::spawn(move || {
        let reader = if owned_path == Path::new("-") {
            Ok(Box::new(io::stdin()) as Box<dyn Read + Send>)
        } else {
            File::open(&owned_path).map(|file| Box::new(file) as _)
        };
        // Fails only if the program is ending.
        sender.send(reader.map(read)).ok();
    });
    let content = receiver.recv_timeout(OPEN_NOTICE_DELAY).or_else(|_| {
        let name = if path == Path::new("-") { "standard input".into() } else { path.to_string_lossy() };
        eprintln!("reading {name:?} until its end");
        receiver.recv()
    });
    content.unwrap_or_else(|_| Err(io::Error::other("reading was interrupted")))
}

/// One byte more than allowed, to detect that it is too long.
fn read_limited(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
