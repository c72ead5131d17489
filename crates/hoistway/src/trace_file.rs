//! `--trace`: runs whose every event is written to a file.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::{Result, anyhow, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use hoistway_results::document::Run;
use hoistway_sim::{Control, RunResult, RunSpec, Scenario, watched};
use hoistway_trace::events::{FORMAT, Header, ProcessHeader, RunHeader, Writer};
use serde_json::{Map, Value};

use crate::output::{Output, Stream, cannot_be_written};

/// Bytes on their way to the file.
const BUFFER_BYTES: usize = 1 << 18;
/// A file of so many bytes is worth a warning.
const HUGE_BYTES: u64 = 256 << 20;

/// Where the events go.
pub(crate) struct TraceFile(Stream);

/// Compressed or not, by the name of the file.
enum Sink {
    Plain(BufWriter<Stream>),
    Gzip(GzEncoder<BufWriter<Stream>>),
}

/// Not `eprintln!`: that panics if nobody reads standard error any more.
fn warn(name: &Path, what: &str) {
    let advice = "(a shorter --runtime or fewer --schedulers make it smaller, .gz at the end of its name too)";
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
        let output = Output::open(Some(file))?;
        if output.is_same_file(results) {
            bail!("--trace {}: the results go to this file (expected another one)", file.display());
        }
        Ok(TraceFile(output.stream()?))
    }

    /// Does what [`hoistway_sim::compare`] does, run by run, and writes all events. The file is in its place only if
    /// every one of them is in it, but for those of runs that the user cut short: these are marked.
    pub(crate) fn compare(
        self,
        scenario: &Scenario<'_>,
        specs: &[RunSpec],
        controls: &[Control],
        job_file: &str,
        seen: &(dyn Fn(usize, &Run, &RunResult) + Sync),
    ) -> Result<(Vec<Run>, bool)> {
        let name = self.0.name().to_owned();
        // As text: a pipe that nobody reads any more is an error here, other than for the results.
        let failed = |error: io::Error| anyhow!("{}: {error}", cannot_be_written(&name));
        let is_gzip = name.extension().is_some_and(|extension| extension == "gz");
        let buffer = BufWriter::with_capacity(BUFFER_BYTES, self.0);
        let sink = if is_gzip { Sink::Gzip(GzEncoder::new(buffer, Compression::fast())) } else { Sink::Plain(buffer) };
        let mut writer = Writer::new(sink, &header(scenario, specs, job_file)).map_err(failed)?;
        let mut runs = Vec::with_capacity(specs.len());
        let mut is_partial = false;
        for (number, (spec, control)) in specs.iter().zip(controls).enumerate() {
            if control.cancelled.load(Ordering::Relaxed) {
                is_partial = true;
                continue;
            }
            writer.begin_run(number as u32, &control.cancelled);
            let (run, result, probe) = watched(scenario, spec, control, writer)?;
            seen(number, &run, &result);
            writer = probe;
            let reached_ns = control.reached_ns.load(Ordering::Relaxed);
            writer.end_run(reached_ns, run.simulated_ios, result.partial).map_err(failed)?;
            is_partial |= result.partial;
            runs.push(run);
        }
        let stream = writer.finish(is_partial).and_then(Sink::finish).map_err(failed)?;
        let bytes = stream.finish()?;
        if bytes >= HUGE_BYTES {
            warn(&name, &format!("{} MiB were written", bytes >> 20));
        }
        Ok((runs, is_partial))
    }
}

/// The first line.
fn header(scenario: &Scenario<'_>, specs: &[RunSpec], job_file: &str) -> Header {
    let tunables = |spec: &RunSpec| -> Map<String, Value> {
        spec.tunables.iter().map(|(name, text)| (name.clone(), Value::from(text.as_str()))).collect()
    };
    let runs =
        specs.iter().zip(0..).map(|(spec, run)| RunHeader { run, scheduler: spec.label(), tunables: tunables(spec) });
    let processes = scenario.workload.processes.iter().zip(0..).map(|(process, number)| ProcessHeader {
        process: number,
        job: process.name.clone(),
        clone: process.schedule.clone,
        dev: process.files.first().copied().unwrap_or_default(),
    });
    // I/O contexts: those of the processes come first, then those of the flushers, then those of the guests' I/O threads.
    let (count, files) = (scenario.workload.processes.len() as u32, scenario.workload.files.len() as u32);
    let is_buffered = scenario.workload.processes.iter().any(|process| !process.caching.direct);
    let flushers = (0..files).filter(|_| is_buffered).map(|dev| ProcessHeader {
        process: count + dev,
        job: "(write-back)".to_owned(),
        clone: 0,
        dev,
    });
    let guests = scenario.workload.files.iter().zip(0..).filter(|_| scenario.guests.is_some());
    let threads = guests.map(|(file, number)| ProcessHeader {
        process: count + files + number,
        job: format!("(guest of {file})"),
        clone: 0,
        dev: files,
    });
    let virtual_disks = scenario.workload.files.iter().filter(|_| scenario.guests.is_some()).cloned();
    let devices = virtual_disks.chain(scenario.devices.iter().map(|preset| preset.name.clone()));
    Header {
        format: FORMAT.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        job_file: job_file.to_owned(),
        devices: devices.collect(),
        kernel: scenario.queue.kernel.to_string(),
        cpus: u32::from(scenario.queue.cpus),
        seed: specs.first().map_or(0, |spec| spec.seed),
        runs: runs.collect(),
        processes: processes.chain(flushers).chain(threads).collect(),
    }
}
