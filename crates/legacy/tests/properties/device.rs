//! A device that sometimes refuses, or answers at once, with a driver on each CPU; and a probe that keeps count.

use hoistway_blk::bio::Status;
use hoistway_blk::drive::{Answer, Driver, Expired, Refusal};
use hoistway_blk::ground::{CpuId, HctxId, Instant, Nanos, Now, RqId};
use hoistway_blk::queue::QueueConfig;
use hoistway_blk::request::Rq;
use hoistway_blk::watch::{Event, Probe};

use crate::support::Random;

/// The shortest `io_timeout` of any load.
pub const TIMEOUT_MIN: Nanos = Nanos::from_millis(100);

pub struct Device {
    random: Random,
    depth: u32,
    /// One tag space for all hardware queues.
    host_wide: bool,
    /// Every refusal may promise a completion.
    promises: bool,
    /// Pieces of budget that are left, and whether a queue was refused one.
    budget: u32,
    short_of_budget: bool,
    refuses: bool,
    /// What each CPU's driver has started.
    in_flight: Vec<Vec<Rq>>,
    /// The CPU whose driver is called.
    cpu: CpuId,
    /// How often it was notified of a request that took too long.
    pub timeouts: u64,
    /// First sectors of the requests that were started, in order.
    pub issued: Vec<u64>,
}

impl Device {
    pub fn new(random: Random, config: &QueueConfig, is_legacy: bool, mut chance: Random) -> Self {
        Device {
            random,
            depth: config.queue_depth,
            host_wide: config.host_wide_tags,
            promises: is_legacy,
            budget: if chance.one_in(2) { 1 + chance.below(4) as u32 } else { u32::MAX / 2 },
            short_of_budget: false,
            refuses: chance.one_in(2),
            in_flight: (0..config.cpus).map(|_| Vec::new()).collect(),
            cpu: CpuId(0),
            timeouts: 0,
            issued: Vec::new(),
        }
    }

    /// The driver of a CPU.
    pub fn driver_of(&mut self, cpu: CpuId) -> &mut Self {
        self.cpu = cpu;
        self
    }

    /// What all drivers have started.
    pub fn in_flight(&self) -> impl Iterator<Item = &Rq> {
        self.in_flight.iter().flatten()
    }

    /// Takes any request out of flight.
    pub fn take_one(&mut self, random: &mut Random) -> Option<Rq> {
        let count = self.in_flight().count() as u64;
        let mut at = if count > 0 { random.below(count) as usize } else { return None };
        let of_cpu = self.in_flight.iter_mut().find(|of_cpu| {
            let is_there = at < of_cpu.len();
            at -= if is_there { 0 } else { of_cpu.len() };
            is_there
        });
        of_cpu.map(|of_cpu| of_cpu.swap_remove(at))
    }

    /// Its budget is free; returns whether a queue was short of it.
    pub fn release(&mut self, has_budget: bool) -> bool {
        self.budget += u32::from(has_budget);
        std::mem::take(&mut self.short_of_budget)
    }
}

impl Driver for Device {
    fn get_budget(&mut self, _: HctxId) -> bool {
        if self.budget == 0 {
            self.short_of_budget = true;
            return false;
        }
        self.budget -= 1;
        true
    }

    fn put_budget(&mut self, _: HctxId) {
        self.budget += 1;
    }

    fn queue_rq(&mut self, _: Now, rq: Rq, _: bool) -> Answer {
        let tag = rq.driver_tag.expect("what is sent has a driver tag");
        assert!(tag < self.depth, "tag {tag} of {}", self.depth);
        let same_space = |other: &&Rq| self.host_wide || other.hctx == rq.hctx;
        assert!(self.in_flight().filter(same_space).all(|other| other.driver_tag != Some(tag)), "tag {tag} twice");
        if self.refuses && self.random.one_in(8) {
            let promised = self.promises || self.in_flight().any(|other| other.hctx == rq.hctx);
            return match self.random.below(8) {
                0..2 => {
                    // The budget of a request that reached the driver is the driver's to return.
                    self.budget += 1;
                    Answer::Done(rq, self.random.pick(&[Status::Ok, Status::Medium]))
                }
                2..4 if promised => Answer::Refused(rq, Refusal::UntilCompletion),
                _ => Answer::Refused(rq, Refusal::Busy),
            };
        }
        self.issued.push(rq.sector.0);
        self.in_flight[self.cpu.index()].push(rq);
        Answer::Queued
    }

    fn timed_out(&mut self, now: Instant, id: RqId) -> Expired {
        let rq = self.in_flight[self.cpu.index()].iter().find(|rq| rq.id() == id).expect("this driver has started it");
        assert!(now.since(rq.issued) >= TIMEOUT_MIN, "issued at {:?}", rq.issued);
        self.timeouts += 1;
        if self.random.one_in(2) { Expired::RestartTimeout } else { Expired::Handled }
    }
}

/// Counts the events that must balance.
#[derive(Default)]
pub struct Balance {
    pub allocated: u64,
    pub absorbed: u64,
    pub issued: u64,
    pub returned: u64,
    pub completed: u64,
    pub ended: u64,
}

impl Probe for Balance {
    fn event(&mut self, _: Now, _: CpuId, event: Event<'_>) {
        match event {
            Event::GetRq(_) => self.allocated += 1,
            Event::Absorbed(_) => self.absorbed += 1,
            Event::Issue(_) => self.issued += 1,
            Event::Requeue(_) => self.returned += 1,
            Event::Complete(..) => self.completed += 1,
            Event::End(_) => self.ended += 1,
            _ => {}
        }
    }
}
