//! Progress of the runs on the kernel: a bar on a terminal, otherwise a line after the first run.

use std::io::{IsTerminal, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use hoistway_experiment::{Ended, PlannedRun, RunObserver};
use hoistway_terminal::printable;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

/// Shows the progress until it is dropped.
pub(super) struct Progress {
    bar: ProgressBar,
    begin: Instant,
    runs: usize,
    has_first_ended: AtomicBool,
}

impl Progress {
    pub(super) fn of(runs: usize) -> Progress {
        let bar = if std::io::stderr().is_terminal() {
            let style = ProgressStyle::with_template(
                "{bar:40} {pos} of {len} runs  {elapsed} so far, about {eta} to go  {msg}",
            );
            ProgressBar::new(runs as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        } else {
            ProgressBar::hidden()
        };
        Progress { bar, begin: Instant::now(), runs, has_first_ended: AtomicBool::new(false) }
    }

    /// A run begins.
    pub(super) fn begins(&self, row: &PlannedRun) {
        self.bar.set_message(row.variant.label.clone());
    }
}

impl RunObserver for Progress {
    fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    fn ended(&self, _: &Ended<'_>) {
        self.bar.inc(1);
        if !self.has_first_ended.swap(true, Ordering::Relaxed) && self.bar.is_hidden() {
            let (runs, taken) = (self.runs, self.begin.elapsed());
            let all = HumanDuration(taken * runs as u32);
            say(&format!("the first of {runs} runs took {:.1} s; all will take about {all}", taken.as_secs_f64()));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Writes a line to standard error, which may be closed.
pub(super) fn say(sentence: &str) {
    let _ = writeln!(std::io::stderr(), "hoistway: {}", printable::text(sentence));
}
