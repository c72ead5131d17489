//! Files of `queue/` that are written while a load runs: the scheduler, tunables, `nr_requests`.

use std::collections::BTreeMap;

use crate::support::{run_job_probed, spec};
use hoistway_blk::ground::{CpuId, Kernel, Nanos, Now};
use hoistway_blk::queue::SCHEDULERS;
use hoistway_blk::watch::{Event, Probe};
use hoistway_device::Preset;
use hoistway_legacy::{ALL_SCHEDULERS, LEGACY_SCHEDULERS};
use hoistway_sim::{QueueSettings, RunResult, Write};

const JOB: &str = "[global]\ndirect=1\nfilename=/dev/sda\nioengine=libaio\niodepth=8\ntime_based\nbs=4k\n\
    [readers]\nrw=randread\nnumjobs=3\n[writers]\nrw=randwrite\nnumjobs=3\n";

/// Requests that have ended in each tenth of a second, and how often the scheduler was asked.
#[derive(Default)]
struct Diary {
    ended: BTreeMap<u64, u32>,
    asked: BTreeMap<u64, u32>,
}

impl Probe for Diary {
    fn event(&mut self, now: Now, _: CpuId, event: Event<'_>) {
        let tenth = now.at.0 / 100_000_000;
        match event {
            Event::End(_) => *self.ended.entry(tenth).or_default() += 1,
            Event::Dispatch { .. } => *self.asked.entry(tenth).or_default() += 1,
            _ => {}
        }
    }
}

fn write(at_ms: u64, file: &str, text: &str) -> Write {
    Write { at: Nanos::from_millis(at_ms), only_under: None, file: file.to_owned(), text: text.to_owned() }
}

fn simulate(scheduler: &str, seconds: u64, writes: Vec<Write>) -> (RunResult, Diary) {
    let preset = Preset::builtin("intel-s3520-1600gb").unwrap();
    let queue = QueueSettings { writes, ..QueueSettings::new(Kernel::V6_18, 8) };
    let runtime = Some(Nanos::from_secs(seconds));
    run_job_probed(JOB, &preset, queue, runtime, &spec(scheduler, &[], 1), Diary::default())
}

#[test]
fn under_load_no_scheduler_switch_within_a_queue_kind_strands_a_process() {
    for from in ALL_SCHEDULERS {
        let others: &[&str] = if LEGACY_SCHEDULERS.contains(&from) { &LEGACY_SCHEDULERS } else { &SCHEDULERS };
        let writes = others.iter().enumerate().map(|(n, to)| write(500 * (n as u64 + 1), "scheduler", to)).collect();
        let (result, diary) = simulate(from, 3, writes);
        assert!(result.refused.is_empty(), "{from}: {:?}", result.refused);
        for process in &result.processes {
            assert!(process.directions.iter().any(|direction| direction.ios > 1000), "{from}, {}", process.name);
        }
        let quiet: Vec<u64> = (0..30).filter(|tenth| diary.ended.get(tenth).is_none_or(|&ended| ended < 100)).collect();
        // bfq idles and cfq waits for its queue to run dry, but not for long.
        assert!(quiet.len() <= 3, "{from}: hardly anything ends in the tenths {quiet:?}");
    }
}

#[test]
fn a_scheduler_that_is_taken_away_is_not_asked_any_more() {
    let (_, diary) = simulate("mq-deadline", 2, vec![write(1000, "scheduler", "none")]);
    let asked = |tenths: std::ops::Range<u64>| diary.asked.range(tenths).map(|(_, count)| count).sum::<u32>();
    assert!(asked(0..10) > 1000 && asked(11..20) == 0, "{:?}", diary.asked);
}

#[test]
fn fewer_requests_bound_the_load_from_the_moment_on() {
    // 48 I/Os want to be outstanding; the latency follows how many may.
    let mean_ns = |writes| {
        let (result, _) = simulate("mq-deadline", 2, writes);
        let all = result.processes.iter().flat_map(|process| &process.directions);
        all.map(|direction| direction.ios).sum::<u64>()
    };
    let (all, few) = (mean_ns(Vec::new()), mean_ns(vec![write(0, "nr_requests", "4")]));
    assert!(few < all * 9 / 10, "{few} of {all} I/Os with four requests instead of 64");
}

#[test]
fn a_setting_refused_by_the_kernel_during_a_run_is_reported_and_ignored() {
    let (result, _) = simulate("kyber", 1, vec![write(100, "scheduler", "cfq"), write(200, "nr_requests", "5000")]);
    assert_eq!(
        result.refused,
        [
            "queue/scheduler=cfq under kyber: invalid value (EINVAL)",
            "queue/nr_requests=5000 under kyber: invalid value (EINVAL)"
        ]
    );
}

#[test]
fn a_tunable_is_written_only_under_the_scheduler_that_has_it() {
    let only =
        |name: &str, at_ms| Write { only_under: Some(name.to_owned()), ..write(at_ms, "iosched/fifo_batch", "1") };
    let (result, _) = simulate("none", 1, vec![only("mq-deadline", 100)]);
    assert!(result.refused.is_empty());
    let (result, _) = simulate("none", 1, vec![write(100, "iosched/fifo_batch", "1")]);
    assert_eq!(result.refused, ["queue/iosched/fifo_batch=1 under none: no such file (ENOENT)"]);
}

#[test]
fn the_same_writes_give_the_same_bits() {
    let once = || {
        let (result, diary) = simulate("none", 1, vec![write(300, "scheduler", "bfq"), write(600, "nr_requests", "8")]);
        (result.ios, diary.ended)
    };
    assert_eq!(once(), once());
}
