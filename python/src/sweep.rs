//! Sweeps: plans, tasks that make some of the runs on workers, and data sets.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use hoistway_experiment::CallerEnvironment;
use hoistway_experiment::store::{Folder, Index, Merged, RunsFile, Work, merge, merge_csv, missing};
use hoistway_experiment::sweep::{Shard, Space, Sweep as Planned, SweepError, VERSION};
use hoistway_legacy::all_schedulers;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::environment::Caller;
use crate::errors;
use crate::interruptible::run_interruptibly;
use crate::table::{self, Table};
use crate::tables::Rows;

/// A checked sweep.
#[pyclass(module = "hoistway._hoistway", frozen)]
pub(crate) struct Sweep(Planned);

/// The environment of a plan, with file names relative to its folder.
struct PlanEnvironment {
    caller: Caller,
    folder: PathBuf,
}

impl CallerEnvironment for PlanEnvironment {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.caller.read(&self.folder.join(path))
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.caller.variable(name)
    }
}

/// Checks a space given as JSON; its file names are relative to `folder`. Also returns notices.
#[pyfunction]
pub(crate) fn plan(py: Python<'_>, space: &str, folder: PathBuf, limit: u64) -> PyResult<(Sweep, Vec<String>)> {
    let space: Space =
        serde_json::from_str(space).map_err(|error| errors::argument(py, "space", &format!("space: {error}")))?;
    let environment = PlanEnvironment { caller: Caller { schedulers: all_schedulers() }, folder };
    let planned = py.detach(|| Planned::of(space, &environment, limit));
    planned.map(|(sweep, notices)| (Sweep(sweep), notices)).map_err(|error| sweep_error(py, error))
}

fn sweep_error(py: Python<'_>, error: SweepError) -> PyErr {
    match error {
        SweepError::Space(error) => {
            let position = error.place.as_ref();
            let option = position.map_or(Some("space"), |position| position.option.as_deref());
            let file = position.map(|position| position.file.as_str());
            errors::exception(
                py,
                "Error",
                (error.message.as_str(), file, position.and_then(|position| position.line), option),
            )
        }
        SweepError::TooMany { runs, limit } if runs < u64::MAX => {
            let expected = format!("expected a smaller space, or limit={runs}");
            errors::argument(py, "limit", &format!("the space has {runs} runs, more than {limit} ({expected})"))
        }
        error @ SweepError::TooMany { .. } => errors::argument(py, "limit", &error.to_string()),
        error => errors::argument(py, "space", &error.to_string()),
    }
}

#[pymethods]
impl Sweep {
    /// The number of runs.
    fn __len__(&self) -> usize {
        usize::try_from(self.0.points()).unwrap_or(usize::MAX)
    }

    /// The information that a worker needs about it.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        self.0.to_json().map_err(|error| sweep_error(py, error))
    }

    /// The key of the sweep.
    fn key(&self, py: Python<'_>) -> PyResult<String> {
        self.0.key().map(|key| key.to_string()).map_err(|error| sweep_error(py, error))
    }
}

/// Makes some runs of a sweep on a worker. Returns the content of a file with them, and the time in seconds that they took.
#[pyfunction]
pub(crate) fn make<'py>(py: Python<'py>, sweep: &str, points: Vec<u64>) -> PyResult<(Bound<'py, PyBytes>, f64)> {
    let begin = Instant::now();
    let made = py.detach(|| {
        let sweep = Planned::from_json(sweep)?;
        let points = points.into_iter().filter(|point| *point < sweep.points());
        let mut file = RunsFile::new(Shard::WHOLE);
        sweep.run(points, &Planned::controls(), |_, key, record| file.push(key, record))?;
        Ok(file.bytes())
    });
    let bytes = made.map_err(|error| sweep_error(py, error))?;
    Ok((PyBytes::new(py, &bytes), begin.elapsed().as_secs_f64()))
}

/// A folder with the runs of a sweep.
#[pyclass(module = "hoistway._hoistway", frozen)]
pub(crate) struct DataSet {
    folder: Folder,
    sweep: Py<Sweep>,
}

fn dataset_error(py: Python<'_>, error: hoistway_experiment::store::DatasetError) -> PyErr {
    match error {
        hoistway_experiment::store::DatasetError::Run(error) => sweep_error(py, error),
        error => errors::exception(py, "DataSetError", (error.to_string(),)),
    }
}

#[pymethods]
impl DataSet {
    /// Opens a folder, which is created if it does not exist.
    #[new]
    fn new(py: Python<'_>, folder: PathBuf, sweep: Py<Sweep>) -> PyResult<DataSet> {
        let folder = Folder::create(&folder).map_err(|error| dataset_error(py, error))?;
        folder.add_sweep(&sweep.get().0).map_err(|error| dataset_error(py, error))?;
        Ok(DataSet { folder, sweep })
    }

    /// The points whose runs are missing, and the files of other versions of Hoistway, which are ignored.
    fn missing(&self, py: Python<'_>) -> PyResult<(Vec<u64>, Vec<PathBuf>)> {
        let sweep = &self.sweep.get().0;
        let found = py.detach(|| {
            let index = Index::of(&self.folder)?;
            Ok((missing(sweep, Shard::WHOLE, &index)?, index.other_versions().to_vec()))
        });
        found.map_err(|error| dataset_error(py, error))
    }

    /// Adds runs made by a worker; returns their number.
    fn add(&self, py: Python<'_>, made: &[u8]) -> PyResult<usize> {
        py.detach(|| self.folder.add_made(made)).map_err(|error| dataset_error(py, error))
    }

    /// Makes the runs of these points on threads of this process; `tell` is called at intervals with the number of
    /// finished runs.
    fn make(&self, py: Python<'_>, points: Vec<u64>, threads: Option<usize>, tell: Option<Py<PyAny>>) -> PyResult<()> {
        let threads = threads.unwrap_or(0);
        let pool = rayon_core::ThreadPoolBuilder::new().num_threads(threads).build().map_err(table::internal_error)?;
        let sweep = &self.sweep.get().0;
        let work = pool.install(|| Work::new(sweep, &self.folder, Shard::WHOLE, points));
        let mut interrupted = None;
        let poll = |py: Python<'_>| tell.as_ref().map_or(Ok(()), |tell| tell.call1(py, (work.done(),)).map(drop));
        let stop = |_: Python<'_>, error| {
            interrupted.get_or_insert(error);
            work.cancel();
        };
        let outcome = run_interruptibly(py, poll, stop, || pool.install(|| work.carry_out()))?;
        match interrupted {
            Some(error) => Err(error),
            None => outcome.map_err(|error| dataset_error(py, error)),
        }
    }

    /// Metadata of files: the version that made the table.
    fn metadata(&self, py: Python<'_>) -> PyResult<[(&'static str, String); 3]> {
        let key = self.sweep.get().0.key().map_err(|error| sweep_error(py, error))?;
        Ok([
            ("hoistway.schema", "hoistway-sweep-table/1".to_owned()),
            ("hoistway.version", VERSION.to_owned()),
            ("hoistway.sweep", key.to_string()),
        ])
    }

    fn figures(&self, py: Python<'_>) -> PyResult<Table> {
        let sweep = &self.sweep.get().0;
        let mut batches = Vec::new();
        let merged =
            py.detach(|| merge(&self.folder, sweep, |columns| Ok(Box::new(Rows::new(&columns, &mut batches)))));
        merged.map_err(|error| dataset_error(py, error))?;
        let first = batches.remove(0);
        Ok(Table::new(first, batches))
    }

    /// Writes all runs as a table of comma-separated values, atomically. Returns the number of runs and of figures, and the number of
    /// runs in which a process ended with an error.
    fn save(&self, py: Python<'_>, file: PathBuf) -> PyResult<(u64, u64, u64)> {
        let sweep = &self.sweep.get().0;
        let merged =
            py.detach(|| hoistway_experiment::store::complete_file(&file, |to| merge_csv(&self.folder, sweep, to)));
        let Merged { runs, rows, failed: failed_runs } = merged.map_err(|error| dataset_error(py, error))?;
        Ok((runs, rows, failed_runs))
    }
}
