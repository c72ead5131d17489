//! The command line of `hoistway-evidence`: parse, call the library, render.

mod conform;
mod decide;
mod replay_pairs;
mod reproduce;
mod tables;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

/// Measure how faithful hoistway is: replay recorded decisions, simulate published tables.
#[derive(Parser, Debug)]
#[command(name = "hoistway-evidence", version, about, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Conform(conform::Arguments),
    Decide(decide::Arguments),
    Reproduce(reproduce::Arguments),
    ReplayPairs(replay_pairs::Arguments),
}

fn main() -> ExitCode {
    let matches = hoistway_terminal::help::join_paragraphs(Cli::command()).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let ending = match cli.command {
        Command::Conform(arguments) => conform::run(&arguments),
        Command::Decide(arguments) => decide::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::ReplayPairs(arguments) => replay_pairs::run(&arguments),
    };
    hoistway_terminal::exit_code("hoistway-evidence", ending)
}
