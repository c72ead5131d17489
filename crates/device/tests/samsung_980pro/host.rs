//! The host: cores that spend some CPU time on each I/O, processes that use their drives in turn as fio does and are moved from
//! core to core, no block layer. Three of its numbers (2.62 us on one drive, 2.81 us on eight, 5.4 us of delays) come from the
//! study's own CPU cost of an I/O and from its depth-1 latency with and without a kernel. How processes come by their cores is
//! fitted to the tails of figure 11b ([`LOOKS`], [`STAYS_NS`]).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hoistway_blk::bio::Op;
use hoistway_blk::ground::{Instant, Nanos, Sector};
use hoistway_device::{Command, Device, Schedule};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// CPU time of an I/O on one drive, there under kyber, and on eight, ns.
pub const CPU_ONE_NS: u64 = 2620;
pub const CPU_ONE_KYBER_NS: u64 = 3270;
pub const CPU_EIGHT_NS: u64 = 2810;
/// What else a kernel adds to the latency, ns.
pub const KERNEL_NS: u64 = 5400;

/// How many cores a process that wakes up looks at for a free one. Its queue is that of the core, so sharing one
/// means to wait behind the other's I/O: with eight others every third read does, with four one of a hundred.
const LOOKS: u32 = 5;
/// How long a process stays on a core in the mean, ns, if there are more processes than cores. It must be long enough
/// for queues to fill where several meet; beyond that nothing depends on it.
const STAYS_NS: u64 = 200_000_000;
pub const CORES: u64 = 10;

/// A process that keeps random I/O outstanding.
#[derive(Clone, Copy)]
pub struct App {
    pub depth: u32,
    pub op: Op,
    pub sectors: u32,
    /// The core on which it begins; without one, it never waits for a core, and is the only such process.
    pub core: Option<u16>,
    pub cpu_ns: u64,
    pub kernel_ns: u64,
}

#[derive(Clone, Default)]
pub struct Measured {
    pub ios: u64,
    latency_sum_ns: u64,
    /// Of some of the I/Os.
    latencies_ns: Vec<u64>,
}

impl Measured {
    pub fn mean_us(&self) -> f64 {
        self.latency_sum_ns as f64 / self.ios.max(1) as f64 / 1e3
    }

    pub fn percentile_us(&self, part: f64) -> f64 {
        let mut sorted = self.latencies_ns.clone();
        sorted.sort_unstable();
        sorted.get((sorted.len() as f64 * part) as usize).map_or(0.0, |&ns| ns as f64 / 1e3)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Submit(u32),
    Complete(u32),
    Reap(u32),
    Alarm(usize, u32),
}

struct Host<'a> {
    drives: Vec<Box<dyn Device>>,
    apps: &'a [App],
    /// For each I/O its process and when it was created.
    ios: Vec<(usize, u64)>,
    /// For each process which drive is next.
    turns: Vec<usize>,
    /// When each core has done what it was given.
    cores: [u64; CORES as usize],
    /// For each process the core that it is on, and until when.
    places: Vec<(u16, u64)>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    random: Xoshiro256PlusPlus,
}

impl Host<'_> {
    fn push(&mut self, at: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    /// One of `0..n`.
    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.random.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// When the process has spent this much CPU time, and half of what the kernel adds has passed.
    fn spend(&mut self, number: usize, now: u64, cpu_ns: u64) -> u64 {
        let app = &self.apps[number];
        let done = if app.core.is_some() {
            let core = &mut self.cores[usize::from(self.places[number].0)];
            *core = (*core).max(now) + cpu_ns;
            *core
        } else {
            now + cpu_ns
        };
        done + app.kernel_ns / 2
    }

    fn begin(&mut self, io: u32, now: u64) {
        let number = self.ios[io as usize].0;
        self.ios[io as usize].1 = now;
        let at = self.spend(number, now, self.apps[number].cpu_ns * 2 / 3);
        self.push(at, Event::Submit(io));
    }

    /// The hardware queue: that of the core.
    fn queue(&mut self, number: usize, now: u64) -> u16 {
        if self.apps[number].core.is_none() {
            // The others are on the first cores.
            let others = self.apps.len() as u64 - 1;
            let looks: [u64; LOOKS as usize] = std::array::from_fn(|_| self.below(CORES));
            return looks.into_iter().find(|&core| core >= others).unwrap_or(looks[0]) as u16;
        }
        let (core, until) = self.places[number];
        // A process that has not slept is not moved.
        let has_slept = self.cores[usize::from(core)] <= now;
        if self.apps.len() as u64 > CORES && has_slept && now >= until {
            self.places[number] = (self.below(CORES) as u16, now + self.below(2 * STAYS_NS));
        }
        self.places[number].0
    }

    fn collect(&mut self, drive: usize, schedule: &mut Schedule) {
        for completion in schedule.completions.drain(..) {
            self.push(completion.at.0, Event::Complete(completion.tag));
        }
        for (at, alarm) in schedule.alarms.drain(..) {
            self.push(at.0, Event::Alarm(drive, alarm));
        }
    }
}

/// Runs the processes on the drives, and measures after a while.
pub fn run(drives: Vec<Box<dyn Device>>, apps: &[App], [warm_up, duration]: [Nanos; 2], seed: u64) -> Vec<Measured> {
    let ios = apps.iter().enumerate().flat_map(|(number, app)| (0..app.depth).map(move |_| (number, 0))).collect();
    let mut host = Host {
        drives,
        apps,
        ios,
        turns: (0..apps.len()).collect(),
        cores: [0; CORES as usize],
        places: apps.iter().map(|app| (app.core.unwrap_or_default(), 0)).collect(),
        events: BinaryHeap::new(),
        order: 0,
        random: Xoshiro256PlusPlus::seed_from_u64(seed),
    };
    let mut measured = vec![Measured::default(); apps.len()];
    let mut schedule = Schedule::default();
    for io in 0..host.ios.len() as u32 {
        host.begin(io, 0);
    }
    while let Some(Reverse((now, _, event))) = host.events.pop() {
        if now > (warm_up + duration).0 {
            break;
        }
        match event {
            Event::Submit(io) => {
                let number = host.ios[io as usize].0;
                let app = apps[number];
                let drive = host.turns[number] % host.drives.len();
                host.turns[number] += 1;
                let places = host.drives[drive].shape().capacity_sectors / u64::from(app.sectors);
                let place = host.below(places);
                let sector = Sector(place * u64::from(app.sectors));
                let queue = host.queue(number, now);
                let command = Command { tag: io, queue, op: app.op, sector, sectors: app.sectors, fua: false };
                host.drives[drive].submit(Instant(now), command, &mut schedule).unwrap();
                host.collect(drive, &mut schedule);
            }
            Event::Alarm(drive, alarm) => {
                host.drives[drive].wake(Instant(now), alarm, &mut schedule);
                host.collect(drive, &mut schedule);
            }
            Event::Complete(io) => {
                let number = host.ios[io as usize].0;
                let at = host.spend(number, now, apps[number].cpu_ns / 3);
                host.push(at, Event::Reap(io));
            }
            Event::Reap(io) => {
                let (number, created) = host.ios[io as usize];
                if now > warm_up.0 {
                    let of = &mut measured[number];
                    of.ios += 1;
                    of.latency_sum_ns += now - created;
                    // An eighth of deep queues is enough.
                    if apps[number].depth == 1 || io % 8 == 0 {
                        of.latencies_ns.push(now - created);
                    }
                }
                host.begin(io, now);
            }
        }
    }
    measured
}
