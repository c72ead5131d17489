//! Which keys a preset file has, and which values can be. One table, used for the check and for its messages.
//!
//! Bounds are those of physics and of Linux, wide enough for any device that exists: they catch slips of units
//! and signs, not bad models.

use std::fmt;

use super::file::Model;

/// One key of a section.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) required: bool,
    pub(super) kind: Kind,
}

/// What the value of a key must be.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Text with something in it.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// true or false.
    Flag,
    /// A number between two bounds, both included; then its unit.
    Number(f64, f64, &'static str),
    /// A whole number between two bounds, both included; then its unit.
    Whole(u64, u64, &'static str),
    /// A power of two between two bounds, both included; then its unit.
    PowerOfTwo(u64, u64, &'static str),
    /// A section with these keys.
    Section(&'static [Key]),
    /// A list of sections with these keys.
    Sections(&'static [Key]),
    /// A section with the keys of parameters, each with a text.
    Sources,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Text => write!(f, "a text that is not empty, in quotes"),
            Kind::Word(words) => {
                let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
                write!(f, "{}", quoted.join(" or "))
            }
            Kind::Flag => write!(f, "true or false"),
            Kind::Number(least, most, unit) => write!(f, "a number of {unit} from {least} to {most}"),
            Kind::Whole(least, most, unit) => write!(f, "a whole number of {unit} from {least} to {most}"),
            Kind::PowerOfTwo(least, most, unit) => {
                write!(f, "a power of two from {least} to {most}, in {unit}")
            }
            Kind::Section(keys) => write!(f, "a section with {}", names(keys)),
            Kind::Sections(keys) => write!(f, "a list of sections with {}", names(keys)),
            Kind::Sources => write!(f, "a section with the keys of parameters, each with a text"),
        }
    }
}

/// The names of these keys, for a message.
pub(super) fn names(keys: &[Key]) -> String {
    let quoted: Vec<_> = keys.iter().map(|key| format!("`{}`", key.name)).collect();
    quoted.join(", ")
}

/// A key that must be there.
const fn key(name: &'static str, kind: Kind) -> Key {
    Key { name, required: true, kind }
}

/// A key that may be left out.
const fn optional(name: &'static str, kind: Kind) -> Key {
    Key { name, required: false, kind }
}

/// A time: at most ten seconds, because nothing that a device does to one command takes longer.
const TIME_US: Kind = Kind::Number(0.0, 1e7, "microseconds");
const PERCENT: Kind = Kind::Number(0.0, 100.0, "percent");

/// The whole file, for a preset of this model.
pub(super) const fn file(model: Model) -> &'static [Key] {
    match model {
        Model::Null => NULL_FILE,
        Model::Ssd => SSD_FILE,
    }
}

/// The key that says which model it is.
pub(super) const MODEL: &Key = &key("model", Kind::Word(&["null", "ssd"]));

/// The model of this name.
pub(super) fn model(word: &str) -> Option<Model> {
    match word {
        "null" => Some(Model::Null),
        "ssd" => Some(Model::Ssd),
        _ => None,
    }
}

/// The keys of every preset file, and then the section of its model.
macro_rules! file_of {
    ($name:literal, $keys:ident) => {
        &[
            key("name", Kind::Text),
            key("title", Kind::Text),
            key("model", MODEL.kind),
            key("shape", Kind::Section(SHAPE)),
            key($name, Kind::Section($keys)),
            key("calibration", Kind::Section(CALIBRATION)),
        ]
    };
}

const NULL_FILE: &[Key] = file_of!("null", NULL);
const SSD_FILE: &[Key] = file_of!("ssd", SSD);

const SHAPE: &[Key] = &[
    // One sector to 9 PB: up to there a size in GB is exact to the byte.
    key("capacity_gb", Kind::Number(512e-9, 9e6, "gigabytes (10^9 bytes)")),
    // Linux allows block sizes from a sector to 64 KiB.
    key("logical_block_bytes", Kind::PowerOfTwo(512, 65_536, "bytes")),
    key("physical_block_bytes", Kind::PowerOfTwo(512, 1 << 20, "bytes")),
    key("hw_queues", Kind::Whole(1, 2048, "hardware queues")),
    // The most tags that Linux gives a queue.
    key("queue_depth", Kind::Whole(1, 10_240, "commands for each hardware queue")),
    key("scsi", Kind::Flag),
    key("rotational", Kind::Flag),
    key("write_cache", Kind::Flag),
    key("fua", Kind::Flag),
    // At least a page, as in Linux; at most what a length of 32 bits in bytes can hold.
    key("max_sectors", Kind::Whole(8, (1 << 23) - 1, "sectors of 512 bytes")),
    key("max_segments", Kind::Whole(1, 65_535, "segments")),
];

const NULL: &[Key] = &[
    // Not 0: virtual time would stand still in a closed loop.
    key("delay_ns", Kind::Whole(1, 10_000_000_000, "nanoseconds")),
    optional("delay_jitter_percent", PERCENT),
    optional("holds_commands", Kind::Whole(1, 2048 * 10_240, "commands")),
];

const SSD: &[Key] = &[
    key("host_to_device_us", TIME_US),
    // Not 0: throughput would be infinite.
    key("serial_stage_us", Kind::Number(0.001, 1e7, "microseconds")),
    key("transfer_mb_per_s", Kind::Number(0.1, 1e6, "megabytes (10^6 bytes) a second")),
    key("acknowledge_us", TIME_US),
    key("flash_read_us", TIME_US),
    key("flash_read_jitter_percent", PERCENT),
    key("flush_us", TIME_US),
    key("discard_us", TIME_US),
    key("device_to_host_us", TIME_US),
    optional("gc", Kind::Section(GC)),
];

const GC: &[Key] = &[
    key("background_pages_per_s", Kind::Number(1.0, 1e9, "pages of 4 KiB a second")),
    key("threshold_pages", Kind::Number(1.0, 1e9, "pages of 4 KiB")),
    key("stall_ms", Kind::Number(0.0, 1e4, "milliseconds")),
    key("stall_shortening_percent", PERCENT),
];

const CALIBRATION: &[Key] = &[
    key("on", Kind::Text),
    key("valid_range", Kind::Text),
    optional("residuals", Kind::Sections(RESIDUAL)),
    optional("sources", Kind::Sources),
];

const RESIDUAL: &[Key] = &[
    key("what", Kind::Text),
    key("measured", Kind::Number(1e-9, 1e15, "the unit that `what` names")),
    key("model", Kind::Number(0.0, 1e15, "the unit that `what` names")),
];

/// The keys of all parameters of a model, with their sections: what a source can be given for.
pub(super) fn parameters(model: Model) -> Vec<String> {
    fn collect(keys: &[Key], prefix: &str, found: &mut Vec<String>) {
        for key in keys {
            let path = if prefix.is_empty() { key.name.to_owned() } else { format!("{prefix}.{}", key.name) };
            match key.kind {
                Kind::Section(inner) if path != "calibration" => collect(inner, &path, found),
                _ if !prefix.is_empty() => found.push(path),
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    collect(file(model), "", &mut found);
    found
}
