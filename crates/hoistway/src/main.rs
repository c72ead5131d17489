//! The command line: parse, call a library, render.

mod commands;
mod input;
mod output;
mod printable;
mod progress;
mod stored;
mod trace_file;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand, ValueHint};

/// Which I/O scheduler, with which settings, for my device and my load?
///
/// Hoistway is the Linux multi-queue block layer with its I/O schedulers: in virtual time over device models, and for real
/// over files and disks, also behind a block server.
#[derive(Parser, Debug)]
#[command(version, about, long_about, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Calibrate(Box<commands::calibrate::Arguments>),
    Compare(Box<commands::compare::Arguments>),
    Completions(commands::completions::Arguments),
    Conform(commands::conform::Arguments),
    Ctl(commands::ctl::Arguments),
    Devices(commands::devices::Arguments),
    Diff(commands::diff::Arguments),
    Explain(commands::explain::Arguments),
    Fio(commands::fio::Arguments),
    Hosts(commands::hosts::Arguments),
    Man(commands::man::Arguments),
    Merge(commands::merge::Arguments),
    Report(commands::report::Arguments),
    Reproduce(commands::reproduce::Arguments),
    Run(Box<commands::run::Arguments>),
    Scenarios(commands::scenarios::Arguments),
    Schedulers(commands::schedulers::Arguments),
    Serve(Box<commands::serve::Arguments>),
    Sweep(commands::sweep::Arguments),
    Top(commands::top::Arguments),
    Trace(commands::trace::Arguments),
    Tune(Box<commands::tune::Arguments>),
    Why(commands::why::Arguments),
}

/// How a command ended well, or was ended.
pub(crate) enum Ending {
    /// It did what it was asked.
    Done,
    /// It did what it was asked, and what it simulated failed: as with fio, when a job ends with an error.
    JobFailed,
    /// It did what it was asked, and a limit that it was given is broken.
    LimitBroken,
    /// The user interrupted it; what it had was printed and marked.
    Interrupted,
}

/// The command line as data, for completions and manual pages.
pub(crate) fn command() -> clap::Command {
    // Shells offer files only where files belong.
    let files = ["job", "device", "host", "virtual_disk", "output", "trace", "fio_logs", "report", "plot"];
    Cli::command().mut_subcommand("compare", |compare| {
        compare.mut_args(|argument| {
            let is_file = files.contains(&argument.get_id().as_str());
            let has_value = argument.get_action().takes_values();
            if is_file || !has_value { argument } else { argument.value_hint(ValueHint::Other) }
        })
    })
}

/// The command with its arguments, one by one and as a line for a shell.
pub(crate) fn command_line() -> (Vec<String>, String) {
    let arguments: Vec<_> = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let line = shell_words::join(&arguments);
    (arguments, line)
}

/// Threads that runs may have, as many as any host has CPUs.
const THREADS_MAX: usize = 1024;

/// What the environment asks for, if no system could start them. Who starts them would panic.
fn too_many_threads() -> Option<usize> {
    let wanted = std::env::var("RAYON_NUM_THREADS").ok()?.parse().ok()?;
    (wanted > THREADS_MAX).then_some(wanted)
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => match commands::fio::meant_for_fio(&error) {
            Some(tip) => {
                let _ = writeln!(std::io::stderr(), "hoistway: {tip}");
                return ExitCode::from(2);
            }
            None => error.exit(),
        },
    };
    if let Some(threads) = too_many_threads() {
        let _ = writeln!(
            std::io::stderr(),
            "hoistway: RAYON_NUM_THREADS={threads}: expected threads for runs, at most {THREADS_MAX}, or 0 for as many as CPUs"
        );
        return ExitCode::from(2);
    }
    let ending = match cli.command {
        Command::Calibrate(arguments) => commands::calibrate::run(&arguments),
        Command::Compare(arguments) => commands::compare::run(&arguments),
        Command::Completions(arguments) => commands::completions::run(&arguments),
        Command::Conform(arguments) => commands::conform::run(&arguments),
        Command::Ctl(arguments) => commands::ctl::run(&arguments),
        Command::Devices(arguments) => commands::devices::run(&arguments),
        Command::Diff(arguments) => commands::diff::run(&arguments),
        Command::Explain(arguments) => commands::explain::run(&arguments),
        Command::Fio(arguments) => commands::fio::run(&arguments),
        Command::Hosts(arguments) => commands::hosts::run(&arguments),
        Command::Man(arguments) => commands::man::run(&arguments),
        Command::Merge(arguments) => commands::merge::run(&arguments),
        Command::Report(arguments) => commands::report::run(&arguments),
        Command::Reproduce(arguments) => commands::reproduce::run(&arguments),
        Command::Run(arguments) => commands::run::run(&arguments),
        Command::Scenarios(arguments) => commands::scenarios::run(&arguments),
        Command::Schedulers(arguments) => commands::schedulers::run(&arguments),
        // Read again there, with the file that it names.
        Command::Serve(_) => commands::serve::run(),
        Command::Sweep(arguments) => commands::sweep::run(&arguments),
        Command::Top(arguments) => commands::top::run(&arguments),
        Command::Trace(arguments) => commands::trace::run(&arguments),
        Command::Tune(arguments) => commands::tune::run(&arguments),
        Command::Why(arguments) => commands::why::run(&arguments),
    };
    match ending {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::JobFailed) => ExitCode::FAILURE,
        Ok(Ending::LimitBroken) => ExitCode::from(3),
        Ok(Ending::Interrupted) => ExitCode::from(130),
        // Whoever read our output has had enough: nothing to complain about.
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Not `eprintln!`: that panics if nobody reads standard error any more.
            let _ = writeln!(std::io::stderr(), "hoistway: {}", printable::text(&told_once(&error)));
            ExitCode::from(2)
        }
    }
}

/// The error with its causes behind it, except those that it quotes itself.
fn told_once(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if message.is_empty() {
            message = cause;
        } else if !message.contains(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    message
}
