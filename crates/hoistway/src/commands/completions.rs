//! `hoistway completions`: prints a shell's completion script.

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Args, Command};
use clap_complete::Shell;
use hoistway_blk::ground::Kernel;
use hoistway_blk::schedulers::Registry;
use hoistway_device::Preset;
use hoistway_experiment::{scenarios, texts::Texts};
use hoistway_legacy::{LEGACY_SCHEDULERS, all_schedulers};
use hoistway_sim::{Host, VirtualDisk};

use hoistway_terminal::Ending;
use hoistway_terminal::output::Output;

/// Print completions for a shell.
///
/// Examples:
///   hoistway completions bash > ~/.local/share/bash-completion/completions/hoistway
///   hoistway completions zsh > ~/.zfunc/_hoistway
///   hoistway completions fish > ~/.config/fish/completions/hoistway.fish
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut with_names(crate::command()), "hoistway", &mut text);
    Output::open(None)?.write(&String::from_utf8(text)?)?;
    Ok(Ending::Done)
}

/// Adds the possible values of options. Only for completions: an argument may also be a file, or part of a name.
fn with_names(command: Command) -> Command {
    let subcommands: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    subcommands.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |subcommand| {
            subcommand.mut_args(|argument| match names(name, argument.get_id().as_str()) {
                Some(names) => argument.value_parser(PossibleValuesParser::new(names)),
                None => argument,
            })
        })
    })
}

/// The possible values of an argument.
fn names(subcommand: &str, argument: &str) -> Option<Vec<String>> {
    let owned = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
    match (subcommand, argument) {
        ("compare" | "run" | "tune", "job") | ("scenarios", "name") => owned(&scenarios::names().collect::<Vec<_>>()),
        ("compare" | "devices" | "tune", "device") => {
            let mut names: Vec<&str> =
                Preset::builtin_names().chain(Preset::classes().map(|(class, _)| class)).collect();
            names.sort_unstable();
            // Some classes have the same name as their preset.
            names.dedup();
            owned(&names)
        }
        ("compare" | "hosts" | "tune", "host") => owned(&Host::builtin_names().collect::<Vec<_>>()),
        ("compare" | "tune", "virtual_disk") => owned(&VirtualDisk::builtin_names().collect::<Vec<_>>()),
        ("compare", "schedulers" | "guest_schedulers" | "baseline") | ("tune", "over" | "guest_scheduler") => {
            Some(listed_schedulers())
        }
        ("compare" | "tune", "elevator") => owned(&LEGACY_SCHEDULERS),
        ("run", "scheduler") => owned(&Registry::multi_queue().names()),
        ("compare" | "explain" | "tune", "kernel") => Some(Kernel::EXAMPLES.iter().map(ToString::to_string).collect()),
        ("tune", "vary") => Some(tunables()),
        ("compare" | "run" | "tune", "set") => Some(tunables().into_iter().map(|name| name + "=").collect()),
        ("explain", "name") => {
            let files = Texts::read().files;
            let files = files.iter().map(|file| format!("queue.{}", file.name));
            Some(all_schedulers().names().into_iter().map(str::to_owned).chain(tunables()).chain(files).collect())
        }
        _ => None,
    }
}

/// The possible entries in a list of schedulers.
fn listed_schedulers() -> Vec<String> {
    all_schedulers().names().into_iter().chain(["research", "shipping"]).map(str::to_owned).collect()
}

/// `SCHEDULER.TUNABLE` for all tunables of any kernel.
fn tunables() -> Vec<String> {
    let texts = Texts::read();
    let pairs = texts
        .schedulers
        .iter()
        .flat_map(|scheduler| scheduler.tunables.iter().map(move |tunable| (scheduler, tunable)));
    pairs.map(|(scheduler, tunable)| format!("{}.{}", scheduler.name, tunable.name)).collect()
}
