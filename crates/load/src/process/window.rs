//! The I/Os of a process in flight: those of the running system call, those at the devices, and those that have completed but
//! are not reaped.

use std::collections::VecDeque;

use hoistway_blk::bio::{BioFlags, IoPriority, Op};
use hoistway_blk::ground::Instant;

use super::Process;
use crate::Io;

/// Slots that are allocated in advance. Deeper windows grow with the I/Os in flight, which a device keeps far below the largest depths.
const SLOTS_AT_START: u32 = 1024;

/// I/Os in flight, at most as many as the depth allows.
pub(super) struct IoWindow {
    /// Slots in use or free again; more are added until there are `slots_max`.
    slots: Vec<IoInFlight>,
    slots_max: u32,
    /// Slots that were used and are free, the one freed last at the end.
    free: Vec<u32>,
    /// I/Os that are submitted or being submitted, and not reaped yet.
    in_flight: u32,
    /// I/Os that have completed and are not reaped yet.
    ended: VecDeque<u32>,
    /// I/Os of the running system call, in order.
    batch: Vec<u32>,
    /// How many of the batch were submitted.
    submitted: usize,
    /// Whether the queue was full and is draining to `iodepth_low`.
    is_draining: bool,
    /// Whether nothing may be submitted until all I/Os in flight have completed, because the depth was lowered.
    is_fenced: bool,
    /// The I/O that the process sleeps in: until it completes, nothing is submitted and nothing else is reaped.
    sleeps_in: Option<u32>,
    depth: u32,
    depth_low: u32,
    batch_max: u32,
    pub(super) complete_min: u32,
    pub(super) complete_max: u32,
}

/// An I/O in flight.
#[derive(Clone, Copy, Default)]
pub struct IoInFlight {
    /// The operation; `None` in a slot that is free, or whose I/O has completed.
    pub op: Option<Op>,
    /// The device: index into [`Process::files`].
    pub device: u8,
    /// Its own priority; [`IoPriority::UNSET`] if it has none.
    pub priority: IoPriority,
    /// First byte on the device.
    pub offset_bytes: u64,
    /// Length.
    pub bytes: u32,
    /// When it was generated.
    pub created: Instant,
    /// When the system call that submitted it returned.
    pub(super) issued: Instant,
    /// Its own flags.
    pub flags: BioFlags,
    /// For a recorded program: when it completed, if the caller has reported that.
    pub(super) completed: Option<Instant>,
    /// Whether the data of the write is on the device and the I/O now flushes the device.
    pub is_committing: bool,
}

/// Sectors touched by `bytes` from an offset on: a buffered I/O may start or end within a sector.
fn sectors(offset_bytes: u64, bytes: u32) -> u32 {
    ((offset_bytes + u64::from(bytes)).div_ceil(512) - offset_bytes / 512) as u32
}

impl IoInFlight {
    /// Sectors that it touches.
    #[inline]
    #[must_use]
    pub fn sectors(&self) -> u32 {
        sectors(self.offset_bytes, self.bytes)
    }

    /// An I/O that was generated now.
    #[inline]
    pub(super) fn new(io: &Io, now: Instant) -> IoInFlight {
        IoInFlight {
            op: Some(io.op),
            device: io.file,
            priority: io.priority,
            offset_bytes: io.offset_bytes,
            bytes: io.bytes,
            created: now,
            issued: Instant::ZERO,
            flags: BioFlags::NONE,
            completed: None,
            is_committing: false,
        }
    }
}

impl IoWindow {
    pub(super) fn new(process: &Process) -> Self {
        let depth = process.issue.depth.max(1);
        let at_start = depth.min(SLOTS_AT_START) as usize;
        IoWindow {
            slots: Vec::with_capacity(at_start),
            slots_max: depth,
            free: Vec::with_capacity(at_start),
            in_flight: 0,
            ended: VecDeque::with_capacity(at_start),
            batch: Vec::with_capacity(at_start),
            submitted: 0,
            is_draining: false,
            is_fenced: false,
            sleeps_in: None,
            depth,
            depth_low: process.issue.depth_low.unwrap_or(depth).min(depth),
            batch_max: process.issue.batch.clamp(1, depth),
            complete_min: process.issue.complete_min,
            complete_max: process.issue.complete_max.max(1),
        }
    }

    #[inline]
    pub(super) fn slot(&self, index: u32) -> &IoInFlight {
        &self.slots[index as usize]
    }

    #[inline]
    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Nothing is submitted until all I/Os in flight have completed.
    pub(super) fn fence(&mut self) {
        self.is_fenced = true;
    }

    /// The process sleeps in this I/O.
    pub(super) fn sleep_on_io(&mut self, index: u32) {
        self.sleeps_in = Some(index);
    }

    pub(super) fn set_depth(&mut self, depth: u32) {
        self.depth = depth;
    }

    // --- submission ---

    /// How many I/Os the next system call may submit.
    #[inline]
    pub(super) fn room(&mut self) -> u32 {
        if self.in_flight >= self.depth {
            self.is_draining = self.depth_low < self.depth;
            return 0;
        }
        if self.in_flight <= self.depth_low {
            self.is_draining = false;
        }
        self.is_fenced &= self.in_flight > 0;
        if self.is_draining || self.is_fenced || self.sleeps_in.is_some() {
            0
        } else {
            (self.depth - self.in_flight).min(self.batch_max)
        }
    }

    /// Adds an I/O to the batch of the running system call. Returns its slot if one was free.
    #[inline]
    pub(super) fn add(&mut self, slot: IoInFlight) -> Option<u32> {
        let index = if let Some(index) = self.free.pop() {
            self.slots[index as usize] = slot;
            index
        } else {
            let index = self.slots.len() as u32;
            if index == self.slots_max {
                return None;
            }
            self.slots.push(slot);
            index
        };
        self.in_flight += 1;
        self.batch.push(index);
        Some(index)
    }

    /// Whether I/Os wait to be submitted by the next system call.
    pub(super) fn has_batch(&self) -> bool {
        self.submitted < self.batch.len()
    }

    /// The write in this slot, which has completed and is not reaped yet, continues with a flush of its device.
    pub(super) fn commit(&mut self, index: u32) {
        self.slots[index as usize].is_committing = true;
        self.ended.pop_front();
        self.batch.push(index);
    }

    /// The next I/O of the running system call, which is submitted now.
    #[inline]
    pub(super) fn next_in_batch(&mut self) -> Option<u32> {
        let index = *self.batch.get(self.submitted)?;
        self.submitted += 1;
        Some(index)
    }

    /// I/Os of the running system call; 0 between two calls.
    #[inline]
    pub(super) fn call_size(&self) -> usize {
        self.batch.len()
    }

    /// The running system call returns. Returns the number of I/Os that it submitted.
    #[inline]
    pub(super) fn call_ended(&mut self, now: Instant) -> u32 {
        let count = std::mem::take(&mut self.submitted);
        for index in self.batch.drain(..count) {
            self.slots[index as usize].issued = now;
        }
        count as u32
    }

    /// Whether an I/O has sectors in common with one that is in flight.
    pub(super) fn overlaps(&self, io: &Io) -> bool {
        let end = |offset: u64, bytes: u32| offset + u64::from(bytes);
        self.slots.iter().any(|slot| {
            slot.op.is_some()
                && slot.device == io.file
                && slot.offset_bytes < end(io.offset_bytes, io.bytes)
                && io.offset_bytes < end(slot.offset_bytes, slot.bytes)
        })
    }

    /// The I/O in this slot has completed and no longer overlaps anything.
    pub(super) fn forget(&mut self, index: u32) {
        self.slots[index as usize].op = None;
    }

    // --- completion ---

    /// An I/O has completed.
    #[inline]
    pub(super) fn ended(&mut self, index: u32) {
        if self.sleeps_in == Some(index) {
            self.ended.push_front(index);
        } else {
            self.ended.push_back(index);
        }
    }

    /// Whether as many I/Os have completed as the process waits for.
    #[inline]
    pub(super) fn can_reap(&self) -> bool {
        if self.sleeps_in.is_some() {
            return self.ended.front() == self.sleeps_in.as_ref();
        }
        let ended = self.ended.len() as u32;
        ended > 0 && (ended >= self.complete_min || ended >= self.in_flight)
    }

    /// The I/O of this slot completed now.
    pub(super) fn completed(&mut self, index: u32, now: Instant) {
        self.slots[index as usize].completed = Some(now);
    }

    /// The first completed I/O that is not reaped yet.
    pub(super) fn first_ended(&self) -> Option<u32> {
        self.ended.front().copied()
    }

    /// Reaps the first completed I/O.
    #[inline]
    pub(super) fn reap(&mut self) -> Option<(u32, IoInFlight)> {
        if self.sleeps_in.is_some() && self.ended.front() != self.sleeps_in.as_ref() {
            return None;
        }
        let index = self.ended.pop_front()?;
        self.sleeps_in = None;
        self.in_flight -= 1;
        self.free.push(index);
        Some((index, self.slots[index as usize]))
    }
}

#[cfg(test)]
mod tests;
