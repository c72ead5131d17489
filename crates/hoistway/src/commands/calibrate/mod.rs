//! `hoistway calibrate`: profiles of hosts and models of devices from measurements.

mod host;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::Ending;

/// Measures what I/O costs on this machine, for comparisons on it.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    Host(host::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    match &arguments.what {
        What::Host(arguments) => host::run(arguments),
    }
}
