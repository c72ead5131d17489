//! Progress of a run, on a terminal only.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hoistway_engine::job::LoadRun;
use indicatif::{HumanCount, ProgressBar};

/// What is over sooner needs no progress.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(200);

/// Shows how far a run is until it is dropped.
pub(super) struct Progress {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Begins to show progress on standard error, if that is a terminal.
    pub(super) fn show(load_run: &Arc<LoadRun>, scheduler: &str) -> Progress {
        let is_over = Arc::new(AtomicBool::new(false));
        if !std::io::stderr().is_terminal() {
            return Progress { is_over, thread: None };
        }
        let (load_run, over, scheduler) = (Arc::clone(load_run), Arc::clone(&is_over), scheduler.to_owned());
        let thread = thread::spawn(move || {
            let begin = Instant::now();
            while begin.elapsed() < PATIENCE && !over.load(Relaxed) {
                thread::park_timeout(PATIENCE.saturating_sub(begin.elapsed()));
            }
            let bar = ProgressBar::new_spinner();
            while !over.load(Relaxed) {
                let (seconds, ios) = (begin.elapsed().as_secs_f64(), load_run.ios());
                let rate = HumanCount((ios as f64 / seconds) as u64);
                bar.set_message(format!("{scheduler}: {seconds:.0} s, {} I/Os, {rate} a second", HumanCount(ios)));
                bar.tick();
                thread::park_timeout(INTERVAL);
            }
            bar.finish_and_clear();
        });
        Progress { is_over, thread: Some(thread) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
