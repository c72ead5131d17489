//! `hoistway host`: shows the block devices of this machine or of a fleet, and problems with their settings.

mod fleet;
mod table;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use hoistway_linux::dump::System;
use hoistway_linux::fleet::{Fleet, FleetMembers, HostCondition, Met};
use hoistway_linux::host::Host;

use hoistway_terminal::output::Output;
use hoistway_terminal::{Ending, files, printable};

/// Show this machine's block devices, their schedulers and settings, and what is wrong with them.
///
/// Nothing is changed. Each finding, worst first, has its evidence and the commands to run. Run it as root to see everything.
/// docs/host.md explains the columns, the findings and the JSON document.
///
/// Examples:
///   hoistway host
///   hoistway host sda /dev/mapper/vg-home
///   hoistway host --format json
///   hoistway host --dump my-machine.tar.zst
///   hoistway host --sysfs my-machine.tar.zst
///   hoistway host --fleet dumps --since dumps-of-yesterday
///   hoistway host --fleet dumps --fail-if high --fail-if 'nvme:scheduler!=none'
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The devices to show, with their underlying devices and all their tunables: sda, /dev/nvme0n1p2, /dev/mapper/vg-home.
    #[arg(value_name = "DEVICE")]
    devices: Vec<String>,
    /// Show another machine from a dump, or from a folder with files of its /sys, /proc, /etc, /run and /usr/lib.
    #[arg(long, value_name = "DIR|DUMP")]
    sysfs: Option<PathBuf>,
    /// Write the files that describe the machine to an archive instead of showing them; - is standard output.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["devices", "format", "fail_if"])]
    dump: Option<PathBuf>,
    /// Leave serial numbers in the dump.
    #[arg(long, requires = "dump")]
    serials: bool,
    /// Show the findings of many hosts by class, from a dump of each: a folder of dumps, a pattern of their names, or - for a list of
    /// their paths on standard input.
    #[arg(long, value_name = "DIR|GLOB|-", num_args = 1.., conflicts_with_all = ["devices", "sysfs", "dump"])]
    fleet: Vec<String>,
    /// Also show what has changed since these earlier dumps of the hosts.
    #[arg(long, value_name = "DIR|GLOB", requires = "fleet")]
    since: Option<String>,
    /// Exit with status 3, and print the hosts, if this is true: high, medium, low, damaged or a finding, with >COUNT for more hosts than
    /// that; kernel<RELEASE; or CLASS:FILE=VALUE or FILE=VALUE for a file of queue/, with = != < <= > or >=. May be given several times.
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<HostCondition>,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// How hosts are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Table,
    /// Everything, for programs.
    Json,
    /// One line per finding of a class, for spreadsheets: only of a fleet.
    Csv,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    if !arguments.fleet.is_empty() {
        return run_fleet(arguments);
    }
    if arguments.format == Format::Csv {
        bail!("--format csv: has no place for a single host (expected table or json, or --fleet)");
    }
    let system = System::open(arguments.sysfs.as_deref(), arguments.dump.is_some())?;
    let mut host = system.host()?;
    if let Some(file) = &arguments.dump {
        let read: Vec<_> = arguments.sysfs.iter().filter_map(|file| files::identity(file)).collect();
        files::spare(&read, file)?;
        dump(&system, &host, file, arguments.serials)?;
        return Ok(Ending::Done);
    }
    let output = Output::open(None)?;
    if !arguments.devices.is_empty() {
        host.keep(&arguments.devices)?;
    }
    let text = if arguments.format == Format::Json {
        serde_json::to_string_pretty(&host).context("the document")? + "\n"
    } else {
        printed(&table::text(&host, output.text_width(), !arguments.devices.is_empty()))
    };
    output.write(&text)?;
    let met = Fleet::of_one(&system.name, &host, &arguments.fail_if).conditions_met;
    report(&met);
    Ok(if met.is_empty() { Ending::Done } else { Ending::LimitBroken })
}

/// Names in a dump may contain anything.
fn printed(text: &str) -> String {
    text.lines().map(|line| printable::text(line) + "\n").collect()
}

fn run_fleet(arguments: &Arguments) -> Result<Ending> {
    let now = FleetMembers::find(&arguments.fleet, std::io::stdin().lock())?;
    let since = match &arguments.since {
        None => None,
        Some(place) if place == "-" => {
            bail!("--since -: cannot be a list (expected a folder of dumps, or a pattern of their names)")
        }
        Some(place) => Some(FleetMembers::find(std::slice::from_ref(place), std::io::empty())?),
    };
    for file in now.others.iter().chain(since.iter().flat_map(|since| &since.others)) {
        complain(&format!(
            "{}: is not read, since its name is not that of an archive (.tar, .tar.gz, .tar.zst)",
            file.display()
        ));
    }
    let fleet = Fleet::read(&now, since.as_ref(), &arguments.fail_if);
    let output = Output::open(None)?;
    let text = match arguments.format {
        Format::Json => serde_json::to_string_pretty(&fleet).context("the document")? + "\n",
        Format::Csv => printed(&fleet::csv(&fleet)?),
        Format::Table => printed(&fleet::text(&fleet, output.text_width())),
    };
    output.write(&text)?;
    for dump in &fleet.damaged {
        complain(&dump.error);
    }
    report(&fleet.conditions_met);
    // A damaged dump may hide what the conditions are about.
    Ok(match (fleet.damaged.is_empty(), fleet.conditions_met.is_empty()) {
        (false, _) => Ending::Incomplete,
        (true, false) => Ending::LimitBroken,
        (true, true) => Ending::Done,
    })
}

fn report(met: &[Met]) {
    for met in met {
        complain(&format!("--fail-if {}: {}", met.condition, fleet::names(&met.hosts)));
    }
}

/// Prints a line to standard error.
fn complain(line: &str) {
    // `eprintln!` would panic if standard error is closed.
    let _ = writeln!(std::io::stderr(), "hoistway: {}", printable::text(line));
}

fn dump(system: &System, host: &Host, file: &Path, serials: bool) -> Result<()> {
    if file == Path::new("-") {
        let (bytes, _) = system.dump(host, serials).context("the dump")?;
        return Output::open(None)?.write_to_file_only(&bytes);
    }
    let output = Output::open(Some(file))?;
    let (bytes, files) = system.dump(host, serials).context("the dump")?;
    output.write_to_file_only(&bytes)?;
    let devices = host.devices.len();
    let what = if serials { "with serial numbers" } else { "without serial numbers" };
    let counted = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let (files, devices) = (counted(files, "file"), counted(devices, "device"));
    let line = format!("{}: {files} about {devices}, {} bytes, {what}\n", file.display(), bytes.len());
    Output::open(None)?.write(printable::text(line.trim_end()) + "\n")
}
