//! Options of all experiments: how results are judged, and which outputs are written.

use std::path::{Path, PathBuf};

use clap::Args;
use hoistway_answer::Condition;
use hoistway_experiment::scenarios;

use super::Format;

/// How results are judged.
#[derive(Args, Debug)]
pub(crate) struct JudgingOptions {
    /// Compare the others with this scheduler, or with this row of the table, such as "bfq kernel=6.18". [default: the kernel's
    /// default scheduler for the device; if it is unknown or not among those compared, the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,
    /// Rank schedulers by this figure of a job, such as backends:read:p99 or wal:sync:max; give several, with weights, to combine
    /// them (docs/results.md, "Names of figures"). [default: the figure of the bundled load; otherwise the first present of small
    /// random reads, fsyncs, streams, writes]
    #[arg(long, value_name = "JOB:OPERATION:FIGURE[*WEIGHT]")]
    pub(crate) focus: Vec<String>,
    /// Ignore differences smaller than this percentage. [default: 2%]
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub(crate) smallest_effect: Option<f64>,
    #[command(flatten)]
    pub(crate) limits: LimitOptions,
    /// Print the sysfs writes and the udev rule that apply the recommendation, and how to undo both, for these devices: sda,
    /// nvme0n1. [without a name: the devices of the job file, or the one of --target]
    #[arg(long, value_name = "DEVICE", value_delimiter = ',', num_args = 0..=1, action = clap::ArgAction::Append,
          value_parser = parse_block_device)]
    pub(crate) advice: Option<Vec<String>>,
}

/// Limits of figures, whatever the verdict is.
#[derive(Args, Debug)]
pub(crate) struct LimitOptions {
    /// Exit with status 3, and print the figure, if this condition is true for any scheduler: a figure, one of > >= < <=, and a
    /// value with its unit, or a multiple of a scheduler's figure: reader:read:p99>2*none. May be given several times.
    #[arg(long, value_name = "FIGURE>LIMIT")]
    pub(crate) fail_if: Vec<Condition>,
}

/// Outputs in addition to `--output`, and their format.
#[derive(Args, Debug)]
pub(crate) struct OutputOptions {
    /// Also show medians and p99.9.
    #[arg(long)]
    pub(crate) wide: bool,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Also write an HTML page with charts and, in virtual time, a timeline of a few thousand requests under each scheduler
    /// (docs/report.md). The document of --format json then includes these requests.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Also write fio's log files (bw, iops, lat, clat, slat) and json+ for each scheduler to a new folder. Logs have one line
    /// per I/O (40 bytes of memory each during the run), or means over log_avg_msec if the job file sets it.
    #[arg(long, value_name = "DIR")]
    pub(crate) fio_logs: Option<PathBuf>,
}

impl OutputOptions {
    /// Whether an output is what fio would write.
    pub(crate) fn is_of_fio(&self) -> bool {
        matches!(self.format, Format::FioJson | Format::FioJsonPlus) || self.fio_logs.is_some()
    }
}

/// `2%` or `2` as a fraction.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let fraction = number.map(|percent| percent / 100.0).filter(|fraction| (0.0..1.0).contains(fraction));
    fraction.ok_or_else(|| "expected a percentage from 0 to below 100, such as 2%".to_owned())
}

/// The name of a block device. The name of a load is rejected: in `--advice my.fio` the user meant an option without a value, and
/// a job file.
fn parse_block_device(text: &str) -> Result<String, String> {
    hoistway_answer::advice::check_name(text).map_err(|error| error.to_string())?;
    if scenarios::named(text).is_some() || Path::new(text).is_file() {
        return Err("is the name of a load (expected the name of a device; put the load before --advice)".to_owned());
    }
    Ok(text.to_owned())
}
