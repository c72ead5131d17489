//! `hoistway record`: records the I/O of a device.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use hoistway_blk::ground::Nanos;
use hoistway_engine::parse_size;
use hoistway_linux::Root;
use hoistway_linux::record::{End, Options, Progress, Recorder, Recording, Summary};
use hoistway_terminal::output::Output;
use hoistway_terminal::{Ending, printable};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};

use crate::commands::options::parse_time;

/// Record the I/O of a block device, for `hoistway compare` and for blkparse and btt.
///
/// Writes NAME.blktrace.N, a file for each CPU, and NAME.host.json with metadata that blktrace lacks: the queue, the scheduler
/// and its tunables, priorities and cgroups of the tasks, mounts. `hoistway compare NAME.blktrace.0` uses both. An older
/// recording of this name is replaced.
///
/// Needs root and tracefs; works under lockdown=integrity. The recording ends after --for, at --max, on Ctrl-C or SIGTERM, when
/// the file system is full, or when COMMAND ends, whichever comes first. COMMAND is not killed.
///
/// Exit status: 0 if the recording is complete; 1 if COMMAND failed; 2 if nothing could be recorded, or the recording was aborted
/// by an error.
///
/// Examples:
///   sudo hoistway record nvme0n1 --for 30s -o incident
///   sudo hoistway record /dev/sda --max 1G -o night
///   sudo hoistway record sda -o build -- make -j8
///   hoistway compare incident.blktrace.0
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The block device, such as nvme0n1, /dev/sda or /dev/disk/by-id/...; for a partition the whole disk is recorded.
    device: String,
    /// Record for this time: 30s, 5m, 2h. [default: until interrupted]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
    time: Option<Nanos>,
    /// The name of the recording: NAME.blktrace.N and NAME.host.json are written.
    #[arg(short, long, value_name = "NAME")]
    output: PathBuf,
    /// End when the files have this size, such as 1G. Events still in the buffers are then written as well.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    max: Option<u64>,
    /// Size of the kernel's buffer per CPU. [default: 16M, or less so that all buffers take at most 1/32 of the memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_buffer)]
    buffer: Option<u64>,
    /// Run this command, and record until it ends.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    parse_size(text).ok().filter(|bytes| *bytes > 0).ok_or_else(|| "expected a size, such as 1G".to_owned())
}

fn parse_buffer(text: &str) -> Result<u64, String> {
    const BYTES: std::ops::RangeInclusive<u64> = 64 << 10..=4 << 30;
    let expected = || "expected a size from 64K to 4G, such as 16M".to_owned();
    parse_size(text).ok().filter(|bytes| BYTES.contains(bytes)).ok_or_else(expected)
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let root = Root::open(Path::new("/")).context("/: cannot be opened")?;
    let options = Options {
        name: arguments.output.clone(),
        time: arguments.time.map(|time| Duration::from_nanos(time.0)),
        bytes_max: arguments.max,
        buffer_bytes: arguments.buffer,
    };
    let device = absolute_device_path(&arguments.device)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    hoistway_terminal::interrupt::on_interrupt(move || flag.store(true, Ordering::Relaxed))?;
    let recorder = Recorder::prepare(&root, &device, options)?;
    recorder.warnings().iter().for_each(|warning| say(warning));
    let recording = recorder.start()?;
    let mut command = spawn_command(&arguments.command)?;
    let bar = bar(&recording, arguments);
    let mut status = None;
    let mut watch = |progress: &Progress| {
        show(&bar, progress);
        if interrupted.load(Ordering::Relaxed) {
            return true;
        }
        status = command.as_mut().and_then(|child| child.try_wait().ok().flatten());
        status.is_some()
    };
    let summary = recording.run(&mut watch)?;
    bar.finish_and_clear();
    summary.warnings.iter().for_each(|warning| say(warning));
    if let (None, Some(child)) = (status, &mut command) {
        // On a terminal, Ctrl-C also ends the command, which is not a failure.
        let is_ending = interrupted.load(Ordering::Relaxed) && exits_within_a_second(child);
        if !is_ending {
            say(&format!("{} is still running (process {}).", arguments.command[0].display(), child.id()));
        }
    }
    Output::open(None)?.write(text(&summary, arguments))?;
    ending(&summary, status, arguments)
}

fn ending(summary: &Summary, status: Option<ExitStatus>, arguments: &Arguments) -> Result<Ending> {
    if let End::Failed(problem) = &summary.end {
        bail!("{}: {problem} (events recorded before that are kept)", arguments.output.display());
    }
    match status {
        Some(status) if !status.success() => {
            say(&format!("{} ended with {status}.", arguments.command[0].display()));
            Ok(Ending::JobFailed)
        }
        _ => Ok(Ending::Done),
    }
}

/// The absolute path of a device; a bare name stays unchanged.
fn absolute_device_path(device: &str) -> Result<String> {
    if !device.contains('/') {
        return Ok(device.to_owned());
    }
    let path = std::fs::canonicalize(device).with_context(|| format!("{device}: no such device"))?;
    Ok(path.to_string_lossy().into_owned())
}

fn spawn_command(command: &[OsString]) -> Result<Option<Child>> {
    let Some((program, arguments)) = command.split_first() else { return Ok(None) };
    let started = Command::new(program).args(arguments).spawn();
    started.map(Some).with_context(|| format!("{}: cannot be started (expected a command)", program.display()))
}

/// Whether a command ends within a second.
fn exits_within_a_second(child: &mut Child) -> bool {
    (0..20).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        child.try_wait().is_ok_and(|status| status.is_some())
    })
}

/// Prints a sentence to standard error.
fn say(sentence: &str) {
    let _ = writeln!(std::io::stderr(), "hoistway: {}", printable::text(sentence));
}

/// The progress line; shown on a terminal only.
fn bar(recording: &Recording<'_>, arguments: &Arguments) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let until = match (arguments.time, &arguments.command[..]) {
        (Some(time), _) => format!(" of {} s", time.0 as f64 / 1e9),
        (None, []) => ", until Ctrl-C".to_owned(),
        (None, [program, ..]) => format!(", until {} ends", program.display()),
    };
    let name = printable::text(&recording.target().name);
    let template = format!("{{spinner}} recording {name}: {{elapsed}}{}  {{msg}}", until.replace(['{', '}'], "?"));
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new_spinner().with_style(style)
}

fn show(bar: &ProgressBar, progress: &Progress) {
    for warning in &progress.warnings {
        bar.suspend(|| say(warning));
    }
    let rate = progress.ios as f64 / progress.elapsed.as_secs_f64().max(1e-3);
    let (ios, bytes) = (HumanCount(progress.ios), HumanBytes(progress.bytes));
    bar.set_message(format!("{ios} I/Os, {rate:.0} per second, {bytes}, {} events lost", progress.lost));
    bar.tick();
}

fn text(summary: &Summary, arguments: &Arguments) -> String {
    let device = &summary.host.device;
    let (ios, events, bytes) = (HumanCount(summary.ios), HumanCount(summary.events), HumanBytes(summary.bytes));
    let seconds = summary.time.as_secs_f64();
    let mut text = format!("Recorded {} for {seconds:.1} s: {ios} I/Os, {events} events, {bytes}", device.name);
    let _ = match summary.end {
        End::Full => writeln!(text, "; stopped because the file system was full."),
        End::Size => writeln!(text, ", the limit of --max."),
        _ => writeln!(text, "."),
    };
    let (cpu_us, cpu_s) = (summary.cpu_us_per_io(), summary.cpu_time.as_secs_f64());
    let cpu_cost = if summary.ios > 0 {
        format!("{cpu_us:.2} us of CPU time per I/O ({cpu_s:.2} s)")
    } else {
        format!("{cpu_s:.2} s of CPU time")
    };
    let _ = writeln!(text, "Cost: {cpu_cost}; {} events lost.", summary.lost);
    if summary.lost > 0 {
        let _ = writeln!(text, "To avoid losses, use a larger --buffer, or run fewer other programs.");
    }
    let name = arguments.output.display();
    if summary.ios == 0 {
        let _ = writeln!(text, "No task did I/O on {} in this time.", device.name);
    } else {
        let _ = writeln!(text, "Next: hoistway compare {name}.blktrace.0");
    }
    text.lines().map(|line| printable::text(line) + "\n").collect()
}
