//! Under bfq, processes that write to several drives in turn slow all of these down: while a process waits for one drive its queue on the
//! other is empty, so that it has had little service there, comes late as soft real-time processes do, and is raised (BFQ-92, BFQ-95).
//! The drive is kept for it when it leaves again (BFQ-74), which takes service from the others and makes them look the same.

use crate::support::{observe, spec};
use hoistway_blk::ground::{Kernel, Nanos};
use hoistway_blk::watch::{Event, Probe, Reason};
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_measure::Direction;
use hoistway_sim::{Host, QueueSettings, Scenario};

/// How often bfq kept a drive for the empty queue in service when it was asked for a request, and how often it was asked.
#[derive(Default)]
struct Kept {
    kept: u64,
    asked: u64,
}

impl Probe for Kept {
    fn event(&mut self, _: hoistway_blk::ground::Now, _: hoistway_blk::ground::CpuId, event: Event<'_>) {
        if let Event::Dispatch { reason, .. } = event {
            self.asked += 1;
            self.kept += u64::from(reason == Reason::Idling);
        }
    }
}

/// Eight writers of 64 KiB, 128 outstanding each, that begin 0.4 s after a reader: writes a second after 5 s, when no process is raised
/// for being new any more, and for which part of its answers bfq kept the drive for a queue.
fn writes(drives: &str, low_latency: &str, seed: u64) -> (f64, f64) {
    let job = format!(
        "[global]\nfilename={drives}\ndirect=1\nioengine=io_uring\nnorandommap=1\ntime_based\nruntime=2\nramp_time=5\n\
         [reader]\nrw=randread\nbs=4k\n[writers]\nrw=randwrite\nbs=64k\niodepth=128\nnumjobs=8\nstartdelay=400ms\n"
    );
    let workload = JobFile::parse(&job, "test.fio", &Environment::empty()).unwrap().load;
    let preset = Preset::builtin("samsung-980pro-1tb").unwrap();
    let devices = vec![&preset; workload.files.len()];
    let queue = QueueSettings::new(Kernel::V6_3, 10);
    let host = Host::builtin(Host::DEFAULT).unwrap();
    let scenario = Scenario { workload: &workload, devices, guests: None, queue, host, runtime: None };
    let spec = spec("bfq", &[("low_latency", low_latency)], seed);
    let (result, kept) = observe(&scenario, &spec, Kept::default()).unwrap();
    let writes: u64 = result.processes.iter().map(|process| process.direction(Direction::Write).lat.count()).sum();
    (writes as f64 / Nanos::from_secs(2).0 as f64 * 1e9, kept.kept as f64 / kept.asked as f64)
}

#[test]
fn writers_that_wait_for_another_drive_are_raised_and_keep_each_from_the_drives() {
    // Chance decides when which writers are raised: of single seeds some lose nothing.
    let seeds = [1, 2, 3].map(|seed| writes("/dev/a:/dev/b", "1", seed));
    let [raised, kept] =
        [|of: &(f64, f64)| of.0, |of: &(f64, f64)| of.1].map(|part| seeds.iter().map(part).sum::<f64>() / 3.0);
    let (plain, kept_plain) = writes("/dev/a:/dev/b", "0", 1);
    let (one_drive, kept_one_drive) = writes("/dev/a", "1", 1);
    let (one_plain, _) = writes("/dev/a", "0", 1);
    eprintln!("{raised} {kept}, {plain} {kept_plain}; one drive: {one_drive} {kept_one_drive}, {one_plain}");
    assert!(raised < 0.9 * plain, "{raised} {plain}");
    assert!(kept > 0.4 && kept_plain < 0.15, "{kept} {kept_plain}");
    assert!(one_drive > 0.85 * one_plain, "no queue is empty there: {one_drive} {one_plain}");
}
