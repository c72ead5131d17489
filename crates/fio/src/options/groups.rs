//! Options of jobs, clones, groups, phases and times.

use hoistway_blk::ground::Nanos;
use hoistway_load::{Ends, Process, Purpose, Reporting, Stream};

use super::Job;
use super::{OptionSpec, Setter, row};
use super::{Settings, Subject};
use crate::JobFileError;
use crate::values::{Refusal, TimeUnit, delay_range};

/// Maximum processes.
pub(crate) const PROCESSES_MAX: usize = hoistway_load::limits::PROCESSES;

#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    pub(crate) name: Option<String>,
    /// `None` for the default of one.
    pub(crate) numjobs: Option<u32>,
    pub(crate) stonewall: bool,
    pub(crate) wait_for: Option<String>,
    pub(crate) exit_all: bool,
    pub(crate) ends: Option<Ends>,
    pub(crate) new_group: bool,
    /// Minimum and maximum delay.
    start_delay: (Nanos, Nanos),
    /// Whether the delay is exact, instead of rounded up to fio's 100 ms checks.
    exact_start: bool,
}

pub(super) const SUBJECT: Subject = Subject { rows: ROWS, apply, fields: &[] };

const ROWS: &[OptionSpec] = &[
    row(
        "name",
        "",
        Setter::Text {
            form: "text",
            set: |s, v| {
                s.groups.name = Some(v.to_owned());
                Ok(())
            },
        },
    )
    .doc("Name of the job instead of the section's name; only the first clone gets it"),
    row(
        "description",
        "", // Results repeat all options.
        Setter::Text { form: "text", set: |_, _| Ok(()) },
    )
    .doc("A remark that is repeated in the results"),
    row(
        "numjobs",
        "1",
        Setter::Int { min: 1, max: PROCESSES_MAX as i64, set: |s, v| s.groups.numjobs = Some(v as u32) },
    )
    .doc("Number of processes that run this job, each with its own random numbers"),
    row("stonewall", "0", Setter::Flag(|s, on| s.groups.stonewall = on))
        .doc("Wait until all earlier jobs have ended; also starts a new reporting group")
        .alias(&["wait_for_previous"]),
    row(
        "wait_for",
        "",
        Setter::Text {
            form: "the name of an earlier job",
            set: |s, v| {
                s.groups.wait_for = Some(v.to_owned());
                Ok(())
            },
        },
    )
    .doc("Begin when all clones of the named job have ended"),
    row("exitall", "0", Setter::Flag(|s, on| s.groups.exit_all = on))
        .doc("When the first process ends, end others, as chosen by exit_what"),
    row(
        "exit_what",
        "group",
        Setter::Choice {
            words: &["group", "stonewall", "all"],
            set: |s, i| s.groups.ends = Some([Ends::Group, Ends::Phase, Ends::All][i]),
        },
    )
    .doc("Scope of exitall: the reporting group, all jobs up to the next stonewall, or all jobs"),
    row("new_group", "0", Setter::Flag(|s, on| s.groups.new_group = on)).doc("Start a new reporting group"),
    row("group_reporting", "0", Setter::Flag(|s, on| s.process.schedule.group_reporting = on))
        .doc("Report the jobs of a group as one"),
    row(
        "unified_rw_reporting",
        "none",
        Setter::Form {
            form: "none, mixed, both, or 0, 1, 2",
            set: |s, v| {
                s.process.schedule.reporting = match v {
                    "none" | "0" => Reporting::Separate,
                    "mixed" | "1" => Reporting::Unified,
                    "both" | "2" => Reporting::Both,
                    _ => return Err(Refusal::new(format!("\"{}\" is not one of its values", v.escape_debug()))),
                };
                Ok(())
            },
        },
    )
    .doc("In fio's JSON, report reads, writes and trims separately, as one direction (mixed), or both ways"),
    row("startdelay", "0", Setter::Form { form: "a time in s, or a range low-high of times", set: start_delay })
        .doc("Delay the start; with a range, each clone draws its own delay. As in fio, checked every 100 ms"),
    row(
        "start",
        "",
        Setter::Form {
            form: "a time in s, or a range low-high of times",
            set: |s, v| {
                start_delay(s, v)?;
                s.groups.exact_start = true;
                Ok(())
            },
        },
    )
    .doc("Like startdelay, but exact, for programs that start at different times. Not an option of fio"),
    row(
        "runtime",
        "",
        Setter::Time {
            unit: TimeUnit::Seconds,
            set: |s, v| s.process.schedule.runtime = (v > Nanos::ZERO).then_some(v),
        },
    )
    .doc("End the job after this time, even if it has not finished its size")
    .alias(&["timeout"]),
    row("time_based", "0", Setter::Flag(|s, on| s.volume().time_based = on))
        .doc("Repeat the size until runtime is over"),
    row("ramp_time", "0", Setter::Time { unit: TimeUnit::Seconds, set: |s, v| s.process.schedule.ramp = v })
        .doc("Run this long before measuring, in addition to runtime"),
];

fn apply(job: &Job<'_>, process: &mut Process) -> Result<(), JobFileError> {
    let has_runtime = process.schedule.runtime.is_some();
    let volume = &mut process.plan.pattern_mut().volume;
    if volume.time_based && !has_runtime {
        volume.time_based = false;
        job.add_notice_of_job("time_based has no effect without runtime: the job runs once.");
    }
    Ok(())
}

/// Sets what differs between clones: the name, and a random delay if a range is given, which is the same in every run.
/// `number` is the process's position among all processes.
pub(crate) fn apply_to_clone(job: &Job<'_>, clone: u32, number: u32, process: &mut Process) {
    let s = &job.settings.groups;
    let given_name = s.name.as_deref().filter(|_| clone == 0);
    process.name = given_name.unwrap_or(&job.section.name).to_owned();
    process.schedule.clone = clone;
    let (low, high) = s.start_delay;
    let mut stream = Stream::new(0, u64::from(number), Purpose::StartDelay);
    process.schedule.start_delay = low + Nanos(stream.below(high.0 - low.0 + 1));
    process.schedule.polled_start = !s.exact_start && process.schedule.start_delay > Nanos::ZERO;
}

fn start_delay(s: &mut Settings, v: &str) -> Result<(), Refusal> {
    s.groups.start_delay = delay_range(v)?;
    s.groups.exact_start = false;
    Ok(())
}
