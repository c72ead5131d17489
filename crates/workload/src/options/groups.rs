//! Jobs, their clones, groups and phases.

use super::setter::Setter;
use super::spec::OptionSpec;
use crate::values::{Refusal, TimeUnit, delay_range};
use crate::workload::Ends;

/// More processes than this are refused.
pub(crate) const PROCESSES_MAX: i64 = 10_000;

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "name",
        "",
        Setter::Text {
            form: "text",
            set: |s, v| {
                s.name = Some(v.to_owned());
                Ok(())
            },
        },
        "Name of the job instead of its section's; only the first clone gets it",
    ),
    OptionSpec::new(
        "description",
        "",
        Setter::Text {
            form: "text",
            set: |s, v| {
                s.description = Some(v.to_owned());
                Ok(())
            },
        },
        "A remark that is repeated in the results",
    ),
    OptionSpec::new(
        "numjobs",
        "1",
        Setter::Int { min: 1, max: PROCESSES_MAX, set: |s, v| s.numjobs = v },
        "How many processes run this job, each with its own random numbers",
    ),
    OptionSpec::new(
        "stonewall",
        "0",
        Setter::Flag(|s, on| s.stonewall = on),
        "Wait until all earlier jobs have ended; also starts a new reporting group",
    )
    .alias(&["wait_for_previous"]),
    OptionSpec::new(
        "wait_for",
        "",
        Setter::Text {
            form: "the name of an earlier job",
            set: |s, v| {
                s.wait_for = Some(v.to_owned());
                Ok(())
            },
        },
        "Begin when all clones of the named job have ended",
    ),
    OptionSpec::new(
        "exitall",
        "0",
        Setter::Flag(|s, on| s.exit_all = on),
        "The first process that ends ends others: those that its exit_what says",
    ),
    OptionSpec::new(
        "exit_what",
        "group",
        Setter::Choice {
            of: &["group", "stonewall", "all"],
            set: |s, i| s.ends = [Ends::Group, Ends::Phase, Ends::All][i],
        },
        "What exitall ends: the reporting group, all up to the next stonewall, or everything",
    ),
    OptionSpec::new("new_group", "0", Setter::Flag(|s, on| s.new_group = on), "Start a new reporting group"),
    OptionSpec::new(
        "group_reporting",
        "0",
        Setter::Flag(|s, on| s.group_reporting = on),
        "Report the jobs of a group as one",
    ),
    OptionSpec::new(
        "startdelay",
        "0",
        Setter::Form { form: "a time in s, or a range low-high of them", set: start_delay },
        "Start that much later; of a range, each clone gets a value of its own",
    ),
    OptionSpec::new(
        "runtime",
        "",
        Setter::Time { unit: TimeUnit::Seconds, set: |s, v| s.runtime = v },
        "End the job after this time, even if it has not done its size",
    )
    .alias(&["timeout"]),
    OptionSpec::new(
        "time_based",
        "0",
        Setter::Flag(|s, on| s.time_based = on),
        "Go on until runtime is over, however often the size is done",
    ),
    OptionSpec::new(
        "ramp_time",
        "0",
        Setter::Time { unit: TimeUnit::Seconds, set: |s, v| s.ramp_time = v },
        "Run this long before measuring; it is added to runtime",
    ),
];

fn start_delay(s: &mut crate::settings::Settings, v: &str) -> Result<(), Refusal> {
    s.start_delay = delay_range(v)?;
    Ok(())
}
