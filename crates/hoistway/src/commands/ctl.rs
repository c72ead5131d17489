//! `hoistway ctl`: shows and changes a running server.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use hoistway_serve::{Answer, Ask, State, ask};

use hoistway_terminal::Ending;
use hoistway_terminal::output::{Format, Output};

/// A scheduler is changed when all that is under way has ended, which can take a slow disk a while.
const PATIENCE: Duration = Duration::from_secs(60);

/// Shows and changes a running `hoistway serve --control PATH`: scheduler, tunables, weights, priorities, limits.
///
/// Examples:
///   hoistway ctl --control /tmp/ctl.sock show
///   hoistway ctl --control /tmp/ctl.sock set scheduler=bfq bfq.low_latency=0
///   hoistway ctl --control /tmp/ctl.sock export vm1 weight=400 max-iops=5000
///   hoistway ctl --control /tmp/ctl.sock export vm1 max-iops=max
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The control socket of the server.
    #[arg(long, value_name = "PATH")]
    control: PathBuf,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Shows the scheduler with its tunables, and each export with its settings and what it has done.
    Show {
        /// How it is written.
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Sets the scheduler, a tunable of it, or a file of the queue, one after the other.
    Set {
        /// scheduler=NAME, SCHEDULER.TUNABLE=VALUE, nr_requests=N.
        #[arg(required = true, value_name = "KEY=VALUE")]
        settings: Vec<String>,
    },
    /// Changes an export: weight=, ioprio=, max-iops=, max-bps=, riops=, wiops=, rbps=, wbps=. A limit is taken away by max.
    Export {
        /// Its name.
        name: String,
        /// All of them, or if one is wrong none.
        #[arg(required = true, value_name = "KEY=VALUE")]
        settings: Vec<String>,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let asked = |what: Ask| -> Result<Option<State>> {
        let answer = ask(&arguments.control, &what, PATIENCE);
        match answer.with_context(|| arguments.control.display().to_string())? {
            Answer::State(state) => Ok(Some(state)),
            Answer::Done => Ok(None),
            Answer::Refused(why) => bail!(why),
        }
    };
    match &arguments.what {
        What::Show { format } => {
            let Some(state) = asked(Ask::Show)? else { bail!("the server did not say how it stands") };
            let text = match format {
                Format::Table => table(&state),
                Format::Json => serde_json::to_string_pretty(&state)? + "\n",
            };
            Output::open(None)?.write(&text)?;
        }
        What::Set { settings } => {
            for setting in settings {
                let (key, value) = setting.split_once('=').with_context(|| format!("{setting}: expected KEY=VALUE"))?;
                asked(Ask::Set { key: key.to_owned(), value: value.to_owned() })?;
            }
        }
        What::Export { name, settings } => {
            asked(Ask::Export { name: name.clone(), settings: settings.clone() })?;
        }
    }
    Ok(Ending::Done)
}

fn table(state: &State) -> String {
    let mut text = format!("scheduler    {}\nnr_requests  {}\n", state.schedulers, state.nr_requests);
    let active = state.scheduler();
    for (name, value) in &state.tunables {
        text += &format!("{active}.{name} = {value}\n");
    }
    for export in &state.exports {
        let how = if export.read_only { " read-only" } else { "" };
        text += &format!(
            "\nexport {:?}  {} bytes{how}\n  weight={} ioprio={}\n  {}\n  connections {}  reads {} ({} bytes)  writes {} ({} bytes)  \
             others {}  errors {}\n",
            export.name,
            export.bytes,
            export.weight,
            export.ioprio,
            export.limits,
            export.connections,
            export.reads,
            export.read_bytes,
            export.writes,
            export.written_bytes,
            export.others,
            export.errors,
        );
    }
    text
}
