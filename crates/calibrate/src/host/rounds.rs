//! The rounds of a measurement, each of which measures everything once.

use std::time::Duration;

use hoistway_blk::ground::{NoMeter, Site};
use hoistway_blk::policy::{ContentionOptions, Insertion};
use hoistway_blk::queue::SCHEDULERS;
use hoistway_blk::schedulers::NONE;
use hoistway_engine::Null;

use super::caches;
use super::costs::{Contention, Costs, FarHandover, KernelCost, MeasuredOperation, SchedulerCost, Sleep};
use super::engine_load::cpu_ns_per_io;
use super::figure::MedianOfRounds;
use super::handing_over;
use super::kernel::{self, NullDevice, Paths};
use super::machine::allowed_cpus;
use super::queue_load::{self, Spent};
use super::stopwatch::{Sections, Stopwatch, Tally};
use super::waking;

const ONE_THREAD: Duration = Duration::from_millis(15);
const SEVERAL_THREADS: Duration = Duration::from_millis(20);
const ENGINE: Duration = Duration::from_millis(30);
const SWITCHES: u32 = 1000;
/// A sleep after which the CPU has just become idle.
const SHORT_SLEEP: Duration = Duration::from_micros(20);
const SHORT_SLEEPS: usize = 100;
/// Longer sleeps, and how often each is measured.
const SLEEPS: [(Duration, usize); 4] = [
    (Duration::from_micros(100), 40),
    (Duration::from_micros(400), 20),
    (Duration::from_millis(1), 15),
    (Duration::from_millis(3), 7),
];
/// Maximum threads at a time.
const THREADS_MAX: usize = 32;
/// The scheduler for measuring hand-overs between CPUs, because it has a single lock and short critical sections.
const HANDOVER_SCHEDULER: &str = "mq-deadline";

/// No contention options, as in Linux.
const PLAIN: ContentionOptions = ContentionOptions::NONE;
/// Contention options with which requests are put on lists for the next dispatcher.
const LISTS: ContentionOptions = ContentionOptions { insertion: Insertion::Pending, ..PLAIN };

/// Lock sites that Linux also has under a scheduler's locks, with their names.
const OPERATIONS: [(Site, &str); 6] = [
    (Site::Merge, "merge"),
    (Site::Insert, "insert"),
    (Site::Dispatch, "dispatch"),
    (Site::Finish, "finish"),
    (Site::SoftwareQueue, "software queue"),
    (Site::HardwareQueue, "hardware queue"),
];

/// Measurements of a scheduler so far.
#[derive(Default)]
struct SchedulerMeasurements {
    per_io: Vec<f64>,
    section: Vec<f64>,
    beside: Vec<f64>,
    sections: u64,
    ios: u64,
    operations: [(Vec<f64>, u64); OPERATIONS.len()],
    rates: Vec<Vec<f64>>,
}

/// Measurements so far.
pub(super) struct Rounds {
    /// The first one and those that share its last-level cache, then the others.
    cpus: Vec<usize>,
    /// Number of the former, if the kernel shows it.
    cache_cpus: Option<usize>,
    /// Thread counts above one.
    threads: Vec<usize>,
    clock_ns: f64,
    device: Result<NullDevice, String>,
    schedulers: [SchedulerMeasurements; SCHEDULERS.len()],
    engine: Vec<f64>,
    submit_share: Vec<f64>,
    list: Vec<f64>,
    lock: Vec<f64>,
    data: Vec<f64>,
    far_lock: Vec<f64>,
    far_data: Vec<f64>,
    growth: Vec<f64>,
    switch: Vec<f64>,
    /// Low and high percentile of the wake-up time, and the waker's CPU time.
    wake: [Vec<f64>; 3],
    sleeps: [Vec<f64>; SLEEPS.len()],
    worker: [Vec<f64>; 2],
    kernel: Vec<Vec<f64>>,
    finished: u32,
}

impl Rounds {
    pub(super) fn begin(paths: &Paths) -> Self {
        let mut cpus = allowed_cpus();
        let sharing = caches::sharing(&paths.sys_cpu, cpus[0]);
        cpus.sort_by_key(|cpu| sharing.as_ref().is_some_and(|sharing| !sharing.contains(cpu)));
        let cache_cpus = sharing.map(|sharing| cpus.iter().filter(|&cpu| sharing.contains(cpu)).count());
        let threads = (2..=cpus.len().min(THREADS_MAX)).filter(|n| *n <= 8 || n.is_power_of_two()).collect();
        Rounds {
            threads,
            clock_ns: Stopwatch::clock_ns(),
            device: kernel::find(paths).and_then(|device| {
                if device.has_none() { Ok(device) } else { Err(format!("{} does not offer none", device.name)) }
            }),
            schedulers: Default::default(),
            engine: Vec::new(),
            submit_share: Vec::new(),
            list: Vec::new(),
            lock: Vec::new(),
            data: Vec::new(),
            far_lock: Vec::new(),
            far_data: Vec::new(),
            growth: Vec::new(),
            switch: Vec::new(),
            wake: Default::default(),
            sleeps: Default::default(),
            worker: Default::default(),
            kernel: Vec::new(),
            finished: 0,
            cache_cpus: cache_cpus.filter(|&shared| shared > 0),
            cpus,
        }
    }

    /// Measures one more round.
    pub(super) fn measure_round(&mut self) -> Result<(), String> {
        let mut none_per_io_ns = None;
        for index in 0..SCHEDULERS.len() {
            self.measure_scheduler(index, &mut none_per_io_ns)?;
        }
        let engine = cpu_ns_per_io(Null::new(1 << 21), ENGINE)?;
        self.engine.push(engine);
        self.measure_kernel(engine)?;
        self.measure_lists()?;
        self.measure_locks()?;
        self.measure_threads()?;
        self.finished += 1;
        Ok(())
    }

    /// Measures a scheduler. `none_per_io_ns` is the CPU time per I/O under none, which is measured first, ns.
    fn measure_scheduler(&mut self, index: usize, none_per_io_ns: &mut Option<f64>) -> Result<(), String> {
        let name = SCHEDULERS[index];
        let one_cpu = &self.cpus[..1];
        let plain =
            queue_load::run(name, PLAIN, one_cpu, ONE_THREAD, |_| NoMeter).map_err(|error| error.to_string())?;
        let timed =
            queue_load::run(name, PLAIN, one_cpu, ONE_THREAD, Stopwatch::new).map_err(|error| error.to_string())?;
        let measurements = &mut self.schedulers[index];
        let (spent, _) = plain[0];
        let per_io = spent.cpu_ns as f64 / spent.ios.max(1) as f64;
        measurements.per_io.push(per_io);
        if name == NONE.name {
            *none_per_io_ns = Some(per_io);
            let both = (spent.submit_ns + spent.complete_ns) as f64;
            // Zero if every batch was interrupted.
            if both > 0.0 {
                self.submit_share.push(spent.submit_ns as f64 / both);
            }
        } else {
            measurements.add_measurements(&timed[0], self.clock_ns, per_io - none_per_io_ns.unwrap_or(per_io));
        }
        measurements.rates.resize(self.threads.len() + 1, Vec::new());
        measurements.rates[0].push(rate(&[spent]));
        for (&threads, rates) in self.threads.iter().zip(&mut measurements.rates[1..]) {
            let all = queue_load::run(name, PLAIN, &self.cpus[..threads], SEVERAL_THREADS, |_| NoMeter)
                .map_err(|error| error.to_string())?;
            rates.push(rate(&all.iter().map(|(spent, _)| *spent).collect::<Vec<_>>()));
        }
        Ok(())
    }

    fn measure_kernel(&mut self, engine_ns: f64) -> Result<(), String> {
        let Ok(device) = &self.device else { return Ok(()) };
        self.kernel.resize(device.schedulers.len(), Vec::new());
        for (scheduler, costs) in device.schedulers.iter().zip(&mut self.kernel) {
            match device.cpu_ns_per_io(scheduler, ENGINE) {
                Ok(ns) => costs.push((ns - engine_ns).max(0.0)),
                // Continue without the kernel's schedulers: everything else can still be measured.
                Err(why) => {
                    self.device = Err(why);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn measure_lists(&mut self) -> Result<(), String> {
        let timed = queue_load::run(HANDOVER_SCHEDULER, LISTS, &self.cpus[..1], ONE_THREAD, Stopwatch::new)
            .map_err(|error| error.to_string())?;
        let [left, taken] = [Site::Leave, Site::Take].map(|site| timed[0].1.at(site).both());
        self.list.extend(left.plus(taken).mean_ns(self.clock_ns));
        Ok(())
    }

    fn measure_locks(&mut self) -> Result<(), String> {
        let Some(alone) = handing_over::handover_ns(&self.cpus[..1], 0.0) else { return Ok(()) };
        let points: Vec<[f64; 2]> = self
            .threads
            .iter()
            .filter_map(|&threads| {
                Some([threads as f64 - 1.0, handing_over::handover_ns(&self.cpus[..threads], alone)?])
            })
            .collect();
        self.lock.extend(points.iter().filter(|point| point[0] == 1.0).map(|point| point[1]));
        self.growth.extend(handing_over::growth_ns(&points));
        if self.cpus.len() > 1 {
            self.data.extend(data_ns(&self.cpus[..2])?);
        }
        if let Some(&far) = self.cache_cpus.and_then(|shared| self.cpus.get(shared)) {
            let pair = [self.cpus[0], far];
            self.far_lock.extend(handing_over::handover_ns(&pair, alone));
            self.far_data.extend(data_ns(&pair)?);
        }
        Ok(())
    }

    fn measure_threads(&mut self) -> Result<(), String> {
        let pair = [self.cpus[0], self.cpus[self.cpus.len() - 1]];
        self.switch.push(waking::switch_ns(pair[0], SWITCHES));
        let short = waking::reaction(pair, SHORT_SLEEP, SHORT_SLEEPS);
        for (times, ns) in self.wake.iter_mut().zip([short.low, short.high, short.waker]) {
            times.push(ns);
        }
        for ((slept, count), times) in SLEEPS.into_iter().zip(&mut self.sleeps) {
            times.push((waking::reaction(pair, slept, count).median - short.median).max(0.0));
        }
        let worker = waking::worker(pair, SHORT_SLEEP, SHORT_SLEEPS)?;
        for (times, ns) in self.worker.iter_mut().zip([worker.low, worker.high]) {
            times.push(ns);
        }
        Ok(())
    }

    /// All costs, if at least one round was measured; `requested` is the number of requested rounds.
    pub(super) fn end(self, requested: u32) -> Option<Costs> {
        let threads: Vec<usize> = std::iter::once(1).chain(self.threads).collect();
        let schedulers = SCHEDULERS
            .into_iter()
            .zip(self.schedulers)
            .map(|(name, measurements)| measurements.end(name, &threads))
            .collect::<Option<Vec<_>>>()?;
        let kernel = self.device.and_then(|device| {
            let figures = device.schedulers.iter().cloned().zip(self.kernel);
            let per_io: Option<Vec<_>> =
                figures.map(|(name, costs)| Some((name, MedianOfRounds::of(costs)?))).collect();
            let per_io = per_io.ok_or_else(|| format!("{}: no round ended", device.name))?;
            Ok(KernelCost { device: device.name.clone(), per_io })
        });
        let [low, high, waker] = self.wake.map(MedianOfRounds::of);
        let [worker_low, worker_high] = self.worker.map(MedianOfRounds::of);
        let sleeps = SLEEPS.into_iter().zip(self.sleeps).map(|((slept, _), times)| {
            Some(Sleep { slept_ns: slept.as_nanos() as u64, wake: MedianOfRounds::of(times)? })
        });
        Some(Costs {
            cpus: self.cpus.len(),
            cache_cpus: self.cache_cpus,
            rounds: [self.finished, requested],
            engine: MedianOfRounds::of(self.engine)?,
            submit_share: MedianOfRounds::of(self.submit_share)?,
            schedulers,
            list: MedianOfRounds::of(self.list)?,
            contention: MedianOfRounds::of(self.lock).map(|lock| Contention {
                lock,
                data: MedianOfRounds::of(self.data),
                growth: MedianOfRounds::of(self.growth),
                far: MedianOfRounds::of(self.far_lock)
                    .map(|lock| FarHandover { lock, data: MedianOfRounds::of(self.far_data) }),
            }),
            switch: MedianOfRounds::of(self.switch)?,
            wake: [low?, high?],
            waker: waker?,
            sleeps: sleeps.collect::<Option<_>>()?,
            worker: [worker_low?, worker_high?],
            kernel,
        })
    }
}

impl SchedulerMeasurements {
    /// Records the meter readings of a scheduler, and its additional time per I/O compared with none.
    fn add_measurements(&mut self, (spent, watch): &(Spent, Stopwatch), clock_ns: f64, additional_ns: f64) {
        let mut all = Tally::default();
        for ((site, _), (means, times)) in OPERATIONS.iter().zip(&mut self.operations) {
            let tally = watch.at(*site).both();
            means.extend(tally.mean_ns(clock_ns));
            *times += tally.times;
            all = all.plus(tally);
        }
        self.sections += all.times;
        self.ios += spent.ios;
        let Some(section) = all.mean_ns(clock_ns) else { return };
        self.section.push(section);
        self.beside.push(additional_ns - section * all.times as f64 / spent.ios.max(1) as f64);
    }

    fn end(self, name: &'static str, threads: &[usize]) -> Option<SchedulerCost> {
        let ios = self.ios.max(1) as f64;
        let operations = OPERATIONS.iter().zip(self.operations).filter_map(|((_, name), (means, times))| {
            Some(MeasuredOperation { name, time: MedianOfRounds::of(means)?, per_io: times as f64 / ios })
        });
        Some(SchedulerCost {
            name,
            per_io: MedianOfRounds::of(self.per_io)?,
            sections_per_io: self.sections as f64 / ios,
            section: MedianOfRounds::of(self.section),
            beside: MedianOfRounds::of(self.beside),
            operations: operations.collect(),
            rates: threads
                .iter()
                .zip(self.rates)
                .filter_map(|(&n, rates)| Some((n, MedianOfRounds::of(rates)?)))
                .collect(),
        })
    }
}

/// Time by which a section is longer if its data comes from the other of these two CPUs; `None` if that hardly occurred.
fn data_ns(pair: &[usize]) -> Result<Option<f64>, String> {
    let threads = queue_load::run(HANDOVER_SCHEDULER, PLAIN, pair, SEVERAL_THREADS, Stopwatch::new)
        .map_err(|error| error.to_string())?;
    let sections = threads.iter().flat_map(|(_, watch)| OPERATIONS.map(|(site, _)| watch.at(site)));
    // Separately per operation, since some follow a hand-over more often than others.
    let mut handed_over = Tally::default();
    let mut extra = 0.0;
    for Sections { own, handed } in sections {
        if let (Some(own), Some(after)) = (own.mean_ns(0.0), handed.mean_ns(0.0)) {
            extra += (after - own) * handed.times as f64;
            handed_over = handed_over.plus(handed);
        }
    }
    Ok((handed_over.times > 100).then(|| (extra / handed_over.times as f64).max(0.0)))
}

/// I/Os per second of all threads together.
fn rate(all: &[Spent]) -> f64 {
    all.iter().map(|spent| spent.ios as f64 / (spent.ns as f64 / 1e9).max(1e-9)).sum()
}
