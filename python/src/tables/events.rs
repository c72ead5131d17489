//! A table with a row per event of a trace, built while the trace is written.

use std::borrow::Cow;
use std::io::{self, Write};
use std::mem;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::builder::{BooleanBuilder, PrimitiveBuilder};
use arrow_array::types::{Int32Type, UInt32Type, UInt64Type};
use arrow_schema::ArrowError;
use serde::Deserialize;

use super::keys::{Names, names};
use crate::table::{Table, batch};

/// Rows per batch.
const BATCH_ROWS: usize = 1 << 16;

/// A line of a trace. `docs/trace.md` describes the fields.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    run: Option<u32>,
    time_ns: Option<u64>,
    cpu: Option<u32>,
    dev: Option<u32>,
    process: Option<u32>,
    #[serde(borrow)]
    job: Option<Cow<'a, str>>,
    #[serde(borrow)]
    op: Option<Cow<'a, str>>,
    #[serde(borrow)]
    rwbs: Option<Cow<'a, str>>,
    sector: Option<u64>,
    sectors: Option<u32>,
    rq: Option<u32>,
    new_sector: Option<u64>,
    count: Option<u32>,
    explicit: Option<bool>,
    hctx: Option<u32>,
    #[serde(borrow)]
    reason: Option<Cow<'a, str>>,
    #[serde(borrow)]
    why: Option<Cow<'a, str>>,
    errno: Option<i32>,
}

/// The fields of the header line that are used here.
#[derive(Deserialize)]
struct Head {
    devices: Vec<String>,
    runs: Vec<HeadRun>,
}

#[derive(Deserialize)]
struct HeadRun {
    scheduler: String,
}

/// Receives a trace and builds a table of it.
#[derive(Default)]
pub(crate) struct Events {
    /// The beginning of an incomplete line.
    line: Vec<u8>,
    head: Option<Head>,
    rows: Rows,
    batches: Vec<RecordBatch>,
}

#[derive(Default)]
struct Rows {
    count: usize,
    run: PrimitiveBuilder<UInt32Type>,
    scheduler: Names,
    time_ns: PrimitiveBuilder<UInt64Type>,
    cpu: PrimitiveBuilder<UInt32Type>,
    device: Names,
    event: Names,
    process: PrimitiveBuilder<UInt32Type>,
    job: Names,
    op: Names,
    rwbs: Names,
    sector: PrimitiveBuilder<UInt64Type>,
    sectors: PrimitiveBuilder<UInt32Type>,
    rq: PrimitiveBuilder<UInt32Type>,
    new_sector: PrimitiveBuilder<UInt64Type>,
    plug_count: PrimitiveBuilder<UInt32Type>,
    explicit: BooleanBuilder,
    hctx: PrimitiveBuilder<UInt32Type>,
    reason: Names,
    why: Names,
    errno: PrimitiveBuilder<Int32Type>,
}

impl Events {
    /// The table of everything written.
    pub(crate) fn table(mut self) -> Result<Table, ArrowError> {
        // Without events there is an empty batch, which defines the columns.
        self.batches.push(self.rows.batch()?);
        let first = self.batches.remove(0);
        Ok(Table::new(first, self.batches))
    }

    fn take_line(&mut self, line: &[u8]) -> Result<(), String> {
        let Some(head) = &self.head else {
            self.head = Some(serde_json::from_slice(line).map_err(|error| error.to_string())?);
            return Ok(());
        };
        let line: Line<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        // The last line of each run, and that of the trace, are not events.
        let Some((run, time_ns)) = line.run.zip(line.time_ns) else { return Ok(()) };
        if line.event == "run_end" {
            return Ok(());
        }
        self.rows.append(head, run, time_ns, &line);
        if self.rows.count == BATCH_ROWS {
            self.batches.push(mem::take(&mut self.rows).batch().map_err(|error| error.to_string())?);
        }
        Ok(())
    }
}

impl Rows {
    fn append(&mut self, head: &Head, run: u32, time_ns: u64, line: &Line<'_>) {
        self.count += 1;
        self.run.append_value(run);
        self.scheduler.append_option(head.runs.get(run as usize).map(|run| run.scheduler.as_str()));
        self.time_ns.append_value(time_ns);
        self.cpu.append_option(line.cpu);
        self.device.append_option(line.dev.and_then(|dev| head.devices.get(dev as usize)));
        self.event.append_value(&line.event);
        self.process.append_option(line.process);
        self.job.append_option(line.job.as_deref());
        self.op.append_option(line.op.as_deref());
        self.rwbs.append_option(line.rwbs.as_deref());
        self.sector.append_option(line.sector);
        self.sectors.append_option(line.sectors);
        self.rq.append_option(line.rq);
        self.new_sector.append_option(line.new_sector);
        self.plug_count.append_option(line.count);
        self.explicit.append_option(line.explicit);
        self.hctx.append_option(line.hctx);
        self.reason.append_option(line.reason.as_deref());
        self.why.append_option(line.why.as_deref());
        self.errno.append_option(line.errno);
    }

    fn batch(mut self) -> Result<RecordBatch, ArrowError> {
        batch(vec![
            ("run", false, Arc::new(self.run.finish())),
            names("scheduler", true, self.scheduler),
            ("time_ns", false, Arc::new(self.time_ns.finish())),
            ("cpu", true, Arc::new(self.cpu.finish())),
            names("device", true, self.device),
            names("event", false, self.event),
            ("process", true, Arc::new(self.process.finish())),
            names("job", true, self.job),
            names("op", true, self.op),
            names("rwbs", true, self.rwbs),
            ("sector", true, Arc::new(self.sector.finish())),
            ("sectors", true, Arc::new(self.sectors.finish())),
            ("rq", true, Arc::new(self.rq.finish())),
            ("new_sector", true, Arc::new(self.new_sector.finish())),
            ("count", true, Arc::new(self.plug_count.finish())),
            ("explicit", true, Arc::new(self.explicit.finish())),
            ("hctx", true, Arc::new(self.hctx.finish())),
            names("reason", true, self.reason),
            names("why", true, self.why),
            ("errno", true, Arc::new(self.errno.finish())),
        ])
    }
}

impl Write for Events {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let (head, tail) = rest.split_at(end + 1);
            let mut line = mem::take(&mut self.line);
            line.extend_from_slice(head);
            self.take_line(&line).map_err(io::Error::other)?;
            line.clear();
            self.line = line;
            rest = tail;
        }
        self.line.extend_from_slice(rest);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
