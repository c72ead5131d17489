//! `hoistway sweep`: carries out the runs of a plan, or of one shard of it, and stores them in a folder.

mod plan_file;
mod progress;

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use hoistway_experiment::store::{Folder, Index, Work, missing};
use hoistway_experiment::sweep::{Shard, Sweep};

use hoistway_terminal::Ending;
use hoistway_terminal::output::Output;
use hoistway_terminal::printable;

/// Run a plan, the product of loads, devices, kernels, hosts, schedulers, settings and seeds, or one shard of it.
///
/// Finished runs are not repeated: after a kill, or with more seeds in the plan, the same command continues. Shards may run on
/// any machine that shares the folder; `hoistway merge` combines them into one table. docs/sweeps.md describes plans.
///
/// Examples:
///   hoistway sweep plan.toml --dry-run
///   hoistway sweep plan.toml -o runs
///   hoistway sweep plan.toml --shard 3/64 -o runs
///   hoistway merge runs -o runs.csv
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The plan, in TOML. Paths in it are relative to its folder.
    #[arg(value_name = "PLAN.toml")]
    plan: PathBuf,
    /// Run only the Kth of N shards of equal size. Every run is in exactly one.
    #[arg(long, value_name = "K/N", default_value_t = Shard::WHOLE, hide_default_value = true)]
    shard: Shard,
    /// The folder for the runs; created if it does not exist.
    #[arg(short, long, value_name = "DIR", required_unless_present = "dry_run")]
    output: Option<PathBuf>,
    /// Refuse plans with more runs than this.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    limit: u64,
    /// Check the plan and print the number of runs and of missing runs; run nothing.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let (sweep, notices) = plan_file::read(&arguments.plan, arguments.limit)?;
    let output = Output::open(None)?;
    let shard = arguments.shard;
    if arguments.dry_run {
        // A folder that does not exist yet contains no runs.
        let existing_folder = arguments.output.as_deref().filter(|folder| folder.exists());
        let index = existing_folder.map(|folder| Index::of(&Folder::open(folder)?)).transpose()?.unwrap_or_default();
        let (all, missing) = (shard.points(sweep.points()).count(), missing(&sweep, shard, &index)?.len());
        let shard_text = if shard == Shard::WHOLE { String::new() } else { format!(" Shard {shard} has {all}.") };
        print_notices(&notices);
        output.write(format!(
            "{} runs.{shard_text} {} are finished, {missing} are missing.\n",
            sweep.points(),
            all - missing
        ))?;
        return Ok(Ending::Done);
    }
    let folder = Folder::create(arguments.output.as_deref().context("-o: expected a folder")?)?;
    folder.add_sweep(&sweep)?;
    let index = Index::of(&folder)?;
    print_notices(&notices);
    run_missing(&sweep, &folder, shard, index, output)
}

/// Prints notices about the plan; not called if there is an error, which is more important.
fn print_notices(notices: &[String]) {
    notices.iter().for_each(|notice| print_warning(&printable::text(notice)));
}

/// Carries out the missing runs.
fn run_missing(sweep: &Sweep, folder: &Folder, shard: Shard, index: Index, output: Output) -> Result<Ending> {
    let begin = Instant::now();
    for file in index.other_versions() {
        print_warning(&format!("{}: runs of another version of hoistway; ignored", file.display()));
    }
    let missing = missing(sweep, shard, &index)?;
    drop(index);
    let (all, missing_count) = (shard.points(sweep.points()).count(), missing.len());
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    hoistway_terminal::interrupt::on_interrupt(move || flag.store(true, Ordering::Relaxed))?;
    let work = Work::new(sweep, folder, shard, missing);
    progress::run_with_progress(&work, missing_count as u64, &interrupted, || work.carry_out())?;
    let (done, seconds) = (work.done(), begin.elapsed().as_secs_f64());
    let shard_text = if shard == Shard::WHOLE { String::new() } else { format!(" of shard {shard}") };
    let mut text =
        format!("{all} runs{shard_text}: {} were finished before, {done} ran in {seconds:.1} s", all - missing_count);
    text += &match missing_count as u64 - done {
        0 => format!(". `hoistway merge {} -o FILE` combines all runs into a table.\n", folder.path().display()),
        remaining => format!(", {remaining} are missing. Run the same command again to continue.\n"),
    };
    output.write(printable::text(&text))?;
    if interrupted.load(Ordering::Relaxed) && done < missing_count as u64 {
        return Ok(Ending::Interrupted);
    }
    if work.failed() > 0 {
        print_warning(&format!("hoistway: a process ended with an error in {} runs", work.failed()));
        return Ok(Ending::JobFailed);
    }
    Ok(Ending::Done)
}

/// `eprintln!` would panic if standard error is closed.
pub(super) fn print_warning(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
