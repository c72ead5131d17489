//! What processes of a load do.

use hoistway_blk::bio::{Bio, BioFlags, IoPriority, Op, PriorityClass};
use hoistway_blk::ground::Tunable;
use hoistway_blk::ground::{CgroupId, IoContextId, Sector};
use hoistway_blk::policy::SchedulerEvent;

use super::{TASKS, World};
use crate::support::Random;

/// What a load is like.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// All I/O is of one priority class.
    pub one_class: bool,
    /// Processes have cgroups and regions of the disk of their own.
    pub apart: bool,
    /// The first process reads as much as it can, the others have one I/O at a time.
    pub greedy: bool,
    /// Many writes are write-back, some of swap.
    pub buffered: bool,
    /// Files of `queue/` are written.
    pub host_disks: bool,
    /// Processes depart while they sleep.
    pub departing: bool,
    /// Time passes so fast that the device takes too long for some requests.
    pub slow: bool,
}

impl Habits {
    pub fn random(random: &mut Random) -> Self {
        let apart = random.one_in(2);
        Habits {
            one_class: apart || random.one_in(2),
            apart,
            greedy: random.one_in(2),
            buffered: random.one_in(2),
            host_disks: random.one_in(2),
            departing: random.one_in(2),
            // (Promises of turns are not kept then.)
            slow: !apart && random.one_in(2),
        }
    }
}

/// Tunables with which waits are short, so that it shows if one is not: name, least, and how many values.
const SHORT_WAITS: [(&str, u64, u64); 7] = [
    ("fifo_batch", 1, 4),
    ("writes_starved", 1, 2),
    ("read_expire", 1, 20),
    ("write_expire", 1, 50),
    ("prio_aging_expire", 20, 60),
    ("low_latency", 0, 1),
    ("max_budget", 128, 512),
];

impl World {
    /// Something to write to a tunable that refuses what is out of its range: within it, at its ends, beyond them, or no number.
    pub(super) fn text_for(&mut self, tunable: &Tunable) -> String {
        let Tunable { min, max, default, .. } = *tunable;
        let small = min + i128::from(self.random.below(20));
        let number = self.random.pick(&[small, small, small, default, min, max, min - 1, max + 1]);
        if self.random.one_in(20) {
            self.random.pick(&["", "-", "1x", "0x4", " 1"]).to_owned()
        } else {
            number.to_string()
        }
    }

    /// Groups come, go and get weights.
    pub(super) fn random_group_event(&mut self) -> SchedulerEvent {
        let cgroup = CgroupId(self.random.below(TASKS as u64 + 1) as u32);
        match self.random.below(4) {
            0 => SchedulerEvent::CgroupAdded { cgroup, parent: CgroupId(0) },
            1 => SchedulerEvent::CgroupRemoved(cgroup),
            // (0 and more than 1000 are no weights, and may come all the same.)
            _ => SchedulerEvent::Weight { cgroup, weight: self.random.pick(&[0, 1, 10, 100, 1000, 10_000, u16::MAX]) },
        }
    }

    pub(super) fn shorten_waits(&mut self) {
        for (name, least, values) in SHORT_WAITS {
            let value = (least + self.random.below(values)).to_string();
            if self.front.tunable(name).is_ok() {
                let now = self.moment();
                self.front.set_tunable(now, name, &value, &mut self.caller.effects).expect("the value is in range");
            }
        }
    }

    pub(super) fn random_bio(&mut self, task: usize) -> Bio {
        let op = self.random.pick(&[Op::Read, Op::Read, Op::Write, Op::Write, Op::Write, Op::Discard, Op::WriteZeroes]);
        let longest = if self.random.one_in(6) { 150 } else { 16 };
        let op = if self.habits.greedy && task == 0 { Op::Read } else { op };
        let mut sectors = 1 + self.random.below(longest) as u32;
        if self.random.one_in(3) {
            self.next_sector = self.random.below(2000);
        }
        // (As far apart as two requests that bfq or cfq would take for neighbours never are.)
        let region = if self.habits.apart { (task as u64) << 24 } else { 0 };
        // Often right behind the one before, or right in front of it.
        let sector = self.next_sector;
        self.next_sector = if self.random.one_in(4) { sector.saturating_sub(8) } else { sector + u64::from(sectors) };
        let mut flags = self.random.pick(&[
            BioFlags::NONE,
            BioFlags::NONE,
            BioFlags::SYNC,
            BioFlags::SYNC.with(BioFlags::IDLE),
            BioFlags::NOMERGE,
            BioFlags::NOWAIT,
            BioFlags::PRIO,
        ]);
        if self.habits.buffered && self.random.one_in(2) {
            let kinds = [BioFlags::BACKGROUND, BioFlags::BACKGROUND, BioFlags::SYNC, BioFlags::META, BioFlags::SWAP];
            flags = self.random.pick(&kinds);
        }
        if self.habits.apart {
            // It cuts into turns, in which none could starve then.
            flags = flags.without(BioFlags::PRIO);
        }
        if op == Op::Write && self.random.one_in(8) {
            flags = self.random.pick(&[BioFlags::FUA, BioFlags::PREFLUSH, BioFlags::FUA.with(BioFlags::PREFLUSH)]);
            if flags.contains(BioFlags::PREFLUSH) && self.random.one_in(2) {
                sectors = 0;
            }
        }
        let classes =
            [PriorityClass::BestEffort, PriorityClass::BestEffort, PriorityClass::RealTime, PriorityClass::Idle];
        let class = if self.habits.one_class { PriorityClass::BestEffort } else { self.random.pick(&classes) };
        let cgroup = if self.habits.apart { 1 + task as u32 } else { task as u32 % 3 };
        let owner = self.outstanding.len() as u64;
        // bfq's and cfq's turns are bounded among processes of one level.
        let level = if self.habits.apart { 4 } else { (owner % 8) as u8 };
        self.outstanding.push(sectors.max(1));
        self.busy[task] += u64::from(sectors.max(1));
        Bio {
            flags,
            ioprio: IoPriority::new(class, level),
            io_context: IoContextId(task as u32),
            cgroup: CgroupId(cgroup),
            owner,
            ..Bio::new(op, Sector(region + sector), sectors)
        }
    }
}
