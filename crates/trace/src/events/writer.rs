//! Writer for `hoistway-trace/1`: each event is written when it happens, and nothing is kept in memory.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use hoistway_blk::bio::{Bio, BioFlags, Op, Status};
use hoistway_blk::ground::{CpuId, IoContextId, Now, Sector, Waiter};
use hoistway_blk::request::{Edge, Request};
use hoistway_blk::watch::{Event, Probe, Reason};

use super::Header;

/// A probe that writes a line for each event.
///
/// A probe cannot fail: the first error is kept, nothing is written after it, and the run is stopped.
pub struct Writer<'a, W> {
    out: W,
    /// Job names of the processes, as JSON strings.
    jobs: Vec<String>,
    run: u32,
    stop: Option<&'a AtomicBool>,
    device: u32,
    submitter: Option<Waiter>,
    line: Vec<u8>,
    /// Number of events of the current run.
    events: u64,
    /// Number of events of the previous runs.
    events_before: u64,
    runs: u32,
    is_partial: bool,
    error: Option<io::Error>,
}

impl<'a, W: Write> Writer<'a, W> {
    /// Writes the first line.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(mut out: W, header: &Header) -> io::Result<Self> {
        serde_json::to_writer(&mut out, header)?;
        out.write_all(b"\n")?;
        let json = |name: &String| serde_json::to_string(name).map_err(io::Error::from);
        let jobs = header.processes.iter().map(|process| json(&process.job)).collect::<io::Result<_>>()?;
        Ok(Writer {
            out,
            jobs,
            run: 0,
            stop: None,
            device: 0,
            submitter: None,
            line: Vec::with_capacity(512),
            events: 0,
            events_before: 0,
            runs: 0,
            is_partial: false,
            error: None,
        })
    }

    /// Starts run number `run`, to which the following events belong. `stop` is set if they cannot be written.
    pub fn begin_run(&mut self, run: u32, stop: &'a AtomicBool) {
        self.run = run;
        self.stop = Some(stop);
        self.events = 0;
    }

    /// Ends the run, with its virtual duration, its number of completed bios, and whether it was cut short.
    ///
    /// # Errors
    /// If one of its events could not be written.
    pub fn end_run(&mut self, simulated_ns: u64, ios: u64, is_partial: bool) -> io::Result<()> {
        let (run, events) = (self.run, self.events);
        self.events_before += events;
        self.runs += 1;
        self.is_partial |= is_partial;
        self.write_line(format_args!(
            "{{\"run\":{run},\"time_ns\":{},\"event\":\"run_end\",\"events\":{events},\"ios\":{ios},\"partial\":{is_partial}}}",
            simulated_ns
        ));
        self.error.take().map_or(Ok(()), Err)
    }

    /// Writes the last line and returns the writer.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self, is_partial: bool) -> io::Result<W> {
        let (runs, events) = (self.runs, self.events_before);
        let is_partial = is_partial || self.is_partial;
        self.write_line(format_args!(
            "{{\"event\":\"trace_end\",\"runs\":{runs},\"events\":{events},\"partial\":{is_partial}}}"
        ));
        self.error.take().map_or(Ok(()), Err)?;
        Ok(self.out)
    }

    /// Writes a line.
    fn write_line(&mut self, line: std::fmt::Arguments<'_>) {
        self.line.clear();
        let _ = self.line.write_fmt(line);
        self.flush_line();
    }

    fn flush_line(&mut self) {
        self.line.push(b'\n');
        if self.error.is_none()
            && let Err(error) = self.out.write_all(&self.line)
        {
            self.error = Some(error);
            if let Some(stop) = self.stop {
                stop.store(true, Ordering::Relaxed);
            }
        }
    }

    // --- parts of a line ---

    fn append(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to memory cannot fail.
        let _ = self.line.write_fmt(text);
    }

    /// `,"process":P,"job":"NAME"`, if the process is known.
    fn process(&mut self, process: Option<u32>) {
        if let Some(process) = process
            && let Some(job) = self.jobs.get(process as usize)
        {
            let _ = write!(self.line, ",\"process\":{process},\"job\":{job}");
        }
    }

    /// Writes the fields common to bios and requests.
    fn io(&mut self, io_context: IoContextId, op: Op, flags: BioFlags, sector: Sector, sectors: u32) {
        self.process(io_context.0.checked_sub(1));
        self.append(format_args!(",\"op\":\"{}\",\"rwbs\":\"", op.name()));
        rwbs(op, flags, &mut self.line);
        self.append(format_args!("\",\"sector\":{},\"sectors\":{sectors}", sector.0));
    }

    fn bio(&mut self, bio: &Bio) {
        self.io(bio.io_context, bio.op, bio.flags, bio.sector, bio.sectors);
    }

    fn request(&mut self, rq: &Request) {
        self.append(format_args!(",\"rq\":{}", rq.id().0));
        self.io(rq.io_context, rq.op, rq.flags, rq.sector, rq.sectors);
    }

    /// Writes the error number, if the status is an error.
    fn errno(&mut self, status: Status) {
        if status != Status::Ok {
            self.append(format_args!(",\"errno\":{}", status.errno()));
        }
    }

    fn reason(&mut self, reason: Reason) {
        self.append(format_args!(",\"reason\":\"{}\",\"why\":\"{}\"", reason.word(), reason.text()));
    }
}

impl<W: Write> Probe for Writer<'_, W> {
    fn enter(&mut self, device: u32, submitter: Option<Waiter>) {
        self.device = device;
        self.submitter = submitter;
    }

    fn event(&mut self, now: Now, cpu: CpuId, event: Event<'_>) {
        // The kernel traces completions at the driver only.
        if self.error.is_some() || matches!(event, Event::End(_)) {
            return;
        }
        self.events += 1;
        self.line.clear();
        let (run, time, cpu, dev) = (self.run, now.at.0, cpu.0, self.device);
        let name = event_name(&event);
        self.append(format_args!(
            "{{\"run\":{run},\"time_ns\":{time},\"cpu\":{cpu},\"dev\":{dev},\"event\":\"{name}\""
        ));
        match event {
            Event::Queue(bio) | Event::Merge(_, bio) => self.bio(bio),
            Event::Split(front) => {
                self.bio(front);
                self.append(format_args!(",\"new_sector\":{}", front.end().0));
            }
            Event::Plug => self.process(self.submitter.map(|submitter| submitter.0)),
            Event::Unplug { count, explicit } => {
                self.process(self.submitter.map(|submitter| submitter.0));
                self.append(format_args!(",\"count\":{count},\"explicit\":{explicit}"));
            }
            Event::GetRq(rq)
            | Event::Insert(rq)
            | Event::Issue(rq)
            | Event::Requeue(rq)
            | Event::Absorbed(rq)
            | Event::End(rq) => self.request(rq),
            Event::Dispatch { hctx, rq, reason } => {
                self.append(format_args!(",\"hctx\":{}", hctx.0));
                match rq {
                    Some(rq) => self.request(rq),
                    None => self.append(format_args!(",\"rq\":null")),
                }
                self.reason(reason);
            }
            Event::Complete(rq, status) => {
                self.request(rq);
                self.errno(status);
            }
            Event::BioComplete(bio, status) => {
                self.bio(bio);
                self.errno(status);
            }
        }
        self.line.push(b'}');
        self.flush_line();
    }
}

/// The kernel's name of an event.
fn event_name(event: &Event<'_>) -> &'static str {
    match event {
        Event::Queue(_) => "block_bio_queue",
        Event::Split(_) => "block_split",
        Event::GetRq(_) => "block_getrq",
        Event::Plug => "block_plug",
        Event::Unplug { .. } => "block_unplug",
        Event::Merge(Edge::Back, _) => "block_bio_backmerge",
        Event::Merge(Edge::Front, _) => "block_bio_frontmerge",
        Event::Absorbed(_) => "block_rq_merge",
        Event::Insert(_) => "block_rq_insert",
        Event::Dispatch { .. } => "dispatch",
        Event::Issue(_) => "block_rq_issue",
        Event::Requeue(_) => "block_rq_requeue",
        Event::Complete(..) => "block_rq_complete",
        Event::BioComplete(..) => "block_bio_complete",
        Event::End(_) => "end",
    }
}

/// The kernel's letters for an operation and its flags (BL-131, BL-132).
fn rwbs(op: Op, flags: BioFlags, out: &mut Vec<u8>) {
    let has = |flag| flags.contains(flag);
    out.extend(has(BioFlags::PREFLUSH).then_some(b'F'));
    out.push(match op {
        Op::Read => b'R',
        Op::Write => b'W',
        Op::Flush => b'F',
        Op::Discard => b'D',
        Op::WriteZeroes => b'N',
    });
    let letters = [(BioFlags::FUA, b'F'), (BioFlags::RAHEAD, b'A'), (BioFlags::SYNC, b'S'), (BioFlags::META, b'M')];
    out.extend(letters.into_iter().filter_map(|(flag, letter)| has(flag).then_some(letter)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(op: Op, flags: BioFlags) -> String {
        let mut out = Vec::new();
        rwbs(op, flags, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_letters_are_the_kernels() {
        let sync = BioFlags::SYNC;
        assert_eq!(letters(Op::Read, BioFlags::NONE), "R");
        assert_eq!(letters(Op::Read, BioFlags::RAHEAD), "RA");
        assert_eq!(letters(Op::Write, sync.with(BioFlags::IDLE)), "WS");
        assert_eq!(letters(Op::Write, BioFlags::BACKGROUND), "W");
        assert_eq!(letters(Op::Write, BioFlags::PREFLUSH), "FW");
        assert_eq!(letters(Op::Flush, BioFlags::PREFLUSH), "FF");
        let commit = sync.with(BioFlags::PREFLUSH).with(BioFlags::FUA).with(BioFlags::META);
        assert_eq!(letters(Op::Write, commit), "FWFSM");
        assert_eq!((letters(Op::Discard, BioFlags::NONE), letters(Op::Discard, sync)), ("D".into(), "DS".into()));
    }

    /// Accepts this many bytes, then fails.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 < bytes.len() {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            self.0 -= bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_stops_the_traced_run_and_is_reported_at_its_end() {
        let header = Header {
            format: super::super::FORMAT.to_owned(),
            version: String::new(),
            job_file: String::new(),
            devices: Vec::new(),
            kernel: String::new(),
            cpus: 1,
            seed: 1,
            runs: Vec::new(),
            processes: Vec::new(),
        };
        let stop = AtomicBool::new(false);
        let mut writer = Writer::new(Full(300), &header).unwrap();
        writer.begin_run(0, &stop);
        for _ in 0..10 {
            writer.event(Now::default(), CpuId(0), Event::Plug);
        }
        assert!(stop.load(Ordering::Relaxed));
        assert_eq!(writer.end_run(1, 0, false).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
