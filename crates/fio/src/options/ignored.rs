//! Ignored options: they cannot change a simulation, which has no buffers, files or logs. For some, a notice says what
//! is simulated instead.

use super::Subject;
use super::{Action, OptionSpec, Topic};

const POLLING: &str = "completions come by interrupt, or by polling all of them (hipri)";
const SUBMISSION: &str = "each process submits its I/Os itself, by system calls";
const UNCHECKED: &str = "a slow job does not fail; see its rate in the results";
const FIRST_ERROR: &str = "a process ends at its first I/O error";

pub(super) const SUBJECT: Subject = Subject { rows: ROWS, apply: |_, _| Ok(()), fields: &[] };

const ROWS: &[OptionSpec] = &[
    OptionSpec {
        action: Action::Ignore(Topic::Scheduler),
        ..ignored("ioscheduler", "The I/O scheduler that the author of the job intended")
    },
    ignored("thread", "Threads instead of processes").alias(&["threads"]),
    // Files: they exist at full size.
    ignored("unique_filename", "File names for network clients"),
    ignored("lockfile", "Locks on files"),
    ignored("fallocate", "How files get their space"),
    ignored("fadvise_hint", "Hints about the page cache"),
    ignored("overwrite", "Lay out files before writing"),
    ignored("create_serialize", "Create one file after the other"),
    ignored("create_fsync", "Flush a newly created file"),
    ignored("create_on_open", "Create files when they are opened"),
    ignored("allow_file_create", "Whether files may be created"),
    ignored("allow_mounted_write", "Whether mounted devices may be written"),
    ignored("unlink", "Remove files at the end"),
    ignored("unlink_each_loop", "Remove files after each loop"),
    // A job without a size covers the whole device anyway, and with one it ends there, as in fio.
    ignored("fill_device", "Continue until the device is full, if there is no size").alias(&["fill_fs"]),
    ignored("write_hint", "Expected lifetime of the data"),
    ignored("softrandommap", "Continue without a random map if there is no memory for it"),
    ignored("unaligned", "Alignment of buffers"),
    // Content of buffers.
    ignored("verifysort", "Order of checking"),
    ignored("verifysort_nr", "Order of checking"),
    ignored("verify_offset", "Offset of the checksum"),
    ignored("verify_interval", "Distance between checksums"),
    ignored("verify_pattern", "Pattern that is checked"),
    ignored("verify_pattern_interval", "Distance between patterns"),
    ignored("verify_fatal", "End at the first mismatch"),
    ignored("verify_dump", "Save data that does not match"),
    ignored("verify_async", "Threads that check"),
    ignored("verify_async_cpus", "CPUs of the threads that check"),
    ignored("verify_state_load", "Continue a check"),
    ignored("verify_state_save", "Save the state of a check"),
    ignored("verify_write_sequence", "Check the order of writes"),
    ignored("verify_header_seed", "Check the seed of a header"),
    ignored("experimental_verify", "Check without a log of writes"),
    ignored("trim_verify_zero", "Check that trimmed blocks are zero"),
    ignored("trim_backlog", "Trim after every N writes"),
    ignored("trim_backlog_batch", "Number of blocks trimmed at a time"),
    ignored("buffer_pattern", "Content of buffers"),
    ignored("buffer_compress_percentage", "Compressibility of buffers"),
    ignored("buffer_compress_chunk", "Size of a compressible chunk"),
    ignored("refill_buffers", "New content for each I/O"),
    ignored("scramble_buffers", "Vary the content of buffers"),
    ignored("zero_buffers", "Buffers of zeroes"),
    ignored("dedupe_percentage", "Share of equal buffers"),
    ignored("dedupe_mode", "Which buffers are equal"),
    ignored("dedupe_working_set_percentage", "How many buffers are repeated"),
    ignored("dedupe_global", "Equal buffers across jobs"),
    ignored("mem", "Source of buffer memory").alias(&["iomem"]),
    ignored("mem_align", "Alignment of buffers").alias(&["iomem_align"]),
    ignored("hugepage-size", "Size of huge pages"),
    ignored("lockmem", "Memory taken from the system"),
    // Engines.
    ignored("fixedbufs", "Register buffers with io_uring"),
    ignored("registerfiles", "Register files with io_uring"),
    ignored("nonvectored", "Plain read and write commands"),
    ignored("userspace_reap", "Reap completions without a system call"),
    ignored("atomic", "Atomic writes"),
    ignored("fdp", "Data placement"),
    ignored("fdp_pli", "Data placement identifiers"),
    ignored("plids", "Data placement identifiers"),
    ignored("dataplacement", "Data placement"),
    not_simulated("hipri_percentage", "Share of polled I/Os", POLLING),
    not_simulated("sqthread_poll", "Let the kernel poll the submission ring", SUBMISSION),
    not_simulated("sqthread_poll_cpu", "CPU of that kernel thread", SUBMISSION),
    not_simulated("force_async", "Submit from kernel threads", SUBMISSION),
    not_simulated("nowait", "Fail instead of waiting", "a submission without a free tag waits for one"),
    not_simulated("uncached", "Leave no pages in the cache", "the page cache keeps pages while it has room"),
    // Failures.
    not_simulated("rate_min", "Fail below this rate", UNCHECKED).alias(&["ratemin"]),
    not_simulated("rate_iops_min", "Fail below this rate", UNCHECKED),
    not_simulated("continue_on_error", "Continue after errors", FIRST_ERROR),
    not_simulated("ignore_error", "Errors that do not count", FIRST_ERROR),
    ignored("error_dump", "Report each error"),
    // Clocks, reports and logs.
    ignored("clocksource", "Which clock is read"),
    ignored("gtod_reduce", "Read the clock less often"),
    ignored("gtod_cpu", "CPU that reads the clock"),
    ignored("job_start_clock_id", "Clock of the start time"),
    ignored("stats", "Whether statistics are kept"),
    ignored("disable_lat", "No total latencies"),
    ignored("disable_clat", "No completion latencies"),
    ignored("disable_slat", "No submission latencies"),
    ignored("disable_bw_measurement", "No bandwidth samples").alias(&["disable_bw"]),
    ignored("clat_percentiles", "Percentiles of completion latency"),
    ignored("lat_percentiles", "Percentiles of total latency"),
    ignored("slat_percentiles", "Percentiles of submission latency"),
    ignored("percentile_list", "Which percentiles are reported"),
    ignored("significant_figures", "Digits of normal output"),
    ignored("block_error_percentiles", "Errors of trimmed blocks"),
    ignored("disk_util", "Statistics of the disk"),
    ignored("unit_base", "Bits or bytes in reports"),
    ignored("write_bw_log", "Log of bandwidth"),
    ignored("write_lat_log", "Log of latencies"),
    ignored("write_iops_log", "Log of I/Os per second"),
    ignored("write_hist_log", "Log of latency histograms"),
    ignored("write_iolog", "Log of I/Os"),
    ignored("per_job_logs", "A log for each job"),
    ignored("bwavgtime", "Window of bandwidth samples"),
    ignored("iopsavgtime", "Window of IOPS samples"),
    ignored("log_entries", "Initial size of a log"),
    ignored("log_issue_time", "Issue times in logs"),
    ignored("log_compression", "Compress logs"),
    ignored("log_compression_cpus", "CPUs that compress logs"),
    ignored("log_store_compressed", "Keep logs compressed"),
    ignored("log_unix_epoch", "Times of logs"),
    ignored("log_alternate_epoch", "Times of logs"),
    ignored("log_alternate_epoch_clock_id", "Clock of logs"),
    ignored("merge_blktrace_file", "File for merged traces"),
    ignored("merge_blktrace_scalars", "Speed of merged traces"),
    ignored("merge_blktrace_iters", "Repetitions of merged traces"),
    ignored("read_iolog_chunked", "Read a log piece by piece"),
    ignored("exitall_on_error", "End all jobs after an error"),
    ignored("rate_cycle", "Window in which rate_min is checked").alias(&["ratecycle"]),
    // The host.
    ignored("exec_prerun", "Command before the job"),
    ignored("exec_postrun", "Command after the job"),
    not_simulated(
        "numa_cpu_nodes",
        "Allowed NUMA nodes",
        "all CPUs are in one NUMA node (cpus_allowed chooses among them)",
    ),
    ignored("numa_mem_policy", "Where memory comes from"),
    ignored("cgroup_nodelete", "Keep the cgroup"),
    ignored("uid", "User of the process"),
    ignored("gid", "Group of the process"),
];

const fn ignored(name: &'static str, doc: &'static str) -> OptionSpec {
    OptionSpec::ignored(name, doc)
}

const fn not_simulated(name: &'static str, doc: &'static str, sentence: &'static str) -> OptionSpec {
    OptionSpec::not_simulated(name, doc, sentence)
}
