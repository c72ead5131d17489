//! Options of the replay of fio's I/O logs.

use hoistway_blk::bio::Op;
use hoistway_blk::ground::Nanos;
use hoistway_load::{Pause, Process};

use super::Job;
use super::files::names;
use super::{OptionSpec, Setter, U32_MAX, row};
use super::{Settings, Subject};
use crate::JobFileError;
use crate::error::quoted;
use crate::values::{Refusal, bytes};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ReplaySettings {
    /// Empty for no replay. Each clone replays the next one.
    pub(crate) logs: Vec<String>,
    no_stall: bool,
    /// Speed, percent.
    time_scale: u32,
    pub(crate) redirect: Option<String>,
    scale: u64,
    /// A power of two, or 0.
    align: u64,
    /// Reads, writes, trims, syncs.
    skipped: [bool; 4],
}

impl Default for ReplaySettings {
    fn default() -> Self {
        ReplaySettings {
            logs: Vec::new(),
            no_stall: false,
            time_scale: 100,
            redirect: None,
            scale: 1,
            align: 0,
            skipped: [false; 4],
        }
    }
}

impl ReplaySettings {
    /// A pause of the log with the options applied.
    pub(crate) fn pause(&self, pause: Pause) -> Pause {
        match pause {
            _ if self.no_stall => Pause::After(Nanos::ZERO),
            Pause::After(gap) => {
                let ns = u128::from(gap.0) * 100 / u128::from(self.time_scale.max(1));
                Pause::After(Nanos(u64::try_from(ns).unwrap_or(u64::MAX)))
            }
            until => until,
        }
    }

    /// An offset of the log with the options applied.
    pub(crate) fn offset(&self, bytes: u64) -> u64 {
        let scaled = bytes / self.scale.max(1);
        if self.align > 1 { scaled & !(self.align - 1) } else { scaled }
    }

    /// Whether this kind of I/O is skipped.
    pub(crate) fn skips(&self, op: Op) -> bool {
        self.skipped[match op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Discard => 2,
            _ => 3,
        }]
    }
}

pub(super) const SUBJECT: Subject = Subject { rows: ROWS, apply, fields: &[("plan.replay", |_| "read_iolog")] };

const ROWS: &[OptionSpec] = &[
    row(
        "read_iolog",
        "",
        Setter::Text { form: "I/O logs of fio (version 2 or 3) separated by colons", set: read_iolog },
    )
    .doc("Replay the I/Os of a log instead of generating them; with several logs, each clone replays the next"),
    row("replay_no_stall", "0", Setter::Bool(|s, on| s.replay.no_stall = on))
        .doc("Replay without the pauses of the log"),
    row("replay_time_scale", "100", Setter::Int { min: 1, max: U32_MAX, set: |s, v| s.replay.time_scale = v as u32 })
        .doc("Speed of a replay in percent: 50 makes the pauses twice as long"),
    row(
        "replay_redirect",
        "",
        Setter::Text {
            form: "a file or device",
            set: |s, v| {
                s.replay.redirect = Some(v.to_owned());
                Ok(())
            },
        },
    )
    .doc("Replay everything on this file or device instead of the files of the log"),
    row("replay_scale", "1", Setter::Int { min: 1, max: U32_MAX, set: |s, v| s.replay.scale = v as u64 })
        .doc("Divide the offsets of a replay by this number"),
    row("replay_align", "0", Setter::Form { form: "a power of two in bytes, such as 4k", set: align })
        .doc("Round the offsets of a replay down to multiples of this size"),
    row("replay_skip", "", Setter::Form { form: "read, write, trim and sync separated by commas", set: skip })
        .doc("Skip these I/Os in a replay"),
];

/// Adds notices about the other options of a replay job, which behave as in fio (tried with 3.33).
fn apply(job: &Job<'_>, _: &mut Process) -> Result<(), JobFileError> {
    const WITHOUT_EFFECT: &str = "rw bs bsrange bssplit size io_size filesize offset zonesize number_ios loops \
                            time_based filename nrfiles directory rate rate_iops fsync fdatasync randseed";
    if !job.is_replay() {
        return Ok(());
    }
    let given: Vec<_> = WITHOUT_EFFECT.split(' ').filter(|option| job.is_given(option)).collect();
    if !given.is_empty() {
        let given = given.join(", ");
        job.add_notice_of_job(&format!(
            "a replay takes its I/Os from the log, as in fio, so these options have no effect: {given}."
        ));
    }
    if job.settings.replay.skipped.contains(&true) {
        job.add_notice_of_job("replay_skip works as documented; fio 3.33 applies it only to blktrace recordings.");
    }
    Ok(())
}

fn read_iolog(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    s.replay.logs = names(text, "log")?;
    Ok(())
}

fn align(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let align = bytes(text, s.files.kb_base)?;
    if align != 0 && !align.is_power_of_two() {
        return Err(Refusal::new(format!("{} is not a power of two", quoted(text))).with_hint("such as 512 or 4k"));
    }
    s.replay.align = align;
    Ok(())
}

fn skip(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let mut skipped = [false; 4];
    for word in text.split(',').map(str::trim) {
        let Some(kind) = ["read", "write", "trim", "sync"].iter().position(|kind| *kind == word) else {
            return Err(Refusal::new(format!("{} is not one of its values", quoted(word)))
                .with_hint("expected read, write, trim or sync"));
        };
        skipped[kind] = true;
    }
    s.replay.skipped = skipped;
    Ok(())
}
