//! dm-crypt: reads are decrypted after the disk, writes encrypted before it, as work of a CPU.
//!
//! By default both are work of an unbound work queue, which runs on the CPU that is free first, and one thread submits the
//! encrypted writes, sorted by sector. Without the work queue of a direction its work is done at once by the CPU of the
//! submitter, and a write is submitted when that is over.

use hoistway_blk::bio::{Bio, Op, Status};
use hoistway_blk::ground::{CpuId, Nanos};

use super::super::joins::Then;
use super::super::thread::Assignment;
use super::Layers;
use crate::cpu::Work;
use crate::stacked_device::Encryption;

/// Data to be encrypted or decrypted.
#[derive(Debug)]
pub(super) struct CryptWork {
    layer: u32,
    /// The write, or the read whose data arrived.
    bio: Bio,
    /// The join that it is a part of.
    join: u32,
    /// The CPU, once it is chosen, and what it has accepted.
    begun: Option<(CpuId, Work)>,
    /// The CPU of the submitter, if the work does not go to a queue.
    bound_to: Option<CpuId>,
    time: Nanos,
}

/// What becomes of a work whose event is due.
pub(crate) enum WorkStep {
    /// A CPU begins it: the CPU of the submitter, or any.
    Begin(Option<CpuId>, Nanos),
    /// It may be over.
    Check(CpuId, Work),
    /// There is no such work.
    Nothing,
}

impl Layers {
    /// Passes a bio through an encrypted device.
    pub(super) fn crypt(&mut self, number: u32, options: Encryption, bio: Bio, join: u32) {
        match bio.op {
            Op::Read => {
                self.joins.extend(join, bio.sectors);
                let then = Then::Decrypt { layer: number, bio: bio.clone(), cpu: self.submitting_cpu, parent: join };
                let read = self.joins.add(0, then);
                self.pass(self.first_member(number), bio, read);
            }
            Op::Write => {
                self.joins.extend(join, bio.sectors);
                self.add_work(number, options.write_queue, options.ns_per_kib, bio, self.submitting_cpu, join);
            }
            // Without `allow_discards`, and zeroes would be decrypted to something else.
            Op::Discard | Op::WriteZeroes | Op::Flush => self.refuse(join, bio.sectors, Status::NotSupported),
        }
    }

    /// The data of a read has arrived.
    pub(super) fn decrypt(&mut self, layer: u32, options: Encryption, bio: Bio, cpu: CpuId, join: u32) {
        self.add_work(layer, options.read_queue, options.ns_per_kib, bio, cpu, join);
    }

    fn add_work(&mut self, layer: u32, is_queued: bool, ns_per_kib: u32, bio: Bio, cpu: CpuId, join: u32) {
        let time = Nanos(u64::from(ns_per_kib) * u64::from(bio.sectors) / 2);
        let bound_to = (!is_queued).then_some(cpu);
        let work = Some(CryptWork { layer, bio, join, begun: None, bound_to, time });
        let number = match self.works.iter().position(Option::is_none) {
            Some(free) => {
                self.works[free] = work;
                free
            }
            None => {
                self.works.push(work);
                self.works.len() - 1
            }
        };
        self.added_works.push((number as u32, is_queued.then(|| self.first_disk(layer))));
    }

    /// The next work that is to be scheduled, and the disk whose worker latency it has if a work queue does it.
    pub(crate) fn next_added_work(&mut self) -> Option<(u32, Option<u32>)> {
        self.added_works.pop()
    }

    /// What a work needs when its event is due.
    pub(crate) fn work_step(&self, number: u32) -> WorkStep {
        match self.works.get(number as usize).and_then(Option::as_ref) {
            Some(CryptWork { begun: Some((cpu, work)), .. }) => WorkStep::Check(*cpu, *work),
            Some(work) => WorkStep::Begin(work.bound_to, work.time),
            None => WorkStep::Nothing,
        }
    }

    /// A CPU has accepted a work.
    pub(crate) fn work_accepted(&mut self, number: u32, cpu: CpuId, work: Work) {
        if let Some(Some(begun)) = self.works.get_mut(number as usize) {
            begun.begun = Some((cpu, work));
        }
    }

    /// A work is over: a read ends, a write goes to the thread.
    pub(crate) fn work_ended(&mut self, number: u32) {
        let Some(CryptWork { layer, bio, join, bound_to, .. }) = self.works[number as usize].take() else { return };
        if bio.op == Op::Read {
            self.part_ended(join, bio.sectors, Status::Ok);
            return;
        }
        let io_context = if bound_to.is_some() { bio.io_context } else { self.io_context_of(layer) };
        self.hand_over(layer, Assignment::Pass(Bio { io_context, ..bio }, join), bound_to.is_some());
    }
}
