//! Progress of runs in real time, on a terminal only.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hoistway_engine::job::LoadRun;
use indicatif::{HumanCount, ProgressBar};

/// Runs that end before this show no progress.
const SHOW_AFTER: Duration = Duration::from_secs(2);
/// Interval of updates.
const INTERVAL: Duration = Duration::from_millis(200);

/// Shows the progress of the current run.
#[derive(Default)]
pub(super) struct Progress(Mutex<Option<RunProgress>>);

impl Progress {
    /// Shows the progress of this run on standard error, if that is a terminal, until the next run begins or this is dropped.
    pub(super) fn show(&self, load_run: &Arc<LoadRun>, label: &str) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Remove the previous bar before the next one is drawn.
        *current = None;
        *current = std::io::stderr().is_terminal().then(|| RunProgress::show(load_run, label));
    }
}

/// Shows the progress of a run until it is dropped.
struct RunProgress {
    is_finished: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RunProgress {
    fn show(load_run: &Arc<LoadRun>, label: &str) -> RunProgress {
        let is_finished = Arc::new(AtomicBool::new(false));
        let (load_run, finished, label) = (Arc::clone(load_run), Arc::clone(&is_finished), label.to_owned());
        let thread = thread::spawn(move || {
            let begin = Instant::now();
            while begin.elapsed() < SHOW_AFTER && !finished.load(Relaxed) {
                thread::park_timeout(SHOW_AFTER.saturating_sub(begin.elapsed()));
            }
            let bar = ProgressBar::new_spinner();
            while !finished.load(Relaxed) {
                let (seconds, ios) = (begin.elapsed().as_secs_f64(), load_run.ios());
                let rate = HumanCount((ios as f64 / seconds) as u64);
                bar.set_message(format!("{label}: {seconds:.0} s, {} I/Os, {rate} per second", HumanCount(ios)));
                bar.tick();
                thread::park_timeout(INTERVAL);
            }
            bar.finish_and_clear();
        });
        RunProgress { is_finished, thread: Some(thread) }
    }
}

impl Drop for RunProgress {
    fn drop(&mut self) {
        self.is_finished.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
