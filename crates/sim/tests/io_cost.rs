//! `io.cost` in whole runs: shares of device time, donation, and a rate that follows latencies. Rules: IC-1 to IC-23.

use hoistway_blk::ground::{CpuId, Instant, Kernel, Nanos, Now};
use hoistway_blk::watch::{Event, Probe};
use hoistway_cgroup::IoCostSettings;
use hoistway_device::Preset;
use hoistway_measure::{IoCostSummary, ProcessResult};
use hoistway_sim::{DiskIoCost, QueueSettings, RunResult};

use crate::support::{run_job, run_job_probed, spec};

/// A drive whose model holds the figures that io.cost needs, and these figures.
const DRIVE: &str = "HFS256GD9TNG-62A0A";
const MODEL: &str = "rbps=1076000000 rseqiops=53200 rrandiops=63400 wbps=196000000 wseqiops=12300 wrandiops=16100";
const GLOBAL: &str = "[global]\nioengine=libaio\ndirect=1\nfilename=/dev/sda\nsize=20g\ntime_based\n";

fn queue(io_cost: Option<&str>) -> QueueSettings {
    let mut queue = QueueSettings::new(Kernel::V6_18, 8);
    if let Some(text) = io_cost {
        let mut settings = IoCostSettings::default();
        settings.update(text).expect(text);
        queue.io_cost = vec![Some(DiskIoCost { qos: settings.qos, model: settings.model.resolve(None).unwrap() })];
    }
    queue
}

fn simulate(scheduler: &str, io_cost: Option<&str>, jobs: &str) -> RunResult {
    let preset = Preset::builtin(DRIVE).unwrap();
    run_job(&format!("{GLOBAL}{jobs}"), &preset, queue(io_cost), None, &spec(scheduler, &[], 1))
}

/// The latencies of requests from their start, after some time.
#[derive(Default)]
struct Latencies {
    from: Instant,
    ns: Vec<u64>,
}

impl Probe for Latencies {
    fn event(&mut self, now: Now, _: CpuId, event: Event<'_>) {
        if let Event::Complete(rq, _) = event
            && now.at >= self.from
        {
            self.ns.push(now.at.since(rq.start).0);
        }
    }
}

impl Latencies {
    fn p95_us(mut self) -> f64 {
        self.ns.sort_unstable();
        self.ns[self.ns.len() * 95 / 100] as f64 / 1e3
    }
}

/// The run, and the 95th percentile of the latencies of requests after `from`, us.
fn latencies(io_cost: Option<&str>, jobs: &str, from: Instant) -> (RunResult, f64) {
    let preset = Preset::builtin(DRIVE).unwrap();
    let probe = Latencies { from, ..Latencies::default() };
    let jobs = format!("{GLOBAL}{jobs}");
    let (result, probe) = run_job_probed(&jobs, &preset, queue(io_cost), None, &spec("none", &[], 1), probe);
    (result, probe.p95_us())
}

fn summary(result: &RunResult) -> &IoCostSummary {
    &result.io_cost[0]
}

/// Device time of the groups, as parts of the sum.
fn parts(result: &RunResult) -> Vec<f64> {
    let times = summary(result).groups.iter().map(|group| group.device_time_ms);
    let sum: f64 = times.clone().sum();
    times.map(|time| time / sum).collect()
}

fn assert_near(measured: &[f64], expected: &[f64], tolerance: f64, of: &str) {
    assert_eq!(measured.len(), expected.len(), "{of}");
    for (one, other) in measured.iter().zip(expected) {
        assert!((one / other - 1.0).abs() <= tolerance, "{of}: {measured:.3?}, expected {expected:.3?}");
    }
}

fn ios(process: &ProcessResult) -> u64 {
    process.directions.iter().map(|direction| direction.ios).sum()
}

fn bytes(process: &ProcessResult) -> f64 {
    process.directions.iter().map(|direction| direction.bytes).sum::<u64>() as f64
}

const EXACT: &str = "enable=1 rpct=0 wpct=0 min=100 max=100";

#[test]
fn weights_are_shares_of_device_time_under_every_scheduler() {
    let jobs: String = [(1, 100), (2, 200), (3, 400), (4, 800)]
        .map(|(group, weight)| {
            format!(
                "[g{group}]\nrw=randread\nbs=4k\niodepth=32\nruntime=300ms\ncgroup=g{group}\ncgroup_weight={weight}\n"
            )
        })
        .concat();
    // Under bfq the drive does not reach the figures of its model.
    let slower = MODEL.replace("rrandiops=63400", "rrandiops=30000");
    for (scheduler, model) in [("none", MODEL), ("mq-deadline", MODEL), ("kyber", MODEL), ("bfq", &slower)] {
        let result = simulate(scheduler, Some(&format!("{EXACT} {model}")), &jobs);
        let expected = [1.0, 2.0, 4.0, 8.0].map(|weight| weight / 15.0);
        assert_near(&parts(&result), &expected, 0.05, scheduler);
        assert_near(&[summary(&result).mean_rate_percent], &[100.0], 1e-9, scheduler);
    }
}

#[test]
fn equal_weights_are_equal_times_and_the_bytes_follow_from_the_model() {
    let jobs = "[small]\nrw=randread\nbs=4k\niodepth=32\nruntime=500ms\ncgroup=small\n\
                [large]\nrw=read\nbs=128k\niodepth=8\nruntime=500ms\ncgroup=large\n";
    let result = simulate("none", Some(&format!("{EXACT} {MODEL}")), jobs);
    assert_near(&parts(&result), &[0.5, 0.5], 0.1, "time");
    // Per second of device time: 4 KiB reads at random, and 128 KiB for a sequential read and the further data.
    let small = 63_400.0 * 4096.0;
    let large = 131_072.0 / (1.0 / 53_200.0 + (131_072.0 - 4096.0) / 1_076_000_000.0);
    let measured = bytes(&result.processes[1]) / bytes(&result.processes[0]);
    assert_near(&[measured], &[large / small], 0.1, "bytes");
}

#[test]
fn a_group_that_asks_for_a_tenth_of_its_share_leaves_the_rest_to_the_others() {
    let saturating = |group| format!("[{group}]\nrw=randread\nbs=4k\niodepth=64\nruntime=1s\ncgroup={group}\n");
    let others = format!("{}{}{}", saturating("b"), saturating("c"), saturating("d"));
    let slow = "[a]\nrw=randread\nbs=4k\nrate_iops=1585\nruntime=1s\ncgroup=a\n";
    let jobs = format!("{slow}{others}");
    let count = |io_cost| simulate("none", io_cost, &jobs).processes[1..].iter().map(ios).sum::<u64>();
    let (with, without) = (count(Some(&format!("{EXACT} {MODEL}"))), count(None));
    assert!(with as f64 >= 0.95 * without as f64, "{with} of {without}");
}

#[test]
fn a_model_that_is_twice_too_fast_is_corrected_by_latencies() {
    let (_, idle_p95_us) = latencies(None, "[idle]\nrw=randread\nbs=4k\niodepth=1\nruntime=500ms\n", Instant::ZERO);
    let rlat = 2.0 * idle_p95_us;
    let twice = "rbps=2152000000 rseqiops=106400 rrandiops=126800 wbps=392000000 wseqiops=24600 wrandiops=32200";
    let settings = format!("enable=1 rpct=95 rlat={rlat:.0} wpct=0 min=10 max=200 {twice}");
    let job = "[reader]\nrw=randread\nbs=4k\niodepth=256\nruntime=7s\ncgroup=readers\n";
    let (result, p95_us) = latencies(Some(&settings), job, Instant::ZERO + Nanos::from_millis(5000));
    assert!(p95_us <= 1.3 * rlat, "{p95_us} us, for {rlat}");
    let rate = summary(&result).mean_rate_percent;
    assert!((40.0..=60.0).contains(&rate), "{rate}");
}

#[test]
fn without_enable_nothing_waits() {
    let jobs = "[a]\nrw=randread\nbs=4k\niodepth=32\nruntime=100ms\ncgroup=a\n\
                [b]\nrw=randread\nbs=4k\niodepth=32\nruntime=100ms\ncgroup=b\n";
    let off = simulate("none", Some(&format!("enable=0 min=1 max=1 {MODEL}")), jobs);
    let without = simulate("none", None, jobs);
    assert_eq!(
        off.processes.iter().map(ios).collect::<Vec<_>>(),
        without.processes.iter().map(ios).collect::<Vec<_>>()
    );
    assert!(off.io_cost.is_empty() && without.io_cost.is_empty());
}
