//! The command line: parse, call a library, render.

mod commands;
mod input;
mod numbered_files;
mod progress;
mod stored;
mod trace_file;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueHint};

/// Which I/O scheduler, with which settings, for my device and my load?
///
/// Hoistway is the Linux multi-queue block layer with its I/O schedulers in user space: in virtual time over device models, and
/// in real time over files and disks or behind a block server.
#[derive(Parser, Debug)]
#[command(version, about, long_about, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Apply(commands::apply::Arguments),
    Calibrate(Box<commands::calibrate::Arguments>),
    Compare(Box<commands::compare::Arguments>),
    Completions(commands::completions::Arguments),
    Devices(commands::devices::Arguments),
    Diff(commands::diff::Arguments),
    Explain(commands::explain::Arguments),
    Fio(commands::fio::Arguments),
    Host(commands::host::Arguments),
    Hosts(commands::hosts::Arguments),
    Man(commands::man::Arguments),
    Merge(commands::merge::Arguments),
    Record(commands::record::Arguments),
    Report(commands::report::Arguments),
    Run(Box<commands::run::Arguments>),
    Scenarios(commands::scenarios::Arguments),
    Schedulers(commands::schedulers::Arguments),
    Sweep(commands::sweep::Arguments),
    Trace(commands::trace::Arguments),
    Tune(Box<commands::tune::Arguments>),
    Verify(Box<commands::verify::Arguments>),
    Why(commands::why::Arguments),
}

/// The definition of all commands and arguments.
fn definition() -> clap::Command {
    hoistway_terminal::help::join_paragraphs(commands::programs::with_program_commands(Cli::command()))
}

/// The definition of all commands and arguments, for completions and manual pages.
pub(crate) fn command() -> clap::Command {
    // Of the arguments of `compare`, shells complete file names only for these.
    let files = ["job", "device", "host", "virtual_disk", "output", "trace", "fio_logs", "report"];
    definition().mut_subcommand("compare", |compare| {
        compare.mut_args(|argument| {
            let is_file = files.contains(&argument.get_id().as_str());
            let has_value = argument.get_action().takes_values();
            if is_file || !has_value { argument } else { argument.value_hint(ValueHint::Other) }
        })
    })
}

/// The command with its arguments, as a list and as a line for a shell.
pub(crate) fn command_line() -> (Vec<String>, String) {
    let arguments: Vec<_> = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let line = shell_words::join(&arguments);
    (arguments, line)
}

/// Maximum threads for runs: as many as a simulated host may have CPUs.
const THREADS_MAX: usize = 1024;

/// The number of threads requested by the environment, if it is too large; starting them would panic.
fn too_many_threads() -> Option<usize> {
    let requested = std::env::var("RAYON_NUM_THREADS").ok()?.parse().ok()?;
    (requested > THREADS_MAX).then_some(requested)
}

/// Arguments with only the first of the files of a recording, NAME.blktrace.0 and so on, which a shell makes of NAME.blktrace.*: a recording
/// is read as a whole.
fn one_file_of_a_recording(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let recording = |argument: &OsString| {
        let (name, cpu) = argument.to_str()?.rsplit_once(".blktrace.")?;
        cpu.bytes().all(|digit| digit.is_ascii_digit()).then(|| name.to_owned())
    };
    let mut kept: Vec<OsString> = Vec::new();
    for argument in arguments {
        let of = recording(&argument);
        if of.is_none() || kept.last().is_none_or(|last| recording(last) != of) {
            kept.push(argument);
        }
    }
    kept
}

fn main() -> ExitCode {
    // Replaces the process if the command is another program; returns an error only if that cannot be executed.
    if let Err(error) = commands::programs::execute_external_command() {
        return hoistway_terminal::exit_code("hoistway", Err(error));
    }
    let matches = definition().try_get_matches_from(one_file_of_a_recording(std::env::args_os()));
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => match commands::fio::suggest_fio_command(&error) {
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
            "hoistway: RAYON_NUM_THREADS={threads}: expected a number of threads up to {THREADS_MAX}, or 0 for one per CPU"
        );
        return ExitCode::from(2);
    }
    let ending = match cli.command {
        Command::Apply(arguments) => commands::apply::run(&arguments),
        Command::Calibrate(arguments) => commands::calibrate::run(&arguments),
        Command::Compare(arguments) => commands::compare::run(&arguments),
        Command::Completions(arguments) => commands::completions::run(&arguments),
        Command::Devices(arguments) => commands::devices::run(&arguments),
        Command::Diff(arguments) => commands::diff::run(&arguments),
        Command::Explain(arguments) => commands::explain::run(&arguments),
        Command::Fio(arguments) => commands::fio::run(&arguments),
        Command::Host(arguments) => commands::host::run(&arguments),
        Command::Hosts(arguments) => commands::hosts::run(&arguments),
        Command::Man(arguments) => commands::man::run(&arguments),
        Command::Merge(arguments) => commands::merge::run(&arguments),
        Command::Record(arguments) => commands::record::run(&arguments),
        Command::Report(arguments) => commands::report::run(&arguments),
        Command::Run(arguments) => commands::run::run(&arguments),
        Command::Scenarios(arguments) => commands::scenarios::run(&arguments),
        Command::Schedulers(arguments) => commands::schedulers::run(&arguments),
        Command::Sweep(arguments) => commands::sweep::run(&arguments),
        Command::Trace(arguments) => commands::trace::run(&arguments),
        Command::Tune(arguments) => commands::tune::run(&arguments),
        Command::Verify(arguments) => commands::verify::run(&arguments),
        Command::Why(arguments) => commands::why::run(&arguments),
    };
    hoistway_terminal::exit_code("hoistway", ending)
}

#[cfg(test)]
mod tests {
    /// The width to which help is wrapped without a terminal.
    const HELP_COLUMNS: usize = 100;

    fn assert_indented_lines_fit(command: &clap::Command) {
        let about = command.get_long_about().map(ToString::to_string).unwrap_or_default();
        for line in about.lines().filter(|line| line.starts_with(' ')) {
            assert!(line.chars().count() <= HELP_COLUMNS, "{}: wraps: {line}", command.get_name());
        }
        command.get_subcommands().for_each(assert_indented_lines_fit);
    }

    #[test]
    fn examples_and_tables_in_help_are_not_wrapped() {
        assert_indented_lines_fit(&super::command());
    }
}
