//! Subcommands that other programs implement, so that `hoistway` builds quickly; `hoistway` executes these programs.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Error, Result, anyhow};
use clap::{Arg, ArgAction, Subcommand as _};
use hoistway_serve_options::ServeCommand;

/// A program that implements some of the commands.
struct Program {
    name: &'static str,
    has_command: fn(&str) -> bool,
    /// The command line that builds the program.
    build_command: &'static str,
}

const PROGRAMS: [Program; 2] = [
    Program {
        name: "hoistway-serve",
        has_command: ServeCommand::has_subcommand,
        build_command: "cargo build --profile server -p hoistway-serve",
    },
    Program {
        name: "hoistway-evidence",
        has_command: |command| EVIDENCE.iter().any(|(name, _)| *name == command),
        build_command: if cfg!(debug_assertions) {
            "cargo build -p hoistway-evidence"
        } else {
            "cargo build --release -p hoistway-evidence"
        },
    },
];

/// The commands of `hoistway-evidence`, each with a line of help.
const EVIDENCE: [(&str, &str); 4] = [
    ("conform", "Replay recordings of real kernels and compare every decision"),
    ("decide", "Score how often the best scheduler of published figures is ours, too"),
    ("reproduce", "Reproduce published measurements of I/O schedulers"),
    ("replay-pairs", "Predict recordings of a program from its other recordings, and compare"),
];

/// Adds the subcommands of these programs to those of `hoistway`, for help, completions and manual pages.
pub(crate) fn with_program_commands(command: clap::Command) -> clap::Command {
    // Adding the subcommands of a program replaces what the command says of itself.
    let (about, long_about) = (command.get_about().cloned(), command.get_long_about().cloned());
    let mut command = ServeCommand::augment_subcommands(command);
    if let (Some(about), Some(long_about)) = (about, long_about) {
        command = command.about(about).long_about(long_about);
    }
    EVIDENCE.iter().fold(command, |command, (name, about)| {
        let arguments = Arg::new("arguments")
            .value_name("ARGUMENTS")
            .num_args(0..)
            .trailing_var_arg(true)
            .allow_hyphen_values(true)
            .action(ArgAction::Append)
            .help(format!("Arguments, as listed by `hoistway-evidence {name} --help`"));
        command.subcommand(clap::Command::new(*name).about(*about).disable_help_flag(true).arg(arguments))
    })
}

/// If the first argument is one of these subcommands, replaces this process by its program. Returns `Ok` if it is not one, and an
/// error if the program cannot be executed.
pub(crate) fn execute_external_command() -> Result<()> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Some(command) = arguments.first().and_then(|first| first.to_str()) else { return Ok(()) };
    let Some(program) = PROGRAMS.iter().find(|program| (program.has_command)(command)) else { return Ok(()) };
    let sibling = std::env::current_exe().ok().map(|executable| executable.with_file_name(program.name));
    for file in sibling.into_iter().chain([PathBuf::from(program.name)]) {
        // `arg0` makes usage lines show the command that the user typed.
        let error = Command::new(&file).arg0("hoistway").args(&arguments).exec();
        if error.kind() != ErrorKind::NotFound {
            return Err(Error::new(error).context(format!("{command}: cannot execute {}", file.display())));
        }
    }
    Err(anyhow!(
        "{command}: needs the program {}, which is neither in hoistway's folder nor on PATH (build it with `{}`)",
        program.name,
        program.build_command
    ))
}
