//! `hoistway devices`: lists and describes the device models.

use anyhow::Result;
use clap::Args;
use hoistway_device::Preset;
use hoistway_experiment::preset;

use crate::input::CommandLine;
use hoistway_terminal::Ending;
use hoistway_terminal::output::Output;

/// List the device models, or describe one: what it models, which measurements it is fitted to, and its errors.
///
/// Examples:
///   hoistway devices
///   hoistway devices intel-s3520-1600gb
///   hoistway devices my-disk.toml
///   hoistway devices intel-s3520-1600gb --toml > my-disk.toml
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// A built-in preset, or a TOML file of your own.
    device: Option<String>,
    /// Print the TOML file of a built-in preset, to change its numbers for `hoistway compare --device`.
    #[arg(long, requires = "device")]
    toml: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let text = match &arguments.device {
        Some(name) if arguments.toml => Preset::builtin_toml(name)?,
        Some(name) => preset(&name.as_str().into(), &CommandLine::default())?.describe(),
        None => {
            let mut text = String::new();
            for name in Preset::builtin_names() {
                text += &format!("{name:30} {}\n", Preset::builtin(name)?.title);
            }
            let classes: Vec<String> = Preset::classes().map(|(class, preset)| format!("{class} ({preset})")).collect();
            text +=
                &format!("\nClasses: {}.\nPart of a name is enough if only one device matches.\n", classes.join(", "));
            text
        }
    };
    Output::open(None)?.write(&(text.trim_end().to_owned() + "\n"))?;
    Ok(Ending::Done)
}
