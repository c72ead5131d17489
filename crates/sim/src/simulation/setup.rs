//! Setup of a simulation: disks, and the tasks that use them.

use hoistway_blk::caller::Caller;
use hoistway_blk::drive::Effects;
use hoistway_blk::ground::{CgroupId, Hz, Instant, Nanos};
use hoistway_blk::policy::Insertion;
use hoistway_blk::schedulers::NONE;
use hoistway_blk::sysfs::AttributeError;
use hoistway_blk::watch::Probe;
use hoistway_load::process::{Flows, Phases, SteadyStates};
use hoistway_measure::Setting;

use super::Simulation;
use super::late_interrupts::LateInterrupts;
use crate::administration::Fate;
use crate::cgroups::Cgroups;
use crate::clock::TickClock;
use crate::cpu::Cpus;
use crate::disk::{QueueSettings, SimulatedDisk};
use crate::driver::Backing;
use crate::events::EventQueue;
use crate::guests::Guests;
use crate::identity::Sleeper;
use crate::incidental::{FirstCpus, first_interrupt, starts};
use crate::io_thread::IoThread;
use crate::locks::{LockMeter, SectionCost};
use crate::page_cache::PageCache;
use crate::scenario::{RunError, RunSpec, Scenario};
use crate::span::Span;
use crate::stacked_device::StackedDevice;
use crate::stacks::Layers;
use crate::submitter::Submitter;
use crate::task::{Placement, Task};
use crate::throttling::Throttling;

impl<'a, P: Probe> Simulation<'a, P> {
    pub(super) fn new(scenario: &'a Scenario<'a>, spec: &RunSpec, probe: P) -> Result<Self, RunError> {
        scenario.workload.check()?;
        let hz = scenario.queue.kernel.generation().hz;
        let cgroups = Cgroups::from_load(scenario.workload);
        let host_cgroups = scenario.guests.as_ref().map(|guests| guests.cgroups(&scenario.workload.files));
        let mut caller = Caller::new();
        let effects = &mut caller.effects;
        let mut disks = match (&scenario.guests, &spec.guest) {
            (None, None) => devices(scenario, spec, effects)?,
            (Some(guests), Some(guest)) => stacked(scenario, spec, guests, guest, effects)?,
            _ => return Err(RunError::Guests),
        };
        let start = hz.now(Instant::ZERO);
        for (index, disk) in (0..).zip(&mut disks) {
            disk.section = SectionCost::for_scheduler(
                &scenario.host,
                scenario.queue.cpus,
                &scenario.queue.schedulers,
                disk.queue.scheduler(),
            );
            let cgroups = host_cgroups.as_ref().filter(|_| !disk.is_used_by_tasks).unwrap_or(&cgroups);
            cgroups.announce_to(&disk.queue, start, effects);
            let io_max = cgroups.throttle(&scenario.queue.io_max, start).filter(|_| disk.is_used_by_tasks);
            let io_cost = scenario.queue.io_cost.get(index as usize).copied().flatten();
            let io_cost = io_cost.map(|settings| cgroups.io_cost(&settings, &scenario.queue.io_weight));
            let targets = scenario.queue.io_latency.get(index as usize).map_or(&[][..], Vec::as_slice);
            let io_latency =
                cgroups.io_latency(targets, disk.driver.backing.shape().rotational, disk.queue.nr_requests());
            let worker = Submitter::new(&disk.queue, Sleeper::Limits(index).waiter());
            let throttling = Throttling::new(io_max, io_cost, io_latency, worker);
            disk.throttling = throttling.is_needed().then(|| Box::new(throttling));
        }
        let layers = layers(scenario, &disks)?;
        let tasks = tasks(scenario, spec, &cgroups, &disks, layers.as_deref())?;
        let files = &disks[..scenario.file_disks()];
        Ok(Simulation {
            workload: scenario.workload,
            now: Instant::ZERO,
            clock: TickClock::new(hz),
            events: EventQueue::default(),
            late: LateInterrupts::default(),
            release: Nanos(scenario.host.release_ns()),
            start: Nanos(scenario.host.start_ns()),
            starts: starts(spec.seed),
            cpus: Cpus::new(&scenario.host, scenario.queue.cpus, spec.seed),
            caller,
            meter: LockMeter::new(scenario.queue.cpus),
            host: &scenario.host,
            schedulers: &scenario.queue.schedulers,
            last_submitter: 0,
            page_cache: PageCache::for_load(scenario.workload, files, &scenario.host).map(Box::new),
            disks,
            layers,
            cgroups,
            host_cgroups,
            writes: &scenario.queue.writes,
            fates: vec![Fate::TooLate; scenario.queue.writes.len()],
            may_delegate_insertion: scenario.queue.contention_options.insertion != Insertion::Direct,
            tasks,
            flows: Flows::new(&scenario.workload.processes),
            steady: SteadyStates::new(&scenario.workload.processes),
            phases: Phases::new(&scenario.workload.processes),
            ios: 0,
            probe,
        })
    }
}

/// The stacked devices of a load.
fn layers(scenario: &Scenario<'_>, disks: &[SimulatedDisk]) -> Result<Option<Box<Layers>>, RunError> {
    let (stacks, workload) = (&scenario.queue.stacks, scenario.workload);
    if stacks.is_empty() {
        return Ok(None);
    }
    let first = scenario.file_disks();
    let buffers = |process: &&hoistway_load::Process| !process.caching.direct;
    let is_buffered = workload
        .processes
        .iter()
        .filter(buffers)
        .any(|process| process.files.iter().any(|&file| file as usize >= first));
    let is_complete = first + StackedDevice::outermost(stacks).count() == workload.files.len();
    if is_buffered || !is_complete || scenario.guests.is_some() {
        return Err(RunError::Stacks);
    }
    Ok(Some(Layers::over(stacks, disks, workload.processes.len())))
}

/// Separates the random streams of disks.
fn seed_of(seed: u64, disk: usize) -> u64 {
    seed ^ (disk as u64 + 1) << 32
}

/// The disks of a load that runs on the host itself: a device for each file.
fn devices(scenario: &Scenario<'_>, spec: &RunSpec, effects: &mut Effects) -> Result<Vec<SimulatedDisk>, RunError> {
    let mut tags = None;
    let mut disks = Vec::with_capacity(scenario.devices.len());
    let first_interrupt = first_interrupt(spec.seed, scenario.queue.cpus);
    for (index, preset) in scenario.devices.iter().enumerate() {
        let seed = seed_of(spec.seed, index);
        let backing = Backing::of(preset, seed);
        // Devices behind one controller share its interrupts.
        let number = first_interrupt + if scenario.queue.shared_tags { 0 } else { index };
        let mut disk = SimulatedDisk::new(backing, &scenario.queue, &spec.setting, (number, seed), &mut tags)?;
        let hz = scenario.queue.kernel.generation().hz;
        write(&mut disk, &spec.setting, hz, effects)?;
        disks.push(disk);
    }
    Ok(disks)
}

/// The disks of a load that runs in guests: a virtual disk for each file, and the host's device below them.
fn stacked(
    scenario: &Scenario<'_>,
    spec: &RunSpec,
    guests: &Guests,
    guest: &Setting,
    effects: &mut Effects,
) -> Result<Vec<SimulatedDisk>, RunError> {
    let Ok([mut host_disk]) = <[SimulatedDisk; 1]>::try_from(devices(scenario, spec, effects)?) else {
        return Err(RunError::Guests);
    };
    host_disk.is_used_by_tasks = false;
    host_disk.host_worker = Some(Span::new(guests.disk.worker_ns));
    let hz = scenario.queue.kernel.generation().hz;
    let QueueSettings { kernel, cpus, ref schedulers, .. } = scenario.queue;
    let queue = QueueSettings { schedulers: schedulers.clone(), ..QueueSettings::new(kernel, cpus) };
    let (count, processes) = (scenario.workload.files.len(), scenario.workload.processes.len());
    let mut disks = Vec::with_capacity(count + 1);
    for number in 0..count {
        // The host's device has the first stream, as in a run without guests.
        let seed = seed_of(spec.seed, number + 1);
        let identity = guests.io_thread_identity(number as u32, count, processes, scenario.queue.cpus);
        let shape = guests.disk.shape(host_disk.driver.shape(), count);
        let thread = IoThread::new(&guests.disk, shape, &host_disk.queue, &identity, seed);
        let mut disk = SimulatedDisk::new(Backing::Thread(Box::new(thread)), &queue, guest, (number, seed), &mut None)?;
        write(&mut disk, guest, hz, effects)?;
        disks.push(disk);
    }
    disks.push(host_disk);
    Ok(disks)
}

/// Makes the writes of a setting; the number of requests was known when the queue was made.
fn write(disk: &mut SimulatedDisk, setting: &Setting, hz: Hz, effects: &mut Effects) -> Result<(), RunError> {
    let now = hz.now(Instant::ZERO);
    for (file, text) in setting.queue_files() {
        let result = match file {
            "nr_requests" if setting.nr_requests().is_some() => Ok(()),
            "nr_requests" => Err(AttributeError::Invalid),
            _ => disk.queue.set_attribute(now, file, text, effects),
        };
        // Rejected without a scheduler, but valid for the other schedulers of a comparison.
        if file == "async_depth" && disk.queue.scheduler() == NONE.name && result == Err(AttributeError::Invalid) {
            continue;
        }
        result.map_err(|error| RunError::Attribute { file: file.to_owned(), text: text.to_owned(), error })?;
    }
    for (name, text) in setting.tunables() {
        disk.queue.set_tunable(now, name, text, effects).map_err(|error| RunError::Tunable {
            scheduler: setting.scheduler.clone(),
            name: name.to_owned(),
            text: text.to_owned(),
            error,
        })?;
    }
    Ok(())
}

/// The load's processes.
fn tasks(
    scenario: &Scenario<'_>,
    spec: &RunSpec,
    cgroups: &Cgroups,
    disks: &[SimulatedDisk],
    layers: Option<&Layers>,
) -> Result<Vec<Task>, RunError> {
    let mut tasks = Vec::with_capacity(scenario.workload.processes.len());
    let mut first_cpus = FirstCpus::new(spec.seed, scenario.queue.cpus);
    let can_poll =
        scenario.guests.is_none() && scenario.queue.poll_queues > 0 && !disks.iter().any(|disk| disk.queue.is_legacy());
    for (number, process) in (0..).zip(&scenario.workload.processes) {
        let capacity = |file: usize| {
            let disk = process.files.get(file).map_or(0, |&disk| disk);
            let stacked = layers.and_then(|layers| layers.capacity_of(disk));
            stacked.unwrap_or_else(|| disks[disk as usize].driver.shape().capacity_sectors) * 512
        };
        let generator = process.generator(number, spec.seed, capacity)?;
        let disks_below = |&file: &u32| layers.map_or(&[][..], |layers| layers.disks_below(file)).iter().copied();
        let below: Vec<u32> = process.files.iter().flat_map(disks_below).collect();
        let cgroup = process.standing.cgroup.as_deref().and_then(|path| cgroups.find(path)).unwrap_or(CgroupId::ROOT);
        // Each process of a guest runs on one CPU, assigned in turn.
        let guest_cpu = scenario.guests.as_ref().map(|_| [number % u32::from(scenario.queue.cpus)]);
        let allowed = process.standing.cpus.as_deref();
        let cpu = first_cpus.next(allowed.or(guest_cpu.as_ref().map(<[u32; 1]>::as_slice)));
        let placement = Placement {
            number,
            cpu,
            cgroup,
            priority: cgroups.priority(cgroup, &scenario.queue.io_prio_class, disks),
            polls: process.issue.polls && can_poll && below.is_empty(),
            seed: spec.seed,
            runtime: scenario.runtime,
        };
        let submitter = |file: u32| {
            // Bios for a stacked device never reach a queue as they are.
            let disk = layers.and_then(|layers| layers.disks_below(file).first()).copied().unwrap_or(file);
            Submitter::new(&disks[disk as usize].queue, Sleeper::Task(number).waiter())
        };
        let mut task = Task::new(process, generator, submitter, &placement);
        below.into_iter().for_each(|disk| task.add_disk_below(disk, submitter(disk)));
        tasks.push(task);
    }
    Ok(tasks)
}
