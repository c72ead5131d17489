//! `hoistway hosts`: lists the host profiles.

use anyhow::Result;
use clap::Args;
use hoistway_sim::Host;

use hoistway_render::text::aligned;
use hoistway_terminal::Ending;
use hoistway_terminal::output::Output;

/// List the host profiles, or print the file of one, to change its numbers for `hoistway compare --host`.
///
/// Examples:
///   hoistway hosts
///   hoistway hosts server --toml > my-host.toml
///   hoistway compare my-load.fio --host my-host.toml
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The name of a built-in profile.
    host: Option<String>,
    /// Print its TOML file.
    #[arg(long, requires = "host")]
    toml: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let text = match &arguments.host {
        Some(name) if arguments.toml => Host::builtin_toml(name)?.to_owned(),
        Some(name) => {
            let host = Host::builtin(name)?;
            format!(
                "{}: {}\n`hoistway hosts {name} --toml` prints its numbers, each with its source.\n",
                host.name, host.description
            )
        }
        None => {
            let hosts = Host::builtin_names().map(|name| Ok([name.to_owned(), Host::builtin(name)?.description]));
            aligned(&hosts.collect::<Result<Vec<_>>>()?)
        }
    };
    Output::open(None)?.write(&text)?;
    Ok(Ending::Done)
}
