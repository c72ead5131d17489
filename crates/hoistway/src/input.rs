//! What users hand in: files, standard input and the environment.

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

/// Largest file that is read. What is meant to be endless (`/dev/zero`) ends here.
const BYTES_MAX: u64 = 64 << 20;

/// Waiting longer than this for a file prints its name.
const PATIENCE: Duration = Duration::from_secs(1);

/// The environment of the command line.
#[derive(Default)]
pub(crate) struct CommandLine {
    /// The files that have been read.
    read: Mutex<Vec<Identity>>,
}

impl CommandLine {
    fn remember(&self, path: &Path) {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).extend(identity(path));
    }

    /// Refuses to write over a file that the command itself has read.
    pub(crate) fn spare(&self, output: &Path) -> Result<()> {
        spare(&self.read.lock().unwrap_or_else(PoisonError::into_inner), output)
    }
}

impl CallerEnvironment for CommandLine {
    /// The content of a file, or of standard input if it is `-`. It is read in a thread of its own, to print what
    /// is waited for: a pipe or a file of the kernel may never end.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.remember(path);
        let (sender, receiver) = mpsc::channel();
        let of = path.to_owned();
        thread::spawn(move || {
            let bytes =
                if of == Path::new("-") { limited(io::stdin().lock()) } else { File::open(&of).and_then(limited) };
            // Nobody is left to hear of it only if the program ends.
            sender.send(bytes).ok();
        });
        let bytes = receiver.recv_timeout(PATIENCE).or_else(|_| {
            let name = if path == Path::new("-") { "standard input".into() } else { path.to_string_lossy() };
            eprintln!("waiting for the end of {name:?}");
            receiver.recv()
        });
        let bytes = bytes.unwrap_or_else(|_| Err(io::Error::other("reading was interrupted")))?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(io::Error::other("longer than 64 MiB"));
        }
        Ok(bytes)
    }

    /// What is no file (a pipe) can be read only once, so it is held in memory.
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
        Field::Journal => "--journal",
        Field::Schedulers => "--schedulers",
        Field::Elevator => "--elevator",
        Field::GuestSchedulers => "--guest-schedulers",
        Field::VirtualDisk => "--virtual-disk",
        Field::GuestWeights => "--guest-weight",
        Field::Tunables => "--set",
        Field::QueueFiles => "--queue",
        Field::Vary => "--vary",
        Field::HwQueues => "--hw-queues",
        Field::ReadQueues => "--read-queues",
        Field::PollQueues => "--poll-queues",
        Field::SharedTags => "--shared-tags",
        Field::Techniques => "--techniques",
        Field::Writes => "--at",
        Field::IoMax => "--io-max",
        Field::IoPrioClass => "--io-prio-class",
        Field::RuntimeNs => "--runtime",
        Field::RampNs => "--ramp",
        Field::Repeats => "--repeat",
        Field::Baseline => "--baseline",
        Field::Focus => "--focus",
        Field::SmallestEffect => "--smallest-effect",
        Field::Logs => "--fio-logs",
        Field::Objective => "--objective",
        Field::Budget => "--budget",
    }
}
