//! `hoistway man`: prints or writes manual pages.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, Command};
use clap_mangen::Man;

use hoistway_terminal::Ending;
use hoistway_terminal::output::Output;

/// Write the manual pages of all commands to a folder; without one, print the page of hoistway itself.
///
/// Examples:
///   hoistway man | man -l -
///   hoistway man ~/.local/share/man/man1
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The folder for the pages; created if it does not exist.
    folder: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let mut root = crate::command();
    root.build();
    let Some(folder) = &arguments.folder else {
        Output::open(None)?.write(&page(root)?)?;
        return Ok(Ending::Done);
    };
    let created = fs::create_dir_all(folder);
    created.with_context(|| {
        format!("man {}: cannot be created (expected a folder to write the pages to)", folder.display())
    })?;
    let pages = pages(root)?;
    for (name, text) in &pages {
        Output::open(Some(&folder.join(format!("{name}.1"))))?.write_to_file_only(text)?;
    }
    let names: Vec<String> = pages.iter().map(|(name, _)| format!("{name}.1\n")).collect();
    Output::open(None)?.write(names.concat())?;
    Ok(Ending::Done)
}

/// Name and text of each page.
fn pages(root: Command) -> Result<Vec<(String, String)>> {
    let mut pages = Vec::new();
    for command in root.get_subcommands().filter(|command| command.get_name() != "help") {
        let name = format!("{}-{}", root.get_name(), command.get_name());
        // The page's title uses the display name.
        pages.push((name.clone(), page(command.clone().display_name(name))?));
    }
    pages.insert(0, (root.get_name().to_owned(), page(root)?));
    Ok(pages)
}

fn page(command: Command) -> Result<String> {
    let mut text = Vec::new();
    Man::new(command).render(&mut text)?;
    Ok(String::from_utf8(text)?)
}
