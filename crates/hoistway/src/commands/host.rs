//! `hoistway host`: shows this machine's block devices, and problems with their settings.

mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use hoistway_linux::dump::System;
use hoistway_linux::host::Host;

use hoistway_terminal::output::{Format, Output};
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
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The devices to show, with their underlying devices and all their tunables: sda, /dev/nvme0n1p2, /dev/mapper/vg-home.
    #[arg(value_name = "DEVICE")]
    devices: Vec<String>,
    /// Show another machine from a dump, or from a folder with files of its /sys, /proc, /etc, /run and /usr/lib.
    #[arg(long, value_name = "DIR|DUMP")]
    sysfs: Option<PathBuf>,
    /// Write the files that describe the machine to an archive instead of showing them.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["devices", "format"])]
    dump: Option<PathBuf>,
    /// Leave serial numbers in the dump.
    #[arg(long, requires = "dump")]
    serials: bool,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
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
    let text = match arguments.format {
        Format::Json => serde_json::to_string_pretty(&host).context("the document")? + "\n",
        // Names in a dump may contain anything.
        Format::Table => {
            let text = table::text(&host, output.text_width(), !arguments.devices.is_empty());
            text.lines().map(|line| printable::text(line) + "\n").collect()
        }
    };
    output.write(&text)?;
    Ok(Ending::Done)
}

fn dump(system: &System, host: &Host, file: &Path, serials: bool) -> Result<()> {
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
