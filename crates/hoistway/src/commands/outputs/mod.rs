//! The outputs of an experiment, in virtual or real time: opened before it starts, written after it ends.

mod fio_logs;
mod format;
mod options;

use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use hoistway_answer::{Analysis, Condition, ResultsDocument};
use hoistway_experiment::Ended;
use hoistway_measure::fio;
use hoistway_terminal::Ending;
use hoistway_terminal::output::Output;

use self::fio_logs::FioLogs;

pub(crate) use self::format::Format;
pub(crate) use self::options::{JudgingOptions, LimitOptions, OutputOptions};

/// The open outputs of an experiment.
pub(crate) struct Outputs<'a> {
    judging: &'a JudgingOptions,
    options: &'a OutputOptions,
    /// Whether outputs must not depend on the time and speed of the runs.
    is_stable: bool,
    results: Output,
    report: Option<Output>,
    logs: Option<FioLogs>,
    /// fio's document of the last run.
    fio: Mutex<Option<fio::Output>>,
}

impl<'a> Outputs<'a> {
    /// Checks that the options are consistent, and that all outputs can be written. `results` is the file of
    /// `--output`.
    pub(crate) fn open(
        judging: &'a JudgingOptions,
        options: &'a OutputOptions,
        results: Option<&Path>,
        runs: usize,
        is_stable: bool,
    ) -> Result<Outputs<'a>> {
        options.format.check(runs)?;
        judging.advice.as_ref().map_or(Ok(()), |_| options.format.check_advice())?;
        let results = Output::open(results)?;
        let report = options.report.as_deref().map(|file| Output::beside("--report", file, &results)).transpose()?;
        let logs = options.fio_logs.as_deref().map(FioLogs::open).transpose()?;
        Ok(Outputs { judging, options, is_stable, results, report, logs, fio: Mutex::new(None) })
    }

    /// The output for the results.
    pub(crate) fn results(&self) -> &Output {
        &self.results
    }

    /// Writes the logs of a run that has ended. Returns whether to continue.
    pub(crate) fn ended(&self, ended: &Ended<'_>) -> bool {
        let output = |bins| {
            let mut output = ended.fio_output(bins);
            output.set_timestamp_ms(if self.is_stable { 0 } else { now_ms() });
            output
        };
        if let Some(bins) = self.options.format.fio_bins() {
            *self.fio.lock().unwrap_or_else(PoisonError::into_inner) = Some(output(bins));
        }
        self.logs.as_ref().is_none_or(|logs| logs.write(ended, &output(true)))
    }

    /// Adds what the options request to the document, and writes everything.
    pub(crate) fn finish(self, mut document: ResultsDocument) -> Result<Ending> {
        if self.is_stable {
            document = document.without_wall_clock();
        } else {
            (document.arguments, document.command) = crate::command_line();
        }
        let analysis = Analysis::of(&document);
        check_focus(&analysis)?;
        let broken_limits = self.judging.limits.exceeded(&analysis)?;
        let conclusion = hoistway_render::text::conclusion(&analysis);
        let advice = |devices: &Vec<String>| hoistway_answer::advice::advice(&analysis, devices).context("--advice");
        let advice = self.judging.advice.as_ref().map_or(Ok(Vec::new()), advice)?;
        (document.conclusion, document.advice) = (conclusion, advice);
        let fio = self.fio.into_inner().unwrap_or_else(PoisonError::into_inner);
        let text = self.options.format.render(&document, fio.as_ref(), self.options.wide, &self.results)?;
        // Each output is written even if another one fails.
        let logs = self.logs.map_or(Ok(()), FioLogs::finish);
        let page = |report: Output| super::report::page(&document).and_then(|page| report.write_to_file_only(page));
        let report = self.report.map_or(Ok(()), page);
        self.results.write(&text).and(logs).and(report)?;
        if document.partial {
            return Ok(Ending::Interrupted);
        }
        print_limits(&broken_limits);
        // A failed job explains a broken limit, so it takes precedence.
        Ok(if has_failed(&document) {
            Ending::JobFailed
        } else if !broken_limits.is_empty() {
            Ending::LimitBroken
        } else {
            Ending::Done
        })
    }
}

/// Prints the exceeded limits.
pub(crate) fn print_limits(exceeded: &[String]) {
    for sentence in exceeded {
        // `eprintln!` would panic if standard error is closed.
        let _ = writeln!(std::io::stderr(), "hoistway: {sentence}");
    }
}

impl LimitOptions {
    /// Refuses a limit that no result could exceed; `impossible` finds it.
    pub(crate) fn check<'a>(
        &'a self,
        impossible: impl FnOnce(&'a [Condition]) -> Option<(&'a Condition, String)>,
    ) -> Result<()> {
        impossible(&self.fail_if).map_or(Ok(()), |(limit, problem)| bail!("--fail-if {limit}: {problem}"))
    }

    /// A sentence for each exceeded limit.
    pub(crate) fn exceeded(&self, analysis: &Analysis<'_>) -> Result<Vec<String>> {
        let mut sentences = Vec::new();
        for limit in &self.fail_if {
            let violations = analysis.violations(limit).with_context(|| format!("--fail-if {limit}"))?;
            if !violations.is_empty() {
                let shown = |(label, value): &(String, f64)| {
                    format!("{} under {label}", hoistway_render::text::figure_value(limit.figure.figure, *value))
                };
                let shown: Vec<String> = violations.iter().map(shown).collect();
                sentences.push(format!("--fail-if {limit}: {}", shown.join(", ")));
            }
        }
        Ok(sentences)
    }
}

/// Checks that the requested focus exists in the results.
fn check_focus(analysis: &Analysis<'_>) -> Result<()> {
    let document = analysis.document;
    for focus in document.focuses.iter().filter(|_| !document.partial) {
        analysis.find(&focus.figure).map(|_| ()).with_context(|| format!("--focus {}", focus.figure))?;
    }
    Ok(())
}

/// Whether a process ended with an error in any run.
fn has_failed(document: &ResultsDocument) -> bool {
    document.runs.iter().flat_map(|run| &run.jobs).any(|job| !job.failed.is_empty())
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
