//! Zones of the region that are used one after the other.

use super::setter::Setter;
use super::spec::OptionSpec;
use crate::error::quoted;
use crate::settings::{Settings, ZoneMode};
use crate::values::{Refusal, bytes};

const BYTES: &str = "bytes such as 256m";

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "zonemode",
        "none",
        Setter::Form { form: "none | strided", set: zone_mode },
        "Use one zone of the region after the other (strided)",
    ),
    OptionSpec::new(
        "zonesize",
        "0",
        Setter::Form { form: BYTES, set: |s, text| set(&mut s.zone_bytes, text, s.kb_base) },
        "Bytes to move in a zone before the next one begins",
    ),
    OptionSpec::new(
        "zonerange",
        "zonesize",
        Setter::Form { form: BYTES, set: |s, text| set(&mut s.zone_range, text, s.kb_base) },
        "Length of a zone; what zonesize leaves of it is not touched, what it has more goes over it again",
    ),
    OptionSpec::new(
        "zoneskip",
        "0",
        Setter::Form { form: BYTES, set: |s, text| set(&mut s.zone_skip, text, s.kb_base) },
        "Bytes between the end of a zone and the start of the next",
    ),
];

fn set(to: &mut u64, text: &str, base: crate::values::KbBase) -> Result<(), Refusal> {
    if text.ends_with('%') {
        // fio 3.33 takes them and puts the zones between two sectors.
        return Err(Refusal::new("percentages are not supported").hinting(format!("expected {BYTES}")));
    }
    *to = bytes(text, base)?;
    Ok(())
}

fn zone_mode(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    s.zone_mode = Some(match text {
        "none" => ZoneMode::None,
        "strided" => ZoneMode::Strided,
        "zbd" => {
            return Err(Refusal::new("\"zbd\" is not supported: it needs a zoned device, and none is modelled")
                .hinting("use strided, or none"));
        }
        _ => {
            let refusal = Refusal::new(format!("{} is not one of its values", quoted(text)));
            return Err(refusal.hinting("expected none or strided"));
        }
    });
    Ok(())
}
