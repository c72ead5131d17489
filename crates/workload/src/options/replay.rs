//! Replays of recorded I/O.

use super::files::names;
use super::setter::{Setter, U32_MAX};
use super::spec::OptionSpec;
use crate::error::quoted;
use crate::settings::Settings;
use crate::values::{Refusal, bytes};

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "read_iolog",
        "",
        Setter::Text { form: "I/O logs of fio (version 2 or 3) with colons between them", set: read_iolog },
        "Replay the I/Os of a log instead of making them up; of several logs, each clone takes the next",
    ),
    OptionSpec::new(
        "replay_no_stall",
        "0",
        Setter::Bool(|s, on| s.replay.no_stall = on),
        "Replay without the pauses of the log",
    ),
    OptionSpec::new(
        "replay_time_scale",
        "100",
        Setter::Int { min: 1, max: U32_MAX, set: |s, v| s.replay.time_scale = v as u32 },
        "Speed of a replay in percent: 50 makes the pauses twice as long",
    ),
    OptionSpec::new(
        "replay_redirect",
        "",
        Setter::Text {
            form: "a file or device",
            set: |s, v| {
                s.replay.redirect = Some(v.to_owned());
                Ok(())
            },
        },
        "Replay everything on this one instead of on the files of the log",
    ),
    OptionSpec::new(
        "replay_scale",
        "1",
        Setter::Int { min: 1, max: U32_MAX, set: |s, v| s.replay.scale = v as u64 },
        "Divide the offsets of a replay by this",
    ),
    OptionSpec::new(
        "replay_align",
        "0",
        Setter::Form { form: "a power of two in bytes, such as 4k", set: align },
        "Round the offsets of a replay down to multiples of this",
    ),
    OptionSpec::new(
        "replay_skip",
        "",
        Setter::Form { form: "read, write, trim and sync with commas between them", set: skip },
        "Leave these out of a replay",
    ),
];

fn read_iolog(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    s.replay.logs = names(text, "log")?;
    Ok(())
}

fn align(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let align = bytes(text, s.kb_base)?;
    if align != 0 && !align.is_power_of_two() {
        return Err(Refusal::new(format!("{} is not a power of two", quoted(text))).hinting("such as 512 or 4k"));
    }
    s.replay.align = align;
    Ok(())
}

fn skip(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let mut skipped = [false; 4];
    for word in text.split(',').map(str::trim) {
        let Some(kind) = ["read", "write", "trim", "sync"].iter().position(|kind| *kind == word) else {
            return Err(Refusal::new(format!("{} is not one of its values", quoted(word)))
                .hinting("expected read, write, trim or sync"));
        };
        skipped[kind] = true;
    }
    s.replay.skipped = skipped;
    Ok(())
}
