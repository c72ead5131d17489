//! A comparison before it runs: everything that the options and the job file ask for, chosen and checked.

use anyhow::Result;
use hoistway_blk::{Layer, QueueConfig};
use hoistway_device::Preset;
use hoistway_fio::JobFile;
use hoistway_sim::{Host, QueueSettings, RunSpec, Scenario};

use super::arguments::Arguments;
use super::load::{self, Load};
use super::schedulers::{self, Default};
use super::{
    devices, effects, fio_logs, guests, host, io_max, io_prio_class, queue_files, queues, repeats, together, tunables,
    writes,
};

/// What is going to run.
pub(super) struct Plan {
    pub(super) load: Load,
    pub(super) workload: hoistway_load::Load,
    pub(super) devices: Vec<Preset>,
    pub(super) guests: Option<guests::Chosen>,
    pub(super) host: Host,
    pub(super) queue: QueueSettings,
    /// The queue of the first device.
    pub(super) config: QueueConfig,
    pub(super) seeds: Vec<u64>,
    /// Every run, repeat by repeat.
    pub(super) specs: Vec<RunSpec>,
    pub(super) baseline: Option<String>,
    pub(super) notices: Vec<String>,
}

impl Plan {
    pub(super) fn of(arguments: &Arguments) -> Result<Plan> {
        let load = load::read_job(arguments.job.as_deref())?;
        let page = load.scenario.as_ref().map(|scenario| &scenario.page);
        let guest_schedulers = guests::wanted(arguments, page.map_or(&[], |page| &page.guest_schedulers))?;
        let in_guests = !guest_schedulers.is_empty();
        let host = arguments.host.as_deref().unwrap_or(if in_guests { "vm" } else { Host::DEFAULT });
        let (host, cpus) = host::choose(host, arguments.cpus, arguments.memory)?;
        let JobFile { load: mut workload, notices: of_file } =
            load::parse_job(&load.text, &load.name, cpus, host.memory_bytes)?;
        load::override_ramp(&mut workload, arguments.ramp);
        if arguments.fio_logs.is_some() {
            fio_logs::wanted(&mut workload);
        }
        let fitting = page.map(|page| page.device.as_str());
        let (devices, mut notices) = if in_guests {
            devices::choose_one(&arguments.device, fitting)?
        } else {
            devices::choose(&workload, &arguments.device, fitting)?
        };
        let kernel = arguments.kernel.kernel;
        notices.extend(arguments.kernel.notice());
        let mut queue = QueueSettings::new(kernel, cpus);
        let devices = queues::choose(arguments, devices, &mut queue)?;
        let guests = guests::choose(arguments, guest_schedulers, &workload, &devices[0], kernel, cpus, &mut notices)?;
        let shapes = devices.iter().map(|preset| (preset.name.as_str(), preset.shape())).collect();
        let default = Default { shapes, queue: &queue, elevator: arguments.elevator.as_deref() };
        let wanted = match &arguments.schedulers[..] {
            // With all of them, and those of the guests, there would be dozens of pairs.
            [] if in_guests => queue.schedulers.of(Layer::MultiQueue).map(|row| row.name.to_owned()).collect(),
            [] => vec!["all".to_owned()],
            wanted => wanted.to_vec(),
        };
        let schedulers = schedulers::choose("--schedulers", &wanted, &default, &mut notices)?;
        // The schedulers that see the load's processes and cgroups, and all that there are.
        let of_processes = guests.as_ref().map_or(&schedulers, |guests| &guests.schedulers);
        let mut all = schedulers.clone();
        all.extend(
            guests.iter().flat_map(|guests| &guests.schedulers).filter(|name| !schedulers.contains(name)).cloned(),
        );
        let settings = tunables::parse(&arguments.set, &all, &queue.schedulers)?;
        queue.shared_tags = arguments.shared_tags;
        queues::check_shared_tags(&queue, &devices, &schedulers)?;
        queue_files::parse(&arguments.queue, arguments.nr_requests.as_deref(), &mut queue)?;
        queue.io_max = io_max::parse(&arguments.io_max, &workload)?;
        queue.io_prio_class = io_prio_class::parse(&arguments.io_prio_class, &workload, kernel)?;
        let config = queue.config(&devices[0].shape());
        notices.extend(queue_files::try_out(&queue, &config, &schedulers)?);
        notices.extend(tunables::try_out(&settings, &config)?);
        queue.writes = writes::parse(&arguments.at, &queue.schedulers)?;
        writes::try_out(&queue.writes, &config, &schedulers)?;
        notices.extend(schedulers::legacy_notice(&all, &queue));
        notices.extend(effects::notices(&workload, of_processes, &queue));
        notices.extend(io_prio_class::notice(&queue.io_prio_class, of_processes, &queue));
        notices.extend(queues::polling_notice(&workload, &queue, &schedulers));
        notices.extend(together::notice(&workload, of_processes, kernel));
        notices.extend(
            guests.as_ref().and_then(|chosen| guests::weights_notice(&chosen.guests, &schedulers, &queue.schedulers)),
        );
        notices.extend(fio_logs::unused_notice(&workload));
        notices.extend(of_file);
        let seeds = repeats::seeds(arguments.seed, arguments.repeat);
        let guest_schedulers = guests.as_ref().map(|guests| guests.schedulers.as_slice());
        let specs = repeats::specs(&schedulers, guest_schedulers, &settings, &seeds);
        let labels: Vec<String> = specs.iter().filter(|spec| spec.seed == seeds[0]).map(RunSpec::label).collect();
        let baseline = schedulers::baseline(arguments.baseline.as_deref(), &labels)?;
        Ok(Plan { load, workload, devices, guests, host, queue, config, seeds, specs, baseline, notices })
    }

    /// Runs of each repeat.
    pub(super) fn runs_of_repeat(&self) -> usize {
        self.specs.len() / self.seeds.len()
    }

    pub(super) fn scenario(&self, arguments: &Arguments) -> Scenario<'_> {
        Scenario {
            workload: &self.workload,
            devices: self.devices.iter().collect(),
            guests: self.guests.as_ref().map(|chosen| chosen.guests.clone()),
            queue: self.queue.clone(),
            host: self.host.clone(),
            runtime: arguments.runtime,
        }
    }
}
