//! The statistics of devices and cgroups that a kernel keeps, `/sys/block/DEV/stat` and `io.stat`. They are kept in every run
//! although tables do not show them: counting costs less than compiling a second copy of the simulation without them.

use hoistway_blk::ground::{CpuId, Hz, Instant, Nanos, Now, Waiter};
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
    choices: ReorderCounts,
}

/// How often a scheduler had a choice between requests.
#[derive(Debug, Default)]
struct ReorderCounts {
    /// Requests that the scheduler holds. Requests that were merged into others there stay counted, because they did wait
    /// together.
    held: u64,
    /// Dispatches with a choice: one of several requests was dispatched, or none although some were held.
    count: u64,
}

impl ReorderCounts {
    #[inline(always)]
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Insert(_) => self.held += 1,
            Event::Dispatch { rq: Some(_), .. } => {
                self.count += u64::from(self.held > 1);
                self.held = self.held.saturating_sub(1);
            }
            Event::Dispatch { rq: None, .. } => self.count += u64::from(self.held > 0),
            _ => {}
        }
    }
}

/// A probe that keeps the statistics of all devices of a run.
#[derive(Debug)]
pub struct Statistics {
    disks: Vec<DeviceStatistics>,
    hz: Hz,
    /// The device of the current events.
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
            choices: ReorderCounts::default(),
        };
        let file_scheduler = spec.guest.as_ref().map_or(&spec.scheduler, |guest| &guest.scheduler);
        let mut disks: Vec<_> = scenario.workload.files.iter().map(|_| disk(file_scheduler)).collect();
        disks.extend(scenario.guests.as_ref().map(|_| disk(&spec.scheduler)));
        Statistics { disks, hz: kernel_under(&spec.scheduler).generation().hz, device: 0 }
    }

    /// The summaries at the end of a run.
    #[must_use]
    pub fn summaries(self, scenario: &Scenario<'_>, simulated: Nanos) -> Vec<DiskSummary> {
        let now = self.hz.now(Instant(simulated.0));
        let files = scenario.workload.files.len();
        let load_cgroups = Cgroups::from_load(scenario.workload);
        let guest_cgroups = scenario.guests.as_ref().map(|guests| guests.cgroups(&scenario.workload.files));
        let summary = |(number, (statistics, file)): (usize, (DeviceStatistics, &str))| {
            let DeviceStatistics { mut disk, groups, choices } = statistics;
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
                ..DiskSummary::of(file, disk.line(now), kinds, times, choices.count)
            }
        };
        self.disks.into_iter().zip(scenario.disk_names()).enumerate().map(summary).collect()
    }
}

impl Probe for Statistics {
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
