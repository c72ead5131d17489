//! Runs work on a separate thread, while the calling thread handles Python's signals.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use pyo3::prelude::*;

/// Interval of checks for Python's signals.
const INTERVAL: Duration = Duration::from_millis(50);

/// Does the work. Meanwhile, at intervals, Python handles its signals and `poll` is called. The first error of either is passed
/// to `stop`, which must end the work soon; after it only signals are checked.
pub(crate) fn run_interruptibly<T: Send>(
    py: Python<'_>,
    mut poll: impl FnMut(Python<'_>) -> PyResult<()>,
    mut stop: impl FnMut(Python<'_>, PyErr),
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let is_done = AtomicBool::new(false);
    let caller = thread::current();
    thread::scope(|scope| {
        let runner = thread::Builder::new().name("hoistway".to_owned()).spawn_scoped(scope, || {
            let _done = DoneOnDrop { is_done: &is_done, caller };
            work()
        });
        let runner = runner.map_err(PyErr::from)?;
        let mut is_stopped = false;
        while !is_done.load(Ordering::SeqCst) {
            py.detach(|| thread::park_timeout(INTERVAL));
            if let Err(error) = py.check_signals().and_then(|()| if is_stopped { Ok(()) } else { poll(py) }) {
                is_stopped = true;
                stop(py, error);
            }
        }
        // A panic continues here, and becomes an exception.
        Ok(py.detach(|| runner.join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Marks the work as over when dropped, also during a panic.
struct DoneOnDrop<'a> {
    is_done: &'a AtomicBool,
    caller: Thread,
}

impl Drop for DoneOnDrop<'_> {
    fn drop(&mut self) {
        self.is_done.store(true, Ordering::SeqCst);
        self.caller.unpark();
    }
}
