//! Reaping: the process takes completed I/Os, and their latencies are measured.

use hoistway_blk::bio::Op;
use hoistway_blk::ground::{Instant, Nanos};
use hoistway_measure::ProcessResult;
use hoistway_measure::fio::SteadyState;

use super::RunningProcess;
use super::measurement::Finished;
use crate::ThinkBlocks;

/// The error of a process with an I/O above `max_latency`, as in fio.
const ETIMEDOUT: i32 = 110;

impl RunningProcess {
    /// Reaps completed I/Os.
    #[inline]
    pub(super) fn reap(&mut self, now: Instant) {
        let mut reaped_count = 0;
        while reaped_count < self.window.complete_max {
            if self.commits_writes && self.commit_write() {
                return;
            }
            let Some((index, slot)) = self.window.reap() else { break };
            reaped_count += 1;
            if let Some(op) = slot.op.filter(|_| !self.is_closing) {
                self.generator.reaped(op);
                // A recorded latency ends at the completion, not when the task reaps it.
                let reaped = slot.completed.unwrap_or(now);
                // A completion may be noticed before the call that submitted it has returned.
                let issued = slot.issued.max(slot.created).min(reaped);
                if self.tracks_completions {
                    self.track_completion(now, index, op, now.since(slot.created));
                }
                self.measurement.finished(&Finished {
                    op,
                    bytes: slot.bytes,
                    offset_bytes: slot.offset_bytes,
                    priority: slot.priority,
                    created: slot.created,
                    issued,
                    reaped,
                    is_late: reaped >= self.deadline,
                });
            }
        }
        if reaped_count > 0 {
            self.measurement.reaped(now, reaped_count);
            if self.search.is_some() {
                self.search_depth(now);
            }
        }
    }

    /// A completed write continues with a flush of its device. Returns whether there is one.
    #[cold]
    fn commit_write(&mut self) -> bool {
        let Some(index) = self.window.first_ended() else { return false };
        let slot = self.window.slot(index);
        if slot.op != Some(Op::Write) || slot.is_committing {
            return false;
        }
        self.window.commit(index);
        true
    }

    /// The I/O in this slot has completed after `latency`.
    #[cold]
    fn track_completion(&mut self, now: Instant, slot: u32, op: Op, latency: Nanos) {
        self.window.forget(slot);
        let lane = match op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Discard => 2,
            _ => return,
        };
        if let Some(think) = &mut self.think {
            think.count(ThinkBlocks::Completed, 1);
        }
        if let Some(search) = &mut self.search {
            search.finished(now, latency);
        }
        if self.max_latency.is_some_and(|limits| limits[lane] > Nanos::ZERO && latency > limits[lane]) {
            self.measurement.failed(ETIMEDOUT);
            self.is_exhausted = true;
        }
    }

    /// The result of a process that has exited, or whose run ends now. `steady` is the result of its steady-state
    /// check.
    #[must_use]
    pub fn into_result(mut self, now: Instant, steady: Option<Box<SteadyState>>) -> ProcessResult {
        // A process with a time limit has run for that time, even if its last I/O completed a little later.
        let end = if self.has_exited { self.exited_at } else { now };
        if let Some(search) = &self.search {
            self.measurement.set_latency_search_result(search.result());
        }
        self.measurement.set_steady_state(steady);
        let run_time = self.program.as_ref().filter(|_| self.has_exited).and_then(|program| program.run_time(end));
        ProcessResult { done_ns: run_time.map(|run_time| run_time.0), ..self.measurement.into_result(end) }
    }
}
