//! The keys of a preset file and their valid values. One table, used for the check and for its messages.
//!
//! Bounds are those of physics and of Linux, wide enough for any existing device: they catch wrong units and signs, not
//! bad models.

use std::fmt;

use super::file::Model;
use crate::service::{PROBABILITIES, ServedOperation};

/// One key of a section.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) required: bool,
    pub(super) kind: Kind,
}

/// The type and range of a key's value.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Text that is not empty.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// true or false.
    Flag,
    /// A number between two bounds, both included; and its unit.
    Number(f64, f64, &'static str),
    /// An integer between two bounds, both included; and its unit.
    Whole(u64, u64, &'static str),
    /// Two integers, in ascending order, between two bounds, both included; and their unit.
    Span(u64, u64, &'static str),
    /// This many numbers between two bounds, both included, none less than the one before; and their unit.
    Ascending(usize, f64, f64, &'static str),
    /// A power of two between two bounds, both included; and its unit.
    PowerOfTwo(u64, u64, &'static str),
    /// A section with these keys.
    Section(&'static [Key]),
    /// A list of sections with these keys.
    Sections(&'static [Key]),
    /// A section whose keys are parameters, each with a text.
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
            Kind::Number(min, max, unit) => write!(f, "a number of {unit} from {min} to {max}"),
            Kind::Whole(min, max, unit) => write!(f, "a whole number of {unit} from {min} to {max}"),
            Kind::Span(min, max, unit) => {
                write!(f, "two whole numbers of {unit} from {min} to {max}, [least, most], the least first")
            }
            Kind::Ascending(count, min, max, unit) => {
                write!(f, "{count} numbers of {unit} from {min} to {max}, none less than the one before")
            }
            Kind::PowerOfTwo(min, max, unit) => {
                write!(f, "a power of two from {min} to {max}, in {unit}")
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

/// A required key.
const fn key(name: &'static str, kind: Kind) -> Key {
    Key { name, required: true, kind }
}

/// An optional key.
const fn optional(name: &'static str, kind: Kind) -> Key {
    Key { name, required: false, kind }
}

/// A time of at most ten seconds: no operation of a device takes longer for one command.
const TIME_US: Kind = Kind::Number(0.0, 1e7, "microseconds");
const PERCENT: Kind = Kind::Number(0.0, 100.0, "percent");

/// The keys of the whole file, for a preset of this model.
pub(super) const fn file(model: Model) -> &'static [Key] {
    match model {
        Model::Flash => FLASH_FILE,
        Model::Hdd => HDD_FILE,
        Model::Null => NULL_FILE,
        Model::Optane => OPTANE_FILE,
        Model::Raid => RAID_FILE,
        Model::Service => SERVICE_FILE,
        Model::Ssd => SSD_FILE,
    }
}

/// The key that selects the model.
pub(super) const MODEL: &Key = &key("model", Kind::Word(&["flash", "hdd", "null", "optane", "raid", "service", "ssd"]));

/// The model of this name.
pub(super) fn model(word: &str) -> Option<Model> {
    match word {
        "flash" => Some(Model::Flash),
        "hdd" => Some(Model::Hdd),
        "null" => Some(Model::Null),
        "optane" => Some(Model::Optane),
        "raid" => Some(Model::Raid),
        "service" => Some(Model::Service),
        "ssd" => Some(Model::Ssd),
        _ => None,
    }
}

/// The keys of every preset file, with the section of its model.
macro_rules! file_of {
    ($name:literal, $keys:ident) => {
        &[
            key("name", Kind::Text),
            key("title", Kind::Text),
            key("model", MODEL.kind),
            key("shape", Kind::Section(SHAPE)),
            key($name, Kind::Section($keys)),
            optional("throttle", Kind::Section(THROTTLE)),
            optional("faults", Kind::Section(FAULTS)),
            optional("tracer", Kind::Section(TRACER)),
            optional("transport", Kind::Section(TRANSPORT)),
            key("calibration", Kind::Section(CALIBRATION)),
        ]
    };
}

const FLASH_FILE: &[Key] = file_of!("flash", FLASH);
const HDD_FILE: &[Key] = file_of!("hdd", HDD);
const NULL_FILE: &[Key] = file_of!("null", NULL);
const OPTANE_FILE: &[Key] = file_of!("optane", OPTANE);
const RAID_FILE: &[Key] = file_of!("raid", RAID);
const SERVICE_FILE: &[Key] = file_of!("service", SERVICE);
const SSD_FILE: &[Key] = file_of!("ssd", SSD);

const SHAPE: &[Key] = &[
    // One sector to 9 PB: up to there a size in GB is exact to the byte.
    key("capacity_gb", Kind::Number(512e-9, 9e6, "gigabytes (10^9 bytes)")),
    // Linux allows block sizes from a sector to 64 KiB.
    key("logical_block_bytes", Kind::PowerOfTwo(512, 65_536, "bytes")),
    key("physical_block_bytes", Kind::PowerOfTwo(512, 1 << 20, "bytes")),
    key("hw_queues", Kind::Whole(1, 2048, "hardware queues")),
    // The maximum tags of a queue in Linux.
    key("queue_depth", Kind::Whole(1, 10_240, "commands for each hardware queue")),
    optional("host_wide_tags", Kind::Flag),
    optional("wants_no_scheduler", Kind::Flag),
    key("scsi", Kind::Flag),
    optional("sata", Kind::Flag),
    key("rotational", Kind::Flag),
    key("write_cache", Kind::Flag),
    key("fua", Kind::Flag),
    // At least a page, as in Linux; at most the maximum of a 32-bit length in bytes.
    key("max_sectors", Kind::Whole(8, (1 << 23) - 1, "sectors of 512 bytes")),
    key("max_segments", Kind::Whole(1, 65_535, "segments")),
];

/// A time of a moving part.
const TIME_MS: Kind = Kind::Number(0.0, 1e4, "milliseconds");
const RATE: Kind = Kind::Number(0.1, 1e6, "megabytes (10^6 bytes) a second");
const SEEK: Kind = Kind::Number(0.0, 1e3, "milliseconds");

const FLASH: &[Key] = &[
    key("host_to_device_us", TIME_US),
    key("device_to_host_us", TIME_US),
    optional("fetches_commands", Kind::Whole(1, 1 << 24, "commands")),
    optional("holds_write_kib", Kind::Whole(1, 1 << 24, "KiB")),
    // Not 0: throughput would be infinite.
    key("command_us", Kind::Number(0.001, 1e7, "microseconds")),
    key("read_mb_per_s", RATE),
    key("write_mb_per_s", RATE),
    key("acknowledge_us", TIME_US),
    optional("write_to_host_us", TIME_US),
    key("dies", Kind::Whole(1, 65_536, "dies")),
    key("read_us", TIME_US),
    key("read_jitter_percent", PERCENT),
    key("read_piece_kib", Kind::Whole(1, 1 << 20, "kibibytes (1024 bytes)")),
    key("large_read_us", TIME_US),
    optional("read_ahead_kib", Kind::Whole(1, 1 << 20, "kibibytes (1024 bytes)")),
    key("buffer_kib", Kind::Whole(4, 1 << 30, "kibibytes (1024 bytes)")),
    key("program_kib", Kind::Whole(1, 1 << 20, "kibibytes (1024 bytes)")),
    key("program_us", Kind::Number(0.001, 1e7, "microseconds")),
    key("program_jitter_percent", PERCENT),
    key("placement", Kind::Word(&["any-die", "idle-die", "striped"])),
    optional("program_suspend_us", TIME_US),
    optional("collection_step_us", TIME_US),
    optional("random_write_amplification", Kind::Number(1.0, 1e3, "bytes programmed for each byte written")),
    optional("erased_gb", Kind::Number(0.0, 9e6, "gigabytes (10^9 bytes)")),
    optional("fua_blocks_reads", Kind::Flag),
    optional("gc_defers", Kind::Flag),
    optional("heat_placement", Kind::Flag),
    optional("write_page_kib", Kind::Whole(4, 1 << 20, "kibibytes (1024 bytes)")),
    key("flush_us", TIME_US),
    key("discard_us", TIME_US),
    optional("arbitration", Kind::Section(ARBITRATION)),
    optional("striping", Kind::Section(STRIPING)),
    optional("translation", Kind::Section(TRANSLATION)),
    optional("slc_cache", Kind::Section(SLC_CACHE)),
    optional("collection", Kind::Section(COLLECTION)),
    optional("stall", Kind::Section(STALL)),
];

const ARBITRATION: &[Key] = &[
    key("urgent_queues", Kind::Whole(0, 65_535, "hardware queues")),
    key("high_queues", Kind::Whole(0, 65_535, "hardware queues")),
    key("medium_queues", Kind::Whole(0, 65_535, "hardware queues")),
    // As in NVMe: at least one command, at most 256.
    key("high_weight", Kind::Whole(1, 256, "commands in a round")),
    key("medium_weight", Kind::Whole(1, 256, "commands in a round")),
    key("low_weight", Kind::Whole(1, 256, "commands in a round")),
    optional("burst", Kind::Whole(1, 128, "commands of a queue at a time")),
    optional("weight_max", Kind::Whole(3, 256, "commands in a round")),
];

const STRIPING: &[Key] = &[
    key("write_through_kib", Kind::Whole(1, 1 << 30, "kibibytes (1024 bytes)")),
    key("write_through_unit_kib", Kind::Whole(1, 1 << 20, "kibibytes (1024 bytes)")),
];

const TRANSLATION: &[Key] = &[
    key("over_provisioning_percent", Kind::Number(1.0, 1e3, "percent of the capacity")),
    // The map takes about 10 bytes per mapped page.
    key("scale", Kind::Whole(1, 1 << 20, "pages for each that is mapped")),
    key("block_pages", Kind::Whole(1, 65_536, "pages")),
    optional("fill_percent", PERCENT),
    key("preconditioned", Kind::Flag),
];

const SLC_CACHE: &[Key] = &[
    key("gb", Kind::Number(0.0, 9e6, "gigabytes (10^9 bytes)")),
    key("program_us", Kind::Number(0.001, 1e7, "microseconds")),
    key("fold_mb_per_s", Kind::Number(0.0, 1e6, "megabytes (10^6 bytes) a second")),
];

const COLLECTION: &[Key] = &[
    key("programs", Kind::Whole(1, 1 << 24, "programs")),
    // Not 0: the store would always be full.
    key("step_us", Kind::Number(0.001, 1e7, "microseconds")),
    key("step_programs", Kind::Whole(1, 1 << 24, "programs")),
];

const STALL: &[Key] = &[key("every_mb", Kind::Number(0.001, 1e9, "megabytes (10^6 bytes)")), key("lasts_ms", TIME_MS)];

const HDD: &[Key] = &[
    key("rotations_per_minute", Kind::Number(1000.0, 100_000.0, "rotations a minute")),
    key("heads", Kind::Whole(1, 64, "heads")),
    key("zones", Kind::Whole(1, 256, "zones")),
    key("outer_mb_per_s", Kind::Number(0.1, 1e4, "megabytes (10^6 bytes) a second")),
    key("inner_mb_per_s", Kind::Number(0.1, 1e4, "megabytes (10^6 bytes) a second")),
    key("seek_track_to_track_ms", SEEK),
    key("seek_average_ms", SEEK),
    key("seek_full_stroke_ms", SEEK),
    key("head_switch_ms", SEEK),
    key("write_to_read_ms", SEEK),
    // Not 0: virtual time would stand still in a closed loop.
    key("cache_access_us", Kind::Number(0.001, 1e7, "microseconds")),
    key("link_mb_per_s", RATE),
    key("queue_age_limit_ms", Kind::Number(0.0, 1e6, "milliseconds")),
    optional("run_limit_ms", Kind::Number(0.0, 1e6, "milliseconds")),
    key("read_segments", Kind::Whole(0, 1024, "segments")),
    key("read_ahead_kb", Kind::Number(0.0, 1e6, "kilobytes (10^3 bytes)")),
    optional("write_cache", Kind::Section(WRITE_CACHE)),
    optional("pause", Kind::Section(PAUSE)),
];

const WRITE_CACHE: &[Key] = &[
    key("extents", Kind::Whole(1, 65_536, "dirty extents")),
    key("mb", Kind::Number(0.001, 1e6, "megabytes (10^6 bytes)")),
    key("read_waits_ms", TIME_MS),
    optional("pressure_lasts_ms", TIME_MS),
];

const PAUSE: &[Key] = &[key("every_s", Kind::Number(0.001, 1e6, "seconds")), key("lasts_ms", TIME_MS)];

const NULL: &[Key] = &[
    // Not 0: virtual time would stand still in a closed loop.
    key("delay_ns", Kind::Whole(1, 10_000_000_000, "nanoseconds")),
    optional("delay_jitter_percent", PERCENT),
    optional("holds_commands", Kind::Whole(1, 2048 * 10_240, "commands")),
];

const SERVICE: &[Key] =
    &[key("kib_ns", Kind::Number(0.0, 1e9, "nanoseconds")), key("kinds", Kind::Sections(SERVICE_KIND))];

const SERVICE_KIND: &[Key] = &[
    key("operation", Kind::Word(ServedOperation::WORDS)),
    optional("sequential", Kind::Flag),
    key("kib", Kind::Number(0.0, 4_194_304.0, "KiB")),
    // Not 0: as many as the tags allow would take no time to wait for.
    key("share_percent", Kind::Number(0.001, 100.0, "percent")),
    key("times_us", Kind::Ascending(PROBABILITIES.len(), 0.0, 1e8, "microseconds")),
];

const SSD: &[Key] = &[
    key("host_to_device_us", TIME_US),
    // Not 0: throughput would be infinite.
    key("serial_stage_us", Kind::Number(0.001, 1e7, "microseconds")),
    key("transfer_mb_per_s", RATE),
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
    optional("erased_gb", Kind::Number(0.0, 9e6, "gigabytes (10^9 bytes)")),
];

const OPTANE: &[Key] = &[
    key("host_to_device_us", TIME_US),
    key("device_to_host_us", TIME_US),
    // Not 0: throughput would be infinite.
    key("read_command_us", Kind::Number(0.001, 1e7, "microseconds")),
    key("write_command_us", Kind::Number(0.001, 1e7, "microseconds")),
    key("read_mb_per_s", RATE),
    key("write_mb_per_s", RATE),
    key("channels", Kind::Whole(1, 65_536, "channels")),
    key("access_us", TIME_US),
    key("access_jitter_percent", PERCENT),
];

const RAID: &[Key] = &[key("inner", Kind::Text), key("command_us", TIME_US)];

const THROTTLE: &[Key] = &[
    key("iops", Kind::Number(0.001, 1e9, "I/Os a second")),
    key("io_kib", Kind::Whole(1, 1 << 20, "kibibytes (1024 bytes)")),
    key("mb_per_s", Kind::Number(0.001, 1e6, "megabytes (10^6 bytes) a second")),
    optional("burst", Kind::Section(THROTTLE_BURST)),
];

const TRANSPORT: &[Key] = &[
    // Not 0: a worker takes time.
    key("request_ns", Kind::Whole(1, 10_000_000, "nanoseconds")),
    key("kib_ns", Kind::Whole(0, 10_000_000, "nanoseconds")),
    key("batch", Kind::Whole(1, 1024, "requests")),
    key("doorbell_us", TIME_US),
];

const THROTTLE_BURST: &[Key] = &[
    key("iops", Kind::Number(0.001, 1e9, "I/Os a second")),
    key("ios", Kind::Number(0.0, 1e12, "I/O credits")),
    key("mb_per_s", Kind::Number(0.001, 1e6, "megabytes (10^6 bytes) a second")),
    key("mb", Kind::Number(0.0, 1e12, "megabytes (10^6 bytes) of credits")),
];

const FAULTS: &[Key] = &[
    key("errors_per_million", PER_MILLION),
    key("stalls_per_million", PER_MILLION),
    key("stall_ms", TIME_MS),
    key("lost_per_million", PER_MILLION),
    key("lost_after_ms", Kind::Number(0.0, 1e6, "milliseconds")),
    key("torn_writes_per_million", PER_MILLION),
];

const PER_MILLION: Kind = Kind::Number(0.0, 1e6, "commands of a million");

const TRACER: &[Key] = &[key("keeps_events", Kind::Whole(1, 1 << 24, "events"))];

const CALIBRATION: &[Key] = &[
    key("on", Kind::Text),
    key("valid_range", Kind::Text),
    optional("host", Kind::Text),
    optional("kernel", Kind::Text),
    optional("assumed", Kind::Flag),
    optional("range", Kind::Section(CALIBRATED_RANGE)),
    optional("residuals", Kind::Sections(RESIDUAL)),
    optional("sources", Kind::Sources),
];

const CALIBRATED_RANGE: &[Key] = &[
    // From one sector to the maximum of a 32-bit length.
    key("io_bytes", Kind::Span(512, 4_294_966_784, "bytes")),
    key("outstanding", Kind::Span(1, 2048 * 10_240, "I/Os")),
    key("reads_percent", Kind::Span(0, 100, "percent")),
    optional("sequential", Kind::Flag),
    optional("flushes", Kind::Flag),
];

const RESIDUAL: &[Key] = &[
    key("what", Kind::Text),
    key("measured", Kind::Number(1e-9, 1e15, "the unit that `what` names")),
    key("model", Kind::Number(0.0, 1e15, "the unit that `what` names")),
];

/// The keys of all parameters of a model, with their sections: those that can have a source.
pub(super) fn parameters(model: Model) -> Vec<String> {
    fn collect(keys: &[Key], prefix: &str, paths: &mut Vec<String>) {
        for key in keys {
            let path = if prefix.is_empty() { key.name.to_owned() } else { format!("{prefix}.{}", key.name) };
            match key.kind {
                Kind::Section(inner) if path != "calibration" => collect(inner, &path, paths),
                _ if !prefix.is_empty() => paths.push(path),
                _ => {}
            }
        }
    }
    let mut paths = Vec::new();
    collect(file(model), "", &mut paths);
    paths
}
