//! The demand of each job, by which the verdict distinguishes jobs that wait for their I/O from bulk work.

use hoistway_answer::document::JobDemand;
use hoistway_blk::bio::PriorityClass;
use hoistway_load::{Process, RateLimits, WriteSync};

/// The demand of a job with these processes. `None` without processes, and for a replay, whose pauses and depth come from
/// the recording.
pub(crate) fn demand<'a>(processes: impl Iterator<Item = &'a Process>) -> Option<JobDemand> {
    let mut demand: Option<JobDemand> = None;
    for process in processes {
        if process.plan.is_replay() {
            return None;
        }
        let process_demand = demand_of_process(process);
        demand = Some(demand.map_or(process_demand, |all| JobDemand {
            depth: all.depth.max(process_demand.depth),
            asked_iops: all.asked_iops.zip(process_demand.asked_iops).map(|(sum, iops)| sum + iops),
            ..process_demand
        }));
    }
    demand
}

fn demand_of_process(process: &Process) -> JobDemand {
    let class = process.standing.io_priority.map(|priority| priority.class());
    let (pattern, caching) = (&process.plan.pattern, &process.caching);
    let volume = &pattern.volume;
    JobDemand {
        depth: process.issue.depth,
        asked_iops: asked_iops(process),
        weight: process.standing.cgroup_weight,
        thinks: process.pace.think.is_some_and(|think| think.sleep.0 > 0 || think.spin.0 > 0),
        syncs: pattern.sync_every.iter().any(|every| *every > 0) || caching.write_sync != WriteSync::None,
        is_realtime: class == Some(PriorityClass::RealTime),
        is_idle: class == Some(PriorityClass::Idle),
        ends: !(volume.time_based && process.schedule.runtime.is_some()),
        is_buffered: !caching.direct,
    }
}

/// The I/Os per second allowed by its rate limits, if every direction of the process has one.
fn asked_iops(process: &Process) -> Option<f64> {
    let rate = process.pace.rate?;
    let pattern = &process.plan.pattern;
    let lane_iops = |lane: usize| {
        let per_second = match rate.limits {
            RateLimits::Ios(limits) => limits[lane] as f64,
            RateLimits::Bytes(limits) => {
                let sizes = &pattern.sizes[lane];
                limits[lane] as f64 / (f64::from(sizes.min()) + f64::from(sizes.max())) * 2.0
            }
        };
        (per_second > 0.0 && per_second.is_finite()).then_some(per_second)
    };
    pattern.direction.lanes().iter().map(|&lane| lane_iops(lane)).sum()
}

#[cfg(test)]
mod tests {
    use hoistway_fio::{Environment, JobFile};

    use super::*;

    fn of(options: &str) -> JobDemand {
        let text = format!("[a]\nfilename=/dev/sda\nsize=1g\n{}\n", options.replace(' ', "\n"));
        let load = JobFile::parse(&text, "a.fio", &Environment::empty()).unwrap().load;
        demand(load.processes.iter()).unwrap()
    }

    #[test]
    fn the_demand_of_a_job_is_read_from_its_options() {
        let plain = of("direct=1 rw=randread ioengine=libaio iodepth=32 runtime=5 time_based");
        assert_eq!(plain, JobDemand { depth: 32, ..JobDemand::default() });
        assert!(of("rw=write").ends && of("rw=write").is_buffered && of("rw=read runtime=5").ends);
        assert!(of("rw=write fsync=1").syncs && of("rw=write sync=dsync").syncs);
        assert!(of("rw=read thinktime=1ms").thinks && of("rw=read prioclass=1").is_realtime);
        assert!(of("rw=read prioclass=3").is_idle && !of("rw=read prioclass=2 prio=7").is_idle);
    }

    #[test]
    fn the_requested_rate_sums_processes_and_directions_in_iops() {
        assert_eq!(of("rw=randread rate_iops=100 numjobs=3").asked_iops, Some(300.0));
        assert_eq!(of("rw=randrw bs=4k rate=400k,40k").asked_iops, Some(110.0));
        assert_eq!(of("rw=randrw rate_iops=100,0").asked_iops, None, "its writes have no limit");
    }
}
