//! `hoistway merge`: writes all runs of a sweep as one table.

use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use hoistway_experiment::store::{DatasetError, Folder, Merged, merge_csv};
use hoistway_experiment::sweep::{Key, Sweep};

use super::sweep::print_warning;
use hoistway_terminal::Ending;
use hoistway_terminal::output::{Output, Stream, cannot_be_written};

/// Write all runs of a sweep as one table: a row for each figure of each job and operation in each run, in the order of the plan.
/// Fails and names the missing runs if the sweep is incomplete.
///
/// Examples:
///   hoistway merge runs -o runs.csv
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The output folder of `hoistway sweep`.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The table, as comma-separated values.
    #[arg(short, long, value_name = "FILE.csv")]
    output: PathBuf,
    /// The sweep, by the name of its file in DIR/sweeps, if there are several.
    #[arg(long, value_name = "KEY")]
    sweep: Option<Key>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let name = arguments.output.display();
    if arguments.output.extension().is_none_or(|extension| extension != "csv") {
        bail!("-o {name}: expected a name that ends in .csv (the Python package writes .parquet)");
    }
    let folder = Folder::open(&arguments.folder)?;
    let sweep = folder.sweep(arguments.sweep)?;
    let mut stream = Output::open(Some(&arguments.output))?.stream()?;
    let merged = csv(&folder, &sweep, &mut stream).map_err(|error| match error.downcast_ref() {
        Some(DatasetError::Table(_)) => error.context(cannot_be_written(&arguments.output)),
        _ => error,
    })?;
    let bytes = stream.finish()?;
    let Merged { runs, rows, failed } = merged;
    Output::open(None)?.write(format!("{name}: {rows} figures of {runs} runs, {bytes} bytes.\n"))?;
    if failed > 0 {
        print_warning(&format!("hoistway: a process ended with an error in {failed} runs"));
        return Ok(Ending::JobFailed);
    }
    Ok(Ending::Done)
}

fn csv(folder: &Folder, sweep: &Sweep, writer: &mut Stream) -> Result<Merged> {
    let mut writer = BufWriter::new(writer);
    let merged = merge_csv(folder, sweep, &mut writer)?;
    writer.flush().context("the table cannot be written")?;
    Ok(merged)
}
