//! `hoistway completions`: what makes a shell complete our command lines.

use anyhow::Result;
use clap::Args;
use clap_complete::Shell;

use crate::Ending;
use crate::output::Output;

/// Prints the completions for a shell.
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
    clap_complete::generate(arguments.shell, &mut crate::command(), "hoistway", &mut text);
    Output::open(None)?.write(&String::from_utf8(text)?)?;
    Ok(Ending::Done)
}
