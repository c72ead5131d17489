//! Options that would change the results and are not modelled, with what to do instead.

use super::spec::OptionSpec;

/// The default, spelled out, is no reason to refuse a job.
const ONLY_OFF: &[&str] = &["0"];

pub(super) const OPTIONS: &[OptionSpec] = &[
    // Files.
    refused("file_append", ONLY_OFF, "Start at the end of the file", "use offset"),
    refused("opendir", &[], "Use all files below a directory", "use filename"),
    refused("offset_align", ONLY_OFF, "Round a percentage of offset up", "give offset in bytes"),
    refused("create_only", ONLY_OFF, "Only create the files", "leave the job out"),
    refused("verify_only", ONLY_OFF, "Only verify what an earlier run wrote", "use rw=read or rw=randread"),
    refused("zonemode", &["none"], "Zones within the region", "zones are not modelled"),
    refused("zonesize", &["0"], "Size of a zone", "zones are not modelled"),
    refused("zonecapacity", &["0"], "Usable part of a zone", "zones are not modelled"),
    refused("zonerange", &["0"], "Distance of zones", "zones are not modelled"),
    refused("zoneskip", &["0"], "Bytes between zones", "zones are not modelled"),
    refused("read_beyond_wp", ONLY_OFF, "Read behind the write pointer", "zones are not modelled"),
    refused("max_open_zones", &["0"], "Most open zones", "zones are not modelled"),
    refused("job_max_open_zones", &["0"], "Most open zones of a job", "zones are not modelled"),
    refused("ignore_zone_limits", ONLY_OFF, "Do not ask the device for its zone limits", "zones are not modelled"),
    refused("zone_reset_threshold", &["0"], "When zones are reset", "zones are not modelled"),
    refused("zone_reset_frequency", &["0"], "How often zones are reset", "zones are not modelled"),
    // Pattern.
    refused("bs_is_seq_rand", ONLY_OFF, "bs means sequential,random", "use two jobs"),
    refused("rwmixcycle", &[], "Time between two draws of the direction", "fio has dropped it: leave it out"),
    refused("trim_percentage", ONLY_OFF, "Trim a part of what is verified", "use rw=randtrim in a job of its own"),
    refused("num_range", &["1"], "Ranges in one trim", "leave it out"),
    // Depth, submission and durability.
    refused(
        "io_submit_mode",
        &["inline"],
        "Submit from threads of their own",
        "leave it out: each process submits by itself here",
    ),
    refused("serialize_overlap", ONLY_OFF, "Never have overlapping I/Os in flight", "leave the random map on instead"),
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
    refused("readfua", ONLY_OFF, "Read from the medium, not from a cache", "leave it out"),
    refused("write_mode", &["write"], "Kind of write command", "only plain writes are modelled"),
    refused("cmd_type", &[], "Passthrough commands", "passthrough is not modelled: use ioengine=io_uring"),
    // Pace.
    refused("thinktime_iotime", ONLY_OFF, "Pause after this much time", "use thinktime_blocks"),
    refused("rate_ignore_thinktime", ONLY_OFF, "Do not make up for think time", "leave it out"),
    refused("latency_target", ONLY_OFF, "Find the depth that keeps this latency", "run a sweep over iodepth"),
    refused("latency_window", ONLY_OFF, "Time to hold latency_target", "run a sweep over iodepth"),
    refused("latency_percentile", &["100"], "Share of I/Os within latency_target", "run a sweep over iodepth"),
    refused("latency_run", ONLY_OFF, "Keep searching the depth", "run a sweep over iodepth"),
    refused("flow", ONLY_OFF, "Balance jobs against each other", "use rate or rate_iops"),
    refused("flow_id", ONLY_OFF, "Which jobs are balanced", "use rate or rate_iops"),
    refused("flow_watermark", &[], "How far jobs may be out of balance", "use rate or rate_iops"),
    refused("flow_sleep", ONLY_OFF, "Pause of a job that is ahead", "use rate or rate_iops"),
    refused("steadystate", &[], "End when results are steady", "use runtime").alias(&["ss"]),
    refused("steadystate_duration", ONLY_OFF, "How long results must be steady", "use runtime").alias(&["ss_dur"]),
    refused("steadystate_ramp_time", ONLY_OFF, "Time before looking", "use ramp_time").alias(&["ss_ramp"]),
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
