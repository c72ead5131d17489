//! The server's command line: parse, call the library, render.

mod ctl;
mod man;
mod serve;
mod text;
mod top;

use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use hoistway_serve_options::ServeCommand;

/// A block server: NBD clients and virtual machines on one disk, under one I/O scheduler.
#[derive(Parser, Debug)]
#[command(name = "hoistway-serve", version, about, long_about, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    #[command(flatten)]
    Serve(ServeCommand),
    /// Write the manual pages to a folder, for packages.
    #[command(hide = true)]
    Man {
        /// The folder; it must exist.
        folder: PathBuf,
    },
}

fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let command = match cli.command {
        Command::Serve(command) => command,
        Command::Man { folder } => return ended(man::write(&Cli::command(), &folder).map(|()| ExitCode::SUCCESS)),
    };
    ended(match command {
        ServeCommand::Serve(options) => match matches.subcommand_matches("serve") {
            Some(matches) => serve::run(*options, matches),
            None => Ok(ExitCode::from(2)),
        },
        ServeCommand::Ctl(options) => ctl::run(&options).map(|()| ExitCode::SUCCESS),
        ServeCommand::Top(options) => top::run(&options).map(|()| ExitCode::SUCCESS),
    })
}

/// The exit status; an error is printed.
fn ended(ended: anyhow::Result<ExitCode>) -> ExitCode {
    ended.unwrap_or_else(|error| {
        let is_closed_pipe = |cause: &std::io::Error| cause.kind() == ErrorKind::BrokenPipe;
        if error.chain().filter_map(|cause| cause.downcast_ref()).any(is_closed_pipe) {
            return ExitCode::SUCCESS;
        }
        // `eprintln!` would panic if standard error is closed.
        let _ = writeln!(std::io::stderr(), "hoistway-serve: {}", text::one_line(&format!("{error:#}")));
        ExitCode::from(2)
    })
}
