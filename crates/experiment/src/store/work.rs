//! Carries out the missing runs of a sweep, on all cores.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::Controls;
use crate::sweep::{Shard, Sweep};

use crate::store::error::DatasetError;
use crate::store::folder::Folder;
use crate::store::index::Index;
use crate::store::runs_file::RunsFile;

/// The points of a shard whose runs are missing, in order.
///
/// # Errors
/// If the sweep has no keys.
pub fn missing(sweep: &Sweep, shard: Shard, index: &Index) -> Result<Vec<u64>, DatasetError> {
    let mut missing = Vec::new();
    for point in sweep.keys(shard.points(sweep.points())) {
        let (point, key) = point?;
        if !index.holds(key) {
            missing.push(point);
        }
    }
    Ok(missing)
}

/// Target duration of the runs in one file: a killed process loses at most this much work. Results do not depend on it.
const FILE_TIME: Duration = Duration::from_secs(1);
/// Maximum runs in a file, however short: they stay in memory until the file is written.
const FILE_RUNS_MAX: usize = 4096;

/// The runs to make.
#[derive(Debug)]
pub struct Work<'a> {
    sweep: &'a Sweep,
    folder: &'a Folder,
    shard: Shard,
    points: Vec<u64>,
    /// Index of the next point.
    next: Mutex<usize>,
    stopped: AtomicBool,
    done: AtomicU64,
    failed: AtomicU64,
    /// Controls of each thread's runs.
    controls: Vec<Controls>,
}

impl<'a> Work<'a> {
    /// Work for these points, which belong to a shard.
    #[must_use]
    pub fn new(sweep: &'a Sweep, folder: &'a Folder, shard: Shard, points: Vec<u64>) -> Work<'a> {
        let controls = (0..rayon_core::current_num_threads()).map(|_| Sweep::controls()).collect();
        Work {
            sweep,
            folder,
            shard,
            points,
            next: Mutex::new(0),
            stopped: AtomicBool::new(false),
            done: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            controls,
        }
    }

    /// Stops soon; runs that have ended by then are written.
    pub fn cancel(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.controls.iter().for_each(Controls::cancel);
    }

    /// Number of runs that have ended.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Number of ended runs in which a process ended with an error.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Makes the runs and writes them to files of about a second's work each. Every written run is complete.
    ///
    /// # Errors
    /// The first run that cannot begin, or file that cannot be written.
    pub fn carry_out(&self) -> Result<(), DatasetError> {
        let errors = rayon_core::broadcast(|thread| {
            let outcome = self.run_thread(&self.controls[thread.index()]);
            if outcome.is_err() {
                self.cancel();
            }
            outcome
        });
        errors.into_iter().collect()
    }

    fn run_thread(&self, controls: &Controls) -> Result<(), DatasetError> {
        let mut runs = 1;
        while let Some(points) = self.take(runs) {
            let mut file = RunsFile::new(self.shard);
            let begin = Instant::now();
            let outcome = self.sweep.run(points.iter().copied(), controls, |_, key, record| {
                file.push(key, record);
                self.done.fetch_add(1, Ordering::Relaxed);
                self.failed.fetch_add(u64::from(record.failed_processes > 0), Ordering::Relaxed);
            });
            if !file.is_empty() {
                self.folder.add_runs(&file)?;
            }
            outcome?;
            let target_runs = FILE_TIME.as_secs_f64() / begin.elapsed().as_secs_f64().max(1e-6) * points.len() as f64;
            // At most double the number: the first runs may have been short.
            runs = (target_runs as usize).clamp(1, FILE_RUNS_MAX.min(2 * runs));
        }
        Ok(())
    }

    /// Takes the next points; fewer near the end, so that all threads finish at about the same time.
    fn take(&self, runs: usize) -> Option<&[u64]> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let remaining = &self.points[*next..];
        let share = remaining.len().div_ceil(2 * self.controls.len());
        let taken = &remaining[..runs.min(share)];
        *next += taken.len();
        (!taken.is_empty() && !self.stopped.load(Ordering::Relaxed)).then_some(taken)
    }
}
