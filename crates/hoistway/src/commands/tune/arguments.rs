//! The options of a search.

use std::path::PathBuf;

use clap::Args;
use hoistway_answer::Objective;
use hoistway_answer::tuning::Budget;
use hoistway_blk::ground::Kernel;
use hoistway_experiment::KernelOption;

use crate::commands::options::{RunOptions, SimulatedHostOptions, parse_time, parse_trimmed};
use hoistway_terminal::output::Format;

/// Search schedulers and their tunables for the best setting for a load.
///
/// All settings start with short runs; the better ones run again, longer and with more seeds (docs/tune.md). All settings of a
/// round use the same seeds, so they are compared under the same load.
///
/// Exit status: 0 on success; 2 for bad input; 3 if no setting meets the conditions, after the closest is printed; 130 if
/// interrupted.
///
/// Examples:
///   hoistway tune my-load.fio --objective "min backends:read:p99"
///   hoistway tune my-load.fio --objective "min db:read:p99 subject to bulk:write:iops >= 0.9*none"
///   hoistway tune my-load.fio --device my-disk.toml \
///     --objective "max backup:read:bandwidth subject to wal:sync:p99 <= 2ms"
///   hoistway tune my-load.fio --objective "min a:read:p99" --over mq-deadline,kyber \
///     --vary kyber.read_lat_nsec
///   hoistway tune my-load.fio --objective "min a:read:p99" \
///     --vary mq-deadline.fifo_batch=1,2,4,8 --vary queue.nr_requests=32,64
///   hoistway tune etcd-beside-pods --over none --io-cost "enable=1" --vary io.cost.qos \
///     --objective "min etcd:write:p99 subject to batch:write:iops >= 0.5*none"
///   hoistway tune my-load.fio --objective "min a:read:p99" --budget 1000 --state search.json
///   hoistway tune my-load.fio --objective "min a:read:p99" --budget 30m --format json -o tuned.json
///   hoistway tune my-load.fio --report page.html \
///     --objective "min a:read:p99 subject to b:write:iops >= 0.9*default"
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// A fio job file, - for standard input, or the name of a bundled load (see `hoistway scenarios`).
    #[arg(value_name = "JOB|SCENARIO")]
    pub(super) job: PathBuf,
    /// Minimise or maximise a figure (docs/results.md, "Names of figures"), subject to conditions: a figure, one of >= <= > <, and
    /// a value, or a multiple of the figure of a scheduler with default settings (0.9*none).
    #[arg(long, value_name = "min|max FIGURE [subject to FIGURE >= LIMIT and ...]")]
    pub(super) objective: Objective,
    /// The schedulers to search: a list, or all. [default: those of the kernel]
    #[arg(long, value_name = "LIST|all", value_delimiter = ',', value_parser = parse_trimmed)]
    pub(super) over: Vec<String>,
    /// Search only this tunable of its scheduler, or a file that --queue accepts (queue.nr_requests) under all schedulers. With
    /// values, try only these and the default. With --io-cost "enable=1", io.cost.qos is rpct, rlat, wpct, wlat, min and max, and
    /// io.cost.qos.KEY one of them; io.latency.CGROUP.target=V1,V2,... are latency targets. May be given several times. [default: all
    /// tunables of the schedulers, in steps around their defaults]
    #[arg(long, alias = "knob", value_name = "SCHED.TUNABLE[=V1,V2,...]")]
    pub(super) vary: Vec<String>,
    /// Stop after this number of runs, or after this much virtual time, with its unit (30m). [default: 200 runs]
    #[arg(long, value_name = "RUNS|TIME", value_parser = parse_budget)]
    pub(super) budget: Option<Budget>,
    /// Measure as fio does, from the start of each job to its end. [default: only the time in which all jobs run and what happens only
    /// after their start is over, found in longer runs of the default settings if that is cheap]
    #[arg(long)]
    pub(super) from_start: bool,
    /// Keep finished runs in a file. The same command resumes an interrupted search, or extends it with a larger budget.
    #[arg(long, value_name = "FILE")]
    pub(super) state: Option<PathBuf>,
    /// The device: a built-in preset (see `hoistway devices`) or a TOML file. For several devices, give NAME=PRESET for each file of the
    /// job file. [default: intel-s3520-1600gb; for a bundled load, its own device]
    #[arg(long, value_name = "PRESET|FILE.toml|NAME=PRESET")]
    pub(super) device: Vec<String>,
    /// The kernel whose block layer is simulated: any release since 4.4, or the output of uname -r.
    #[arg(long, value_name = "VERSION", default_value_t = Kernel::DEFAULT.into())]
    pub(super) kernel: KernelOption,
    /// The host: a built-in profile (see `hoistway hosts`) or a TOML file. [default: server]
    #[arg(long, value_name = "PROFILE|FILE.toml")]
    pub(super) host: Option<String>,
    /// Run the load in guests (docs/guests.md), all with this scheduler, and search the settings of the host.
    #[arg(long, value_name = "NAME")]
    pub(super) guest_scheduler: Option<String>,
    #[command(flatten)]
    pub(super) host_options: SimulatedHostOptions,
    #[command(flatten)]
    pub(super) run: RunOptions,
    /// Omit the command line from the document, so that the same input and version give the same bytes.
    #[arg(long)]
    pub(super) stable: bool,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
    /// Also write an HTML page: the Pareto front, the finalists, the effects of tunables, the uncertainty and the cost
    /// (docs/report.md).
    #[arg(long, value_name = "FILE.html")]
    pub(super) report: Option<PathBuf>,
}

/// A number of runs, or a time with its unit.
fn parse_budget(text: &str) -> Result<Budget, String> {
    if text.chars().all(|digit| digit.is_ascii_digit()) {
        let runs = text.parse().ok().filter(|runs| *runs > 0);
        return runs.map(Budget::Runs).ok_or_else(|| "expected a number of runs, or a time such as 30m".to_owned());
    }
    parse_time(text).map(|time| Budget::VirtualNs(time.0))
}
