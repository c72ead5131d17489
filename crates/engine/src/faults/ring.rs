//! A ring over a disk in memory, with its faults.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::disk::{Disk, Unstable};
use super::random::Random;
use crate::memory::RawSegment;
use crate::ring::{Job, Ring, What};
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
    /// Bytes in which nothing fails.
    sound: Range<u64>,
    under_way: Vec<PendingJob>,
    parker: Arc<Parker>,
}

/// A job that has not come back.
struct PendingJob {
    tag: u64,
    /// Polls until it comes back.
    looks: u64,
    rest: Rest,
}

/// The work that is left of a job.
enum Rest {
    /// It is done, or has failed, with this result.
    Result(i32),
    /// The whole job.
    Job { at: u64, what: Call },
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
        FaultyRing { disk, random, sound, under_way: Vec::new(), parker: Arc::default() }
    }

    /// Carries out a job, or the first part of it. Returns the result of the system call.
    fn carry_out(&mut self, at: u64, what: &Call) -> i32 {
        let (content, at) = (&mut *self.disk.lock(), at as usize);
        let (list, is_write) = match what {
            Call::Read(list) => (list, false),
            Call::Write(list, _) => (list, true),
            Call::Punch(bytes) => {
                content.bytes[at..at + *bytes as usize].fill(0);
                content.changed(at, *bytes as usize);
                return 0;
            }
        };
        let whole = what.bytes() as usize;
        let most = if self.random.one_in(5) { 1 + self.random.below(whole as u64) as usize } else { whole };
        let mut done = 0;
        for segment in list {
            let len = segment.len.min(most - done);
            // SAFETY: the memory of a job's segments stays in place until the job has come back.
            let bytes = unsafe { std::slice::from_raw_parts_mut(segment.start, len) };
            let there = &mut content.bytes[at + done..at + done + len];
            if is_write {
                there.copy_from_slice(bytes)
            } else {
                bytes.copy_from_slice(there)
            }
            done += len;
        }
        if is_write {
            content.changed(at, done);
        }
        if let Call::Write(_, true) = what {
            let sectors = content.unstable();
            let own = at / 512..(at + done).div_ceil(512);
            let own: Vec<_> = sectors.into_iter().filter(|(sector, ..)| own.contains(sector)).collect();
            content.synced(&own);
        }
        done as i32
    }

    /// Whether a job fails, and how.
    fn fault(&mut self, at: u64, bytes: u64, is_sync: bool) -> Option<i32> {
        let may_err = is_sync || at < self.sound.start || at + bytes > self.sound.end;
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
    unsafe fn push(&mut self, tag: u64, Job { at, what, .. }: Job<'_>) -> bool {
        if self.random.one_in(20) {
            return false;
        }
        let what = match what {
            What::Read(list) => Ok(Call::Read(list.to_vec())),
            What::Write(list, is_durable) => Ok(Call::Write(list.to_vec(), is_durable)),
            What::Punch(bytes) if !self.random.one_in(30) => Ok(Call::Punch(bytes)),
            // This file system cannot zero a range without writing, and sometimes cannot punch holes.
            What::Punch(_) | What::Zero(_) => Err(Rest::Result(EOPNOTSUPP)),
            What::Sync => Err(Rest::Sync(self.disk.lock().unstable())),
        };
        let (bytes, is_sync) = (what.as_ref().map_or(0, Call::bytes), matches!(what, Err(Rest::Sync(_))));
        let fault = if self.disk.lock().is_gone { Some(ENODEV) } else { self.fault(at, bytes, is_sync) };
        let rest = match (fault, what) {
            (Some(errno), _) => Rest::Result(errno),
            (None, Err(rest)) => rest,
            // Some are carried out when they arrive, and some just before they come back.
            (None, Ok(what)) if self.random.one_in(2) => Rest::Result(self.carry_out(at, &what)),
            (None, Ok(what)) => Rest::Job { at, what },
        };
        // Occasionally a job stalls for a long time.
        let looks = if self.random.one_in(50) { 3000 } else { self.random.below(20) };
        self.under_way.push(PendingJob { tag, looks, rest });
        true
    }

    fn reap(&mut self, results: &mut Vec<(u64, i32)>) {
        let mut at = 0;
        while at < self.under_way.len() {
            if self.under_way[at].looks > 0 {
                self.under_way[at].looks -= 1;
                at += 1;
                continue;
            }
            let PendingJob { tag, rest, .. } = self.under_way.remove(at);
            let result = match rest {
                Rest::Result(result) => result,
                _ if self.disk.lock().is_gone => ENODEV,
                Rest::Job { at, what } => self.carry_out(at, &what),
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
