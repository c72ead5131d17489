//! The manual pages of the package.

use std::path::Path;

use anyhow::{Context as _, Result};
use clap::Command;
use clap_mangen::Man;

/// Writes the page of the program, and that of each of its commands, to a folder.
pub(crate) fn write(root: &Command, folder: &Path) -> Result<()> {
    let mut root = root.clone();
    root.build();
    let is_shown = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    let commands = root.get_subcommands().filter(is_shown).map(|command| {
        let name = format!("{}-{}", root.get_name(), command.get_name());
        command.clone().display_name(name)
    });
    for command in commands.chain([root.clone()]) {
        let path = folder.join(format!("{}.1", command.get_display_name().unwrap_or_else(|| command.get_name())));
        let mut text = Vec::new();
        Man::new(command).render(&mut text)?;
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}
