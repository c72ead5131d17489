//! Progress of runs: a bar on a terminal, otherwise lines.

use std::io::{IsTerminal, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hoistway_experiment::Controls;
use indicatif::{ProgressBar, ProgressStyle};

/// Runs that end sooner show no progress.
const SHOW_PROGRESS_AFTER: Duration = Duration::from_millis(300);
/// Interval of updates.
const INTERVAL: Duration = Duration::from_millis(100);

/// Interval of progress lines without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Shown if the virtual time of all runs is known. It estimates no end, because the duration of a virtual second depends on its
/// I/Os.
const BAR: &str = "{bar:40} {percent:>3} % of the virtual time  {msg}  {elapsed} so far";
/// Shown if the virtual time of all runs is unknown.
const SPINNER: &str = "{spinner} {msg}";

/// Printed once if only the jobs' amounts of I/O end the load.
pub(crate) const ENDS_BY_AMOUNT: &str = "jobs without a runtime run until they have done all their I/O: --runtime 30s measures a part of it, and \
                    Ctrl-C ends with what has been measured so far";

/// Lines to print above the progress bar.
#[derive(Default)]
pub(crate) struct Lines(Mutex<Vec<String>>);

impl Lines {
    /// Adds a line.
    pub(crate) fn push(&self, line: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Shows the progress of the runs of `controls` until it is dropped.
pub(crate) struct Progress {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Progress {
    /// Starts to show progress on standard error. `expected_ns` is the virtual time of all runs together, if known; `lines` are printed
    /// above the bar, or directly if there is no terminal, and so is `hint` if the runs take longer than a progress line's interval.
    pub(crate) fn show(
        controls: &Arc<Controls>,
        lines: &Arc<Lines>,
        expected_ns: Option<u64>,
        hint: Option<&'static str>,
    ) -> Progress {
        let stop = Arc::new(AtomicBool::new(false));
        let is_terminal = std::io::stderr().is_terminal();
        let (controls, lines, stopped) = (Arc::clone(controls), Arc::clone(lines), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let begin = Instant::now();
            while begin.elapsed() < SHOW_PROGRESS_AFTER {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                thread::park_timeout(SHOW_PROGRESS_AFTER.saturating_sub(begin.elapsed()));
            }
            let mut hint = hint;
            let lines = || {
                let due = hint.take_if(|_| begin.elapsed() >= LINE_INTERVAL);
                lines.take().into_iter().chain(due.map(str::to_owned)).collect()
            };
            if is_terminal {
                show_bar(&controls, lines, expected_ns, &stopped)
            } else {
                print_lines(&controls, lines, begin, &stopped)
            }
        });
        Progress { stop, thread: Some(thread) }
    }
}

fn show_bar(
    controls: &Controls,
    mut lines: impl FnMut() -> Vec<String>,
    expected_ns: Option<u64>,
    stopped: &AtomicBool,
) {
    let bar = match expected_ns {
        Some(ns) => ProgressBar::new(ns / 1_000_000).with_style(style(BAR)),
        None => ProgressBar::new_spinner().with_style(style(SPINNER)),
    };
    while !stopped.load(Ordering::Relaxed) {
        let reached = controls.reached_ns() / 1_000_000;
        lines().into_iter().for_each(|line| bar.println(line));
        bar.set_position(reached);
        bar.set_message(format!("{:.1} s of virtual time", reached as f64 / 1e3));
        thread::park_timeout(INTERVAL);
    }
    bar.finish_and_clear();
}

/// Each line begins with the time since the start, which distinguishes it from results and errors.
fn print_lines(controls: &Controls, mut lines: impl FnMut() -> Vec<String>, begin: Instant, stopped: &AtomicBool) {
    let mut next = LINE_INTERVAL;
    while !stopped.load(Ordering::Relaxed) {
        let elapsed = begin.elapsed();
        let mut all = lines();
        if elapsed >= next {
            next += LINE_INTERVAL;
            all.push(format!("{:.1} s of virtual time", controls.reached_ns() as f64 / 1e9));
        }
        for line in all {
            // An error of the progress output must not affect the results.
            let _ = writeln!(std::io::stderr(), "{:.1} s: {line}", elapsed.as_secs_f64());
        }
        thread::park_timeout(INTERVAL);
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_shows_completed_work_and_estimates_no_end() {
        for template in [BAR, SPINNER] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
            assert!(!["{eta", "{duration", "left"].iter().any(|word| template.contains(word)), "{template}");
        }
    }

    #[test]
    fn lines_come_once_and_in_their_order() {
        let lines = Lines::default();
        ["a", "b"].into_iter().for_each(|line| lines.push(line.to_owned()));
        assert_eq!(lines.take(), ["a", "b"]);
        assert!(lines.take().is_empty());
    }
}
