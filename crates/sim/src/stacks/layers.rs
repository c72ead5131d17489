//! The stacked devices of a run: the path of a bio down to the disks, and of completions up.
//!
//! Used by: `simulation`.
//! Tests: below, `crates/sim/tests/stacks.rs`.
//!
//! A bio that goes down becomes bios for disks, in [`Layers::begin`] those of the process, in [`Layers::work`] those of a
//! layer's thread. Each belongs to a join; the last completion of a join ends the process's bio or starts what follows.

mod bitmap;
mod crypt;
mod parity;
mod threads;

use std::collections::VecDeque;

use hoistway_blk::bio::{Bio, BioFlags, Op, Status};
use hoistway_blk::ground::{CpuId, Instant, IoContextId, Sector};

use super::geometry::{ParityLayout, Stretch, concatenated, striped};
use super::joins::{Joins, Then};
use super::mirror::Mirror;
use super::thread::{Assignment, Thread};
use crate::disk::SimulatedDisk;
use crate::identity::{local_id_of, owner_stack};
use crate::stacked_device::{StackKind, StackMember, StackedDevice};
use bitmap::Bitmap;
use crypt::CryptWork;
pub(crate) use crypt::WorkStep;
use parity::Parity;

/// A stacked device.
struct Layer {
    kind: StackKind,
    members: Vec<StackMember>,
    /// The first sector after each member, if they lie one after the other.
    ends: Vec<u64>,
    /// The disks at the bottom.
    disks: Vec<u32>,
    mirror: Option<Mirror>,
    bitmap: Option<Bitmap>,
    parity: Option<Parity>,
    /// What its thread submits with, except for bios that keep their own.
    io_context: IoContextId,
    capacity: u64,
}

/// All stacked devices of a run.
pub(crate) struct Layers {
    layers: Vec<Layer>,
    joins: Joins,
    /// The layers that files of the load lie on; their files follow those of the disks.
    outermost: Vec<u32>,
    disks: u32,
    /// The bios for disks that have just been made.
    made: VecDeque<(u32, Bio)>,
    /// Parts of joins that cannot be carried out.
    refused: Vec<(u32, u32, Status)>,
    /// The bios for disks that each process has still to submit.
    of_tasks: Vec<VecDeque<(u32, Bio)>>,
    threads: Vec<Thread>,
    /// Layers whose threads have to run and are not scheduled yet, and whether at once.
    called: Vec<(u32, bool)>,
    /// Data that is being encrypted or decrypted, by number.
    works: Vec<Option<CryptWork>>,
    /// Works that are not scheduled yet, each with the disk whose worker latency it has if a work queue does it.
    added_works: Vec<(u32, Option<u32>)>,
    /// The time of the current call.
    now: Instant,
    /// The current submitter, if it is a task, and its CPU.
    submitting_task: Option<u32>,
    submitting_cpu: CpuId,
    /// Bios of processes that have ended, in order.
    ended: VecDeque<(Bio, Status)>,
}

impl Layers {
    /// The stacked devices over these disks.
    pub(crate) fn over(devices: &[StackedDevice], disks: &[SimulatedDisk], processes: usize) -> Box<Layers> {
        let sectors: Vec<u64> = disks.iter().map(|disk| disk.driver.shape().capacity_sectors).collect();
        let capacities = StackedDevice::capacities(devices, &sectors);
        let layer = |(number, device): (usize, &StackedDevice)| {
            let size = |member: &StackMember| match *member {
                StackMember::Disk(disk) => sectors[disk as usize],
                StackMember::Stack(stack) => capacities[stack as usize],
            };
            let bottom = StackedDevice::bottom_disks(devices, number);
            let all_rotate = bottom.iter().all(|&disk| disks[disk as usize].driver.shape().rotational);
            let ends = device.members.iter().map(size).scan(0, |sum, size| {
                *sum += size;
                Some(*sum)
            });
            Layer {
                kind: device.kind,
                ends: ends.collect(),
                parity: parity_layout(device).map(Parity::new),
                // The contexts of processes come first, then those of flushers and journals.
                io_context: IoContextId((processes + 2 * disks.len() + number + 1) as u32),
                mirror: matches!(device.kind, StackKind::Raid1 { .. })
                    .then(|| Mirror::new(device.members.len(), all_rotate)),
                bitmap: (device.kind == StackKind::Raid1 { bitmap: true }).then(|| Bitmap::new(capacities[number])),
                members: device.members.clone(),
                disks: bottom,
                capacity: capacities[number],
            }
        };
        let layers: Vec<Layer> = devices.iter().enumerate().map(layer).collect();
        Box::new(Layers {
            threads: (0..).zip(&layers).map(|(number, layer)| Thread::new(number, &layer.disks, disks)).collect(),
            layers,
            joins: Joins::default(),
            outermost: StackedDevice::outermost(devices).map(|number| number as u32).collect(),
            disks: disks.len() as u32,
            made: VecDeque::new(),
            refused: Vec::new(),
            of_tasks: vec![VecDeque::new(); processes],
            called: Vec::new(),
            works: Vec::new(),
            added_works: Vec::new(),
            now: Instant::ZERO,
            submitting_task: None,
            submitting_cpu: CpuId(0),
            ended: VecDeque::new(),
        })
    }

    /// Whether a file of the load, by its number, is on a stacked device.
    pub(crate) fn has(&self, file: u32) -> bool {
        file >= self.disks
    }

    fn outermost_of(&self, file: u32) -> Option<u32> {
        self.outermost.get(file.checked_sub(self.disks)? as usize).copied()
    }

    /// The disks below a file of the load; none if it is a disk itself.
    pub(crate) fn disks_below(&self, file: u32) -> &[u32] {
        self.outermost_of(file).map_or(&[], |layer| &self.layers[layer as usize].disks)
    }

    /// Sectors of the stacked device that a file of the load is on.
    pub(crate) fn capacity_of(&self, file: u32) -> Option<u64> {
        self.outermost_of(file).map(|layer| self.layers[layer as usize].capacity)
    }

    // --- down ---

    /// A process submits a bio to a stacked device: makes the bios that the process now submits to disks.
    pub(crate) fn begin(&mut self, now: Instant, (task, cpu): (u32, CpuId), file: u32, bio: Bio) {
        let Some(layer) = self.outermost_of(file) else { return };
        (self.now, self.submitting_task, self.submitting_cpu) = (now, Some(task), cpu);
        let join = self.joins.add(0, Then::End(bio.clone()));
        self.descend(layer, bio, join);
        self.of_tasks[task as usize].append(&mut self.made);
        self.end_refused();
    }

    /// The next bio that a process has to submit to a disk.
    pub(crate) fn next_of_task(&mut self, task: u32) -> Option<(u32, Bio)> {
        self.of_tasks[task as usize].pop_front()
    }

    /// Whether a process has several bios left to submit.
    pub(crate) fn has_several(&self, task: u32) -> bool {
        self.of_tasks[task as usize].len() > 1
    }

    /// Passes a bio, as a part of a join, through a layer.
    fn descend(&mut self, number: u32, bio: Bio, join: u32) {
        if bio.sectors == 0 {
            return self.flush(number, &bio, join);
        }
        if bio.end().0 > self.layers[number as usize].capacity {
            return self.refuse(join, bio.sectors, Status::IoError);
        }
        if bio.op == Op::Write && bio.flags.contains(BioFlags::PREFLUSH) {
            return self.write_after_flush(number, bio, join);
        }
        match self.layers[number as usize].kind {
            StackKind::Linear | StackKind::Raid0 { .. } => self.split(number, &bio, join),
            StackKind::Raid1 { .. } => self.mirrored(number, &bio, join),
            StackKind::Crypt(options) => self.crypt(number, options, bio, join),
            StackKind::Raid5 { .. } | StackKind::Raid6 { .. } => match bio.op {
                Op::Read => self.split(number, &bio, join),
                Op::Write => self.queue_stripes(number, &bio, join),
                // Not safe on every disk, and off by default.
                Op::Discard | Op::WriteZeroes | Op::Flush => self.refuse(join, bio.sectors, Status::NotSupported),
            },
        }
    }

    /// Flushes all disks below a layer.
    fn flush(&mut self, number: u32, bio: &Bio, join: u32) {
        for index in 0..self.layers[number as usize].disks.len() {
            let disk = self.layers[number as usize].disks[index];
            self.pass(StackMember::Disk(disk), bio.clone(), join);
        }
    }

    /// Flushes all disks below a layer; its thread writes the data after that.
    fn write_after_flush(&mut self, number: u32, bio: Bio, join: u32) {
        self.joins.extend(join, bio.sectors);
        let flags = BioFlags::SYNC.with(BioFlags::PREFLUSH);
        let flush = Bio { sector: Sector(0), sectors: 0, segments: 1, flags, ..bio.clone() };
        let bio = Bio { flags: bio.flags.without(BioFlags::PREFLUSH), ..bio };
        let first = self.joins.add(0, Then::Write { layer: number, bio, parent: join });
        self.flush(number, &flush, first);
    }

    /// Splits a bio at the borders of members or chunks.
    fn split(&mut self, number: u32, bio: &Bio, join: u32) {
        let mut done = 0;
        while done < bio.sectors {
            let layer = &self.layers[number as usize];
            let (sector, left) = (bio.sector.0 + u64::from(done), bio.sectors - done);
            let stretch = match layer.kind {
                StackKind::Raid0 { chunk_sectors } => Some(striped(layer.members.len(), chunk_sectors, sector, left)),
                _ => match &layer.parity {
                    Some(parity) => Some(parity.layout.stretch(sector, left)),
                    None => concatenated(&layer.ends, sector, left),
                },
            };
            let Some(Stretch { member, sector, sectors }) = stretch else {
                return self.refuse(join, left, Status::IoError);
            };
            let member = layer.members[member];
            self.pass(member, part(bio, sector, sectors), join);
            done += sectors;
        }
    }

    /// Reads from one member, or writes to all.
    fn mirrored(&mut self, number: u32, bio: &Bio, join: u32) {
        let join = match bio.op {
            Op::Read => join,
            _ => match self.begin_in_bitmap(number, bio, join) {
                Some(join) => join,
                None => return,
            },
        };
        let layer = &self.layers[number as usize];
        let Some(mirror) = &layer.mirror else { return };
        let members = match bio.op {
            Op::Read => {
                let reader = mirror.reader(bio.sector.0);
                reader..reader + 1
            }
            _ => 0..layer.members.len(),
        };
        for member in members {
            let layer = &mut self.layers[number as usize];
            layer.mirror.iter_mut().for_each(|mirror| mirror.submitted(member, bio.end().0));
            let target = layer.members[member];
            let then = Then::Mirrored { layer: number, member: member as u32, sectors: bio.sectors, parent: join };
            self.joins.extend(join, bio.sectors);
            let own = self.joins.add(0, then);
            self.pass(target, bio.clone(), own);
        }
    }

    /// Passes a bio on to a member.
    fn pass(&mut self, member: StackMember, bio: Bio, join: u32) {
        match member {
            StackMember::Disk(disk) => {
                self.joins.extend(join, bio.sectors.max(1));
                self.made.push_back((disk, Bio { owner: owner_stack(join, self.submitting_task), ..bio }));
            }
            StackMember::Stack(stack) => self.descend(stack, bio, join),
        }
    }

    /// A part of a join cannot be carried out.
    fn refuse(&mut self, join: u32, sectors: u32, status: Status) {
        self.joins.extend(join, sectors);
        self.refused.push((join, sectors, status));
    }

    fn end_refused(&mut self) {
        while let Some((join, sectors, status)) = self.refused.pop() {
            self.part_ended(join, sectors, status);
        }
    }

    // --- up ---

    /// A part of a bio of a disk has completed.
    pub(crate) fn disk_bio_ended(&mut self, now: Instant, bio: &Bio, status: Status) {
        self.now = now;
        self.part_ended(local_id_of(bio), bio.sectors.max(1), status);
    }

    fn part_ended(&mut self, join: u32, sectors: u32, status: Status) {
        match self.joins.ended(join, sectors, status) {
            None => {}
            Some((Then::End(bio), status)) => self.ended.push_back((bio, status)),
            Some((Then::Write { layer, bio, parent }, Status::Ok)) => {
                self.hand_over(layer, Assignment::Descend(bio, parent), false);
            }
            Some((Then::Decrypt { layer, bio, cpu, parent }, Status::Ok)) => {
                if let StackKind::Crypt(options) = self.layers[layer as usize].kind {
                    self.decrypt(layer, options, bio, cpu, parent);
                }
            }
            Some((Then::Decrypt { bio, parent, .. }, status)) => self.part_ended(parent, bio.sectors, status),
            Some((Then::Stripe { layer, stripe }, status)) => self.stripe_ended(layer, stripe, status),
            Some((Then::Write { bio, parent, .. }, status)) => self.part_ended(parent, bio.sectors, status),
            Some((Then::InBitmap { layer, bio, parent }, status)) => {
                self.ended_in_bitmap(layer, &bio);
                self.part_ended(parent, bio.sectors, status);
            }
            Some((Then::Marked { layer }, status)) => self.bitmap_marked(layer, status),
            Some((Then::Mirrored { layer, member, sectors, parent }, status)) => {
                let mirror = &mut self.layers[layer as usize].mirror;
                mirror.iter_mut().for_each(|mirror| mirror.ended(member as usize));
                self.part_ended(parent, sectors, status);
            }
        }
    }
}

/// Where data and parity are, of a device that has parity.
fn parity_layout(device: &StackedDevice) -> Option<ParityLayout> {
    let members = device.members.len();
    match device.kind {
        StackKind::Raid5 { chunk_sectors } => Some(ParityLayout { members, parities: 1, chunk: chunk_sectors }),
        StackKind::Raid6 { chunk_sectors } => Some(ParityLayout { members, parities: 2, chunk: chunk_sectors }),
        _ => None,
    }
}

/// The part of a bio that goes to this stretch.
fn part(bio: &Bio, sector: u64, sectors: u32) -> Bio {
    // Each page is one segment.
    let segments = bio.segments.min(sectors.div_ceil(8).clamp(1, u32::from(u16::MAX)) as u16);
    Bio { sector: Sector(sector), sectors, segments, ..bio.clone() }
}
