//! Progress of runs, on a terminal only.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hoistway_lab::Controls;
use indicatif::{ProgressBar, ProgressStyle};

/// What is over sooner needs no progress.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(200);

/// Shows how far the runs of `controls` are until it is dropped.
pub(crate) struct Progress {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Progress {
    /// Begins to show progress on standard error, if that is a terminal. `expected_ns` is the virtual time of all
    /// runs together, if it is known.
    pub(crate) fn show(controls: &Arc<Controls>, expected_ns: Option<u64>) -> Progress {
        let stop = Arc::new(AtomicBool::new(false));
        if !std::io::stderr().is_terminal() {
            return Progress { stop, thread: None };
        }
        let (controls, stopped) = (Arc::clone(controls), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let begin = Instant::now();
            while begin.elapsed() < PATIENCE {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                thread::park_timeout(PATIENCE.saturating_sub(begin.elapsed()));
            }
            let bar = match expected_ns {
                Some(ns) => {
                    ProgressBar::new(ns / 1_000_000).with_style(style("{bar:40} {percent:>3} %  {msg}  {eta} left"))
                }
                None => ProgressBar::new_spinner().with_style(style("{spinner} {msg}")),
            };
            while !stopped.load(Ordering::Relaxed) {
                let reached = controls.reached_ns() / 1_000_000;
                bar.set_position(reached);
                bar.set_message(format!("{:.1} s of virtual time", reached as f64 / 1e3));
                thread::park_timeout(INTERVAL);
            }
            bar.finish_and_clear();
        });
        Progress { stop, thread: Some(thread) }
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
