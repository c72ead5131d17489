//! Options shared by several commands.

use std::path::PathBuf;

use clap::Args;
use hoistway_blk::ground::Nanos;
use hoistway_engine::parse_size;
use hoistway_experiment::limits::{CPUS_MAX, HW_QUEUES_MAX, TIME_NS_MAX, TYPED_QUEUES_MAX};
use hoistway_sim::Host;

/// How a recording of block I/O is replayed (docs/recordings.md).
#[derive(Args, Debug)]
#[command(next_help_heading = "Recordings of block I/O")]
pub(crate) struct ReplayOptions {
    /// Replay with the recorded program's dependencies (each I/O waits for those that it waited for), at the recorded times, or
    /// without pauses. [default: recorded-program]
    #[arg(long = "as", value_name = "MODE", value_parser = ["recorded-program", "timed", "fast"])]
    pub(crate) replay_as: Option<String>,
    /// Divide pauses and arrival times by this factor.
    #[arg(long, value_name = "FACTOR")]
    pub(crate) speed: Option<f64>,
    /// Run each stream N times, each copy at other addresses.
    #[arg(long, value_name = "N")]
    pub(crate) copies: Option<u32>,
    /// Set the queue depth a stream would use if the recorded queue had not limited it. May be given several times.
    #[arg(long, value_name = "STREAM=N")]
    pub(crate) depth: Vec<String>,
    /// Set the I/O priority of a stream: rt:0 to rt:7, be:0 to be:7, idle. May be given several times.
    #[arg(long, value_name = "STREAM=CLASS:LEVEL")]
    pub(crate) prio: Vec<String>,
    /// Set the I/O weight, 1 to 1000, of one of the recording's cgroups. May be given several times.
    #[arg(long, value_name = "ID=weight:N")]
    pub(crate) cgroup: Vec<String>,
    /// Replay only this part of the recording: 10s..40s since its first event.
    #[arg(long, value_name = "FROM..TO")]
    pub(crate) window: Option<String>,
    /// Replay only these streams.
    #[arg(long, value_name = "NAME[,...]", value_delimiter = ',', value_parser = parse_trimmed)]
    pub(crate) streams: Vec<String>,
    /// The scheduler that was active during the recording, to check the model.
    #[arg(long, value_name = "NAME")]
    pub(crate) recorded_under: Option<String>,
    /// The device to replay, if the recording has several; of iostat's output the disk, such as sdb. [default: the busiest]
    #[arg(long, value_name = "MAJOR,MINOR|NAME")]
    pub(crate) recorded_device: Option<String>,
    /// Read the recording as a table: msr, alibaba, tencent, spc, systor17, fiu, mqsim, or the number of each column, from 1,
    /// with its unit: time=1:us,op=2:R/W,offset=3:bytes,size=4:bytes,response=5:us,dev=6,pid=7.
    #[arg(long, value_name = "COLUMNS")]
    pub(crate) columns: Option<String>,
    /// Scale addresses down to a device that is smaller than the recorded one.
    #[arg(long)]
    pub(crate) scale_to_fit: bool,
    /// Give a recommendation even if more than 1 % of the events are missing.
    #[arg(long)]
    pub(crate) lossy: bool,
}

/// The host's queues, cgroups and memory for a load in virtual time.
#[derive(Args, Debug)]
pub(crate) struct SimulatedHostOptions {
    #[command(flatten)]
    pub(crate) replay: ReplayOptions,
    /// Put a block device over others (docs/stacks.md): "/dev/md0 = raid1(/dev/sda, /dev/sdb)". Kinds: linear(A, ...),
    /// raid0(A, B, ..., chunk=512K), raid1(A, B, ..., bitmap), raid5(A, B, C, ..., chunk=512K), raid6(A, B, C, D, ..., chunk=512K), crypt(A,
    /// no_read_workqueue, no_write_workqueue). A member is a disk, or another stacked device. Jobs use it by its name;
    /// --device /dev/sda=PRESET gives the device of a disk. May be given several times.
    #[arg(long, value_name = "NAME = KIND(MEMBER, ...)")]
    pub(crate) stack: Vec<String>,
    /// The guests' virtual disks: a built-in profile or a TOML file. [default: virtio-blk]
    #[arg(long, value_name = "PROFILE|FILE.toml")]
    pub(crate) virtual_disk: Option<String>,
    /// Put each guest into a cgroup on the host, and set the weight of the guest whose disk is FILE (the others have 100); bfq
    /// and cfq honour weights. May be given several times.
    #[arg(long, value_name = "FILE=N")]
    pub(crate) guest_weight: Vec<String>,
    /// The kernel's boot option elevator=NAME: up to 4.20 the default scheduler of devices with a legacy queue.
    #[arg(long, value_name = "NAME")]
    pub(crate) elevator: Option<String>,
    /// The number of requests of each queue: short for --queue nr_requests=N.
    #[arg(long, value_name = "N")]
    pub(crate) nr_requests: Option<String>,
    /// Override the number of hardware queues of every device.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(HW_QUEUES_MAX)))]
    pub(crate) hw_queues: Option<u16>,
    /// Add N hardware queues for reads only to every device (like write_queues= of Linux's NVMe driver).
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true,
          value_parser = clap::value_parser!(u16).range(0..=i64::from(TYPED_QUEUES_MAX)))]
    pub(crate) read_queues: u16,
    /// Add N hardware queues for polled I/O, which jobs with hipri submit, to every device (like poll_queues= of Linux's NVMe
    /// driver).
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true,
          value_parser = clap::value_parser!(u16).range(0..=i64::from(TYPED_QUEUES_MAX)))]
    pub(crate) poll_queues: u16,
    /// Attach all devices to one controller and let them share its tags, as many as one device has. The devices must be
    /// identical.
    #[arg(long)]
    pub(crate) shared_tags: bool,
    /// How much of each SSD holds data, such as 90%; the rest was trimmed, or never written. [default: as the drive was measured, written
    /// over at random as a whole]
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub(crate) fill: Option<f64>,
    /// Each SSD was trimmed, and had the time to erase what holds no data: all of it, or the rest of --fill.
    #[arg(long)]
    pub(crate) trimmed: bool,
    /// Reduce lock contention in mq-deadline and bfq: all, none, or some of single-dispatcher, try-merge, batch-dispatch, and
    /// either insertion-buckets or pending-lists. No Linux release has these (docs/rules/contention.md). [default: none]
    #[arg(long, value_name = "LIST")]
    pub(crate) techniques: Option<String>,
    /// Write to a file of every queue at this time of the run: scheduler, SCHED.TUNABLE, or any file that --queue accepts. May be
    /// given several times.
    #[arg(long, value_name = "TIME:KEY=VALUE")]
    pub(crate) at: Vec<String>,
    /// Limit a cgroup of the job file on every device, as a write to io.max does. May be given several times.
    #[arg(long, value_name = "CGROUP KEY=N...")]
    pub(crate) io_max: Vec<String>,
    /// Turn io.cost on for every device, or for the one named first, as writes to io.cost.qos and io.cost.model do: "enable=1
    /// rpct=95 rlat=5000 min=50 max=150 model=linear rbps=N rseqiops=N rrandiops=N wbps=N wseqiops=N wrandiops=N". Without a
    /// model: that of the drive, if it is one of the SSDs by model. Weights: --io-weight, or cgroup_weight of jobs. May be given
    /// several times.
    #[arg(long, value_name = "[DEV] KEY=VALUE...")]
    pub(crate) io_cost: Vec<String>,
    /// Set the weight of a cgroup of the job file for --io-cost, 1 to 10000, as a write to io.weight does. May be given several
    /// times.
    #[arg(long, value_name = "CGROUP N")]
    pub(crate) io_weight: Vec<String>,
    /// Set the latency target of a cgroup of the job file on every device, or on the one named, in microseconds, as a write to
    /// io.latency does. Each group above it needs a target, too. May be given several times.
    #[arg(long, value_name = "CGROUP [DEV] target=US")]
    pub(crate) io_latency: Vec<String>,
    /// Set the I/O priority policy of a cgroup of the job file, as a write to io.prio.class does: no-change, promote-to-rt,
    /// restrict-to-be, idle, or none-to-rt, the older name of promote-to-rt. May be given several times.
    #[arg(long, value_name = "CGROUP CLASS")]
    pub(crate) io_prio_class: Vec<String>,
    /// CPUs of the host. [default: from the profile, or 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(CPUS_MAX)))]
    pub(crate) cpus: Option<u16>,
    /// Memory of the host, all of it page cache for jobs without direct=1: 512M, 4G. [default: from the profile, or 4G]
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    pub(crate) memory: Option<u64>,
    /// Set vm.dirty_bytes, vm.dirty_background_bytes, vm.dirty_ratio or vm.dirty_background_ratio of the host, for jobs without
    /// direct=1. May be given several times.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) sysctl: Vec<String>,
    /// Run hardware queues in the submitting process where the kernel leaves them to kworkers, as the kernels of some benchmarks
    /// were patched to do.
    #[arg(long)]
    pub(crate) submitter_dispatches: bool,
    /// Put jobs without direct=1 on a file system with a journal, which their fsyncs commit (docs/page-cache.md).
    #[arg(long)]
    pub(crate) journal: bool,
}

/// Settings of every run, and the output file.
#[derive(Args, Debug)]
pub(crate) struct RunOptions {
    /// Set a tunable, as a write to queue/iosched/ does. May be given several times.
    #[arg(long, value_name = "SCHED.TUNABLE=VALUE")]
    pub(crate) set: Vec<String>,
    /// Write to a file of /sys/block/DEV/queue/ of every device: nr_requests, nomerges, rq_affinity, io_timeout, write_cache,
    /// rotational, max_sectors_kb, discard_max_bytes, wbt_lat_usec, read_ahead_kb. May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) queue: Vec<String>,
    /// Override the runtime of every job: 30, 30s, 5m, 2h, 500ms.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) runtime: Option<Nanos>,
    /// Override the time before measuring begins, fio's ramp_time, of every job: 0, 30, 30s, 5m, 500ms.
    #[arg(long, value_name = "TIME", value_parser = parse_ramp)]
    pub(crate) ramp: Option<Nanos>,
    /// The random seed. In virtual time the same seed gives bit-identical results.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write to a file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Like [`parse_time`], but accepts 0.
pub(crate) fn parse_ramp(text: &str) -> Result<Nanos, String> {
    if text == "0" { Ok(Nanos::ZERO) } else { parse_time(text) }
}

/// Bytes of memory.
pub(crate) fn parse_memory(text: &str) -> Result<u64, String> {
    let expected = || "expected a size from 16M to 16T, such as 4G".to_owned();
    parse_size(text).ok().filter(|bytes| Host::MEMORY_BYTES.contains(bytes)).ok_or_else(expected)
}

/// A share in percent, with or without the sign.
pub(crate) fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse().ok();
    number.filter(|percent| (0.0..=100.0).contains(percent)).ok_or_else(|| "expected 0% to 100%".to_owned())
}

/// An entry of a list, without the space after a comma.
pub(crate) fn parse_trimmed(text: &str) -> Result<String, std::convert::Infallible> {
    Ok(text.trim().to_owned())
}

/// A time with a unit, as on the command line.
pub(crate) fn parse_time(text: &str) -> Result<Nanos, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start();
    let factor: u64 = match unit {
        "us" => 1_000,
        "ms" => 1_000_000,
        "" | "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000_000,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000_000_000,
        "h" | "hour" | "hours" => 3_600_000_000_000,
        "d" | "day" | "days" => 86_400_000_000_000,
        _ => return Err(format!("unknown unit \"{unit}\" (expected us, ms, s, m, h or d)")),
    };
    let expected = || "expected a number with a unit, such as 30s or 0.2s".to_owned();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let parts =
        Some(fraction).filter(|digits| (1..=9).contains(&digits.len()) && digits.bytes().all(|c| c.is_ascii_digit()));
    let billionths: u64 = format!("{:0<9}", parts.ok_or_else(expected)?).parse().map_err(|_| expected())?;
    let whole: u64 = whole.parse().map_err(|_| expected())?;
    let part = (u128::from(billionths) * u128::from(factor) / 1_000_000_000) as u64;
    match whole.checked_mul(factor).and_then(|ns| ns.checked_add(part)) {
        Some(ns @ 1..=TIME_NS_MAX) => Ok(Nanos(ns)),
        _ => Err("expected a time between 1 us and 10 years".to_owned()),
    }
}
