//! The threads of stacked devices: when they run, and what they do then.

use hoistway_blk::bio::{Bio, Status};
use hoistway_blk::ground::{CpuId, Instant, IoContextId};

use super::super::thread::{Assignment, Thread};
use super::parity::Parity;
use super::{Layers, StackMember};

impl Layers {
    /// The layer of a thread that is to be scheduled, with the disk whose worker latency it has unless it runs at once.
    pub(crate) fn next_called(&mut self) -> Option<(u32, Option<u32>)> {
        let (layer, at_once) = self.called.pop()?;
        Some((layer, (!at_once).then(|| self.first_disk(layer))))
    }

    /// The next process's bio that has ended.
    pub(crate) fn next_ended(&mut self) -> Option<(Bio, Status)> {
        self.ended.pop_front()
    }

    /// A thread has work for its layer. One that sleeps for a request finds it later.
    pub(super) fn call(&mut self, layer: u32) {
        if !self.threads[layer as usize].is_parked() {
            self.unpark(layer);
        }
    }

    /// Gives a thread something to do, at once or when it runs next.
    pub(super) fn hand_over(&mut self, layer: u32, assignment: Assignment, at_once: bool) {
        let thread = &mut self.threads[layer as usize];
        thread.inbox.push_back(assignment);
        if !thread.is_parked() && !std::mem::replace(&mut thread.is_woken, true) {
            self.called.push((layer, at_once));
        }
    }

    pub(super) fn first_disk(&self, layer: u32) -> u32 {
        self.layers[layer as usize].disks[0]
    }

    pub(super) fn member(&self, layer: u32, member: usize) -> StackMember {
        self.layers[layer as usize].members[member]
    }

    pub(super) fn first_member(&self, layer: u32) -> StackMember {
        self.member(layer, 0)
    }

    pub(super) fn io_context_of(&self, layer: u32) -> IoContextId {
        self.layers[layer as usize].io_context
    }

    pub(super) fn parity_of(&mut self, layer: u32) -> Option<&mut Parity> {
        self.layers[layer as usize].parity.as_mut()
    }

    /// A thread has to run.
    pub(crate) fn unpark(&mut self, layer: u32) {
        if !std::mem::replace(&mut self.threads[layer as usize].is_woken, true) {
            self.called.push((layer, false));
        }
    }

    /// A thread does its work for its layer: makes the bios that it now submits to disks.
    pub(crate) fn work(&mut self, now: Instant, layer: u32) {
        (self.now, self.submitting_task, self.submitting_cpu) = (now, None, CpuId(0));
        let thread = &mut self.threads[layer as usize];
        thread.is_woken = false;
        let mut encrypted: Vec<(Bio, u32)> = Vec::new();
        for assignment in std::mem::take(&mut thread.inbox) {
            match assignment {
                Assignment::Descend(bio, join) => {
                    let sectors = bio.sectors;
                    self.descend(layer, bio, join);
                    // What was outstanding for the bio as a whole now is for its parts.
                    self.part_ended(join, sectors, Status::Ok);
                }
                Assignment::Pass(bio, join) => encrypted.push((bio, join)),
            }
        }
        encrypted.sort_by_key(|(bio, _)| bio.sector);
        for (bio, join) in encrypted {
            let sectors = bio.sectors;
            self.pass(self.first_member(layer), bio, join);
            self.part_ended(join, sectors, Status::Ok);
        }
        if self.layers[layer as usize].parity.is_some() {
            self.work_stripes(layer);
        }
        self.work_bitmap(layer);
        self.threads[layer as usize].pending.append(&mut self.made);
        self.end_refused();
    }

    pub(crate) fn thread(&mut self, layer: u32) -> &mut Thread {
        &mut self.threads[layer as usize]
    }
}
