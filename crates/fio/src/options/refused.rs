//! Refused options: they would change the results but are not modelled. Each row says what to do instead.

use super::OptionSpec;
use super::Subject;

/// Setting such an option to its default is accepted.
const ONLY_OFF: &[&str] = &["0"];

pub(super) const SUBJECT: Subject = Subject { rows: ROWS, apply: |_, _| Ok(()), fields: &[] };

const ROWS: &[OptionSpec] = &[
    // Files.
    refused("file_append", ONLY_OFF, "Start at the end of the file", "use offset"),
    refused("opendir", &[], "Use all files below a directory", "use filename"),
    refused("offset_align", ONLY_OFF, "Round a percentage of offset up", "give offset in bytes"),
    refused("create_only", ONLY_OFF, "Only create the files", "remove the job"),
    refused("verify_only", ONLY_OFF, "Only verify what an earlier run wrote", "use rw=read or rw=randread"),
    refused("zonecapacity", &["0"], "Usable part of a zone", "zoned devices are not modelled"),
    refused("read_beyond_wp", ONLY_OFF, "Read beyond the write pointer", "zoned devices are not modelled"),
    refused("max_open_zones", &["0"], "Maximum open zones", "zoned devices are not modelled"),
    refused("job_max_open_zones", &["0"], "Maximum open zones of a job", "zoned devices are not modelled"),
    refused(
        "ignore_zone_limits",
        ONLY_OFF,
        "Do not ask the device for its zone limits",
        "zoned devices are not modelled",
    ),
    refused("zone_reset_threshold", &["0"], "When zones are reset", "zoned devices are not modelled"),
    refused("zone_reset_frequency", &["0"], "How often zones are reset", "zoned devices are not modelled"),
    // Pattern.
    refused("bs_is_seq_rand", ONLY_OFF, "bs means sequential,random", "use two jobs"),
    refused("rwmixcycle", &[], "Time between two draws of the direction", "fio no longer has it: remove it"),
    // Tried with fio 3.33 and `write_iolog`.
    refused(
        "trim_percentage",
        ONLY_OFF,
        "Trim part of the verified data",
        "fio 3.33 trims nothing without trim_backlog, and with it aborts at the first trim unless rw has trims of its own: \
         use rw=trimwrite, or rw=randtrim in a job of its own",
    ),
    refused("num_range", &["1"], "Ranges in one trim", "remove it"),
    // Depth, submission and durability.
    refused("write_barrier", ONLY_OFF, "Make each Nth write a barrier", "use fsync=N"),
    refused("sync_file_range", &[], "Start or wait for write-back of a range", "use fsync=N"),
    refused(
        "fill_cache",
        ONLY_OFF,
        "Fill the page cache first",
        "read the files in a job of its own that the others wait_for, with invalidate=0",
    ),
    refused(
        "pre_read",
        ONLY_OFF,
        "Read the files into the page cache first",
        "read the files in a job of its own that the others wait_for, with invalidate=0",
    ),
    refused("writefua", ONLY_OFF, "Make each write durable", "use sync=dsync"),
    refused("readfua", ONLY_OFF, "Read from the medium, not from a cache", "remove it"),
    refused("write_mode", &["write"], "Kind of write command", "only plain writes are modelled"),
    refused("cmd_type", &[], "Passthrough commands", "passthrough is not modelled: use ioengine=io_uring"),
    // Pace.
    refused("flow_watermark", &[], "How far jobs may be out of balance", "fio no longer has it: remove it"),
    // Sets of options.
    refused("profile", &[], "A built-in set of options", "write the options out"),
];

const fn refused(
    name: &'static str,
    accepted: &'static [&'static str],
    doc: &'static str,
    hint: &'static str,
) -> OptionSpec {
    OptionSpec::refused(name, accepted, doc, hint)
}
