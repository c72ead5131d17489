//! The options of a comparison.

use std::path::PathBuf;

use clap::Args;
use hoistway_blk::ground::Kernel;
use hoistway_experiment::KernelOption;
use hoistway_experiment::limits::REPEATS_MAX;

use crate::commands::options::{RunOptions, SimulatedHostOptions, parse_trimmed};
use crate::commands::outputs::{Format, JudgingOptions, OutputOptions};

/// Run a fio job file, or a recording of block I/O, under every scheduler, in virtual time, and compare the results.
///
/// Exit status: 0 on success; 1 if a simulated process ended with an error and 3 if a --fail-if condition is true, both after
/// the results are printed; 2 for bad input; 130 if interrupted.
///
/// Examples:
///   hoistway compare
///   hoistway compare trace.blktrace.0
///   hoistway compare database
///   hoistway compare my-load.fio --device intel-s3520-1600gb
///   hoistway compare my-load.fio --repeat 5 --baseline mq-deadline
///   hoistway compare my-load.fio --device my-disk.toml --schedulers none,mq-deadline
///   hoistway compare two-disks.fio --device /dev/sda=my-disk.toml --device null
///   hoistway compare my-load.fio --set mq-deadline.fifo_batch=1 --queue nr_requests=32 --runtime 2m
///   hoistway compare my-load.fio --vary mq-deadline.fifo_batch=1,4 --vary queue.nr_requests=64,256
///   hoistway compare my-load.fio --kernel 4.19,6.18,7.2 --device hdd,nvme
///   hoistway compare my-load.fio --schedulers default,bfq --kernel 4.19 --elevator deadline
///   hoistway compare my-load.fio --schedulers none --at 10s:scheduler=bfq --at 20s:bfq.slice_idle=0
///   hoistway compare incident.gz --window 10s..40s --recorded-under bfq --focus postgres:read:p99
///   hoistway compare my-load.fio --io-max "backup wbps=10485760" --io-prio-class "backup idle"
///   hoistway compare polled.fio --device intel-p4800x-375gb --read-queues 4 --poll-queues 2
///   hoistway compare backup-beside-oltp --stack "/dev/md0 = raid1(/dev/sda, /dev/sdb)"
///   hoistway compare two-disks.fio --device hgst-he10-8tb --shared-tags --schedulers none,bfq
///   hoistway compare guests --guest-schedulers none,bfq --schedulers bfq --guest-weight /dev/vda=300
///   hoistway compare my-load.fio --focus "wal:sync:p99*2" --focus backends:read:p99
///   hoistway compare my-load.fio --device nvme --advice nvme0n1
///   hoistway compare my-load.fio --schedulers default --fail-if "backends:read:p99>2ms"
///   hoistway compare my-load.fio --format json --stable -o results.json
///   hoistway compare my-load.fio --format csv -o results.csv
///   hoistway compare my-load.fio --report page.html
///   hoistway compare my-load.fio --fio-logs logs
///   hoistway compare my-load.fio --runtime 1s --trace events.jsonl.gz
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// A fio job file, a recording of block I/O (blktrace, blkparse, ftrace, perf, biosnoop, a table, an I/O log of fio;
    /// docs/recordings.md; NAME after `record -o NAME`, or all its files), - for standard input, or the name of a bundled load (see `hoistway scenarios`).
    /// [default: a bundled example]
    #[arg(value_name = "JOB|SCENARIO")]
    pub(super) job: Option<PathBuf>,
    /// The device: a built-in preset (see `hoistway devices`) or a TOML file. For several devices, give NAME=PRESET for each file
    /// of the job file; a preset without NAME applies to all others. A list without NAME (A,B) compares devices: the load runs on
    /// each. [default: intel-s3520-1600gb; for a bundled load its own device, for a recording a model of its device]
    #[arg(long, value_name = "PRESET|FILE.toml[,...]|NAME=PRESET")]
    pub(super) device: Vec<String>,
    /// The schedulers to compare: a list, or all, which includes those that the kernel has dropped. "default" is the scheduler
    /// that the kernel chooses for the device. [default: those of the kernel; with guests only multi-queue ones]
    #[arg(long, value_name = "LIST|all", value_delimiter = ',', value_parser = parse_trimmed)]
    pub(super) schedulers: Vec<String>,
    /// Run the load in guests (docs/guests.md): each file of the job file becomes a virtual disk, and all virtual disks are stored
    /// on the host's device. Compare each scheduler of this list in the guests over each of --schedulers on the host.
    #[arg(long, value_name = "LIST|all", value_delimiter = ',', value_parser = parse_trimmed)]
    pub(super) guest_schedulers: Vec<String>,
    #[command(flatten)]
    pub(super) host_options: SimulatedHostOptions,
    #[command(flatten)]
    pub(super) run: RunOptions,
    /// Compare several values of a tunable, of a file that --queue accepts (queue.nr_requests=64,256), of a setting of --io-cost
    /// (io.cost.qos.max=50,100), or of a latency target in microseconds (io.latency.pods/db.target=1000,5000). The scheduler runs
    /// with its default and with each value. May be given several times: every combination runs.
    #[arg(long, value_name = "SCHED.TUNABLE=V1,V2,...")]
    pub(super) vary: Vec<String>,
    /// The kernel whose block layer is simulated: any release since 4.4 (6.18, 6.12.107), or the output of uname -r. Give a list
    /// to compare several.
    #[arg(long, value_name = "VERSION[,...]", value_delimiter = ',', default_values_t = [KernelOption::from(Kernel::DEFAULT)])]
    pub(super) kernel: Vec<KernelOption>,
    /// The host: a built-in profile (desktop, four-nodes, instant, ryzen, server, vm) or a TOML file. It sets the CPU time of an I/O and the
    /// reaction times of processes and workers. Give a list to compare several. [default: server; with guests vm; for a
    /// recording, whose gaps include the CPU time of its machine, instant]
    #[arg(long, value_name = "PROFILE|FILE.toml[,...]", value_delimiter = ',', value_parser = parse_trimmed)]
    pub(super) host: Vec<String>,
    /// Run each scheduler K times with K seeds, for means, 95 % confidence intervals and paired differences. A repeat has the
    /// same seed, and therefore the same load, under every scheduler. [default: 3, and more until the decision is certain, up to
    /// 60 or 5 million I/Os, the same on every machine; 1 for JSON without --report, for --fio-logs and for --trace]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=i64::from(REPEATS_MAX)))]
    pub(super) repeat: Option<u32>,
    /// Measure as fio does, from the start of each job (or the end of its ramp_time) to its end. [default: only the time in which
    /// all jobs run and what happens only after their start is over, found in a longer run if that is cheap; for fio's formats,
    /// --fio-logs and --trace as fio does]
    #[arg(long)]
    pub(super) from_start: bool,
    #[command(flatten)]
    pub(super) judging: JudgingOptions,
    /// Omit times, durations and the command line from documents, so that the same input and version give the same bytes.
    #[arg(long)]
    pub(super) stable: bool,
    #[command(flatten)]
    pub(super) outputs: OutputOptions,
    /// Also write every event of the runs, and why each request was dispatched, as JSON lines (docs/trace.md), compressed if the
    /// name ends in .gz. Each I/O takes about 1 KiB: use a short --runtime. With NAME.blktrace, write what blktrace would have
    /// recorded, for blkparse and btt: NAME.SCHEDULER.blktrace.0 and so on. Disables parallel runs.
    #[arg(long, value_name = "FILE")]
    pub(super) trace: Option<PathBuf>,
}

impl Arguments {
    /// Whether to repeat until the decision is certain.
    pub(super) fn repeats_until_certain(&self) -> bool {
        self.repeat.is_none() && self.is_for_people()
    }

    /// Whether to measure only what lasts. Output in fio's formats is what fio would write.
    pub(super) fn measures_what_lasts(&self) -> bool {
        !self.from_start && !self.outputs.is_of_fio() && self.trace.is_none()
    }

    /// Whether the output is for people, who also need confidence intervals. Output for programs comes from one run by default.
    pub(super) fn is_for_people(&self) -> bool {
        let for_programs = match self.outputs.format {
            Format::Json => self.outputs.report.is_none(),
            Format::FioJson | Format::FioJsonPlus => true,
            Format::Table | Format::Csv | Format::Markdown => false,
        };
        (!for_programs || self.judging.advice.is_some()) && self.trace.is_none() && self.outputs.fio_logs.is_none()
    }
}
