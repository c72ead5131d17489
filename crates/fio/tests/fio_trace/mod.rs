//! Gets the I/Os that each process of fio issues for a job file, in order.
//!
//! In fio's I/O log all clones of a job are mixed. Its trace (`--debug=io`) has the same I/Os, each with its process,
//! so the trace is used here; `the_trace_of_fio_matches_its_log` shows that both are the same.

pub mod adapt;
mod compare;

use std::collections::{HashMap, HashSet};
use std::path::Path;

pub use compare::{Io, Kind, compare};

use crate::fio_run;

/// What a process of fio did.
#[derive(Debug)]
pub struct Traced {
    pub name: String,
    /// fio's number of its reporting group.
    pub group: u32,
    pub ios: Vec<Io>,
    /// The lines of the trace with its first and last I/O.
    pub lines: Option<(usize, usize)>,
}

/// Runs a job file with fio. The processes are in the order of the job file, with clones of a job next to each other.
pub fn trace(directory: &Path, text: &str, variables: &[(&str, &str)]) -> Vec<Traced> {
    let output = fio_run::run(directory, text, &["--debug=io,process"], variables);
    let text = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    let mut traces: HashMap<u32, Trace> = HashMap::new();
    let mut names = Vec::new();
    let mut groups = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if let Some(rest) = line.strip_prefix("io ") {
            let Some((id, step)) = rest.trim_start().split_once(' ') else { continue };
            let id = id.parse().unwrap_or_else(|_| panic!("a process in {line:?}"));
            traces.entry(id).or_default().step(step.trim_start(), number);
        } else if line.starts_with("process ") && line.contains(" terminate group_id=-1") {
            // At the end fio lists all its processes in order.
            names.clear();
        } else if let Some((_, process)) = line.split_once(" setting terminate on ") {
            let (name, id) = process.rsplit_once('/').expect("a name and a process");
            names.push((name.to_owned(), id.parse::<u32>().expect("a process")));
        } else if let Some((_, group)) = line.split_once("\"groupid\" : ") {
            groups.push(group.trim_end_matches(',').parse().expect("a group"));
        }
    }
    assert!(!names.is_empty(), "fio did not run: {complaints}");
    assert_eq!(names.len(), groups.len(), "processes in fio's document: {complaints}");
    let traced = |((name, id), group): ((String, u32), u32)| {
        let trace = traces.remove(&id).unwrap_or_default();
        Traced { name, group, ios: trace.ios, lines: trace.lines }
    };
    names.into_iter().zip(groups).map(traced).collect()
}

#[derive(Default)]
struct Trace {
    ios: Vec<Io>,
    lines: Option<(usize, usize)>,
    /// I/Os that are prepared and not completed. If the engine is busy, fio prepares an I/O again.
    pending: HashSet<String>,
}

impl Trace {
    /// Parses `prep: io_u 0x55d2: off=0x1000,len=0x1000,ddir=0,file=a`, or the line of another step of an I/O.
    fn step(&mut self, step: &str, line: usize) {
        let Some((what, rest)) = step.split_once(": io_u ") else { return };
        let Some((unit, fields)) = rest.split_once(": ") else { return };
        match what {
            "prep" if self.pending.insert(unit.to_owned()) => {
                self.ios.push(io_of(fields).unwrap_or_else(|| panic!("an I/O in {step:?}")));
                self.lines = Some((self.lines.map_or(line, |(first, _)| first), line));
            }
            "complete" => {
                self.pending.remove(unit);
            }
            _ => {}
        }
    }
}

fn io_of(fields: &str) -> Option<Io> {
    let mut fields = fields.splitn(4, ',');
    let mut next = |key: &str| fields.next()?.strip_prefix(key);
    let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let offset_bytes = number(next("off=")?)?;
    let bytes = number(next("len=")?)?;
    let kind = match next("ddir=")? {
        "0" => Kind::Read,
        "1" => Kind::Write,
        "2" => Kind::Trim,
        // fsync and fdatasync.
        "3" | "4" => return Some(Io { kind: Kind::Sync, file: next("file=")?.to_owned(), offset_bytes: 0, bytes: 0 }),
        _ => return None,
    };
    Some(Io { kind, file: next("file=")?.to_owned(), offset_bytes, bytes })
}
