//! Main loop of a stream of a recorded program, whose I/Os wait for completions and submissions of this and other streams (RP6 to
//! RP10).

use std::sync::Arc;

use hoistway_blk::bio::{BioFlags, Op};
use hoistway_blk::ground::{Instant, Nanos};

use super::window::IoInFlight;
use super::{Flows, RunningProcess, Step};
use crate::Io;
use crate::replay::{Pause, ProgramStep, When};

/// State of a stream.
pub(super) struct ProgramStream {
    /// The processes that it waits for.
    waits_on: Arc<[u32]>,
    /// When the submission of its last I/O ended.
    submitted: Instant,
    /// Whether it is submitting an I/O.
    is_submitting: bool,
    /// Whether the next I/O of the running call goes into the same plug.
    plug_goes_on: bool,
    /// Whether the I/O in submission is plugged; `None` if that is up to the kernel.
    is_plugged: Option<bool>,
    /// When its first I/O was issued.
    first_issued: Option<Instant>,
    /// Whether all its I/Os have been issued.
    has_issued_all: bool,
    /// The next I/O, generated but not issued.
    next: Option<(Io, ProgramStep)>,
}

/// When the next I/O of a stream is issued.
enum StepDue {
    At(Instant),
    /// It depends on a completion whose time is unknown.
    Unknown,
    /// Never: no I/O is left.
    Never,
}

impl ProgramStream {
    pub(super) fn new(waits_on: Arc<[u32]>) -> ProgramStream {
        ProgramStream {
            waits_on,
            submitted: Instant::ZERO,
            is_submitting: false,
            plug_goes_on: false,
            is_plugged: None,
            first_issued: None,
            has_issued_all: false,
            next: None,
        }
    }

    /// Time from its first I/O until `now`, if no I/O is left.
    pub(super) fn run_time(&self, now: Instant) -> Option<Nanos> {
        self.first_issued.filter(|_| self.has_issued_all).map(|first_issued| now.since(first_issued))
    }

    /// When an I/O that waits for this is issued, in a process that began at `start`.
    fn due(&self, when: When, number: u32, start: Instant, flows: &mut Flows) -> Option<Instant> {
        let (own, of, gap) = match when {
            When::At(at) => return Some(start + at),
            When::AfterSubmission(gap) => return Some(self.submitted.max(start) + gap),
            When::AfterCompletions { own, of, gap } => (own, of, gap),
        };
        let mut last = flows.completed(number, own, number)?;
        for (&other, count) in self.waits_on.iter().zip(of) {
            if let Some(count) = count {
                last = last.max(flows.completed(other, count, number)?);
            }
        }
        Some((last.max(start) + gap).max(self.submitted))
    }
}

impl RunningProcess {
    /// Whether the I/O in submission is plugged, if it belongs to a recorded program that decides that itself.
    #[must_use]
    pub fn recorded_plug(&self) -> Option<bool> {
        self.program.as_ref().and_then(|program| program.is_plugged)
    }

    /// An I/O of a recorded program has completed: its latency ends now, and streams that wait for it are notified, even if its task
    /// is in a system call and reaps it later. To be called in addition to [`RunningProcess::ended`].
    pub fn completed(&mut self, slot: u32, now: Instant, flows: &mut Flows) {
        self.window.completed(slot, now);
        flows.complete(self.number, now, 1);
    }

    /// [`RunningProcess::next`] for a recorded stream.
    #[cold]
    pub(super) fn next_program_step(&mut self, now: Instant, flows: &mut Flows) -> Step {
        if let Some(program) = &mut self.program
            && std::mem::take(&mut program.is_submitting)
        {
            program.submitted = now;
        }
        loop {
            let is_in_call = self.window.call_size() > 0;
            // Without a plug that stays open, each I/O is a call of its own.
            let has_open_plug = self.program.as_ref().is_some_and(|program| program.plug_goes_on);
            let due = self.prepare_next(now, flows);
            let due = match due {
                StepDue::At(due) if due <= now && self.window.room() > 0 && (!is_in_call || has_open_plug) => {
                    return self.issue(now);
                }
                due => due,
            };
            if is_in_call {
                return match due {
                    // The task is computing; its plug stays open.
                    StepDue::At(due) if due > now && has_open_plug => Step::Wait(Some(due)),
                    _ => Step::EndCall,
                };
            }
            if self.can_reap() {
                let was_reported =
                    self.window.first_ended().is_some_and(|slot| self.window.slot(slot).completed.is_some());
                self.reap(now);
                if !was_reported {
                    flows.complete(self.number, now, 1);
                }
                continue;
            }
            return match due {
                StepDue::At(due) if due > now => Step::Wait(Some(due)),
                StepDue::Never if self.window.in_flight() == 0 => {
                    self.has_exited = true;
                    self.exited_at = now;
                    Step::Exit
                }
                _ => Step::Wait(None),
            };
        }
    }

    /// Generates the next I/O unless there is one already. Returns when it is issued.
    fn prepare_next(&mut self, now: Instant, flows: &mut Flows) -> StepDue {
        let Some(program) = &mut self.program else { return StepDue::Never };
        if self.is_exhausted || now >= self.deadline {
            return StepDue::Never;
        }
        if program.next.is_none() {
            let Some(io) = self.generator.next() else {
                self.is_exhausted = true;
                program.has_issued_all = !self.generator.has_failed();
                if !program.has_issued_all {
                    self.measurement.failed(super::submit::EIO);
                }
                return StepDue::Never;
            };
            let step = match self.generator.pause() {
                Some(Pause::Program(step)) => step,
                Some(Pause::Until(at)) => unplugged(When::At(at)),
                Some(Pause::After(gap)) => unplugged(When::AfterSubmission(gap)),
                None => unplugged(When::AfterSubmission(Nanos::ZERO)),
            };
            program.next = Some((io, step));
        }
        let Some((_, step)) = program.next else { return StepDue::Never };
        program.due(step.when, self.number, self.start, flows).map_or(StepDue::Unknown, StepDue::At)
    }

    /// Issues the generated I/O.
    fn issue(&mut self, now: Instant) -> Step {
        if let Some(program) = &mut self.program
            && let Some((io, step)) = program.next.take()
        {
            program.first_issued.get_or_insert(now);
            (program.is_submitting, program.is_plugged, program.plug_goes_on) =
                (true, step.is_plugged, step.plug_goes_on);
            let flags = if io.op == Op::Flush { BioFlags::NONE } else { step.flags };
            self.window.add(IoInFlight { flags, ..IoInFlight::new(&io, now) });
        }
        self.window.next_in_batch().map_or(Step::Wait(None), Step::Submit)
    }
}

fn unplugged(when: When) -> ProgramStep {
    ProgramStep { when, flags: BioFlags::NONE, is_plugged: None, plug_goes_on: false }
}
