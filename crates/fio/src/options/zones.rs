//! Options of strided zones: parts of the region that are used in turn.

use hoistway_load::{Distribution, Offsets, Process, Strided};

use super::Job;
use super::{OptionSpec, Setter, row};
use super::{Settings, Subject};
use crate::JobFileError;
use crate::error::quoted;
use crate::values::{KbBase, Refusal, bytes};

const BYTES: &str = "bytes such as 256m";

#[derive(Clone, Debug, Default)]
pub(crate) struct Zones {
    /// `None` if not given.
    mode: Option<Mode>,
    zone_bytes: u64,
    /// 0 for `zone_bytes`.
    range_bytes: u64,
    skip_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    None,
    Strided,
}

pub(super) const SUBJECT: Subject = Subject {
    rows: ROWS,
    apply,
    fields: &[
        ("plan.pattern.zones.zone_bytes", |_| "zonesize"),
        ("plan.pattern.zones.range_bytes", |s| if s.zones.range_bytes == 0 { "zonesize" } else { "zonerange" }),
        ("plan.pattern.zones.skip_bytes", |_| "zoneskip"),
    ],
};

const ROWS: &[OptionSpec] = &[
    row("zonemode", "none", Setter::Form { form: "none | strided", set: zone_mode })
        .doc("Use one zone of the region after the other (strided)"),
    row(
        "zonesize",
        "0",
        Setter::Form { form: BYTES, set: |s, text| set(&mut s.zones.zone_bytes, text, s.files.kb_base) },
    )
    .doc("Bytes to transfer in a zone before the next one begins"),
    row(
        "zonerange",
        "zonesize",
        Setter::Form { form: BYTES, set: |s, text| set(&mut s.zones.range_bytes, text, s.files.kb_base) },
    )
    .doc("Length of a zone; a smaller zonesize leaves the rest untouched, a larger one wraps around"),
    row(
        "zoneskip",
        "0",
        Setter::Form { form: BYTES, set: |s, text| set(&mut s.zones.skip_bytes, text, s.files.kb_base) },
    )
    .doc("Bytes between the end of a zone and the start of the next"),
];

fn apply(job: &Job<'_>, process: &mut Process) -> Result<(), JobFileError> {
    let s = &job.settings.zones;
    match (s.mode, s.zone_bytes) {
        (Some(Mode::Strided), 0) => {
            let error = job.error("zonemode", "strided needs zonesize");
            return Err(error.with_hint("give the bytes to transfer in a zone: zonesize=256m"));
        }
        (Some(Mode::None), 1..) => {
            let error = job.error("zonesize", "zonemode=none and zonesize exclude each other, as in fio");
            return Err(error.with_hint("use zonemode=strided, or remove zonesize"));
        }
        (_, 0) => {
            job.add_notice_of_unused_options(&["zonerange", "zoneskip"], "without zonemode=strided and zonesize");
            return Ok(());
        }
        _ => {}
    }
    if s.mode.is_none() {
        job.add_notice_unless_replay("zonesize without zonemode means zonemode=strided, as in older versions of fio.");
    }
    let pattern = process.plan.pattern_mut();
    // Tried with fio 3.33.
    let have_no_effect =
        matches!(&pattern.offsets, Offsets::Random(random) if random.distribution != Distribution::Uniform);
    if have_no_effect {
        job.add_notice_unless_replay("zones have no effect with random_distribution, as in fio.");
        return Ok(());
    }
    let range_bytes = if s.range_bytes == 0 { s.zone_bytes } else { s.range_bytes };
    pattern.zones = Some(Strided { zone_bytes: s.zone_bytes, range_bytes, skip_bytes: s.skip_bytes });
    Ok(())
}

fn set(target: &mut u64, text: &str, base: KbBase) -> Result<(), Refusal> {
    if text.ends_with('%') {
        // fio 3.33 accepts percentages, but then zones may begin within a sector.
        return Err(Refusal::new("percentages are not supported").with_hint(format!("expected {BYTES}")));
    }
    *target = bytes(text, base)?;
    Ok(())
}

fn zone_mode(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    s.zones.mode = Some(match text {
        "none" => Mode::None,
        "strided" => Mode::Strided,
        "zbd" => {
            return Err(Refusal::new("\"zbd\" is not supported: zoned devices are not modelled")
                .with_hint("use strided, or none"));
        }
        _ => {
            let refusal = Refusal::new(format!("{} is not one of its values", quoted(text)));
            return Err(refusal.with_hint("expected none or strided"));
        }
    });
    Ok(())
}
