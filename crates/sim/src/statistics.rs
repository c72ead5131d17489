//! The statistics of devices and cgroups that a kernel keeps, `/sys/block/DEV/stat` and `io.stat`, and how often a scheduler
//! could choose, which no kernel counts. They are kept in every run although tables do not show them: counting costs less than
//! compiling a second copy of the simulation without them.
//!
//! Used by: `simulation`; crate `observed`.
//! Tests: `crates/sim/tests/statistics.rs`.

use hoistway_blk::ground::{CpuId, Hz, Instant, Nanos, Now, Waiter};
use hoistway_blk::request::Marks;
use hoistway_blk::watch::{DiskStats, Event, IoCounts, Probe};
use hoistway_cgroup::CgroupStats;
use hoistway_measure::{CgroupIoSummary, DiskIos, DiskSummary, DiskTimes};

use crate::cgroups::Cgroups;
use crate::scenario::{RunSpec, Scenario};

/// The statistics of one device.
#[derive(Debug)]
struct DeviceStatistics {
    disk: DiskStats,
    groups: CgroupStats,
    choices: ChoiceCounter,
}

/// Counts dispatches at which the scheduler could choose: it held more than one request, or held some and dispatched none.
#[derive(Debug, Default)]
struct ChoiceCounter {
    /// Requests that the scheduler holds. A legacy queue that empties its scheduler for a change of the scheduler leaves it too
    /// high, because no event reports that.
    held: u64,
    choices: u64,
}

impl ChoiceCounter {
    #[inline(always)]
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Insert(rq) => self.held += u64::from(rq.enters_elevator()),
            Event::Absorbed(_) => self.held -= 1,
            // It chose a hardware queue, and never held the request.
            Event::Dispatch { rq: Some(rq), .. } if rq.marks.contains(Marks::STEERED) => {}
            Event::Dispatch { rq: Some(_), .. } => {
                self.choices += u64::from(self.held > 1);
                self.held -= 1;
            }
            Event::Dispatch { rq: None, .. } => self.choices += u64::from(self.held > 0),
            _ => {}
        }
    }
}

/// A probe that keeps the statistics of all devices of a run.
#[derive(Debug)]
pub struct Statistics {
    disks: Vec<DeviceStatistics>,
    hz: Hz,
    /// The device in which the next events happen, set by `enter`.
    device: usize,
}

impl Statistics {
    /// Empty statistics for a run.
    #[must_use]
    pub fn new(scenario: &Scenario<'_>, spec: &RunSpec) -> Self {
        let queue = &scenario.queue;
        let kernel_under = |scheduler: &str| queue.schedulers.kernel_under(queue.kernel, scheduler);
        let disk = |scheduler: &str| DeviceStatistics {
            disk: DiskStats::new(kernel_under(scheduler)),
            groups: CgroupStats::default(),
            choices: ChoiceCounter::default(),
        };
        // In a guest the load's files are on its virtual disks, with the guest's scheduler; the host's device comes last.
        let file_scheduler = spec.guest.as_ref().map_or(&spec.setting.scheduler, |guest| &guest.scheduler);
        let mut disks: Vec<_> = (0..scenario.file_disks()).map(|_| disk(file_scheduler)).collect();
        disks.extend(scenario.guests.as_ref().map(|_| disk(&spec.setting.scheduler)));
        Statistics { disks, hz: kernel_under(&spec.setting.scheduler).generation().hz, device: 0 }
    }

    /// The summaries at the end of a run.
    #[must_use]
    pub fn summaries(self, scenario: &Scenario<'_>, simulated: Nanos) -> Vec<DiskSummary> {
        let now = self.hz.now(Instant(simulated.0));
        let files = scenario.file_disks();
        let load_cgroups = Cgroups::from_load(scenario.workload);
        let guest_cgroups = scenario.guests.as_ref().map(|guests| guests.cgroups(&scenario.workload.files));
        let summary = |(number, (statistics, file)): (usize, (DeviceStatistics, &str))| {
            let DeviceStatistics { mut disk, groups, choices } = statistics;
            // The device after those of the files is the host's, where each guest is a cgroup.
            let cgroups = guest_cgroups.as_ref().filter(|_| number == files).unwrap_or(&load_cgroups);
            let ios = |counts: IoCounts| DiskIos { ios: counts.ios, merges: counts.merges, nanos: counts.nanos };
            let times = DiskTimes {
                busy_ms: disk.io_ticks_ms(now),
                in_queue_ms: disk.time_in_queue_ms(now),
                passed_ns: simulated.0,
            };
            let kinds = [ios(disk.reads()), ios(disk.writes())];
            DiskSummary {
                cgroups: cgroups
                    .with_descendants()
                    .map(|(path, members)| CgroupIoSummary {
                        cgroup: path.to_owned(),
                        io_stat: members.fold(Default::default(), |sum, id| groups.own(id).plus(sum)).to_string(),
                    })
                    .collect(),
                ..DiskSummary::of(file, disk.line(now), kinds, times, choices.choices)
            }
        };
        self.disks.into_iter().zip(scenario.disk_names()).enumerate().map(summary).collect()
    }
}

impl Probe for Statistics {
    // It needs nothing that is prepared only for probes, such as a copy of the bio.
    const WATCHES: bool = false;

    fn enter(&mut self, device: u32, _: Option<Waiter>) {
        self.device = device as usize;
    }

    #[inline(always)]
    fn event(&mut self, now: Now, cpu: CpuId, event: Event<'_>) {
        let DeviceStatistics { disk, groups, choices } = &mut self.disks[self.device];
        choices.event(&event);
        disk.event(now, cpu, event);
        groups.event(now, cpu, event);
    }
}
