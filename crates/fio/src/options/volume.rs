//! Options of the amount of I/O, and of its region.

use hoistway_load::{Amount, Process};

use super::Job;
use super::Subject;
use super::{OptionSpec, Setter, U32_MAX, row};
use crate::JobFileError;

pub(super) const SUBJECT: Subject = Subject {
    rows: ROWS,
    apply,
    fields: &[
        ("plan.pattern.volume.size", |_| "size"),
        ("plan.pattern.volume.io_size", |_| "io_size"),
        ("plan.pattern.volume.offset", |_| "offset"),
        ("plan.pattern.volume.offset_increment", |_| "offset_increment"),
        ("plan.pattern.volume.loops", |_| "loops"),
    ],
};

const ROWS: &[OptionSpec] = &[
    row("size", "100%", Setter::Amount(|s, v| s.volume().size = (v != Amount::Bytes(0)).then_some(v)))
        .doc("Size of the region, and amount of I/O if io_size is not given"),
    row("io_size", "", Setter::Amount(|s, v| s.volume().io_size = (v != Amount::Bytes(0)).then_some(v)))
        .doc("Amount of I/O in bytes; more than size wraps around")
        .alias(&["io_limit"]),
    row("offset", "0", Setter::Amount(|s, v| s.volume().offset = v)).doc("Start of the region").alias(&["fileoffset"]),
    row("offset_increment", "0", Setter::Amount(|s, v| s.volume().offset_increment = v)).doc(
        "Added to offset once for the last clone of a job, twice for the one before it and so on, never for the first",
    ),
    row("number_ios", "", Setter::Int { min: 0, max: i64::MAX, set: |s, v| s.volume().number_ios = v.unsigned_abs() })
        .doc("End the job after N I/Os, unless its size ends it first"),
    row("loops", "1", Setter::Int { min: 1, max: U32_MAX, set: |s, v| s.volume().loops = v.unsigned_abs() })
        .doc("Number of times to repeat the size"),
];

fn apply(job: &Job<'_>, process: &mut Process) -> Result<(), JobFileError> {
    if process.plan.pattern.volume.time_based {
        for option in ["number_ios", "io_size", "loops"].into_iter().filter(|option| job.is_given(option)) {
            job.add_notice_of_job(&format!("{option} has no effect with time_based, as in fio."));
        }
    }
    Ok(())
}
