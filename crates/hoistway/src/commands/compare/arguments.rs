//! The options of a comparison.

use std::path::{Path, PathBuf};

use clap::Args;
use hoistway_answer::Threshold;
use hoistway_blk::Kernel;
use hoistway_experiment::limits::REPEATS_MAX;
use hoistway_experiment::{KernelOption, scenarios};

use super::format::Format;
use crate::commands::options::{PlaceOptions, RunOptions};

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
///   hoistway compare my-load.fio --vary mq-deadline.fifo_batch=1,4,16 --vary queue.nr_requests=64,256
///   hoistway compare my-load.fio --kernel 4.19,6.18,7.2 --device hdd,nvme
///   hoistway compare my-load.fio --schedulers default,bfq --kernel 4.19 --elevator deadline
///   hoistway compare my-load.fio --schedulers none --at 10s:scheduler=bfq --at 20s:bfq.slice_idle=0
///   hoistway compare incident.txt.gz --window 10s..40s --recorded-under bfq --focus postgres:read:p99
///   hoistway compare my-load.fio --io-max "backup wbps=10485760" --io-prio-class "backup idle"
///   hoistway compare polled.fio --device intel-p4800x-375gb --read-queues 4 --poll-queues 2
///   hoistway compare two-disks.fio --device hgst-he10-8tb --shared-tags --schedulers none,mq-deadline
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
    /// docs/recordings.md), - for standard input, or the name of a bundled load (see `hoistway scenarios`).
    /// [default: a bundled example]
    #[arg(value_name = "JOB|SCENARIO")]
    pub(super) job: Option<PathBuf>,
    /// The device: a built-in preset (see `hoistway devices`) or a TOML file. For several devices, give NAME=PRESET for each
    /// file of the job file; a preset without NAME applies to all others. A list without NAME (A,B) compares devices:
    /// the load runs on each. [default: intel-s3520-1600gb; for a bundled load its own device, for a
    /// recording the class that it looks like]
    #[arg(long, value_name = "PRESET|FILE.toml[,...]|NAME=PRESET")]
    pub(super) device: Vec<String>,
    /// The schedulers to compare: a list, or all, which includes those that the kernel no longer has. "default" is the scheduler
    /// that the kernel gives the device. [default: those that the kernel has; with guests only multi-queue ones]
    #[arg(long, value_name = "LIST|all", value_delimiter = ',')]
    pub(super) schedulers: Vec<String>,
    /// Run the load in guests (docs/guests.md): each file of the job file becomes a virtual disk, and all virtual disks are stored
    /// on the host's device. Compare each scheduler of this list in the guests over each of --schedulers on the host.
    #[arg(long, value_name = "LIST|all", value_delimiter = ',')]
    pub(super) guest_schedulers: Vec<String>,
    #[command(flatten)]
    pub(super) place: PlaceOptions,
    #[command(flatten)]
    pub(super) run: RunOptions,
    /// Compare several values of a tunable, or of a file that --queue accepts (queue.nr_requests=64,256). The scheduler runs with
    /// its default and with each value; several --vary options run every combination. May be given several times.
    #[arg(long, value_name = "SCHED.TUNABLE=V1,V2,...")]
    pub(super) vary: Vec<String>,
    /// The kernel whose block layer is simulated: any release from 4.4 on (6.18, 6.12.107), or the output of uname -r. Give
    /// a list to compare several.
    #[arg(long, value_name = "VERSION[,...]", value_delimiter = ',', default_values_t = [KernelOption::from(Kernel::DEFAULT)])]
    pub(super) kernel: Vec<KernelOption>,
    /// The host: a built-in profile (desktop, instant, server, vm) or a TOML file. It sets the CPU time of an I/O and the
    /// reaction times of processes and workers. Give a list to compare several. [default: server; with guests vm; for a recording,
    /// whose gaps hold the CPU time of its machine, instant]
    #[arg(long, value_name = "PROFILE|FILE.toml[,...]", value_delimiter = ',')]
    pub(super) host: Vec<String>,
    /// Run each scheduler K times with K seeds, for means, 95 % confidence intervals and paired differences. A repeat has the
    /// same seed, and therefore the same load, under every scheduler. [default: 3, or up to 10 if all of them take less than ten
    /// seconds; 1 for JSON without --report, for --fio-logs and for --trace]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=i64::from(REPEATS_MAX)))]
    pub(super) repeat: Option<u32>,
    /// Compare the others with this scheduler, or with this row of the table, such as "bfq kernel=6.18".
    /// [default: the scheduler that the kernel gives the device; if it does not run, the first]
    #[arg(long, value_name = "NAME")]
    pub(super) baseline: Option<String>,
    /// Rank schedulers by this figure of a job, such as backends:read:p99 or wal:sync:max; give several, with weights, to combine
    /// them (docs/results.md, "Names of figures"). [default: the figure of the bundled load; otherwise the first of: small random
    /// reads, fsyncs, streams, writes]
    #[arg(long, value_name = "JOB:OPERATION:FIGURE[*WEIGHT]")]
    pub(super) focus: Vec<String>,
    /// Ignore differences smaller than this percentage. [default: 2%]
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub(super) smallest_effect: Option<f64>,
    /// Exit with status 3, and print the figure, if this condition is true for any scheduler: a figure, one of > >= < <=, and a
    /// value with its unit. May be given several times.
    #[arg(long, value_name = "FIGURE>VALUE")]
    pub(super) fail_if: Vec<Threshold>,
    /// Print the sysfs writes and the udev rule that apply the recommendation, and how to undo both, for these devices: sda,
    /// nvme0n1. [without a name: the devices that the job file names]
    #[arg(long, value_name = "DEVICE", value_delimiter = ',', num_args = 0..=1, action = clap::ArgAction::Append,
          value_parser = parse_block_device)]
    pub(super) advice: Option<Vec<String>>,
    /// Omit times, durations and the command line from documents, so that the same input and version give the same bytes.
    #[arg(long)]
    pub(super) stable: bool,
    /// Also show medians and p99.9.
    #[arg(long)]
    pub(super) wide: bool,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
    /// Also write an HTML page with charts and a timeline of a few thousand requests of each scheduler (docs/report.md). The
    /// document of --format json then includes these requests.
    #[arg(long, value_name = "FILE.html")]
    pub(super) report: Option<PathBuf>,
    /// Also write every event of the runs, and why each request was chosen, as JSON lines (docs/trace.md), compressed if the
    /// name ends in .gz. Each I/O takes about 1 KiB: use a short --runtime. Disables parallel runs.
    #[arg(long, value_name = "FILE")]
    pub(super) trace: Option<PathBuf>,
    /// Also write fio's log files (bw, iops, lat, clat, slat) and its json+ of each scheduler to a new folder. Logs have one line
    /// for each I/O (40 bytes of memory during the run), or means over log_avg_msec if the job file sets it.
    #[arg(long, value_name = "DIR")]
    pub(super) fio_logs: Option<PathBuf>,
}

impl Arguments {
    /// Whether the output is for people, who also want confidence intervals. Programs get one run unless they ask for more.
    pub(super) fn is_for_people(&self) -> bool {
        let for_programs = match self.format {
            Format::Json => self.report.is_none(),
            Format::FioJson | Format::FioJsonPlus => true,
            Format::Table | Format::Csv | Format::Markdown => false,
        };
        (!for_programs || self.advice.is_some()) && self.trace.is_none() && self.fio_logs.is_none()
    }
}

/// `2%` or `2` as a fraction.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let fraction = number.map(|percent| percent / 100.0).filter(|fraction| (0.0..1.0).contains(fraction));
    fraction.ok_or_else(|| "expected percent from 0 to below 100, such as 2%".to_owned())
}

/// The name of a block device. The name of a load is refused: `--advice my.fio` was meant as an option and a job file.
fn parse_block_device(text: &str) -> Result<String, String> {
    hoistway_answer::advice::check_name(text).map_err(|error| error.to_string())?;
    if scenarios::named(text).is_some() || Path::new(text).is_file() {
        return Err("it is a load (expected the name of a device; put the load before --advice)".to_owned());
    }
    Ok(text.to_owned())
}
