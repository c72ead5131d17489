//! Progress on a terminal during the runs, and cancellation by Ctrl-C.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hoistway_experiment::store::Work;
use indicatif::{ProgressBar, ProgressStyle};

/// Interval of updates.
const INTERVAL: Duration = Duration::from_millis(100);

/// Executes `runs`, shows the progress of `work`, and cancels it on Ctrl-C.
pub(super) fn run_with_progress<T>(
    work: &Work<'_>,
    run_count: u64,
    interrupted: &AtomicBool,
    runs: impl FnOnce() -> T,
) -> T {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let monitor = scope.spawn(|| {
            let bar = if std::io::stderr().is_terminal() { bar(run_count) } else { ProgressBar::hidden() };
            while !ended.load(Ordering::Relaxed) {
                if interrupted.load(Ordering::Relaxed) {
                    work.cancel();
                }
                bar.set_position(work.done());
                thread::park_timeout(INTERVAL);
            }
            bar.finish_and_clear();
        });
        let outcome = runs();
        ended.store(true, Ordering::Relaxed);
        monitor.thread().unpark();
        outcome
    })
}

fn bar(run_count: u64) -> ProgressBar {
    let template = "{bar:40} {human_pos} of {human_len} runs  {elapsed} so far, about {eta} to go";
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(run_count).with_style(style)
}
