//! `hoistway calibrate`: makes host profiles and device models from measurements.

mod device;
pub(crate) mod fit;
mod host;

use anyhow::Result;
use clap::{Args, Subcommand};

use hoistway_terminal::Ending;

/// Measure this machine, or fit a device model to measurements, to compare on your own hardware.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Device(Box<device::Arguments>),
    Fit(fit::Arguments),
    Host(host::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    match &arguments.command {
        Command::Device(arguments) => device::run(arguments),
        Command::Fit(arguments) => fit::run(arguments),
        Command::Host(arguments) => host::run(arguments),
    }
}
