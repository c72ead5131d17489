//! Text that users hand in: in files, or on standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use hoistway_fio::{LogSource, log_in_memory};

/// Largest text that is read. What is meant to be endless (`/dev/zero`) ends here.
const BYTES_MAX: u64 = 64 << 20;

/// The text of the file at `path`, or of standard input if it is `-`. `expected` names, for errors, what it should be.
pub(crate) fn text(path: &Path, expected: &str) -> Result<String> {
    let name = path.display();
    let bytes = if path == Path::new("-") { limited(io::stdin().lock()) } else { File::open(path).and_then(limited) };
    let bytes = bytes.with_context(|| format!("{name}: cannot be read (expected {expected})"))?;
    if bytes.len() as u64 > BYTES_MAX {
        bail!("{name}: longer than 64 MiB (expected {expected})");
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        anyhow!("{name}:{line}: not text (expected {expected})")
    })
}

/// The text of the TOML file that a name on the command line means; `None` if it is the name of something built in.
pub(crate) fn toml_named(name: &str, expected: &str) -> Result<Option<String>> {
    let path = Path::new(name);
    let is_file = path.extension().is_some_and(|extension| extension == "toml") || name.contains('/');
    is_file.then(|| text(path, expected)).transpose()
}

/// The text of a file that a job file includes. The parser says where, and of which file.
pub(crate) fn included(path: &Path) -> io::Result<String> {
    let bytes = File::open(path).and_then(limited)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(io::Error::other("longer than 64 MiB (expected options of a fio job file)"));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("not text (expected options of a fio job file)"))
}

/// A log that a job file replays. What is no file (a pipe) can be read only once, so it is held in memory.
pub(crate) fn log(path: &Path) -> io::Result<Arc<dyn LogSource>> {
    let file = File::open(path)?;
    if file.metadata()?.is_file() {
        return Ok(Arc::new(LogFile(path.to_owned())));
    }
    let bytes = limited(file)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(io::Error::other("no file, and longer than 64 MiB"));
    }
    Ok(log_in_memory(bytes))
}

#[derive(Debug)]
struct LogFile(PathBuf);

impl LogSource for LogFile {
    fn open(&self) -> io::Result<Box<dyn BufRead + Send>> {
        Ok(Box::new(BufReader::new(File::open(&self.0)?)))
    }
}

/// One byte more than may be, to see that there are too many.
fn limited(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
