//! The block layer's driver on a worker: makes commands of requests and starts them at the worker's channel, its access to the
//! target.

use hoistway_blk::bio::{BioFlags, Op, Status};
use hoistway_blk::drive::{Answer, Driver, Refusal};
use hoistway_blk::ground::{Instant, Now};
use hoistway_blk::request::Rq;

use crate::backend::{Command, Ended, IoChannel, Started, Zeroing};
use crate::memory::{RawSegment, Segments};
use crate::slots::Slots;

/// Carries requests out on this worker's channel.
pub struct IoChannelDriver {
    pub channel: Box<dyn IoChannel>,
    slots: Slots,
    /// Requests at the channel, by command number.
    in_flight: Vec<Option<Rq>>,
    /// The number of requests at the channel.
    pub count: u32,
    /// Tags of a hardware queue. The number of a command is `hctx * tags_per_queue + tag`.
    tags_per_queue: u32,
    /// The memory of the command that is being started; kept to reuse its allocation.
    segments: Vec<RawSegment>,
}

impl IoChannelDriver {
    pub fn new(channel: Box<dyn IoChannel>, slots: Slots, hw_queues: u16, queue_depth: u32) -> Self {
        let commands = u32::from(hw_queues) * queue_depth;
        IoChannelDriver {
            channel,
            slots,
            in_flight: (0..commands).map(|_| None).collect(),
            count: 0,
            tags_per_queue: queue_depth,
            segments: Vec::new(),
        }
    }

    /// Takes a request whose command has ended; `None` if no such command is in flight.
    #[inline]
    pub fn take(&mut self, id: u32) -> Option<Rq> {
        let rq = self.in_flight.get_mut(id as usize)?.take();
        self.count -= u32::from(rq.is_some());
        rq
    }

    /// Takes the commands that the channel has completed. The channel also submits here those that it has only queued.
    #[inline]
    pub fn reap(&mut self, now: Instant, ended: &mut Vec<Ended>) {
        self.channel.reap(now, ended);
    }
}

impl Driver for IoChannelDriver {
    #[inline]
    fn queue_rq(&mut self, now: Now, rq: Rq, _: bool) -> Answer {
        // A request that reaches a driver has a tag.
        let Some(tag) = rq.driver_tag else { return Answer::Done(rq, Status::IoError) };
        let id = u32::from(rq.hctx.0) * self.tags_per_queue + tag;
        self.segments.clear();
        let mut zeroing = Zeroing::default();
        match rq.op {
            Op::Read | Op::Write => self.segments.extend(rq.bios.iter().map(|bio| self.slots.segment(bio))),
            // Write-zeroes requests are never merged.
            Op::WriteZeroes => zeroing = rq.bios.first().map_or(zeroing, |bio| self.slots.zeroing(bio)),
            Op::Flush | Op::Discard => {}
        }
        let command = Command {
            id,
            queue: rq.hctx.0,
            tag,
            op: rq.op,
            sector: rq.sector,
            sectors: rq.sectors,
            fua: rq.flags.contains(BioFlags::FUA),
            zeroing,
        };
        match self.channel.start(now.at, &command, segments_of_started_request(&self.segments)) {
            Started::Done(status) => Answer::Done(rq, status),
            Started::Queued => {
                self.in_flight[id as usize] = Some(rq);
                self.count += 1;
                Answer::Queued
            }
            // The command that makes room may be in flight on another worker, whose completion restarts another hardware queue.
            Started::Full => Answer::Refused(rq, Refusal::Busy),
        }
    }
}

/// The data of a request that is being started.
#[allow(unsafe_code)]
fn segments_of_started_request(segments: &[RawSegment]) -> Segments<'_> {
    // SAFETY: the segments are parts of buffers that stay with the worker of their request from submission until its last
    // bio has ended, which is after the command has ended; there is no reference to their content meanwhile.
    unsafe { Segments::new(segments) }
}
