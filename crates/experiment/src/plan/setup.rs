//! One setup of a comparison: a kernel on a host with devices, and the load and schedulers there.

use std::collections::BTreeMap;
use std::sync::Arc;

use hoistway_answer::document::{DiskGroup, RunVariant, SetupSummary};
use hoistway_blk::ground::Nanos;
use hoistway_blk::queue::QueueConfig;
use hoistway_blk::schedulers::Layer;
use hoistway_device::Preset;
use hoistway_fio::JobFile;
use hoistway_measure::Setting;
use hoistway_sim::{Host, QueueSettings, RunSpec};
use serde_json::{Map, Value};

use crate::comparison::environment::Options;
use crate::comparison::error::{About as _, Error};
use crate::comparison::fields::Field;
use crate::comparison::kernel_option::KernelOption;
use crate::comparison::{Devices, Profile, Vary};
use crate::load::job_facts::JobFacts;
use crate::load::rates::Rates;
use crate::load::{self, Load};
use crate::notices::{calibrated, effects, io_cost as io_cost_notices, stable_merge};
use crate::plan::PlanRun;
use crate::plan::devices::Suggested;
use crate::plan::schedulers::{self, DefaultScheduler};
use crate::plan::settings::{Fixed, check_file};
use crate::plan::trial::Trial;
use crate::plan::variants::{Alternatives, number_or_text};
use crate::plan::{devices, guests, host, io_cost, io_max, io_prio_class, queues, writes};

/// A kernel on a host with devices.
#[derive(Debug)]
pub(crate) struct Setup {
    kernel: KernelOption,
    pub(crate) workload: hoistway_load::Load,
    pub(crate) devices: Vec<Preset>,
    pub(crate) guests: Option<guests::ChosenGuests>,
    pub(crate) host: Host,
    pub(crate) queue: Arc<QueueSettings>,
    /// The queue of the first device.
    pub(crate) config: QueueConfig,
    schedulers: Vec<String>,
    /// The kernel's default scheduler for the devices, if all have the same and the load does not run in guests.
    default_scheduler: Option<String>,
    /// The default scheduler of each device.
    device_defaults: Vec<&'static str>,
    /// The facts about the load's jobs, for documents.
    pub(crate) job_facts: JobFacts,
    /// The settings that apply to all runs.
    fixed: Fixed,
    /// The settings that are varied.
    alternatives: Alternatives,
    pub(crate) notices: Vec<String>,
    /// The properties that distinguish it from other setups of the comparison.
    pub(crate) varied: Map<String, Value>,
}

impl Setup {
    pub(crate) fn of(
        options: &Options<'_>,
        load: &Load,
        requested: &Devices,
        host: &Profile,
        kernel_option: &KernelOption,
    ) -> Result<Setup, Error> {
        let comparison = options.comparison;
        let guest_schedulers = guests::requested_schedulers(options, load.guest_schedulers())?;
        let in_guests = !guest_schedulers.is_empty();
        let (mut host, cpus) = host::choose(options, host)?;
        host.journal |= load.page.as_ref().is_some_and(|page| page.journal);
        let recorded = load.recorded.as_deref();
        let JobFile { load: mut workload, notices: file_notices } = match recorded {
            Some(recorded) => JobFile { load: recorded.without_processes(), notices: recorded.notices(options) },
            None => load.job_file(options, cpus, host.memory_bytes)?,
        };
        let suggested = match recorded {
            Some(recorded) => Suggested::Seen(recorded),
            None => {
                let by_name = load.rates.as_ref().and_then(Rates::suggested_device_class);
                let of_page = load.page.as_ref().map(|page| page.device.as_str());
                of_page.or(by_name).map_or(Suggested::None, Suggested::Named)
            }
        };
        let (devices, mut notices) = if in_guests {
            devices::choose_guest_host_device(options, requested, suggested)?
        } else {
            devices::choose(options, requested, &workload, suggested)?
        };
        notices.extend(kernel_option.notice());
        let kernel = kernel_option.kernel;
        let mut queue =
            QueueSettings { schedulers: options.environment.schedulers(), ..QueueSettings::new(kernel, cpus) };
        let devices = devices.into_iter().map(|preset| recorded.map_or(preset.clone(), |recorded| recorded.on(preset)));
        let devices = queues::choose(options, devices.collect(), &mut queue)?;
        let first = &devices[0];
        if let Some(recorded) = recorded {
            let nr_requests = queue.config(&first.shape()).scheduler_depth();
            workload = recorded.workload(options, first, nr_requests, &load.changes)?;
        }
        let guests = guests::choose(options, guest_schedulers, &workload, first, &queue, &mut notices)?;
        let shapes = devices.iter().map(|preset| (preset.name.clone(), preset.shape())).collect();
        let default = DefaultScheduler { shapes, queue: &queue, elevator: comparison.elevator.as_deref() };
        let requested = match &comparison.schedulers[..] {
            // All schedulers, combined with the guests' schedulers, would make dozens of pairs.
            [] if in_guests => schedulers::kernel_schedulers(&queue, |row| row.layer == Layer::MultiQueue),
            [] => schedulers::kernel_schedulers(&queue, |_| true),
            requested => requested.to_vec(),
        };
        let default_scheduler = default.name();
        let device_defaults = default.shapes.iter().map(|(_, shape)| default.of(shape)).collect();
        let schedulers = schedulers::choose(options, Field::Schedulers, &requested, &default, &mut notices)?;
        // The schedulers that see the load's processes and cgroups, and all schedulers in use.
        let mut process_schedulers = guests.as_ref().map_or(&schedulers, |guests| &guests.schedulers).clone();
        let mut all = schedulers.clone();
        all.extend(
            guests.iter().flat_map(|guests| &guests.schedulers).filter(|name| !schedulers.contains(name)).cloned(),
        );
        let fixed = Fixed::of(options, &all, &queue.schedulers)?;
        queue.shared_tags = comparison.shared_tags;
        queue.submitter_dispatches = host.submitter_dispatches;
        notices.extend(queues::apply_contention_options(options, &mut queue)?);
        queues::check_shared_tags(options, &queue, &devices, &schedulers)?;
        queue.io_max = io_max::limits(options, &workload)?;
        queue.io_cost = io_cost::of_disks(options, &workload, &devices, in_guests)?;
        queue.io_weight = io_cost::weights(options, &workload)?;
        queue.io_prio_class = io_prio_class::classes(options, &workload, kernel)?;
        let trial = Trial {
            options,
            schedulers: &all,
            host_schedulers: &schedulers,
            queue: &queue,
            shape: &first.shape(),
            fixed: &fixed,
        };
        let config = trial.config();
        notices.extend(trial.fixed()?);
        let alternatives = Alternatives::of(&trial, &mut notices)?;
        queue.writes = writes::ordered(options, &queue.schedulers, &schedulers)?;
        writes::check_times(options, &queue.writes, load::expected_ns(&workload, comparison.runtime_ns.map(Nanos)))?;
        writes::validate_settings(options, &queue.writes, &config, &schedulers)?;
        for name in writes::switched_to(&queue.writes).filter(|_| !in_guests) {
            if !process_schedulers.iter().any(|known| known == name) {
                process_schedulers.push(name.to_owned());
            }
        }
        let mut job_facts =
            recorded.map_or_else(|| JobFacts::of(&workload), |recorded| JobFacts::of_recorded(&workload, recorded));
        if let Some(chosen) = &guests {
            job_facts.set_guest_weights(&workload, &chosen.guests.weights);
        }
        let mut setup = Setup {
            kernel: kernel_option.clone(),
            devices,
            guests,
            host,
            queue: Arc::new(queue),
            config,
            schedulers,
            default_scheduler,
            device_defaults,
            job_facts,
            workload,
            fixed,
            alternatives,
            notices,
            varied: Map::new(),
        };
        let load_notices = setup.load_notices(options, &all, &process_schedulers);
        setup.notices.extend(load_notices.into_iter().chain(file_notices));
        Ok(setup)
    }

    /// Notices about the load under its schedulers: `all` of them, of which those in `of_processes` see its processes and cgroups.
    fn load_notices(&self, options: &Options<'_>, all: &[String], process_schedulers: &[String]) -> Vec<String> {
        let Setup { workload, queue, schedulers, guests, .. } = self;
        let mut notices = Vec::new();
        notices.extend(schedulers::legacy_notice(all, queue));
        notices.extend(schedulers::outside_linux_notices(all, queue));
        notices.extend(effects::notices(options, workload, process_schedulers, queue));
        notices.extend(io_cost_notices::notices(options, workload, queue));
        notices.extend(io_prio_class::notice(options, process_schedulers, queue));
        notices.extend(queues::polling_notice(options, workload, queue, schedulers));
        notices.extend(stable_merge::notice(workload, process_schedulers, self.kernel.kernel));
        notices.extend(
            guests
                .as_ref()
                .and_then(|chosen| guests::weights_notice(options, &chosen.guests, schedulers, &queue.schedulers)),
        );
        notices.extend(calibrated::null_notice(&self.devices));
        notices.extend(load::unused_logs_notice(&options.name(Field::Logs), workload));
        notices
    }

    /// The schedulers of the host; with guests, every pair of a guest scheduler over a host scheduler.
    fn pairs(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let guests = self.guests.as_ref().map_or(&[][..], |guests| &guests.schedulers);
        let with_guests = move |host| {
            let without = guests.is_empty().then_some((host, None));
            without.into_iter().chain(guests.iter().map(move |guest| (host, Some(guest.as_str()))))
        };
        self.schedulers.iter().map(String::as_str).flat_map(with_guests)
    }

    /// The number of variants, not counting defaults that are added to the requested settings.
    pub(crate) fn variant_count(&self) -> usize {
        let pair_count = |(host, guest): (_, Option<_>)| {
            self.alternatives.count(&[host].into_iter().chain(guest).collect::<Vec<&str>>())
        };
        self.pairs().map(pair_count).fold(0, usize::saturating_add)
    }

    /// The runs of a repeat, without their seed: every scheduler with every setting. `index` is that of this setup.
    pub(crate) fn runs(&self, index: usize, runtime: Option<Nanos>) -> Vec<PlanRun> {
        let variants = |(host, guest): (&str, Option<&str>)| {
            let (setting, guest) = (self.fixed.on_devices(host), guest.map(|guest| self.fixed.in_guests(guest)));
            let spec = RunSpec { setting, guest, seed: 0 };
            let queue = Arc::clone(&self.queue);
            let variant = RunVariant::default();
            self.alternatives.variants(PlanRun { setup: index, spec, queue, variant, repeat: 0, runtime })
        };
        self.pairs().flat_map(variants).map(|run| self.labelled(run)).collect()
    }

    /// A run whose label has what varies, and the setup, if there are several.
    fn labelled(&self, mut run: PlanRun) -> PlanRun {
        run.variant.settings.extend(self.varied.clone());
        let is_default = run.variant.is_default;
        run.variant = RunVariant { is_default, ..RunVariant::new(&run.spec.label(), run.variant.settings) };
        run
    }

    /// The run of a scheduler with a setting of the caller. With guests it is the scheduler of the host, and the guests have
    /// their first scheduler.
    ///
    /// # Errors
    /// If the setup lacks the scheduler, tunable or file, or a value is invalid.
    pub(crate) fn run_with(&self, options: &Options<'_>, requested: &Setting, seed: u64) -> Result<PlanRun, Error> {
        let host = &requested.scheduler;
        if !self.schedulers.contains(host) {
            let known = self.schedulers.join(", ");
            let problem = format!("is not among the compared schedulers (expected one of {known})");
            return Err(options.refuse(Field::Schedulers, host, problem));
        }
        let mut setting = self.fixed.on_devices(host);
        for (file, text) in requested.queue_files() {
            check_file(options, Field::Vary, format_args!("{}.{file}={text}", Vary::QUEUE), file, text)?;
        }
        requested.writes.iter().for_each(|(file, text)| setting.write(file, text));
        let guest = self.guests.as_ref().and_then(|guests| guests.schedulers.first());
        let spec = RunSpec { setting, guest: guest.map(|scheduler| self.fixed.in_guests(scheduler)), seed };
        let values = requested.values().map(|(name, text)| (name.to_owned(), number_or_text(text))).collect();
        let variant = RunVariant { is_default: requested.is_kernel_default(), ..RunVariant::new(host, values) };
        Ok(PlanRun { setup: 0, spec, queue: Arc::clone(&self.queue), variant, repeat: 0, runtime: None })
    }

    /// The tunables of a scheduler that apply to all runs.
    pub(crate) fn fixed(&self, scheduler: &str) -> Setting {
        self.fixed.in_guests(scheduler)
    }

    /// The groups of disks with the same model, if no job uses disks of several; empty if there are not several.
    pub(crate) fn disk_groups(&self) -> Vec<DiskGroup> {
        let mut groups: Vec<DiskGroup> = Vec::new();
        if self.guests.is_some() || self.device_defaults.len() != self.devices.len() {
            return groups;
        }
        for ((file, device), default) in self.workload.files.iter().zip(&self.devices).zip(&self.device_defaults) {
            match groups.iter_mut().find(|group| group.model == device.name) {
                Some(group) => group.files.push(file.clone()),
                None => groups.push(DiskGroup {
                    model: device.name.clone(),
                    files: vec![file.clone()],
                    jobs: Vec::new(),
                    default_scheduler: (*default).to_owned(),
                }),
            }
        }
        for process in &self.workload.processes {
            let names = || process.files.iter().map(|file| &self.workload.files[*file as usize]);
            let mut users = groups.iter_mut().filter(|group| names().any(|name| group.files.contains(name)));
            let (Some(group), None) = (users.next(), users.next()) else { return Vec::new() };
            let job = process.schedule.job as u32;
            if !group.jobs.contains(&job) {
                group.jobs.push(job);
            }
        }
        groups.retain(|group| !group.jobs.is_empty());
        if groups.len() > 1 { groups } else { Vec::new() }
    }

    /// The kernel's default scheduler for the devices.
    pub(crate) fn default_scheduler(&self) -> Option<&str> {
        self.default_scheduler.as_deref()
    }

    /// The kernel whose block layer a scheduler runs on, if the requested kernel lacks the scheduler.
    pub(crate) fn substitute_kernel(&self, scheduler: &str) -> Option<String> {
        let row = self.queue.schedulers.find(scheduler)?;
        (!row.exists_in(self.queue.kernel)).then(|| row.kernel(self.queue.kernel).to_string())
    }

    /// The publication of a run's scheduler, the host's or the guests', if no release of Linux has it.
    pub(crate) fn research(&self, spec: &RunSpec) -> Option<String> {
        let guest = spec.guest.as_ref().map(|guest| guest.scheduler.as_str());
        let mut rows = [Some(spec.setting.scheduler.as_str()), guest]
            .into_iter()
            .flatten()
            .filter_map(|name| self.queue.schedulers.find(name));
        rows.find_map(|row| row.outside_linux()).map(str::to_owned)
    }

    /// The setup's schedulers that no release of Linux has, with the publication of each.
    pub(crate) fn outside_linux(&self) -> BTreeMap<String, String> {
        let rows = self.schedulers.iter().filter_map(|name| self.queue.schedulers.find(name));
        rows.filter_map(|row| Some((row.name.to_owned(), row.outside_linux()?.to_owned()))).collect()
    }

    /// The name of its devices.
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
