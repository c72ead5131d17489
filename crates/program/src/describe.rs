//! The description of a recording (`trace info`), as data and as text.
//!
//! Used by: crate `hoistway`.
//! Tests: below.

use std::fmt::{self, Write as _};

use hoistway_measure::size_in_words;
use hoistway_trace::block::{Interval, Recording, Spreads};
use serde::Serialize;

use crate::alternatives::{Alternative, Change, DepthBound};
use crate::class::Class;
use crate::infer::Program;
use crate::stream::{Kind, Stream};
use crate::timeline::Slice;

/// Times of one interval, in nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Times {
    /// btt's name of the interval.
    pub name: &'static str,
    /// How many.
    pub count: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The mean.
    pub mean_ns: f64,
    /// The longest.
    pub max_ns: u64,
}

/// The intervals of a device, or of all tasks with one name.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Table {
    /// The device, or the tasks' name.
    pub of: String,
    /// The intervals that the recording has.
    pub intervals: Vec<Times>,
}

/// The number of I/Os of a size.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Size {
    /// Up to this many bytes, and more than half of that.
    pub bytes: u64,
    /// How many.
    pub ios: u64,
}

/// The description of a recording.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Description {
    /// The file.
    pub file: String,
    /// Its format.
    pub format: String,
    /// How the format was recognised.
    pub recognised_by: String,
    /// The described device.
    pub device: String,
    /// Other devices in the recording.
    pub other_devices: Vec<String>,
    /// Time from the first event to the last, in seconds.
    pub seconds: f64,
    /// I/Os of the device.
    pub ios: u64,
    /// The active scheduler, if the recording shows it.
    pub recorded_under: Option<&'static str>,
    /// What the recording lacks, one note each.
    pub notes: Vec<String>,
    /// Sizes of I/Os.
    pub sizes: Vec<Size>,
    /// The I/Os in slices of equal length.
    pub timeline: Vec<Slice>,
    /// Streams, with their evidence.
    pub streams: Vec<Stream>,
    /// Other programs that the recording also allows.
    pub alternatives: Vec<Alternative>,
    /// Times between events, by device.
    pub by_device: Vec<Table>,
    /// Times between events, by task name.
    pub by_task: Vec<Table>,
}

impl Description {
    /// Describes a program and the recording that it was inferred from.
    #[must_use]
    pub fn new(program: &Program, recording: &Recording, file: &str) -> Description {
        let (mut by_device, mut by_task) = (Vec::new(), Vec::new());
        if let Some(intervals) = &program.intervals {
            let has_only_requests = program.has_only_requests;
            by_device.extend(
                intervals
                    .devices()
                    .iter()
                    .map(|(device, spreads)| table(device.to_string(), spreads, has_only_requests)),
            );
            let mut names: Vec<(String, Spreads)> = Vec::new();
            for (pid, spreads) in intervals.tasks() {
                let name = program.task_name(pid).map_or_else(|| format!("task {pid}"), str::to_owned);
                match names.iter_mut().find(|(other, _)| *other == name) {
                    Some((_, sum)) => sum.merge(&spreads),
                    None => names.push((name, spreads)),
                }
            }
            by_task.extend(names.into_iter().map(|(name, spreads)| table(name, &spreads, has_only_requests)));
        }
        Description {
            file: file.to_owned(),
            format: recording.format().to_string(),
            recognised_by: recording.why().to_owned(),
            device: program.device.to_string(),
            other_devices: program.others.iter().map(ToString::to_string).collect(),
            seconds: program.span_ns as f64 / 1e9,
            ios: program.streams.iter().map(|stream| stream.ios).sum(),
            recorded_under: program.recorded_under,
            notes: program.notes(),
            sizes: program.sizes.iter().map(|&(bytes, ios)| Size { bytes, ios }).collect(),
            timeline: program.slices.clone(),
            streams: program.streams.clone(),
            alternatives: program.alternatives.clone(),
            by_device,
            by_task,
        }
    }
}

fn table(of: String, spreads: &Spreads, has_only_requests: bool) -> Table {
    let has = |interval: &Interval| !has_only_requests || *interval == Interval::D2C;
    let times = |interval: Interval| {
        let spread = spreads.get(interval);
        let mean_ns = spread.mean_ns()?;
        Some(Times {
            name: interval.name(),
            count: spread.count,
            min_ns: spread.min_ns,
            mean_ns,
            max_ns: spread.max_ns,
        })
    };
    Table { of, intervals: Interval::ALL.into_iter().filter(has).filter_map(times).collect() }
}

impl Program {
    /// What the recording lacks, one note each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        notes(self)
    }
}

fn notes(program: &Program) -> Vec<String> {
    let (losses, counts) = (&program.losses, &program.counts);
    let mut notes = Vec::new();
    let mut note = |count: u64, text: String| {
        if count > 0 {
            notes.push(text);
        }
    };
    note(losses.lost_events, format!("the recorder lost {} events", losses.lost_events));
    let cpus: Vec<String> = losses.missing_cpus.iter().map(ToString::to_string).collect();
    note(cpus.len() as u64, format!("files of these CPUs are missing: {}", cpus.join(", ")));
    note(losses.truncated, format!("{} records or lines are truncated", losses.truncated));
    note(losses.unknown_actions, format!("{} events have an unknown action", losses.unknown_actions));
    note(losses.empty_ios, format!("{} I/Os have no length and were skipped", losses.empty_ios));
    note(losses.step_back_ns, format!("times went backwards by up to {} ns; events were sorted", losses.step_back_ns));
    if let Some(tick) = program.tick {
        let length = time(tick.length_ns as f64);
        let percent = 100.0 * tick.shared;
        let text = format!(
            "times are multiples of {length}: {percent:.0} % of the gaps are shorter, so arrivals are spread at random"
        );
        note(1, text);
    }
    let unfinished = if program.has_completions { program.unfinished } else { 0 };
    note(unfinished, format!("{unfinished} I/Os have no completion"));
    note(counts.refused, format!("{} bios failed with EAGAIN (REQ_NOWAIT) and were skipped", counts.refused));
    note(counts.given_up, format!("{} I/Os were given up as lost", counts.given_up));
    note(counts.completed_unknown, format!("{} completions have no recorded submission", counts.completed_unknown));
    note(counts.issued_unknown, format!("{} requests have no recorded submission", counts.issued_unknown));
    note(counts.passthrough, format!("{} passthrough commands were skipped", counts.passthrough));
    let only_requests_note =
        "only requests were recorded, no bios: arrivals include the effect of the recorded scheduler".to_owned();
    note(u64::from(program.has_only_requests), only_requests_note);
    note(u64::from(!program.has_completions), "completions were not recorded: latencies are unknown".to_owned());
    notes
}

/// Formats a time with three digits and a unit.
fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns >= 1e9 => (ns / 1e9, "s"),
        ns if ns >= 1e6 => (ns / 1e6, "ms"),
        ns if ns >= 1e3 => (ns / 1e3, "us"),
        ns => (ns, "ns"),
    };
    let decimals = if value >= 100.0 || unit == "ns" { 0 } else { 2 - value.max(1.0).log10() as usize };
    format!("{value:.decimals$} {unit}")
}

/// A count with its noun, in the plural if needed.
fn count_text(count: u64, noun: &str) -> String {
    let ending = match noun {
        _ if count == 1 => "",
        "batch" => "es",
        _ => "s",
    };
    format!("{count} {noun}{ending}")
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// Writes aligned rows: the first column to the left, all others to the right.
fn columns(f: &mut fmt::Formatter<'_>, rows: &[Vec<String>]) -> fmt::Result {
    let count = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    for row in rows {
        let mut line = format!("  {:<width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            write!(line, "  {cell:>width$}")?;
        }
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}

fn row<const COUNT: usize>(cells: [&str; COUNT]) -> Vec<String> {
    cells.into_iter().map(str::to_owned).collect()
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} ({})", self.file, self.format, self.recognised_by)?;
        let under = self.recorded_under.map_or(String::new(), |name| format!(", recorded under {name}"));
        let (ios, streams) = (count_text(self.ios, "I/O"), count_text(self.streams.len() as u64, "stream"));
        writeln!(f, "device {}, {}, {ios} of {streams}{under}", self.device, time(self.seconds * 1e9))?;
        if !self.other_devices.is_empty() {
            writeln!(f, "other devices, ignored: {}", self.other_devices.join(" "))?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        let sizes: Vec<String> = self
            .sizes
            .iter()
            .map(|size| format!("{} {:.1} %", size_in_words(size.bytes as f64), percent(size.ios, self.ios)))
            .collect();
        writeln!(f, "\nsizes up to: {}", sizes.join(", "))?;
        self.write_timeline(f)?;
        self.write_streams(f)?;
        self.write_intervals(f)
    }
}

impl Description {
    fn write_timeline(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nover time")?;
        let mut rows = vec![row(["from", "IOPS", "MiB/s", "depth", "most"])];
        let slice_seconds = self.timeline.get(1).map_or(1.0, |slice| slice.start_ns as f64 / 1e9);
        for slice in &self.timeline {
            rows.push(vec![
                time(slice.start_ns as f64),
                format!("{:.0}", slice.ios as f64 / slice_seconds),
                format!("{:.1}", slice.bytes as f64 / 1_048_576.0 / slice_seconds),
                format!("{:.2}", slice.depth_mean),
                slice.depth_max.to_string(),
            ]);
        }
        columns(f, &rows)
    }

    fn write_streams(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nstreams")?;
        let header =
            ["stream", "pid", "I/Os", "reads", "writes", "flushes", "mean size", "sequential", "depth", "arrival"];
        let mut rows = vec![row(header)];
        for stream in &self.streams {
            let with_data = stream.reads.0 + stream.writes.0 + stream.discards.0;
            let bytes = stream.reads.1 + stream.writes.1 + stream.discards.1;
            rows.push(vec![
                stream.name.clone(),
                stream.pid.map_or_else(|| count_text(stream.tasks, "task"), |pid| pid.to_string()),
                stream.ios.to_string(),
                stream.reads.0.to_string(),
                stream.writes.0.to_string(),
                (stream.flushes + stream.durable_writes).to_string(),
                size_in_words(bytes as f64 / with_data.max(1) as f64),
                format!("{:.0} %", percent(stream.sequential, stream.ios)),
                stream.evidence.depth_max.to_string(),
                class(stream.class).to_owned(),
            ]);
        }
        columns(f, &rows)?;
        writeln!(f, "\nevidence")?;
        for stream in &self.streams {
            writeln!(f, "  {}: {}", stream.label(), evidence(stream))?;
            for wait in &stream.waits {
                let other = self.streams[wait.on].label();
                let assumption = if wait.is_seen { "" } else { ", assumed: too few bursts to test" };
                let (observed, expected) = (wait.observed, wait.expected);
                writeln!(
                    f,
                    "    waits for {other}: {observed} bursts began while it was busy, {expected:.1} by chance{assumption}"
                )?;
            }
        }
        for alternative in &self.alternatives {
            let changes: Vec<String> = alternative.changes.iter().map(|change| self.change(*change)).collect();
            writeln!(f, "  open question, {} I/Os: {}", alternative.ios, changes.join("; "))?;
        }
        Ok(())
    }

    fn change(&self, change: Change) -> String {
        let label = |stream: usize| self.streams[stream].label();
        match change {
            Change::Open { stream } => format!("{} may be open", label(stream)),
            Change::Closed { stream } => format!("{} may be closed", label(stream)),
            Change::Deeper { stream, seen, to: DepthBound::Queue } => {
                format!("{} may use a depth above {seen}, up to that of the queue", label(stream))
            }
            Change::Deeper { stream, seen, to: DepthBound::Middle } => {
                format!("{} may use a depth between {seen} and that of the queue", label(stream))
            }
            Change::Kept { stream, .. } => format!("{} may keep its depth", label(stream)),
            Change::Waits { stream, on } => format!("{} may wait for {}", label(stream), label(on)),
        }
    }

    fn write_intervals(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, tables) in [("by device", &self.by_device), ("by task", &self.by_task)] {
            if tables.is_empty() {
                continue;
            }
            writeln!(f, "\ntimes between events {title}")?;
            let mut rows = vec![row(["", "", "min", "mean", "max", "count"])];
            for table in tables {
                for (number, times) in table.intervals.iter().enumerate() {
                    rows.push(vec![
                        if number == 0 { table.of.clone() } else { String::new() },
                        times.name.to_owned(),
                        time(times.min_ns as f64),
                        time(times.mean_ns),
                        time(times.max_ns as f64),
                        times.count.to_string(),
                    ]);
                }
            }
            columns(f, &rows)?;
        }
        Ok(())
    }
}

fn class(class: Class) -> &'static str {
    match class {
        Class::Closed => "closed",
        Class::Open => "open",
        Class::Undecided => "undecided",
    }
}

fn evidence(stream: &Stream) -> String {
    let evidence = &stream.evidence;
    let mut text = format!(
        "{}, {}, {:.3} of them with I/Os outstanding, busy {:.3}, {:.1} x as often after completions",
        class(stream.class),
        count_text(evidence.batches, "batch"),
        evidence.over,
        evidence.busy,
        evidence.heels
    );
    if evidence.blocked > 0.0 {
        let _ = write!(text, ", blocked {:.3}", evidence.blocked);
    }
    if let Some(think_ns) = stream.think_ns {
        let _ = write!(text, ", thinks {} (median)", time(think_ns as f64));
    }
    if let Some(id) = stream.cgroup {
        let _ = write!(text, ", cgroup {id}");
    }
    if let Some(depth) = stream.hidden_depth {
        let _ = write!(text, ", depth at least {depth}: the queue was full");
    }
    match stream.kind {
        Kind::WriteBack => text.push_str(", paced by the recording"),
        Kind::Helper => text.push_str(", a kernel helper thread"),
        Kind::Task | Kind::Others => {}
    }
    text
}

impl Stream {
    /// The stream's name, with its pid if it has one.
    #[must_use]
    pub fn label(&self) -> String {
        self.pid.map_or_else(|| self.name.clone(), |pid| format!("{} ({pid})", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_unit() {
        assert_eq!([0.0, 999.0, 1234.0, 45_678.0, 2.5e9].map(time), ["0 ns", "999 ns", "1.23 us", "45.7 us", "2.50 s"]);
    }
}
