//! Turns measured costs into a host profile.

use std::collections::BTreeMap;

use hoistway_blk::schedulers::NONE;
use hoistway_sim::Host;

use super::costs::{Costs, KernelCost, SchedulerCost};
use super::figure::MedianOfRounds;

/// The entry of a profile for all schedulers without their own.
const OTHERS: &str = "others";
/// The measured scheduler that stands for schedulers without their own entry.
const STAND_IN: &str = "mq-deadline";
/// A sleep gets an entry if the wake-up takes this much longer than after the previous entry, ns.
const IDLE_STEP_MIN_NS: u64 = 1000;

impl Costs {
    /// Creates the profile. Its `sources` say how each figure was measured, and how far the rounds differ.
    #[must_use]
    pub fn profile(&self, name: &str) -> Host {
        let kernel = self.kernel.as_ref().ok();
        let io_cost = kernel.and_then(|kernel| kernel.of(NONE.name)).unwrap_or(&self.engine);
        let measured_system = match kernel {
            Some(kernel) => format!("the running kernel through {}", kernel.device),
            None => "Hoistway's own block layer and engine; the kernel's was not measured".to_owned(),
        };
        let submit_ns = (io_cost.median * self.submit_share.median).round() as u64;
        let mut sections: BTreeMap<String, u64> = BTreeMap::new();
        let mut spreads = Vec::new();
        for scheduler in &self.schedulers {
            if let Some((ns, spread)) = section(scheduler, kernel) {
                sections.insert(scheduler.name.to_owned(), ns);
                spreads.push(format!("{} {spread}", scheduler.name));
            }
        }
        if let Some(&ns) = sections.get(STAND_IN) {
            sections.insert(OTHERS.to_owned(), ns);
        }
        let growth = self.contention.as_ref().and_then(|contention| contention.growth);
        let mut host = Host {
            name: name.to_owned(),
            description: format!("measured: what an I/O costs in {measured_system}"),
            cpus: u16::try_from(self.cpus).ok(),
            cache_cpus: self.cache_cpus.and_then(|cpus| u16::try_from(cpus).ok()),
            keeps_cpus: false,
            memory_bytes: 4 << 30,
            dirty_ratio: None,
            dirty_bytes: None,
            dirty_background_ratio: None,
            dirty_background_bytes: None,
            journal: false,
            submitter_dispatches: false,
            release_ns: None,
            start_ns: None,
            submit_ns,
            page_ns: None,
            resume_ns: None,
            complete_ns: io_cost.rounded().saturating_sub(submit_ns),
            waking_ns: None,
            dispatch_ns: None,
            redirect_ns: self.waker.rounded(),
            wake_ns: low_and_high(&self.wake),
            switch_ns: Some(self.switch.rounded()),
            sections_ns: sections,
            beside_ns: 0,
            handover_ns: self.handover_ns().unwrap_or(0),
            far_handover_ns: self.far_handover_ns(),
            waiter_ns: growth.map_or(0, |growth| growth.rounded()),
            list_ns: Some(self.list.rounded()),
            list_handover_ns: self.contention.as_ref().map(|contention| contention.lock.rounded()),
            worker_ns: low_and_high(&self.worker),
            idle_ns: self.idle_ns(),
            sources: BTreeMap::new(),
        };
        host.sources = self.sources(&measured_system, io_cost, &spreads, growth);
        host
    }

    /// Sleeps after which a wake-up takes longer than after shorter ones.
    fn idle_ns(&self) -> Vec<[u64; 2]> {
        let mut steps: Vec<[u64; 2]> = Vec::new();
        for sleep in &self.sleeps {
            let before = steps.last().map_or(0, |step| step[1] / 2);
            if sleep.wake.rounded() > before + IDLE_STEP_MIN_NS {
                // A simulated wake-up takes a uniform fraction of the figure, so its median is half of the figure.
                steps.push([sleep.slept_ns, 2 * sleep.wake.rounded()]);
            }
        }
        steps
    }

    fn sources(
        &self,
        measured_system: &str,
        io_cost: &MedianOfRounds,
        spreads: &[String],
        growth: Option<MedianOfRounds>,
    ) -> BTreeMap<String, String> {
        let share = &self.submit_share;
        let io_text = format!(
            "{io_cost} ns of CPU time per I/O in {measured_system}, of which {:.0} % ({:.0} to {:.0}) for the submission",
            100.0 * share.median,
            100.0 * share.least,
            100.0 * share.most
        );
        let percentiles = |[low, high]: &[MedianOfRounds; 2]| format!("10th percentile {low}, 90th {high}");
        let one_cpu = "not measured: this process may use only one CPU".to_owned();
        let handover = self.contention.as_ref().map_or_else(
            || one_cpu.clone(),
            |contention| match &contention.data {
                Some(data) => format!("the lock {}, the data under it {data}", contention.lock),
                None => format!("the lock {}; no section followed one on another CPU", contention.lock),
            },
        );
        let far = match self.contention.as_ref().map(|contention| &contention.far) {
            None => one_cpu.clone(),
            Some(None) => {
                "not measured: all CPUs share a last-level cache, or the kernel does not show which".to_owned()
            }
            Some(Some(far)) => match &far.data {
                Some(data) => {
                    format!("from a CPU with another last-level cache: the lock {}, the data under it {data}", far.lock)
                }
                None => format!("from a CPU with another last-level cache: the lock {}", far.lock),
            },
        };
        let waiter = match (&self.contention, growth) {
            (None, _) => one_cpu.clone(),
            (_, None) => "not measured: this needs three CPUs".to_owned(),
            (_, Some(growth)) => format!("slope of the hand-over time over the number of waiting CPUs, {growth}"),
        };
        let sleeps: Vec<String> =
            self.sleeps.iter().map(|sleep| format!("{} us {}", sleep.slept_ns / 1000, sleep.wake)).collect();
        [
            ("cpus", "the CPUs that this process may use".to_owned()),
            ("memory_bytes", "not measured: the default of profiles".to_owned()),
            ("submit_ns", io_text.clone()),
            ("complete_ns", io_text),
            ("redirect_ns", format!("CPU time of waking a thread on another CPU, {}", self.waker)),
            (
                "wake_ns",
                format!(
                    "a thread on the last CPU that has slept for 20 us, woken by one on the first: {}",
                    percentiles(&self.wake)
                ),
            ),
            ("switch_ns", format!("two threads on one CPU that wake each other, CPU time {}", self.switch)),
            (
                "sections_ns",
                format!(
                    "mean of all sections under its locks, by scheduler: {}; others as {STAND_IN}",
                    spreads.join(", ")
                ),
            ),
            ("handover_ns", handover),
            ("far_handover_ns", far),
            ("cache_cpus", "the CPUs that the kernel lists for the last-level cache of the first one".to_owned()),
            ("waiter_ns", waiter),
            (
                "list_ns",
                format!(
                    "mean of adding requests to a list and removing them, in Hoistway's own block layer, {}",
                    self.list
                ),
            ),
            (
                "list_handover_ns",
                self.contention.as_ref().map_or(one_cpu, |contention| format!("the lock alone, {}", contention.lock)),
            ),
            ("worker_ns", format!("a worker of the engine that has slept for 20 us: {}", percentiles(&self.worker))),
            (
                "idle_ns",
                format!("twice the additional medians compared with a sleep of 20 us, after {}", sleeps.join(", ")),
            ),
        ]
        .into_iter()
        .map(|(key, text)| (key.to_owned(), text))
        .collect()
    }
}

impl KernelCost {
    fn of(&self, scheduler: &str) -> Option<&MedianOfRounds> {
        self.per_io.iter().find(|(name, _)| name == scheduler).map(|(_, figure)| figure)
    }
}

/// Time in a critical section of a scheduler, ns, with its range over the rounds. For the kernel, the additional CPU time per
/// I/O relative to none is divided by the number of sections per I/O measured here.
fn section(scheduler: &SchedulerCost, kernel: Option<&KernelCost>) -> Option<(u64, String)> {
    let section_cost = scheduler.section?;
    let measured = kernel.and_then(|kernel| Some((kernel.of(scheduler.name)?, kernel.of(NONE.name)?)));
    match measured {
        Some((with, without)) => {
            let additional_ns = (with.median - without.median).max(0.0);
            let spread = format!("{with} ns per I/O, {:.1} sections", scheduler.sections_per_io);
            Some(((additional_ns / scheduler.sections_per_io.max(1.0)).round() as u64, spread))
        }
        None => Some((section_cost.rounded(), section_cost.to_string())),
    }
}

fn low_and_high([low, high]: &[MedianOfRounds; 2]) -> [u64; 2] {
    [low.rounded(), high.rounded().max(low.rounded())]
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::costs::{Contention, FarHandover, MeasuredOperation, Sleep};
    use super::*;

    fn figure(median: f64) -> MedianOfRounds {
        MedianOfRounds { median, least: median * 0.9, most: median * 1.2 }
    }

    pub(in super::super) fn costs() -> Costs {
        let scheduler = |name, per_io: f64, section: Option<f64>| SchedulerCost {
            name,
            per_io: figure(per_io),
            sections_per_io: if section.is_some() { 4.0 } else { 0.0 },
            section: section.map(figure),
            beside: section.map(|_| figure(30.0)),
            operations: section
                .map(|ns| MeasuredOperation { name: "insert", time: figure(ns), per_io: 1.0 })
                .into_iter()
                .collect(),
            rates: vec![(1, figure(5e6)), (2, figure(6e6))],
        };
        Costs {
            cpus: 4,
            cache_cpus: Some(2),
            rounds: [15, 15],
            engine: figure(300.0),
            submit_share: figure(0.6),
            schedulers: vec![scheduler("none", 100.0, None), scheduler("mq-deadline", 200.0, Some(25.0))],
            list: figure(12.0),
            contention: Some(Contention {
                lock: figure(80.0),
                data: Some(figure(50.0)),
                growth: Some(figure(12.0)),
                far: Some(FarHandover { lock: figure(200.0), data: Some(figure(90.0)) }),
            }),
            switch: figure(1500.0),
            wake: [figure(3000.0), figure(9000.0)],
            waker: figure(900.0),
            sleeps: [(100_000, 200.0), (400_000, 5000.0), (1_000_000, 5100.0), (3_000_000, 60_000.0)]
                .map(|(slept_ns, ns)| Sleep { slept_ns, wake: figure(ns) })
                .to_vec(),
            worker: [figure(4000.0), figure(8000.0)],
            kernel: Err("there is no null device here".to_owned()),
        }
    }

    #[test]
    fn a_measured_profile_reads_back_and_cites_a_source_for_each_figure() {
        let host = costs().profile("mine");
        assert_eq!(Host::from_toml(&toml::to_string(&host).unwrap(), "mine.toml").unwrap(), host);
        assert_eq!([host.submit_ns, host.complete_ns, host.handover_ns, host.waiter_ns], [180, 120, 130, 12]);
        assert_eq!((host.cache_cpus, host.far_handover_ns), (Some(2), Some(290)));
        assert_eq!(host.sections_ns["mq-deadline"], 25);
        assert_eq!(host.sections_ns["others"], 25);
        assert_eq!([host.list_ns(), host.list_handover_ns()], [12, 80]);
        assert!(!host.sections_ns.contains_key("none"));
        assert_eq!(host.idle_ns, [[400_000, 10_000], [3_000_000, 120_000]], "steps that do not show are left out");
        for key in ["submit_ns", "handover_ns", "waiter_ns", "wake_ns", "idle_ns", "sections_ns", "list_ns"] {
            assert!(host.sources.contains_key(key), "{key}");
        }
        assert!(host.sources["submit_ns"].contains("the kernel's was not measured"));
    }

    #[test]
    fn the_kernels_own_costs_go_before_those_of_the_engine() {
        let per_io = [("none", 1000.0), ("mq-deadline", 1600.0)].map(|(name, ns)| (name.to_owned(), figure(ns)));
        let kernel = Ok(KernelCost { device: "nullb0".to_owned(), per_io: per_io.to_vec() });
        let host = Costs { kernel, ..costs() }.profile("mine");
        assert_eq!([host.submit_ns, host.complete_ns], [600, 400]);
        assert_eq!(host.sections_ns["mq-deadline"], 150, "600 ns more, in four sections");
        assert!(host.sources["submit_ns"].contains("the running kernel through nullb0"));
    }

    #[test]
    fn figures_that_one_or_two_cpus_cannot_show_are_reported_as_unmeasured() {
        let one = Costs { contention: None, cpus: 1, ..costs() }.profile("mine");
        assert_eq!([one.handover_ns, one.waiter_ns], [0, 0]);
        assert!(one.sources["handover_ns"].starts_with("not measured: this process may use only one CPU"));
        let contention = Contention { lock: figure(80.0), data: None, growth: None, far: None };
        let two = Costs { contention: Some(contention), ..costs() }.profile("mine");
        assert_eq!([two.handover_ns, two.waiter_ns], [80, 0]);
        assert_eq!(two.far_handover_ns, None);
        assert!(two.sources["far_handover_ns"].starts_with("not measured: all CPUs share"));
        assert_eq!(two.sources["waiter_ns"], "not measured: this needs three CPUs");
    }
}
