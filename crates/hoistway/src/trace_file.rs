//! `--trace`: writes every event of runs to a file, or to the files of a recording.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use flate2::Compression;
use flate2::write::GzEncoder;
use hoistway_answer::ResultsDocument;
use hoistway_experiment::{Controls, Plan, RunObserver, TraceError};

use hoistway_terminal::output::{Output, Stream, cannot_be_written};

use crate::numbered_files::{NumberedFiles, file_name_from_label};

/// Size of the write buffer in bytes.
const BUFFER_BYTES: usize = 1 << 18;
/// Size in bytes from which a warning is printed.
const WARN_ABOVE_BYTES: u64 = 256 << 20;

/// The destination of the events.
pub(crate) enum TraceFile {
    /// All runs into one file of JSON lines.
    Lines(Stream),
    /// Each run into files of blktrace, named after this one.
    Blktrace(PathBuf),
}

/// The file, compressed if its name ends in `.gz`.
enum Sink {
    Plain(BufWriter<Stream>),
    Gzip(GzEncoder<BufWriter<Stream>>),
}

/// Prints a warning. `eprintln!` would panic if standard error is closed.
fn warn(name: &Path, what: &str) {
    let advice = "(a shorter --runtime, fewer --schedulers or a name that ends in .gz make it smaller)";
    let _ = writeln!(io::stderr(), "hoistway: warning: {}: {what} {advice}", name.display());
}

impl Sink {
    fn finish(self) -> io::Result<Stream> {
        let buffer = match self {
            Sink::Plain(buffer) => buffer,
            Sink::Gzip(encoder) => encoder.finish()?,
        };
        buffer.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Plain(buffer) => buffer.write(bytes),
            Sink::Gzip(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::Plain(buffer) => buffer.flush(),
            Sink::Gzip(encoder) => encoder.flush(),
        }
    }
}

impl TraceFile {
    /// Checks that `file` can be written and is not the output for `results`.
    pub(crate) fn open(file: &Path, results: &Output) -> Result<TraceFile> {
        if file.extension().is_some_and(|extension| extension == "blktrace") {
            // Only checks that the file can be written: the files of each run are opened when it begins.
            Output::open(Some(file))?;
            return Ok(TraceFile::Blktrace(file.to_owned()));
        }
        Ok(TraceFile::Lines(Output::beside("--trace", file, results)?.stream()?))
    }

    /// Carries out the runs of a plan and writes all events. Files get their final names only if they contain every event, or if
    /// the user interrupted the runs: then they are marked as partial, if the format allows it.
    pub(crate) fn run(
        self,
        plan: &Plan<'_>,
        controls: &Controls,
        observer: &dyn RunObserver,
    ) -> Result<ResultsDocument> {
        match self {
            TraceFile::Lines(stream) => write_lines(stream, plan, controls, observer),
            TraceFile::Blktrace(name) => write_blktrace(&name, plan, controls, observer),
        }
    }
}

fn to_error(error: TraceError, name: &Path) -> anyhow::Error {
    match error {
        TraceError::Runs(error) => error.into(),
        TraceError::Write(error) => anyhow!("{}: {error}", cannot_be_written(name)),
    }
}

fn write_lines(
    stream: Stream,
    plan: &Plan<'_>,
    controls: &Controls,
    observer: &dyn RunObserver,
) -> Result<ResultsDocument> {
    let name = stream.name().to_owned();
    let is_gzip = name.extension().is_some_and(|extension| extension == "gz");
    let buffer = BufWriter::with_capacity(BUFFER_BYTES, stream);
    let sink = if is_gzip { Sink::Gzip(GzEncoder::new(buffer, Compression::fast())) } else { Sink::Plain(buffer) };
    let (document, sink) = plan.traced(sink, controls, observer).map_err(|error| to_error(error, &name))?;
    let stream = sink.finish().map_err(|error| to_error(error.into(), &name))?;
    let bytes = stream.finish()?;
    if bytes >= WARN_ABOVE_BYTES {
        warn(&name, &format!("{} MiB were written", bytes >> 20));
    }
    Ok(document)
}

/// `NAME.blktrace` is written as `NAME.LABEL.blktrace.0` and so on: a set of files for each run.
fn write_blktrace(
    name: &Path,
    plan: &Plan<'_>,
    controls: &Controls,
    observer: &dyn RunObserver,
) -> Result<ResultsDocument> {
    let mut sets = Vec::new();
    let open = |label: &str, repeat: u32, cpus: u16| {
        let repeat_suffix = if repeat > 0 { format!(".repeat-{}", repeat + 1) } else { String::new() };
        let mut files = NumberedFiles::new(
            &name.with_extension(format!("{}{repeat_suffix}.blktrace", file_name_from_label(label))),
        );
        let opened = (0..cpus).map(|_| files.next()).collect::<Result<Vec<_>>>().map_err(io::Error::other);
        sets.push(files);
        opened
    };
    let document = plan.traced_by_blktrace(open, controls, observer).map_err(|error| to_error(error, name))?;
    sets.into_iter().try_for_each(NumberedFiles::finish)?;
    Ok(document)
}
