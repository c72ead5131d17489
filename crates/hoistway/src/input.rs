//! What users hand in: files, standard input and the environment.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hoistway_fio::{LogSource, log_in_memory};
use hoistway_lab::{Field, Surroundings};

/// Largest file that is read. What is meant to be endless (`/dev/zero`) ends here.
const BYTES_MAX: u64 = 64 << 20;

/// The surroundings of whoever types a command.
pub(crate) struct CommandLine;

impl Surroundings for CommandLine {
    /// The content of a file, or of standard input if it is `-`.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let bytes =
            if path == Path::new("-") { limited(io::stdin().lock()) } else { File::open(path).and_then(limited) };
        let bytes = bytes?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(io::Error::other("longer than 64 MiB"));
        }
        Ok(bytes)
    }

    /// What is no file (a pipe) can be read only once, so it is held in memory.
    fn log(&self, path: &Path) -> io::Result<Arc<dyn LogSource>> {
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

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn name(&self, field: Field) -> String {
        option(field).to_owned()
    }
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

/// The option that a field of a comparison comes from.
fn option(field: Field) -> &'static str {
    match field {
        Field::Load => "JOB",
        Field::Devices => "--device",
        Field::Kernels => "--kernel",
        Field::Hosts => "--host",
        Field::Cpus => "--cpus",
        Field::MemoryBytes => "--memory",
        Field::Schedulers => "--schedulers",
        Field::Elevator => "--elevator",
        Field::GuestSchedulers => "--guest-schedulers",
        Field::VirtualDisk => "--virtual-disk",
        Field::GuestWeights => "--guest-weight",
        Field::Tunables => "--set",
        Field::QueueFiles => "--queue",
        Field::HwQueues => "--hw-queues",
        Field::ReadQueues => "--read-queues",
        Field::PollQueues => "--poll-queues",
        Field::SharedTags => "--shared-tags",
        Field::Writes => "--at",
        Field::IoMax => "--io-max",
        Field::IoPrioClass => "--io-prio-class",
        Field::RuntimeNs => "--runtime",
        Field::RampNs => "--ramp",
        Field::Repeats => "--repeat",
        Field::Baseline => "--baseline",
        Field::Logs => "--fio-logs",
    }
}
