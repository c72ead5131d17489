//! The five steps to a setup, each a function of what those before it found: load, place, schedulers, settings, facts.

use hoistway_blk::ground::Nanos;
use hoistway_blk::queue::QueueConfig;
use hoistway_blk::schedulers::Layer;
use hoistway_device::Preset;
use hoistway_fio::JobFile;
use hoistway_sim::{Host, QueueSettings};

use crate::comparison::environment::Options;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::comparison::kernel_option::KernelOption;
use crate::comparison::{Devices, Profile};
use crate::load::job_facts::JobFacts;
use crate::load::rates::Rates;
use crate::load::{self, Load};
use crate::notices::{calibrated, effects, io_cost as io_cost_notices, io_latency as io_latency_notices, stable_merge};
use crate::plan::devices::Suggested;
use crate::plan::guests::ChosenGuests;
use crate::plan::schedulers::{self, DefaultScheduler};
use crate::plan::settings::Fixed;
use crate::plan::trial::Trial;
use crate::plan::variants::Alternatives;
use crate::plan::{devices, fill, guests, host, io_cost, io_latency, io_max, io_prio_class, queues, stacks, writes};

/// What is asked about one setup.
pub(super) struct Asked<'a> {
    pub(super) options: &'a Options<'a>,
    pub(super) load: &'a Load,
    pub(super) devices: &'a Devices,
    pub(super) host: &'a Profile,
    pub(super) kernel: &'a KernelOption,
}

/// The load on its host.
pub(super) struct HostedLoad {
    pub(super) host: Host,
    cpus: u16,
    /// The processes, which a recording has once its device is known.
    file: JobFile,
}

/// Where the load runs.
pub(super) struct Place {
    pub(super) workload: hoistway_load::Load,
    pub(super) devices: Vec<Preset>,
    pub(super) guests: Option<ChosenGuests>,
    /// The kernel and the hardware queues, without settings.
    queue: QueueSettings,
    pub(super) notices: Vec<String>,
}

/// The schedulers to compare.
pub(super) struct Compared {
    /// Those of the devices.
    pub(super) schedulers: Vec<String>,
    /// Those of the devices and of guests.
    all: Vec<String>,
    /// The kernel's default for the devices, if all have the same.
    pub(super) default: Option<String>,
    /// The default of each device.
    pub(super) device_defaults: Vec<&'static str>,
    pub(super) notices: Vec<String>,
}

/// The settings of all runs, and those that vary.
pub(super) struct Tried {
    pub(super) queue: QueueSettings,
    /// The queue of the first device.
    pub(super) config: QueueConfig,
    pub(super) fixed: Fixed,
    pub(super) alternatives: Alternatives,
    pub(super) notices: Vec<String>,
}

/// Facts about the load, for documents.
pub(super) struct Facts {
    pub(super) jobs: JobFacts,
    pub(super) notices: Vec<String>,
}

/// The first step: the load, as it is on its host.
pub(super) fn load(asked: &Asked<'_>) -> Result<HostedLoad, Error> {
    let Asked { options, load, .. } = asked;
    let (mut host, cpus) = host::choose(options, asked.host)?;
    host.journal |= load.page.as_ref().is_some_and(|page| page.journal);
    let file = match load.recorded.as_deref() {
        Some(recorded) => JobFile { load: recorded.without_processes(), notices: recorded.notices(options) },
        None => load.job_file(options, cpus, host.memory_bytes)?,
    };
    Ok(HostedLoad { host, cpus, file })
}

/// The second step: devices with their queues, and guests.
pub(super) fn place(asked: &Asked<'_>, hosted: &HostedLoad) -> Result<Place, Error> {
    let Asked { options, load, kernel, .. } = asked;
    let guest_schedulers = guests::requested_schedulers(options, load.guest_schedulers())?;
    let recorded = load.recorded.as_deref();
    let mut workload = hosted.file.load.clone();
    let stacks = stacks::choose(options, &workload, !guest_schedulers.is_empty())?;
    let suggested = match recorded {
        // What a recording shows of a stacked device is not what a disk below it does.
        Some(recorded) if !stacks.devices.is_empty() => Suggested::Named(recorded.suggested_device_class()),
        Some(recorded) => Suggested::Seen(recorded),
        None => {
            let by_name = load.rates.as_ref().and_then(Rates::suggested_device_class);
            let of_page = load.page.as_ref().map(Suggested::Bundled);
            of_page.unwrap_or_else(|| by_name.map_or(Suggested::None, Suggested::Named))
        }
    };
    let (devices, mut notices) = if guest_schedulers.is_empty() {
        devices::choose(options, asked.devices, stacks.disks(&workload), &stacks.devices, suggested)?
    } else {
        devices::choose_guest_host_device(options, asked.devices, suggested)?
    };
    notices.extend(kernel.notice());
    let defaults = QueueSettings::new(kernel.kernel, hosted.cpus);
    let mut queue = QueueSettings { schedulers: options.environment.schedulers(), ..defaults };
    let devices = devices.into_iter().map(|preset| recorded.map_or(preset.clone(), |recorded| recorded.on(preset)));
    let devices = queues::choose(options, devices.collect(), &mut queue)?;
    let devices = fill::apply(options, devices, &mut notices)?;
    let first = &devices[0];
    if let Some(recorded) = recorded {
        let nr_requests = queue.config(&first.shape()).scheduler_depth();
        let bytes: Vec<u64> =
            devices.iter().map(|preset| preset.shape().capacity_sectors.saturating_mul(512)).collect();
        let device_bytes = stacks.bytes_of_first(&bytes).unwrap_or(bytes[0]);
        workload = recorded.workload(options, (&first.name, device_bytes), nr_requests, &load.changes)?;
    }
    stacks.place(&mut workload);
    notices.extend(stacks.notices);
    queue.stacks = stacks.devices;
    let guests = guests::choose(options, guest_schedulers, &workload, first, &queue, &mut notices)?;
    Ok(Place { workload, devices, guests, queue, notices })
}

/// The third step: the schedulers of the devices and of guests.
pub(super) fn schedulers(asked: &Asked<'_>, place: &Place) -> Result<Compared, Error> {
    let (comparison, queue, mut notices) = (asked.options.comparison, &place.queue, Vec::new());
    let shapes = place.devices.iter().map(|preset| (preset.name.clone(), preset.shape())).collect();
    let default = DefaultScheduler { shapes, queue, elevator: comparison.elevator.as_deref() };
    let requested = match &comparison.schedulers[..] {
        // All schedulers, combined with the guests' schedulers, would make dozens of pairs.
        [] if place.guests.is_some() => schedulers::kernel_schedulers(queue, |row| row.layer == Layer::MultiQueue),
        [] => schedulers::kernel_schedulers(queue, |_| true),
        requested => requested.to_vec(),
    };
    let schedulers = schedulers::choose(asked.options, Field::Schedulers, &requested, &default, &mut notices)?;
    let in_guests = place.guests.iter().flat_map(|guests| &guests.schedulers);
    let mut all = schedulers.clone();
    all.extend(in_guests.filter(|name| !schedulers.contains(name)).cloned());
    let device_defaults = default.shapes.iter().map(|(_, shape)| default.of(shape)).collect();
    Ok(Compared { all, default: default.name(), device_defaults, schedulers, notices })
}

/// The fourth step: the settings of the queues, each tried out.
pub(super) fn settings(
    asked: &Asked<'_>,
    hosted: &HostedLoad,
    place: &Place,
    compared: &Compared,
) -> Result<Tried, Error> {
    let (options, comparison) = (asked.options, asked.options.comparison);
    let Place { workload, devices, guests, .. } = place;
    let mut queue = place.queue.clone();
    let fixed = Fixed::of(options, &compared.all, &queue.schedulers)?;
    queue.shared_tags = comparison.shared_tags;
    queue.submitter_dispatches = hosted.host.submitter_dispatches;
    let mut notices: Vec<String> = queues::apply_contention_options(options, &mut queue)?.into_iter().collect();
    queues::check_shared_tags(options, &queue, devices, &compared.schedulers)?;
    queue.io_max = io_max::limits(options, workload)?;
    queue.io_cost = io_cost::of_disks(options, workload, devices, guests.is_some())?;
    queue.io_weight = io_cost::weights(options, workload)?;
    queue.io_latency = io_latency::of_disks(options, workload, devices.len(), asked.kernel.kernel, guests.is_some())?;
    queue.io_prio_class = io_prio_class::classes(options, workload, asked.kernel.kernel)?;
    let trial = Trial {
        options,
        schedulers: &compared.all,
        host_schedulers: &compared.schedulers,
        queue: &queue,
        shape: &devices[0].shape(),
        fixed: &fixed,
    };
    let config = trial.config();
    notices.extend(trial.fixed()?);
    let alternatives = Alternatives::of(&trial, &mut notices)?;
    queue.writes = writes::ordered(options, &queue.schedulers, &compared.schedulers)?;
    writes::check_times(options, &queue.writes, load::expected_ns(workload, comparison.runtime_ns.map(Nanos)))?;
    writes::validate_settings(options, &queue.writes, &config, &compared.schedulers)?;
    Ok(Tried { queue, config, fixed, alternatives, notices })
}

/// The last step: what documents say about the load under these schedulers.
pub(super) fn facts(
    asked: &Asked<'_>,
    hosted: &HostedLoad,
    place: &Place,
    compared: &Compared,
    queue: &QueueSettings,
) -> Facts {
    let Place { workload, guests, .. } = place;
    let recorded = asked.load.recorded.as_deref();
    let mut jobs =
        recorded.map_or_else(|| JobFacts::of(workload), |recorded| JobFacts::of_recorded(workload, recorded));
    if let Some(chosen) = guests {
        jobs.set_guest_weights(workload, &chosen.guests.weights);
    }
    let mut notices = load_notices(asked, place, compared, queue);
    notices.extend(hosted.file.notices.iter().cloned());
    Facts { jobs, notices }
}

/// The schedulers that see the load's processes and cgroups.
fn process_schedulers(place: &Place, compared: &Compared, queue: &QueueSettings) -> Vec<String> {
    if let Some(guests) = &place.guests {
        return guests.schedulers.clone();
    }
    let mut schedulers = compared.schedulers.clone();
    for name in writes::switched_to(&queue.writes) {
        if !schedulers.iter().any(|known| known == name) {
            schedulers.push(name.to_owned());
        }
    }
    schedulers
}

/// Notices about the load under its schedulers.
fn load_notices(asked: &Asked<'_>, place: &Place, compared: &Compared, queue: &QueueSettings) -> Vec<String> {
    let (options, Place { workload, devices, guests, .. }) = (asked.options, place);
    let (Compared { schedulers, all, .. }, of_processes) = (compared, process_schedulers(place, compared, queue));
    let mut notices = Vec::new();
    notices.extend(schedulers::legacy_notice(all, queue));
    notices.extend(schedulers::outside_linux_notices(all, queue));
    notices.extend(effects::notices(options, workload, &of_processes, queue));
    notices.extend(io_cost_notices::notices(options, workload, queue));
    notices.extend(io_latency_notices::notices(options, workload, queue));
    notices.extend(io_prio_class::notice(options, &of_processes, queue));
    notices.extend(queues::polling_notice(options, workload, queue, schedulers));
    notices.extend(stable_merge::notice(workload, &of_processes, asked.kernel.kernel));
    notices.extend(
        guests
            .as_ref()
            .and_then(|chosen| guests::weights_notice(options, &chosen.guests, schedulers, &queue.schedulers)),
    );
    notices.extend(calibrated::null_notice(devices));
    notices.extend(load::unused_logs_notice(&options.name(Field::Logs), workload));
    notices
}
