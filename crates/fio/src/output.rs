//! What fio printed about a run, as JSON or as text: the job file behind it, and what was measured.
//!
//! Used by: crates `experiment`.
//! Tests: `crates/fio/tests/fio_output.rs`.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// A run of fio as its output shows it.
#[derive(Clone, PartialEq, Debug)]
pub struct FioOutput {
    /// A job file with the options that the output shows.
    pub job_text: String,
    /// fio's version, such as `fio-3.33`.
    pub version: String,
    /// The first disk that its statistics name, such as `sda`.
    pub disk: Option<String>,
    /// What each job did, in the order of the output.
    pub measured: Vec<Measured>,
    /// What the output does not show and the job file assumes, in words; empty if nothing.
    pub assumed: &'static str,
}

/// What fio measured of a job in one direction, the mean over its processes.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// The job's name.
    pub job: String,
    /// `read`, `write` or `trim`.
    pub operation: &'static str,
    /// I/Os per second of a process.
    pub iops: f64,
    /// Mean total latency, in nanoseconds.
    pub mean_ns: f64,
    /// Processes.
    pub processes: u32,
}

/// Reads the output of fio. `None` if the text is something else.
///
/// # Errors
/// If it is fio's, but shows no job: what was expected.
#[must_use]
pub fn read(text: &str) -> Option<Result<FioOutput, String>> {
    let json = text.find('{').map(|begin| &text[begin..]).filter(|json| json.contains("\"fio version\""));
    if let Some(json) = json {
        let document = serde_json::Deserializer::from_str(json).into_iter::<Value>().next()?;
        return Some(match document {
            Ok(document) => of_json(&document).ok_or_else(|| "fio's JSON output shows no job with options".to_owned()),
            Err(error) => Err(format!("fio's JSON output is damaged: {error}")),
        });
    }
    let is_header = |line: &str| line.contains(": (g=") && line.contains("rw=") && line.contains("ioengine=");
    text.lines().any(is_header).then(|| of_text(text).ok_or_else(|| "fio's output shows no job".to_owned()))
}

/// Adds what a process did; processes of one job are one row.
fn add(measured: &mut Vec<Measured>, job: &str, operation: &'static str, iops: f64, mean_ns: f64, processes: u32) {
    let row = measured.iter_mut().find(|row| row.job == job && row.operation == operation);
    let Some(row) = row else {
        let iops = iops / f64::from(processes);
        return measured.push(Measured { job: job.to_owned(), operation, iops, mean_ns, processes });
    };
    let (before, now) = (f64::from(row.processes), f64::from(processes));
    row.iops = (row.iops * before + iops) / (before + now);
    row.mean_ns = (row.mean_ns * before + mean_ns * now) / (before + now);
    row.processes = row.processes.saturating_add(processes);
}

fn of_json(document: &Value) -> Option<FioOutput> {
    let empty = Map::new();
    let mut job_text = String::new();
    let mut section = |name: &str, options: &Map<String, Value>| {
        let _ = writeln!(job_text, "[{name}]");
        for (option, value) in options.iter().filter(|(option, _)| *option != "name") {
            match value.as_str().filter(|text| !text.is_empty()) {
                Some(text) => _ = writeln!(job_text, "{option}={text}"),
                None => _ = writeln!(job_text, "{option}"),
            }
        }
        // fio's JSON leaves out options without a value, and a run that was ended early shows nothing else.
        if options.contains_key("runtime") && !options.contains_key("time_based") {
            job_text.push_str("time_based\n");
        }
    };
    section("global", document["global options"].as_object().unwrap_or(&empty));
    let (mut measured, mut names) = (Vec::new(), Vec::<&str>::new());
    for job in document["jobs"].as_array()? {
        let name = job["jobname"].as_str()?;
        if !names.contains(&name) {
            names.push(name);
            section(name, job["job options"].as_object().unwrap_or(&empty));
        }
        for operation in ["read", "write", "trim"] {
            let of = &job[operation];
            if of["total_ios"].as_u64().unwrap_or(0) > 0 {
                let mean_ns = of["lat_ns"]["mean"].as_f64().unwrap_or(0.0);
                add(&mut measured, name, operation, of["iops"].as_f64().unwrap_or(0.0), mean_ns, 1);
            }
        }
    }
    let version = document["fio version"].as_str().unwrap_or("fio").to_owned();
    let disk = document["disk_util"][0]["name"].as_str().map(str::to_owned);
    (!names.is_empty()).then_some(FioOutput { job_text, version, disk, measured, assumed: "" })
}

fn of_text(text: &str) -> Option<FioOutput> {
    let mut version = "fio".to_owned();
    // Each job: its name, its options, and its processes.
    let mut jobs: Vec<(String, String, u32)> = Vec::new();
    let (mut measured, mut disk) = (Vec::new(), None);
    let (mut job, mut operation, mut iops, mut processes, mut seconds) = (String::new(), "read", 0.0, 1, 0.0_f64);
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some((name, options)) = trimmed.split_once(": (g=").filter(|_| trimmed.contains("rw=")) {
            jobs.push((name.to_owned(), options_of_header(options.split_once("): ")?.1), 0));
        } else if trimmed.starts_with("fio-") && !trimmed.contains(' ') {
            trimmed.clone_into(&mut version);
        } else if let Some((name, rest)) = trimmed.split_once(": (groupid=") {
            name.clone_into(&mut job);
            processes =
                rest.split_once("jobs=").and_then(|(_, rest)| leading(rest)).map_or(1, |jobs| (jobs as u32).max(1));
            if let Some(known) = jobs.iter_mut().find(|known| known.0 == job) {
                known.2 = known.2.saturating_add(processes);
            }
        } else if let Some((name, rest)) = trimmed.split_once(": IOPS=") {
            let Some(of) = ["read", "write", "trim"].into_iter().find(|of| *of == name) else { continue };
            (operation, iops) = (of, leading(rest).unwrap_or(0.0));
            let lasted = rest.rsplit_once('/').and_then(|(_, time)| leading(time)).unwrap_or(0.0) / 1e3;
            seconds = seconds.max(lasted);
        } else if let Some((name, _)) = trimmed.split_once(": ios=") {
            disk.get_or_insert_with(|| name.to_owned());
        } else if let Some(rest) = trimmed.strip_prefix("lat (").filter(|rest| rest.contains("avg=")) {
            let unit = match rest.split(')').next() {
                Some("nsec") => 1.0,
                Some("usec") => 1e3,
                _ => 1e6,
            };
            let mean = rest.split_once("avg=").and_then(|(_, rest)| leading(rest)).unwrap_or(0.0);
            add(&mut measured, &job, operation, iops, mean * unit, processes);
        }
    }
    let mut job_text = "[global]\nfilename=/dev/sda\ndirect=1\n".to_owned();
    if seconds > 0.0 {
        let _ = write!(job_text, "time_based\nruntime={}ms\n", (seconds * 1e3).round());
    }
    for (name, options, processes) in &jobs {
        let _ = write!(job_text, "[{name}]\n{options}");
        if *processes > 1 {
            let _ = writeln!(job_text, "numjobs={processes}");
        }
    }
    let assumed = "direct I/O all over one device, without pauses and rates";
    (!jobs.is_empty()).then_some(FioOutput { job_text, version, disk, measured, assumed })
}

/// The options in the first line about a job, such as `rw=read, bs=(R) 4096B-4096B, (W) 16.0KiB-64.0KiB, ..., iodepth=1`.
fn options_of_header(header: &str) -> String {
    let mut text = String::new();
    let (mut sizes, mut ranges) = (Vec::new(), Vec::new());
    for part in header.split(", ") {
        let part = part.strip_prefix("bs=").unwrap_or(part);
        if let Some((option, value)) = part.split_once('=') {
            let _ = writeln!(text, "{option}={value}");
        } else if let Some((least, most)) = part.rsplit(' ').next().and_then(|range| range.split_once('-')) {
            let [least, most] = [least, most].map(|size| leading(size).map_or(4096, |bytes| bytes as u64));
            sizes.push(least.to_string());
            ranges.push(format!("{least}-{most}"));
        }
    }
    let is_range = ranges.iter().zip(&sizes).any(|(range, size)| *range != format!("{size}-{size}"));
    let (option, values) = if is_range { ("bsrange", ranges) } else { ("bs", sizes) };
    if !values.is_empty() {
        let _ = writeln!(text, "{option}={}", values.join(","));
    }
    text
}

/// The number that a text begins with, with fio's units: `4096B`, `16.0KiB`, `85.3k`, `1002msec` (without the unit of time).
fn leading(text: &str) -> Option<f64> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let unit = &text[digits..];
    let factor = match unit.as_bytes() {
        [b'K', b'i', ..] => 1024.0,
        [b'M', b'i', ..] => 1024.0 * 1024.0,
        [b'G', b'i', ..] => 1024.0 * 1024.0 * 1024.0,
        [b'k', ..] => 1e3,
        [b'M', ..] => 1e6,
        _ => 1.0,
    };
    Some(number * factor)
}
