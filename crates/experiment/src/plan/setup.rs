//! One setup of a comparison: a kernel on a host with devices, and the load and schedulers there.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use hoistway_answer::document::{DiskGroup, RunLabel, SetupSummary};
use hoistway_blk::ground::Nanos;
use hoistway_blk::queue::QueueConfig;
use hoistway_device::Preset;
use hoistway_measure::Setting;
use hoistway_sim::{Host, QueueSettings, RunSpec, StackedDevice};
use serde_json::{Map, Value};

use crate::comparison::environment::Options;
use crate::comparison::error::{About as _, Error};
use crate::comparison::fields::Field;
use crate::comparison::kernel_option::KernelOption;
use crate::comparison::{Devices, Profile, Vary};
use crate::load::Load;
use crate::load::job_facts::JobFacts;
use crate::plan::PlanRun;
use crate::plan::settings::{Fixed, check_file};
use crate::plan::steps::{self, Asked};
use crate::plan::variants::{Alternatives, number_or_text};
use crate::plan::{devices, guests, io_cost, io_latency};

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
        devices: &Devices,
        host: &Profile,
        kernel: &KernelOption,
    ) -> Result<Setup, Error> {
        let asked = Asked { options, load, devices, host, kernel };
        let hosted = steps::load(&asked)?;
        let place = steps::place(&asked, &hosted)?;
        let compared = steps::schedulers(&asked, &place)?;
        let tried = steps::settings(&asked, &hosted, &place, &compared)?;
        let facts = steps::facts(&asked, &hosted, &place, &compared, &tried.queue);
        Ok(Setup {
            kernel: kernel.clone(),
            devices: place.devices,
            guests: place.guests,
            host: hosted.host,
            queue: Arc::new(tried.queue),
            config: tried.config,
            schedulers: compared.schedulers,
            default_scheduler: compared.default,
            device_defaults: compared.device_defaults,
            job_facts: facts.jobs,
            workload: place.workload,
            fixed: tried.fixed,
            alternatives: tried.alternatives,
            notices: [place.notices, compared.notices, tried.notices, facts.notices].concat(),
            varied: Map::new(),
        })
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
            let variant = RunLabel::default();
            self.alternatives.variants(PlanRun { setup: index, spec, queue, variant, repeat: 0, runtime })
        };
        self.pairs().flat_map(variants).map(|run| self.labelled(run)).collect()
    }

    /// A run whose label has what varies, and the setup, if there are several.
    fn labelled(&self, mut run: PlanRun) -> PlanRun {
        run.variant.settings.extend(self.varied.clone());
        let is_default = run.variant.is_default;
        run.variant = RunLabel { is_default, ..RunLabel::new(&run.spec.label(), run.variant.settings) };
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
        let of_device = requested.writes.iter().filter(|(file, _)| !Setting::is_cgroup_file(file));
        of_device.for_each(|(file, text)| setting.write(file, text));
        let queue = self.queue_with(requested).map_err(|problem| options.refuse(Field::Vary, requested, problem))?;
        let guest = self.guests.as_ref().and_then(|guests| guests.schedulers.first());
        let spec = RunSpec { setting, guest: guest.map(|scheduler| self.fixed.in_guests(scheduler)), seed };
        let values = requested.values().map(|(name, text)| (name.to_owned(), number_or_text(text))).collect();
        let variant = RunLabel { is_default: requested.is_kernel_default(), ..RunLabel::new(host, values) };
        Ok(PlanRun { setup: 0, spec, queue, variant, repeat: 0, runtime: None })
    }

    /// The queues with what a setting writes to files of cgroups.
    fn queue_with(&self, requested: &Setting) -> Result<Arc<QueueSettings>, String> {
        let mut queue = Arc::clone(&self.queue);
        let mut of_io_cost = Vec::new();
        for (file, text) in requested.cgroup_files() {
            match Vary::split(file) {
                Some((Vary::IO_COST, name)) => of_io_cost.push((name, text)),
                Some((Vary::IO_LATENCY, name)) => {
                    io_latency::check_group(&self.workload, name)?;
                    let disks = &mut Arc::make_mut(&mut queue).io_latency;
                    disks.resize(self.workload.files.len().min(self.devices.len()), Vec::new());
                    io_latency::vary(disks, name, text)?;
                }
                _ => return Err(format!("{file} is not a file of cgroups (expected io.cost or io.latency)")),
            }
        }
        if !of_io_cost.is_empty() {
            io_cost::vary_together(&mut Arc::make_mut(&mut queue).io_cost, &of_io_cost)?;
        }
        Ok(queue)
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
            let names = || process.files.iter().flat_map(|&file| self.disks_of(file));
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

    /// Its load as the disks see it: a process on a stacked device uses the disks below.
    pub(crate) fn workload_of_disks(&self) -> Cow<'_, hoistway_load::Load> {
        let mut load = Cow::Borrowed(&self.workload);
        if !self.queue.stacks.is_empty() {
            for process in &mut load.to_mut().processes {
                process.files = process.files.iter().flat_map(|&file| self.disk_numbers(file)).collect();
            }
        }
        load
    }

    /// The number of the first disk that a file of the load is on.
    pub(crate) fn first_disk_of(&self, file: u32) -> u32 {
        self.disk_numbers(file)[0]
    }

    /// The numbers of the disks that a file of the load is on: its own, or those below a stacked device.
    fn disk_numbers(&self, file: u32) -> Vec<u32> {
        let stacks = &self.queue.stacks;
        let stacked = (file as usize).checked_sub(self.devices.len()).filter(|_| !stacks.is_empty());
        match stacked.and_then(|number| StackedDevice::outermost(stacks).nth(number)) {
            Some(outermost) => StackedDevice::bottom_disks(stacks, outermost),
            None => vec![file],
        }
    }

    /// The names of the disks that a file of the load is on.
    fn disks_of(&self, file: u32) -> Vec<&String> {
        self.disk_numbers(file).into_iter().map(|number| &self.workload.files[number as usize]).collect()
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
