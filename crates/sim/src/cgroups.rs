//! The cgroups of a load: membership of processes, and weights as schedulers see them (CG-1 to CG-5, CG-7, CG-8).
//!
//! Used by: `simulation`, `guests`, `statistics`.
//! Tests: below.
//!
//! A job names its cgroup by a path, `a/b`; every component is a group. A group's weight corresponds to
//! `blkio.bfq.weight` and cfq's `blkio.weight`: bfq divides service by it, cfq divides time, and the other schedulers
//! ignore groups.

use hoistway_blk::bio::CgroupPriority;
use hoistway_blk::drive::Effects;
use hoistway_blk::ground::{CgroupId, Local, Now};
use hoistway_blk::policy::SchedulerEvent;
use hoistway_cgroup::{IoCost, IoLatency, IoLatencyTarget, IoMax, THROTTLE_SLICE, Throttle};
use hoistway_legacy::AnyQueue;
use hoistway_load::Load;

use crate::disk::{DiskIoCost, SimulatedDisk};

/// All cgroups of a load except the root, parents first.
#[derive(Debug, Default)]
pub(crate) struct Cgroups {
    groups: Vec<CgroupEntry>,
}

#[derive(Debug)]
struct CgroupEntry {
    path: String,
    parent: CgroupId,
    weight: Option<u32>,
}

impl Cgroups {
    /// The cgroups that the processes of a load name.
    pub(crate) fn from_load(workload: &Load) -> Self {
        let mut cgroups = Cgroups::default();
        for process in &workload.processes {
            if let Some(path) = process.standing.cgroup.as_deref() {
                let id = cgroups.add(path);
                if let (Some(weight), Some(group)) = (process.standing.cgroup_weight, cgroups.group_mut(id)) {
                    group.weight = Some(weight);
                }
            }
        }
        cgroups
    }

    /// Adds the group of this path and its missing ancestors.
    fn add(&mut self, path: &str) -> CgroupId {
        let path = path.trim_matches('/');
        if path.is_empty() {
            return CgroupId::ROOT;
        }
        if let Some(existing) = self.find(path) {
            return existing;
        }
        let parent = path.rsplit_once('/').map_or(CgroupId::ROOT, |(parent_path, _)| self.add(parent_path));
        self.groups.push(CgroupEntry { path: path.to_owned(), parent, weight: None });
        CgroupId(self.groups.len() as u32)
    }

    /// Adds a child of the root with this name.
    pub(crate) fn add_child(&mut self, name: &str, weight: Option<u32>) {
        self.groups.push(CgroupEntry { path: name.to_owned(), parent: CgroupId::ROOT, weight });
    }

    /// The group of this path.
    pub(crate) fn find(&self, path: &str) -> Option<CgroupId> {
        let path = path.trim_matches('/');
        if path.is_empty() {
            return Some(CgroupId::ROOT);
        }
        self.groups.iter().position(|group| group.path == path).map(|index| CgroupId(index as u32 + 1))
    }

    fn group_mut(&mut self, id: CgroupId) -> Option<&mut CgroupEntry> {
        self.groups.get_mut((id.0 as usize).checked_sub(1)?)
    }

    fn iter(&self) -> impl Iterator<Item = (CgroupId, &CgroupEntry)> {
        self.groups.iter().enumerate().map(|(index, group)| (CgroupId(index as u32 + 1), group))
    }

    /// Each group's path, with the ids of the group and all below it.
    pub(crate) fn with_descendants(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = CgroupId> + '_)> {
        let is_within = |path: &str, ancestor: &str| {
            path.strip_prefix(ancestor).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.iter().map(move |(_, ancestor)| {
            let members =
                self.iter().filter(move |(_, group)| is_within(&group.path, &ancestor.path)).map(|(id, _)| id);
            (ancestor.path.as_str(), members)
        })
    }

    /// The path and number of each group.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (&str, CgroupId)> {
        self.iter().map(|(id, group)| (group.path.as_str(), id))
    }

    /// Announces the groups and their weights to the scheduler of a device.
    pub(crate) fn announce_to(&self, queue: &AnyQueue<Local>, now: Now, effects: &mut Effects) {
        for (id, group) in self.iter() {
            queue.notify(now, effects, SchedulerEvent::CgroupAdded { cgroup: id, parent: group.parent });
            if let Some(weight) = group.weight {
                let weight = weight.min(u32::from(u16::MAX)) as u16;
                queue.notify(now, effects, SchedulerEvent::Weight { cgroup: id, weight });
            }
        }
    }

    /// How a group changes the priority of its I/O (`io.prio.class`), on the kernel of these disks.
    pub(crate) fn priority(
        &self,
        id: CgroupId,
        classes: &[(String, CgroupPriority)],
        disks: &[SimulatedDisk],
    ) -> CgroupPriority {
        // io.prio.class exists since Linux 5.14.
        let has_file = disks.iter().all(|disk| disk.queue.generation().kernel.is_from(5, 14));
        let matches = |(path, _): &&(String, _)| self.find(path) == Some(id);
        classes.iter().find(matches).filter(|_| has_file).map(|&(_, priority)| priority).unwrap_or_default()
    }

    /// The `io.max` throttle of a device; `None` if no group has a limit.
    pub(crate) fn throttle(&self, limits: &[(String, IoMax)], now: Now) -> Option<Throttle> {
        if limits.is_empty() {
            return None;
        }
        let mut throttle = Throttle::new(THROTTLE_SLICE);
        for (id, group) in self.iter() {
            throttle.add_group(id, group.parent);
        }
        for (path, limit) in limits {
            if let Some(id) = self.find(path).filter(|&id| id != CgroupId::ROOT) {
                throttle.set_limits(now.at, id, *limit);
            }
        }
        Some(throttle)
    }

    /// The `io.cost` of a device, with all groups. The weights of `io.weight` go before those that the load gives its groups.
    pub(crate) fn io_cost(&self, settings: &DiskIoCost, weights: &[(String, u32)]) -> IoCost {
        let mut io_cost = IoCost::new(settings.qos, &settings.model);
        for (id, group) in self.iter() {
            io_cost.add_group(id, group.parent);
            let written = weights.iter().find(|(path, _)| self.find(path) == Some(id)).map(|&(_, weight)| weight);
            if let Some(weight) = written.or(group.weight) {
                io_cost.set_weight(id, weight.max(1));
            }
        }
        io_cost
    }

    /// The `io.latency` of a device, with all groups; `None` if none has a target.
    pub(crate) fn io_latency(
        &self,
        targets: &[(String, IoLatencyTarget)],
        rotates: bool,
        requests: u32,
    ) -> Option<IoLatency> {
        targets.iter().find(|(_, target)| target.duration().is_some())?;
        let mut io_latency = IoLatency::new(rotates, requests);
        for (id, group) in self.iter() {
            io_latency.add_group(id, group.parent);
        }
        for (path, target) in targets {
            if let Some(id) = self.find(path) {
                io_latency.set_target(id, *target);
            }
        }
        Some(io_latency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_fio::{Environment, JobFile};

    #[test]
    fn every_part_of_a_path_is_a_group_and_parents_come_first() {
        let job = "[global]\nrw=read\ndirect=1\nfilename=/dev/sda\nsize=1m\n[a]\ncgroup=x/y\ncgroup_weight=300\n[b]\ncgroup=/x\n[c]\n";
        let workload = JobFile::parse(job, "test.fio", &Environment::empty()).unwrap().load;
        let cgroups = Cgroups::from_load(&workload);
        let seen: Vec<_> = cgroups.iter().map(|(id, g)| (id.0, g.path.as_str(), g.parent.0, g.weight)).collect();
        assert_eq!(seen, [(1, "x", 0, None), (2, "x/y", 1, Some(300))]);
        assert_eq!((cgroups.find("/x/"), cgroups.find("z")), (Some(CgroupId(1)), None));
    }
}
