//! A request as seen by a scheduler written in Python.

use hoistway_blk::bio::{Direction, PriorityClass};
use hoistway_blk::ground::{Now, SECTOR_BYTES};
use hoistway_blk::request::Request as BlkRequest;
use pyo3::prelude::*;

/// A request, as a scheduler sees it. The scheduler may add attributes of its own.
#[pyclass(module = "hoistway", dict, weakref)]
#[derive(Debug)]
pub(crate) struct Request {
    /// Number of the request in this scheduler, from 1.
    #[pyo3(get)]
    pub(crate) id: u64,
    /// Its start, in sectors of 512 bytes.
    #[pyo3(get)]
    sector: u64,
    /// Its length in bytes; 0 for a flush.
    #[pyo3(get)]
    bytes: u64,
    /// `read` or `write`; everything except reads counts as a write, as in the kernel.
    #[pyo3(get)]
    direction: &'static str,
    /// Whether a task waits for it: true of reads, and of writes with the sync flag.
    #[pyo3(get)]
    is_sync: bool,
    /// `none` (not set), `realtime`, `best-effort` or `idle`.
    #[pyo3(get)]
    priority_class: &'static str,
    /// 0 (best) to 7.
    #[pyo3(get)]
    priority_level: u8,
    /// Number of the submitting process, from 0, in the order of the job file.
    #[pyo3(get)]
    process: u32,
    /// The virtual time in ns at which it was inserted.
    #[pyo3(get)]
    time_ns: u64,
}

impl Request {
    pub(crate) fn new(id: u64, request: &BlkRequest, now: Now) -> Request {
        Request {
            id,
            sector: request.sector.0,
            bytes: u64::from(request.sectors) * SECTOR_BYTES,
            direction: match request.direction() {
                Direction::Read => "read",
                Direction::Write => "write",
            },
            is_sync: request.is_sync(),
            priority_class: match request.ioprio.class() {
                PriorityClass::None => "none",
                PriorityClass::RealTime => "realtime",
                PriorityClass::BestEffort => "best-effort",
                PriorityClass::Idle => "idle",
            },
            priority_level: request.ioprio.level(),
            // I/O contexts of processes are counted from 1.
            process: request.io_context.0.saturating_sub(1),
            time_ns: now.at.0,
        }
    }

    /// Another I/O was merged into it.
    pub(crate) fn grow(&mut self, request: &BlkRequest) {
        self.sector = request.sector.0;
        self.bytes = u64::from(request.sectors) * SECTOR_BYTES;
    }
}

#[pymethods]
impl Request {
    fn __repr__(&self) -> String {
        let Request { id, direction, sector, bytes, process, .. } = self;
        format!("<Request {id}: {direction} of {bytes} bytes at sector {sector} by process {process}>")
    }
}
