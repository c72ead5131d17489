//! Which processes wait for others, which end others, and what they do at their own end.

use crate::support::{run_job_probed, spec};
use hoistway_blk::bio::Op;
use hoistway_blk::ground::{Kernel, Now};
use hoistway_blk::watch::{Event, Probe};
use hoistway_device::Preset;
use hoistway_measure::ProcessResult;
use hoistway_sim::QueueSettings;

/// Counts the flushes that the device is given.
#[derive(Default)]
struct Flushes(u64);

impl Probe for Flushes {
    fn event(&mut self, _: Now, _: hoistway_blk::ground::CpuId, event: Event<'_>) {
        if let Event::Complete(rq, _) = event {
            self.0 += u64::from(rq.op == Op::Flush);
        }
    }
}

/// Runs jobs on one device; returns the results, the flushes, and how long it took, ms.
fn simulate(jobs: &str) -> (Vec<ProcessResult>, u64, u64) {
    let text = format!("[global]\nioengine=libaio\ndirect=1\nfilename=/dev/sda\nrw=randread\n{jobs}");
    let preset = Preset::builtin("intel-s3520-1600gb").unwrap();
    let queue = QueueSettings::new(Kernel::V6_18, 8);
    let (result, flushes) = run_job_probed(&text, &preset, queue, None, &spec("none", &[], 1), Flushes::default());
    (result.processes, flushes.0, result.simulated.0 / 1_000_000)
}

fn ios(process: &ProcessResult) -> u64 {
    process.directions.iter().map(|direction| direction.ios).sum()
}

fn runtime_ms(process: &ProcessResult) -> u64 {
    process.runtime_ns / 1_000_000
}

const LONG: &str = "time_based\nruntime=500ms\n";

#[test]
fn without_exitall_every_process_ends_by_itself() {
    let (processes, _, ms) = simulate(&format!("[short]\nnumber_ios=10\n[long]\n{LONG}"));
    assert_eq!(ios(&processes[0]), 10);
    assert!((500..510).contains(&runtime_ms(&processes[1])) && ms >= 500, "{ms}");
}

#[test]
fn exitall_of_any_job_ends_the_group_of_the_first_process_that_ends() {
    for jobs in [
        format!("[short]\nexitall\nnumber_ios=10\n[long]\n{LONG}"),
        format!("[short]\nnumber_ios=10\n[long]\nexitall\n{LONG}"),
        // One that sleeps is ended, too.
        format!("[short]\nexitall\nnumber_ios=10\n[long]\n{LONG}thinktime=400ms\n"),
        format!("[short]\nexitall\nnumber_ios=10\n[long]\n{LONG}startdelay=300ms\n"),
    ] {
        let (processes, _, ms) = simulate(&jobs);
        assert_eq!(ios(&processes[0]), 10);
        assert!(runtime_ms(&processes[1]) < 100, "{jobs}: {}", runtime_ms(&processes[1]));
        assert!(ms < 310, "{jobs}: {ms}");
    }
}

#[test]
fn exit_what_selects_the_jobs_to_end() {
    let jobs = |what: &str| {
        let jobs = format!(
            "exitall\nexit_what={what}\n[short]\nnumber_ios=10\n[long]\nnew_group\n{LONG}[later]\nstonewall\nnumber_ios=7\n"
        );
        let (processes, _, _) = simulate(&jobs);
        (runtime_ms(&processes[1]) < 100, ios(&processes[2]))
    };
    assert_eq!(jobs("group"), (false, 7));
    assert_eq!(jobs("stonewall"), (true, 7));
    assert_eq!(jobs("all"), (true, 0));
}

#[test]
fn a_job_begins_when_all_clones_of_the_one_it_waits_for_have_ended() {
    let (processes, _, ms) = simulate(
        "time_based\nruntime=100ms\n[a]\nnumjobs=2\nstartdelay=0-1\n[b]\nwait_for=a\n[c]\nwait_for=b\n[free]\n",
    );
    assert!(processes.iter().all(|process| (100..110).contains(&runtime_ms(process))));
    assert!((300..1400).contains(&ms), "{ms}");
}

#[test]
fn end_fsync_flushes_once_in_the_run_time_but_not_in_the_figures() {
    let (plain, none, _) = simulate("[a]\nrw=write\nnumber_ios=100\n");
    assert_eq!(none, 0);
    for option in ["end_fsync=1", "fsync_on_close=1", "end_fsync=1\nfsync_on_close=1"] {
        let (processes, flushes, _) = simulate(&format!("[a]\nrw=write\nnumber_ios=100\n{option}\n"));
        assert_eq!((flushes, processes[0].sync.total_ios, ios(&processes[0])), (1, 0, 100), "{option}");
        assert!(processes[0].runtime_ns > plain[0].runtime_ns, "{option}");
    }
    // Two that end by time, and one that has nothing to flush.
    let (_, flushes, _) = simulate("end_fsync=1\nruntime=10ms\n[a]\nrw=write\nnumjobs=2\n[b]\nstonewall\nrw=read\n");
    assert!((1..=2).contains(&flushes), "{flushes}: flushes may be shared");
}
