//! Ends runs early, and keeps the exception that was the reason.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use hoistway_experiment::Controls;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// A flag that ends a comparison early.
#[derive(Default)]
pub(crate) struct Stop {
    is_requested: AtomicBool,
    controls: OnceLock<Controls>,
    reason: Mutex<Option<PyErr>>,
    /// Python's ids of the threads that call schedulers written in Python.
    callers: Mutex<BTreeSet<u64>>,
}

impl Stop {
    /// Registers runs that this flag is to end. If it is set already, they end as soon as they begin.
    pub(crate) fn register(&self, controls: Controls) -> &Controls {
        let controls = self.controls.get_or_init(|| controls);
        if self.is_requested() {
            controls.cancel();
        }
        controls
    }

    pub(crate) fn controls(&self) -> Option<&Controls> {
        self.controls.get()
    }

    /// Ends the runs. The first reason is kept.
    pub(crate) fn end_runs(&self, reason: PyErr) {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        self.is_requested.store(true, Ordering::SeqCst);
        if let Some(controls) = self.controls.get() {
            controls.cancel();
        }
    }

    /// Registers the calling thread, which will call a scheduler written in Python.
    pub(crate) fn register_caller(&self, py: Python<'_>) -> PyResult<()> {
        let thread_id = py.import("threading")?.call_method0("get_ident")?.extract()?;
        self.callers.lock().unwrap_or_else(PoisonError::into_inner).insert(thread_id);
        Ok(())
    }

    /// Raises KeyboardInterrupt in schedulers written in Python, which may be in an endless loop.
    pub(crate) fn interrupt_callers(&self, py: Python<'_>) -> PyResult<()> {
        let callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if callers.is_empty() {
            return Ok(());
        }
        let ctypes = py.import("ctypes")?;
        let raise = ctypes.getattr("pythonapi")?.getattr("PyThreadState_SetAsyncExc")?;
        for thread_id in callers {
            let exception = ctypes.getattr("py_object")?.call1((py.get_type::<PyKeyboardInterrupt>(),))?;
            raise.call1((ctypes.getattr("c_ulong")?.call1((thread_id,))?, exception))?;
        }
        Ok(())
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::SeqCst)
    }

    pub(crate) fn take_reason(&self) -> Option<PyErr> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
