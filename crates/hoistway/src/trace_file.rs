//! `--trace`: runs whose every event is written to a file.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Result, anyhow};
use flate2::Compression;
use flate2::write::GzEncoder;
use hoistway_answer::ResultsDocument;
use hoistway_experiment::{Controls, Plan, RunObserver, TraceError};

use hoistway_terminal::output::{Output, Stream, cannot_be_written};

/// Bytes on their way to the file.
const BUFFER_BYTES: usize = 1 << 18;
/// Warn when the file exceeds this many bytes.
const HUGE_BYTES: u64 = 256 << 20;

/// Where the events go.
pub(crate) struct TraceFile(Stream);

/// Compressed or not, by the name of the file.
enum Sink {
    Plain(BufWriter<Stream>),
    Gzip(GzEncoder<BufWriter<Stream>>),
}

/// Not `eprintln!`, which panics if standard error is closed.
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
    /// Checks that `file` can be written and is not where the `results` go.
    pub(crate) fn open(file: &Path, results: &Output) -> Result<TraceFile> {
        Ok(TraceFile(Output::beside("--trace", file, results)?.stream()?))
    }

    /// Carries the runs of a plan out and writes all events. The file is in its place only if every one of them is in it,
    /// but for those of runs that the user cut short: these are marked.
    pub(crate) fn run(
        self,
        plan: &Plan<'_>,
        controls: &Controls,
        observer: &dyn RunObserver,
    ) -> Result<ResultsDocument> {
        let name = self.0.name().to_owned();
        let failed = |error: io::Error| anyhow!("{}: {error}", cannot_be_written(&name));
        let is_gzip = name.extension().is_some_and(|extension| extension == "gz");
        let buffer = BufWriter::with_capacity(BUFFER_BYTES, self.0);
        let sink = if is_gzip { Sink::Gzip(GzEncoder::new(buffer, Compression::fast())) } else { Sink::Plain(buffer) };
        let (document, sink) = plan.traced(sink, controls, observer).map_err(|error| match error {
            TraceError::Runs(error) => error.into(),
            TraceError::Write(error) => failed(error),
        })?;
        let bytes = sink.finish().map_err(failed)?.finish()?;
        if bytes >= HUGE_BYTES {
            warn(&name, &format!("{} MiB were written", bytes >> 20));
        }
        Ok(document)
    }
}
