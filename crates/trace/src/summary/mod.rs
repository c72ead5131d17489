//! Summaries of disk I/O by tools such as iostat: rates, sizes and latencies, from which a load can be synthesised.
//!
//! Used by: crate `experiment`.
//! Tests: below, `crates/trace/src/summary/diskstats.rs`, `crates/trace/src/summary/iostat.rs`, `crates/trace/src/summary/sar.rs`.
//!
//! [`recognise`] detects the tool by the content, and reports outputs that lack figures that a load needs.

mod diskstats;
mod iostat;
mod sar;

use std::fmt;

/// I/Os of one direction, on average.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct DirectionRates {
    /// I/Os a second.
    pub per_second: f64,
    /// Mean size, in bytes.
    pub bytes: f64,
    /// Mean time from the allocation of a request to its completion, in milliseconds; meaningful only if there were
    /// I/Os.
    pub await_ms: f64,
}

/// A disk, on average.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Disk {
    /// Its name in `/dev`.
    pub name: String,
    /// Reads.
    pub reads: DirectionRates,
    /// Writes.
    pub writes: DirectionRates,
    /// Discards.
    pub discards: DirectionRates,
    /// Flushes a second.
    pub flushes_per_second: f64,
    /// Share of the time in which it had I/O, 0 to 1, if the tool says.
    pub utilisation: Option<f64>,
    /// Whether the tool has one mean latency for all I/Os, which each direction repeats.
    pub has_one_await: bool,
}

impl Disk {
    /// I/Os a second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.reads.per_second + self.writes.per_second + self.discards.per_second
    }

    /// Mean number of I/Os in flight.
    #[must_use]
    pub fn in_flight(&self) -> f64 {
        let of = |rates: &DirectionRates| rates.per_second * rates.await_ms / 1e3;
        of(&self.reads) + of(&self.writes) + of(&self.discards)
    }

    /// Whether it is stacked: its I/Os appear again on the disks below it.
    fn is_stacked(&self) -> bool {
        let number = |prefix: &str| {
            let rest = self.name.strip_prefix(prefix);
            rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|letter| letter.is_ascii_digit()))
        };
        number("dm-") || number("md")
    }

    fn is_partition_of(&self, other: &Disk) -> bool {
        let Some(rest) = self.name.strip_prefix(&other.name) else { return false };
        let is_numbered = other.name.ends_with(|letter: char| letter.is_ascii_digit());
        let rest = if is_numbered { rest.strip_prefix('p').unwrap_or("") } else { rest };
        !rest.is_empty() && rest.bytes().all(|letter| letter.is_ascii_digit())
    }
}

/// The parsed output of a tool.
#[derive(Clone, PartialEq, Debug)]
pub struct Summary {
    /// The tool, in words.
    pub tool: &'static str,
    /// The period over which the figures are means, in words.
    pub period: String,
    /// Disks with I/O, the busiest first, without partitions and stacked devices.
    pub disks: Vec<Disk>,
}

impl Summary {
    fn new(tool: &'static str, period: String, all: Vec<Disk>) -> Summary {
        let is_reported = |disk: &&Disk| {
            let is_part = all.iter().any(|other| disk.is_partition_of(other));
            disk.per_second() > 0.0 && !is_part && !disk.is_stacked()
        };
        let mut disks: Vec<Disk> = all.iter().filter(is_reported).cloned().collect();
        // An SSD does more I/Os a second while it is hardly busy than a hard disk at its limit.
        let busy = |disk: &Disk| (disk.utilisation.unwrap_or(0.0), disk.in_flight(), disk.per_second());
        disks.sort_by(|left, right| busy(right).partial_cmp(&busy(left)).unwrap_or(std::cmp::Ordering::Equal));
        Summary { tool, period, disks }
    }
}

/// Why no load can be synthesised from a recognised output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unusable {
    /// The line at fault, from 1, if any.
    pub line: Option<usize>,
    /// What is wrong or missing.
    pub message: String,
    /// What was expected instead.
    pub expected: String,
}

impl Unusable {
    fn new(message: impl Into<String>, expected: impl Into<String>) -> Unusable {
        Unusable { line: None, message: message.into(), expected: expected.into() }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{} (expected {})", self.message, self.expected)
    }
}

/// Hint for messages: what to provide instead of a summary.
pub const RECORDING_HINT: &str = "a recording, as of blktrace -d /dev/DISK -w 30 -o NAME";

/// Parses the output of such a tool; `None` if the text is not the output of one.
///
/// # Errors
/// If it is recognised, but a load cannot be synthesised from it.
#[must_use]
pub fn recognise(text: &str) -> Option<Result<Summary, Unusable>> {
    if let Some(found) = iostat::recognise(text).or_else(|| sar::recognise(text)).or_else(|| diskstats::recognise(text))
    {
        return Some(found);
    }
    let has_words = |words: &[&str]| {
        text.lines().take(200).any(|line| words.iter().all(|word| line.split_whitespace().any(|other| other == *word)))
    };
    let refuse =
        |tool: &str, what: &str| Some(Err(Unusable::new(format!("this is output of {tool}: {what}"), RECORDING_HINT)));
    if has_words(&["PID", "kB_rd/s", "kB_wr/s"]) {
        refuse("pidstat -d", "it has bytes of each task, but neither sizes nor latencies of I/Os")
    } else if has_words(&["swpd", "free", "bi", "bo"]) {
        refuse("vmstat", "it has blocks a second of all disks, but neither sizes nor latencies of I/Os")
    } else if text.lines().take(5).any(|line| line.trim_start().starts_with("Total DISK READ")) {
        refuse("iotop", "it has bytes of each task, but neither sizes nor latencies of I/Os")
    } else if text.lines().take(5).any(|line| line.contains("-dsk/")) {
        refuse("dstat", "it has bytes a second, but neither sizes nor latencies of I/Os")
    } else if text.lines().take(5).any(|line| line.starts_with("ATOP - ")) {
        refuse("atop", "its lines of disks are rounded for a screen")
    } else if text.lines().any(|line| line.starts_with("node_disk_")) {
        refuse("Prometheus' node exporter", "it has counters since the machine started")
    } else if has_words(&["COMM", "PID", "LAT(ms)"]) {
        refuse("biosnoop.bt", "it has latencies, but neither sizes nor places of I/Os")
    } else if has_words(&["COMM", "PID", "TYPE", "LATms"]) {
        refuse("iosnoop without -ts", "it has no times")
    } else if text.lines().next().is_some_and(|line| line.starts_with("==================== ")) {
        refuse("btt", "it has times between events, but no I/Os")
    } else if text.lines().any(is_histogram_head) {
        refuse("biolatency", "it has latencies, but neither rates nor sizes of I/Os")
    } else if text.lines().next().is_some_and(is_priority) {
        refuse("ionice", "it has a priority, but no I/Os")
    } else if text.lines().next().is_some_and(is_head_of_ps) {
        refuse("ps", "it has tasks, but no I/Os")
    } else {
        None
    }
}

/// Whether a line is biolatency's header, `usecs : count distribution`.
fn is_histogram_head(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let has_unit = words.next().is_some_and(|word| ["usecs", "msecs", "nsecs"].contains(&word));
    has_unit && words.eq([":", "count", "distribution"])
}

fn is_head_of_ps(line: &str) -> bool {
    let words = || line.split_whitespace();
    words().any(|word| word == "PID") && words().next_back().is_some_and(|word| ["CMD", "COMMAND"].contains(&word))
}

fn is_priority(line: &str) -> bool {
    let class = line.split(':').next().unwrap_or_default().trim();
    let has_level = line.contains(": prio ");
    matches!(class, "realtime" | "best-effort" | "none" | "unknown") && has_level || line.trim() == "idle"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_and_stacked_disks_are_left_out() {
        let disk = |name: &str, per_second: f64| Disk {
            name: name.to_owned(),
            reads: DirectionRates { per_second, ..DirectionRates::default() },
            ..Disk::default()
        };
        let names = ["sda", "sda1", "nvme0n1", "nvme0n1p2", "dm-0", "md127", "sdb", "loop10"];
        let all = names.iter().enumerate().map(|(number, name)| disk(name, number as f64)).collect();
        let summary = Summary::new("x", String::new(), all);
        let names: Vec<&str> = summary.disks.iter().map(|disk| &*disk.name).collect();
        assert_eq!(names, ["loop10", "sdb", "nvme0n1"], "sda has no I/O");
    }

    #[test]
    fn the_busiest_disk_is_the_one_that_is_busy_longest_and_then_the_one_with_most_in_flight() {
        let disk = |name: &str, per_second: f64, await_ms: f64, utilisation: Option<f64>| Disk {
            name: name.to_owned(),
            reads: DirectionRates { per_second, await_ms, bytes: 4096.0 },
            utilisation,
            ..Disk::default()
        };
        let order = |all: Vec<Disk>| -> Vec<String> {
            Summary::new("x", String::new(), all).disks.into_iter().map(|disk| disk.name).collect()
        };
        let all = vec![
            disk("nvme0n1", 9e3, 0.1, Some(0.09)),
            disk("sda", 90.0, 55.0, Some(1.0)),
            disk("sdb", 90.0, 90.0, Some(1.0)),
        ];
        assert_eq!(order(all), ["sdb", "sda", "nvme0n1"]);
        let unsaid = vec![disk("nvme0n1", 9e3, 0.1, None), disk("sda", 90.0, 55.0, None)];
        assert_eq!(order(unsaid), ["sda", "nvme0n1"]);
    }

    #[test]
    fn outputs_without_rates_are_refused_with_what_they_lack() {
        for (text, word) in [
            ("procs ---memory---\n r  b   swpd   free   buff  cache   si   so    bi    bo   in\n", "vmstat"),
            ("Total DISK READ:         0.00 B/s | Total DISK WRITE:         0.00 B/s\n", "iotop"),
            ("-dsk/total- -net/total-\n read  writ| recv  send\n", "dstat"),
            ("ATOP - db1      2026/11/28  12:00:00       10s elapsed\n", "atop"),
            ("# HELP x y\nnode_disk_reads_completed_total{device=\"sda\"} 100\n", "node exporter"),
            ("Attaching 3 probes...\nTIME(ms)     DISK          COMM             PID    LAT(ms)\n", "biosnoop.bt"),
            ("COMM         PID    TYPE DEV      BLOCK        BYTES     LATms\n", "iosnoop without -ts"),
            ("==================== All Devices ====================\n", "btt"),
            ("     usecs               : count     distribution\n  0 -> 1 : 0 |  |\n", "biolatency"),
            ("12:00:00 UID PID kB_rd/s kB_wr/s kB_ccwr/s iodelay Command\n", "pidstat -d"),
            ("best-effort: prio 4\n", "ionice"),
            ("  PID TTY          TIME CMD\n    1 ?        00:00:01 init\n", "ps"),
        ] {
            let refused = recognise(text).unwrap().unwrap_err().to_string();
            assert!(refused.contains(word) && refused.contains("expected a recording"), "{refused}");
        }
        assert_eq!(recognise("[a]\nfilename=/dev/sda\n"), None);
        assert_eq!(recognise(""), None);
    }
}
