//! Export of I/Os as Chrome trace JSON, for ui.perfetto.dev and chrome://tracing: a slice for each I/O under its task,
//! containing the time before the driver and the time at the device.

use std::io::{self, Write};

use rustc_hash::FxHashSet;

use super::event::Flags;
use super::flights::Flight;
use super::names::Names;

/// Writes the trace, one I/O at a time, in the order of completion.
#[derive(Debug)]
pub struct ChromeWriter<W> {
    out: W,
    named_pids: FxHashSet<u32>,
    ios: u64,
    is_first: bool,
}

impl<W: Write> ChromeWriter<W> {
    /// Begins the trace.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(mut out: W) -> io::Result<ChromeWriter<W>> {
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
        Ok(ChromeWriter { out, named_pids: FxHashSet::default(), ios: 0, is_first: true })
    }

    /// Adds an I/O that completed at `end_ns`. The trace's time 0 is `begin_ns`; all times are in nanoseconds.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&mut self, flight: &Flight, begin_ns: u64, end_ns: u64, names: &Names) -> io::Result<()> {
        let pid = flight.pid;
        if self.named_pids.insert(pid) {
            let name = names.get(pid).map_or_else(|| format!("task {pid}"), str::to_owned);
            let name = serde_json::Value::from(name);
            self.write_object(format_args!(
                "\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{pid},\"args\":{{\"name\":{name}}}"
            ))?;
        }
        self.ios += 1;
        let operation = match flight.flags {
            flags if flags.has(Flags::DISCARD) => "discard",
            _ if flight.bytes == 0 => "flush",
            flags if flags.has(Flags::WRITE) => "write",
            _ => "read",
        };
        let (rwbs, sector, bytes, device) = (flight.flags.letters(), flight.sector, flight.bytes, flight.device);
        let arguments = format!(
            ",\"args\":{{\"device\":\"{device}\",\"rwbs\":\"{rwbs}\",\"sector\":{sector},\"bytes\":{bytes},\"merged\":{}}}",
            flight.is_merged
        );
        let queue_ns = flight.queue_ns.saturating_sub(begin_ns);
        let end_ns = end_ns.saturating_sub(begin_ns);
        let issue_ns = flight.issue_ns.map(|ns| ns.saturating_sub(begin_ns)).filter(|ns| *ns > queue_ns);
        self.write_slice('b', operation, pid, queue_ns, &arguments)?;
        if let Some(issue_ns) = issue_ns {
            self.write_slice('b', "queued", pid, queue_ns, "")?;
            self.write_slice('e', "queued", pid, issue_ns, "")?;
            self.write_slice('b', "device", pid, issue_ns, "")?;
            self.write_slice('e', "device", pid, end_ns, "")?;
        }
        self.write_slice('e', operation, pid, end_ns, "")
    }

    /// Writes the beginning (`b`) or the end (`e`) of a part of the last I/O.
    fn write_slice(&mut self, phase: char, name: &str, pid: u32, time_ns: u64, arguments: &str) -> io::Result<()> {
        let (us, rest_ns, id) = (time_ns / 1000, time_ns % 1000, self.ios);
        self.write_object(format_args!(
            "\"ph\":\"{phase}\",\"cat\":\"block\",\"id\":{id},\"name\":\"{name}\",\"pid\":{pid},\"tid\":{pid},\"ts\":{us}.{rest_ns:03}{arguments}"
        ))
    }

    fn write_object(&mut self, fields: std::fmt::Arguments<'_>) -> io::Result<()> {
        let separator = if std::mem::take(&mut self.is_first) { "" } else { ",\n" };
        write!(self.out, "{separator}{{{fields}}}")
    }

    /// Ends the trace and returns its writer.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()?;
        Ok(self.out)
    }
}
