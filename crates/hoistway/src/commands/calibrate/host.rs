//! `hoistway calibrate host`: measures the cost of I/O on this machine.

use std::io::{IsTerminal, Write as _};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use clap::Args;
use hoistway_calibrate::host::{Costs, HostError, HostPlan, ROUNDS_MAX, measure};
use indicatif::{ProgressBar, ProgressStyle};

use hoistway_terminal::Ending;
use hoistway_terminal::output::Output;

/// Measure this machine, and print a host profile for `hoistway compare --host`.
///
/// Measures the CPU time of the block layer's operations inside and outside each scheduler's locks, the cost of fetching a lock
/// from another CPU, the time of wake-ups and context switches, and, if there is a null device (/dev/nullb0) whose scheduler can
/// be set, the CPU time of the kernel's own schedulers. Each figure is the median of several rounds; `sources` in the profile
/// says how it was measured and how much the rounds differ. The machine should be otherwise idle.
///
/// With -o the tables are printed; without it they are comments in the profile. Takes less than a minute.
///
/// Exit status: 0 on success; 2 for bad input; 130 if interrupted, after the measurements so far are printed, without a profile.
///
/// Examples:
///   hoistway calibrate host -o host.toml
///   hoistway compare my-load.fio --host host.toml
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Write the profile to a file, and print the tables.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The name of the profile.
    #[arg(long, value_name = "NAME", default_value = "measured", value_parser = parse_name)]
    name: String,
    /// Measure everything N times.
    #[arg(long, value_name = "N", default_value_t = HostPlan::default().rounds,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(ROUNDS_MAX)))]
    rounds: u32,
}

fn parse_name(text: &str) -> Result<String, &'static str> {
    let is_plain = !text.trim().is_empty() && !text.chars().any(char::is_control);
    if is_plain { Ok(text.to_owned()) } else { Err("expected a name without control characters") }
}

pub(super) fn run(arguments: &Arguments) -> Result<Ending> {
    let output = Output::open(arguments.output.as_deref())?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    hoistway_terminal::interrupt::on_interrupt(move || flag.store(true, Ordering::Relaxed))?;
    let bar = if std::io::stderr().is_terminal() {
        let style = ProgressStyle::with_template("{bar:40} round {pos} of {len}  {elapsed} so far");
        ProgressBar::new(arguments.rounds.into()).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    } else {
        ProgressBar::hidden()
    };
    let plan = HostPlan { rounds: arguments.rounds, ..HostPlan::default() };
    let costs = measure(&plan, |round, _| {
        bar.set_position(round.into());
        if interrupted.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    bar.finish_and_clear();
    let costs = match costs {
        Ok(costs) => costs,
        Err(error @ HostError::Stopped) => {
            let _ = writeln!(std::io::stderr(), "hoistway: {error}");
            return Ok(Ending::Interrupted);
        }
        Err(error) => return Err(error.into()),
    };
    if costs.rounds[0] < costs.rounds[1] {
        Output::Standard.write(costs.report())?;
        return Ok(Ending::Interrupted);
    }
    let profile = profile(&costs, &arguments.name)?;
    if arguments.output.is_some() {
        output.write(profile)?;
        Output::Standard.write(costs.report())?;
    } else {
        output.write(profile)?;
    }
    Ok(Ending::Done)
}

/// The content of the file: the tables as comments, and the profile.
fn profile(costs: &Costs, name: &str) -> Result<String> {
    let mut text = String::from("# Measured by `hoistway calibrate host`.\n#\n");
    for line in costs.report().lines() {
        text += format!("# {line}").trim_end();
        text.push('\n');
    }
    Ok(text + "\n" + &toml::to_string(&costs.profile(name)).context("the profile cannot be written as TOML")?)
}
