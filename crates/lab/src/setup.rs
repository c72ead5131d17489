//! One place of a comparison: a kernel on a host with its devices, and what the load and the schedulers are there.

use hoistway_blk::{Layer, Nanos, QueueConfig};
use hoistway_device::Preset;
use hoistway_fio::JobFile;
use hoistway_results::document::SetupSummary;
use hoistway_sim::{GuestSpec, Host, QueueSettings, RunSpec};
use serde_json::{Map, Value};

use crate::alike::alike;
use crate::asked_kernel::AskedKernel;
use crate::comparison::{Devices, Profile};
use crate::error::{About as _, Error, Field};
use crate::load::{self, Load};
use crate::schedulers::{self, Default};
use crate::surroundings::Asked;
use crate::tunables::{self, Settings};
use crate::{devices, effects, guests, host, io_max, io_prio_class, joined, queue_files, queues, writes};

/// A kernel on a host with devices.
#[derive(Debug)]
pub(crate) struct Setup {
    kernel: AskedKernel,
    pub(crate) workload: hoistway_load::Load,
    pub(crate) devices: Vec<Preset>,
    pub(crate) guests: Option<guests::Chosen>,
    pub(crate) host: Host,
    pub(crate) queue: QueueSettings,
    /// The queue of the first device.
    pub(crate) config: QueueConfig,
    schedulers: Vec<String>,
    /// What the kernel gives the devices, if that is one for all and the load does not run in guests.
    default_scheduler: Option<String>,
    /// For each job the first one that is like it.
    pub(crate) alike: Vec<Option<u32>>,
    settings: Settings,
    pub(crate) notices: Vec<String>,
    /// By what it differs from other setups of the comparison.
    pub(crate) varied: Map<String, Value>,
}

impl Setup {
    pub(crate) fn of(
        asked: &Asked<'_>,
        load: &Load,
        wanted: &Devices,
        host: &Profile,
        asked_kernel: &AskedKernel,
    ) -> Result<Setup, Error> {
        let comparison = asked.comparison;
        let guest_schedulers = guests::wanted(asked, load.guest_schedulers())?;
        let in_guests = !guest_schedulers.is_empty();
        let (host, cpus) = host::choose(asked, host)?;
        let JobFile { load: workload, notices: of_file } = load.job_file(asked, cpus, host.memory_bytes)?;
        let fitting = load.page.as_ref().map(|page| page.device.as_str());
        let (devices, mut notices) = if in_guests {
            devices::choose_one(asked, wanted, fitting)?
        } else {
            devices::choose(asked, wanted, &workload, fitting)?
        };
        notices.extend(asked_kernel.notice());
        let kernel = asked_kernel.kernel;
        let mut queue =
            QueueSettings { schedulers: asked.surroundings.schedulers(), ..QueueSettings::new(kernel, cpus) };
        let devices = queues::choose(asked, devices, &mut queue)?;
        let first = &devices[0];
        let guests = guests::choose(asked, guest_schedulers, &workload, first, &queue, &mut notices)?;
        let shapes = devices.iter().map(|preset| (preset.name.clone(), preset.shape())).collect();
        let default = Default { shapes, queue: &queue, elevator: comparison.elevator.as_deref() };
        let wanted = match &comparison.schedulers[..] {
            // With all of them, and those of the guests, there would be dozens of pairs.
            [] if in_guests => schedulers::of_kernel(&queue, |row| row.layer == Layer::MultiQueue),
            [] => schedulers::of_kernel(&queue, |_| true),
            wanted => wanted.to_vec(),
        };
        let default_scheduler = default.name().filter(|_| !in_guests);
        let schedulers = schedulers::choose(asked, Field::Schedulers, &wanted, &default, &mut notices)?;
        // The schedulers that see the load's processes and cgroups, and all that there are.
        let of_processes = guests.as_ref().map_or(&schedulers, |guests| &guests.schedulers);
        let mut all = schedulers.clone();
        all.extend(
            guests.iter().flat_map(|guests| &guests.schedulers).filter(|name| !schedulers.contains(name)).cloned(),
        );
        let settings = tunables::settings(asked, &all, &queue.schedulers)?;
        queue.shared_tags = comparison.shared_tags;
        queue.submitter_dispatches = comparison.submitter_dispatches;
        queues::check_shared_tags(asked, &queue, &devices, &schedulers)?;
        queue_files::add(asked, &mut queue)?;
        queue.io_max = io_max::limits(asked, &workload)?;
        queue.io_prio_class = io_prio_class::classes(asked, &workload, kernel)?;
        let config = queue.config(&first.shape());
        notices.extend(queue_files::try_out(asked, &queue, &config, &schedulers)?);
        notices.extend(tunables::try_out(asked, &config)?);
        queue.writes = writes::ordered(asked, &queue.schedulers)?;
        writes::check_times(asked, &queue.writes, load::expected_ns(&workload, comparison.runtime_ns.map(Nanos)))?;
        writes::try_out(asked, &queue.writes, &config, &schedulers)?;
        notices.extend(schedulers::legacy_notice(&all, &queue));
        notices.extend(effects::notices(asked, &workload, of_processes, &queue));
        notices.extend(io_prio_class::notice(asked, of_processes, &queue));
        notices.extend(queues::polling_notice(asked, &workload, &queue, &schedulers));
        notices.extend(joined::notice(&workload, of_processes, kernel));
        notices.extend(
            guests
                .as_ref()
                .and_then(|chosen| guests::weights_notice(asked, &chosen.guests, &schedulers, &queue.schedulers)),
        );
        notices.extend(load::unused_logs_notice(asked, &workload));
        notices.extend(of_file);
        let kernel = asked_kernel.clone();
        Ok(Setup {
            kernel,
            devices,
            guests,
            host,
            queue,
            config,
            schedulers,
            default_scheduler,
            alike: alike(&workload),
            workload,
            settings,
            notices,
            varied: Map::new(),
        })
    }

    /// The runs of a repeat: every scheduler with the same seed; with guests every one of theirs over every one of the host.
    pub(crate) fn specs(&self, seed: u64) -> Vec<RunSpec> {
        let tunables = |scheduler: &String| self.settings.get(scheduler).cloned().unwrap_or_default();
        let guest = |scheduler: &String| GuestSpec { scheduler: scheduler.clone(), tunables: tunables(scheduler) };
        let guests: Vec<Option<GuestSpec>> = match &self.guests {
            Some(guests) => guests.schedulers.iter().map(guest).map(Some).collect(),
            None => vec![None],
        };
        let over = |scheduler: &String, guest: &Option<GuestSpec>| RunSpec {
            scheduler: scheduler.clone(),
            tunables: tunables(scheduler),
            guest: guest.clone(),
            seed,
        };
        self.schedulers.iter().flat_map(|scheduler| guests.iter().map(move |guest| over(scheduler, guest))).collect()
    }

    /// The kernel whose block layer a scheduler runs on, if the one that was asked for lacks it.
    pub(crate) fn stands_in(&self, scheduler: &str) -> Option<String> {
        let row = self.queue.schedulers.find(scheduler)?;
        (!row.exists_in(self.queue.kernel)).then(|| row.kernel(self.queue.kernel).to_string())
    }

    /// What its devices are called.
    pub(crate) fn device_name(&self) -> String {
        let mut names: Vec<&str> = self.devices.iter().map(|preset| preset.name.as_str()).collect();
        names.dedup();
        names.join("+")
    }

    pub(crate) fn summary(&self) -> Result<SetupSummary, Error> {
        Ok(SetupSummary {
            device: devices::describe(&self.workload, &self.devices)?,
            kernel: self.kernel.to_string(),
            cpus: u32::from(self.queue.cpus),
            hw_queues: u32::from(self.config.cpu_map().hctxs()),
            nr_requests: self.config.scheduler_depth(),
            host: serde_json::to_value(&self.host).about(Field::Hosts)?,
            default_scheduler: self.default_scheduler.clone(),
        })
    }
}
