//! A ring over a disk in memory, with its faults.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::disk::{Disk, Unstable};
use super::random::Random;
use crate::memory::RawSegment;
use crate::ring::{Job, JobKind, Ring};
use crate::wake::{Parker, Wake};

const EINTR: i32 = -4;
const EIO: i32 = -5;
const EAGAIN: i32 = -11;
const ENODEV: i32 = -19;
const ENOSPC: i32 = -28;
const EOPNOTSUPP: i32 = -95;

pub struct FaultyRing {
    disk: Disk,
    random: Random,
    /// Bytes in which I/O gets no EIO or ENOSPC.
    sound: Range<u64>,
    pending: Vec<PendingJob>,
    parker: Arc<Parker>,
}

/// A job that has not come back.
struct PendingJob {
    tag: u64,
    /// Calls of `reap` until it comes back.
    polls_left: u64,
    rest: Rest,
}

/// The work that is left of a job.
enum Rest {
    /// It is done, or has failed, with this result.
    Result(i32),
    /// The whole job.
    Job { offset: u64, kind: Call },
    /// These sectors will become durable.
    Sync(Vec<Unstable>),
}

enum Call {
    Read(Vec<RawSegment>),
    Write(Vec<RawSegment>, bool),
    Punch(u64),
}

impl Call {
    fn bytes(&self) -> u64 {
        match self {
            Call::Read(list) | Call::Write(list, _) => list.iter().map(|segment| segment.len as u64).sum(),
            Call::Punch(bytes) => *bytes,
        }
    }
}

impl FaultyRing {
    pub fn new(disk: Disk, random: Random, sound: Range<u64>) -> Self {
        FaultyRing { disk, random, sound, pending: Vec::new(), parker: Arc::default() }
    }

    /// Carries out a job, or the first part of it. Returns the result of the system call.
    fn carry_out(&mut self, offset: u64, kind: &Call) -> i32 {
        let (content, offset) = (&mut *self.disk.lock(), offset as usize);
        let (list, is_write) = match kind {
            Call::Read(list) => (list, false),
            Call::Write(list, _) => (list, true),
            Call::Punch(bytes) => {
                content.bytes[offset..offset + *bytes as usize].fill(0);
                content.changed(offset, *bytes as usize);
                return 0;
            }
        };
        let length = kind.bytes() as usize;
        let bytes_max = if self.random.one_in(5) { 1 + self.random.below(length as u64) as usize } else { length };
        let mut done = 0;
        for segment in list {
            let len = segment.len.min(bytes_max - done);
            // SAFETY: the memory of a job's segments stays in place until the job has come back.
            let bytes = unsafe { std::slice::from_raw_parts_mut(segment.start, len) };
            let disk_bytes = &mut content.bytes[offset + done..offset + done + len];
            if is_write {
                disk_bytes.copy_from_slice(bytes)
            } else {
                bytes.copy_from_slice(disk_bytes)
            }
            done += len;
        }
        if is_write {
            content.changed(offset, done);
        }
        if let Call::Write(_, true) = kind {
            let sectors = content.unstable();
            let written = offset / 512..(offset + done).div_ceil(512);
            let written: Vec<_> = sectors.into_iter().filter(|(sector, ..)| written.contains(sector)).collect();
            content.synced(&written);
        }
        done as i32
    }

    /// Whether a job fails, and how.
    fn fault(&mut self, offset: u64, bytes: u64, is_sync: bool) -> Option<i32> {
        let may_err = is_sync || offset < self.sound.start || offset + bytes > self.sound.end;
        match self.random.below(40) {
            0 if may_err => Some(EIO),
            1 if may_err => Some(ENOSPC),
            2 => Some(EINTR),
            3 => Some(EAGAIN),
            _ => None,
        }
    }
}

impl Ring for FaultyRing {
    unsafe fn push(&mut self, tag: u64, Job { offset, kind, .. }: Job<'_>) -> bool {
        if self.random.one_in(20) {
            return false;
        }
        let kind = match kind {
            JobKind::Read(list) => Ok(Call::Read(list.to_vec())),
            JobKind::Write(list, is_durable) => Ok(Call::Write(list.to_vec(), is_durable)),
            JobKind::Punch(bytes) if !self.random.one_in(30) => Ok(Call::Punch(bytes)),
            // This file system cannot zero a range without writing, and sometimes cannot punch holes.
            JobKind::Punch(_) | JobKind::Zero(_) => Err(Rest::Result(EOPNOTSUPP)),
            JobKind::Sync => Err(Rest::Sync(self.disk.lock().unstable())),
        };
        let (bytes, is_sync) = (kind.as_ref().map_or(0, Call::bytes), matches!(kind, Err(Rest::Sync(_))));
        let fault = if self.disk.lock().is_gone { Some(ENODEV) } else { self.fault(offset, bytes, is_sync) };
        let rest = match (fault, kind) {
            (Some(errno), _) => Rest::Result(errno),
            (None, Err(rest)) => rest,
            // Some are carried out when they arrive, and some just before they come back.
            (None, Ok(kind)) if self.random.one_in(2) => Rest::Result(self.carry_out(offset, &kind)),
            (None, Ok(kind)) => Rest::Job { offset, kind },
        };
        // Occasionally a job stalls for a long time.
        let polls_left = if self.random.one_in(50) { 3000 } else { self.random.below(20) };
        self.pending.push(PendingJob { tag, polls_left, rest });
        true
    }

    fn reap(&mut self, results: &mut Vec<(u64, i32)>) {
        let mut index = 0;
        while index < self.pending.len() {
            if self.pending[index].polls_left > 0 {
                self.pending[index].polls_left -= 1;
                index += 1;
                continue;
            }
            let PendingJob { tag, rest, .. } = self.pending.remove(index);
            let result = match rest {
                Rest::Result(result) => result,
                _ if self.disk.lock().is_gone => ENODEV,
                Rest::Job { offset, kind } => self.carry_out(offset, &kind),
                Rest::Sync(sectors) => {
                    self.disk.lock().synced(&sectors);
                    0
                }
            };
            results.push((tag, result));
        }
    }

    fn sleep(&mut self, _: Option<Duration>) {
        unreachable!("a single thread does not sleep");
    }

    fn waker(&self) -> Arc<dyn Wake> {
        Arc::clone(&self.parker) as Arc<dyn Wake>
    }
}
