//! Write-back throttling under the page cache: what is held up by it, how much, and what is not.

use crate::support::{observe, spec};
use hoistway_blk::bio::BioFlags;
use hoistway_blk::ground::{CpuId, Kernel, Nanos, Now};
use hoistway_blk::watch::{Event, Probe};
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_sim::{Host, QueueSettings, RunResult, RunSpec, Scenario, Write};

/// Requests of flushers that exist, and the most that there were at once.
#[derive(Default)]
struct WriteBack {
    requests: u32,
    most: u32,
}

impl Probe for WriteBack {
    fn event(&mut self, _: Now, _: CpuId, event: Event<'_>) {
        match event {
            Event::GetRq(rq) if rq.flags.contains(BioFlags::BACKGROUND) => {
                self.requests += 1;
                self.most = self.most.max(self.requests);
            }
            Event::End(rq) | Event::Absorbed(rq) if rq.flags.contains(BioFlags::BACKGROUND) => self.requests -= 1,
            _ => {}
        }
    }
}

const SSD: &str = "intel-s3520-1600gb";
const DISK: &str = "hgst-he10-8tb";
/// It dirties more than a tenth of the memory, all the time.
const WRITER: &str = "[writer]\nrw=write\nbs=128k\nsize=40%\n";
const READER: &str = "[reader]\ndirect=1\nrw=randread\nbs=4k\noffset=50%\nstartdelay=1\n";

/// `target` is what is written to `queue/wbt_lat_usec`, if anything is.
fn simulate(jobs: &str, device: &str, spec: &RunSpec, target: Option<&str>) -> (RunResult, WriteBack) {
    simulate_with(jobs, device, spec, target, None)
}

/// `next` is the scheduler that the queue has from the first 10 ms on, if it has another one then.
fn simulate_with(
    jobs: &str,
    device: &str,
    spec: &RunSpec,
    target: Option<&str>,
    next: Option<&str>,
) -> (RunResult, WriteBack) {
    let text = format!("[global]\nfilename=/dev/sda\nruntime=8\n{jobs}");
    let workload = JobFile::parse(&text, "test.fio", &Environment::empty()).unwrap().load;
    let preset = Preset::builtin(device).unwrap();
    let host = Host { memory_bytes: 1 << 30, ..Host::builtin(Host::DEFAULT).unwrap() };
    let mut queue = QueueSettings::new(Kernel::V6_18, 8);
    let switch = |name: &str| Write {
        at: Nanos::from_millis(10),
        only_under: None,
        file: "scheduler".into(),
        text: name.into(),
    };
    queue.writes.extend(next.map(switch));
    let mut spec = spec.clone();
    target.iter().for_each(|text| spec.setting.write("wbt_lat_usec", text));
    let scenario = Scenario { workload: &workload, devices: vec![&preset], guests: None, queue, host, runtime: None };
    let (result, probe) = observe(&scenario, &spec, WriteBack::default()).unwrap();
    assert!(result.processes.iter().all(|process| process.error == 0));
    (result, probe)
}

/// The mean latency of the reader, ms.
fn read_ms(result: &RunResult) -> f64 {
    result.processes[1].directions[0].lat.mean() / 1e6
}

#[test]
fn readers_come_through_under_every_scheduler_that_does_not_switch_it_off() {
    let jobs = format!("{WRITER}{READER}");
    let run = |scheduler, target| simulate(&jobs, SSD, &spec(scheduler, &[], 1), target).0;
    for scheduler in ["none", "mq-deadline", "kyber"] {
        let (with, without) = (read_ms(&run(scheduler, None)), read_ms(&run(scheduler, Some("0"))));
        assert!(with * 1.3 < without, "{scheduler}: {with} ms, without {without}");
    }
    let [with, without] = [None, Some("0")].map(|target| format!("{:?}", run("bfq", target).processes));
    assert_eq!(with, without, "bfq has none");
}

#[test]
fn write_back_alone_takes_three_quarters_of_the_tags_at_most() {
    for (scheduler, tags) in [("none", 32), ("mq-deadline", 64)] {
        let most = |target| simulate(WRITER, SSD, &spec(scheduler, &[], 1), target).1.most;
        let (with, without) = (most(None), most(Some("0")));
        // Only writes are seen: one step down from 16 of 32 is 24.
        assert!((17..=24).contains(&with), "{scheduler}: {with}");
        assert_eq!(without, tags, "{scheduler}");
    }
}

#[test]
fn throttling_stops_under_a_scheduler_that_disables_it_and_returns_after() {
    let most = |first, next| simulate_with(WRITER, SSD, &spec(first, &[], 1), None, Some(next)).1.most;
    assert!(most("mq-deadline", "bfq") > 24);
    for next in ["none", "mq-deadline"] {
        let most = most("bfq", next);
        assert!((17..=24).contains(&most), "{next}: {most}");
    }
}

#[test]
fn direct_io_is_never_throttled() {
    let jobs = "[w]\ndirect=1\nrw=randrw\nbs=4k\nioengine=libaio\niodepth=64\nnumber_ios=4000\n\
                [s]\ndirect=1\nsync=1\nrw=write\nnumber_ios=200\n";
    for scheduler in ["none", "mq-deadline", "kyber"] {
        let runs = [None, Some("0"), Some("1")].map(|target| simulate(jobs, SSD, &spec(scheduler, &[], 1), target).0);
        let [first, others @ ..] = runs.map(|run| format!("{:?}", run.processes));
        assert!(others.iter().all(|other| *other == first), "{scheduler}");
    }
}

#[test]
fn an_fsync_of_more_than_may_be_in_flight_comes_to_its_end() {
    // 30 pieces that are no neighbours, again and again, and a process that reads meanwhile.
    let jobs = "[sync]\nrw=randwrite\nbs=4k\nsize=1g\nfsync=30\nnumber_ios=600\n\
                [reader]\ndirect=1\nrw=randread\nbs=4k\noffset=50%\nnumber_ios=300\n";
    for device in [SSD, DISK] {
        for scheduler in ["none", "mq-deadline", "kyber"] {
            // The target cannot be met, so that the limit goes down to 1.
            let (result, _) = simulate(jobs, device, &spec(scheduler, &[], 1), Some("1"));
            let (sync, cache) = (&result.processes[0], result.page_cache.unwrap());
            assert!(sync.sync.total_ios >= 3, "{scheduler} on {device}: {}", sync.sync.total_ios);
            assert_eq!(cache.written_bytes, cache.overwritten_bytes + cache.synced_bytes + cache.dirty_bytes);
        }
    }
}
