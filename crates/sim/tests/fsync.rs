//! Loads that must be durable: fsync after each write, and O_DSYNC, through the sequencers of both fronts.

use crate::support::{run_job_probed, spec, writing};
use hoistway_blk::bio::Op;
use hoistway_blk::ground::{Kernel, Now};
use hoistway_blk::watch::{Event, Probe};
use hoistway_device::Preset;
use hoistway_legacy::ALL_SCHEDULERS;
use hoistway_measure::ProcessResult;
use hoistway_sim::QueueSettings;

/// Counts the commands that the device is given.
#[derive(Default)]
struct Commands {
    flushes: u64,
    writes: u64,
    /// Writes that the device has been given and not completed, and flushes that it was given beside one.
    in_flight: u64,
    flushes_beside_writes: u64,
}

impl Probe for Commands {
    fn event(&mut self, _: Now, _: hoistway_blk::ground::CpuId, event: Event<'_>) {
        match event {
            Event::Issue(rq) if rq.op == Op::Flush => self.flushes_beside_writes += u64::from(self.in_flight > 0),
            Event::Issue(_) => self.in_flight += 1,
            Event::Complete(rq, _) if rq.op == Op::Flush => self.flushes += 1,
            // What ends without data of its own never was at the device.
            Event::Complete(rq, _) if rq.sectors > 0 => {
                self.writes += 1;
                self.in_flight = self.in_flight.saturating_sub(1);
            }
            _ => {}
        }
    }
}

fn simulate(job: &str, scheduler: &str, attributes: &[(&str, &str)]) -> (Vec<ProcessResult>, Commands) {
    let text = format!("[global]\nioengine=libaio\ndirect=1\nbs=4k\nfilename=/dev/sda\nrw=randwrite\nruntime=1\n{job}");
    let preset = Preset::builtin("intel-s3520-1600gb").unwrap();
    let queue = QueueSettings::new(Kernel::V6_18, 8);
    let spec = attributes.iter().fold(spec(scheduler, &[], 1), |spec, (file, text)| writing(spec, file, text));
    let (result, commands) = run_job_probed(&text, &preset, queue, None, &spec, Commands::default());
    (result.processes, commands)
}

fn syncs(processes: &[ProcessResult]) -> u64 {
    processes.iter().map(|process| process.sync.total_ios).sum()
}

#[test]
fn one_process_needs_a_flush_for_each_fsync() {
    for scheduler in ALL_SCHEDULERS {
        let (processes, commands) = simulate("[wal]\nfsync=1\n", scheduler, &[]);
        let (fsyncs, writes) = (syncs(&processes), processes[0].directions[1].ios);
        assert!(writes > 1000 && fsyncs.abs_diff(writes) <= 1, "{scheduler}: {fsyncs} fsyncs, {writes} writes");
        assert!(commands.flushes.abs_diff(fsyncs) <= 1, "{scheduler}: {} flushes", commands.flushes);
        assert_eq!(processes[0].error, 0);
    }
}

#[test]
fn many_processes_share_flushes() {
    for scheduler in ALL_SCHEDULERS {
        let (processes, commands) = simulate("[wal]\nfsync=1\nnumjobs=8\n", scheduler, &[]);
        let fsyncs = syncs(&processes);
        assert!(fsyncs > 1000, "{scheduler}: {fsyncs}");
        assert!(commands.flushes * 2 < fsyncs, "{scheduler}: {} flushes for {fsyncs} fsyncs", commands.flushes);
    }
}

#[test]
fn a_write_with_dsync_is_followed_by_a_flush_if_the_device_has_no_fua() {
    for scheduler in ALL_SCHEDULERS {
        let (_, commands) = simulate("[log]\nsync=dsync\n", scheduler, &[]);
        assert!(commands.writes > 1000 && commands.flushes.abs_diff(commands.writes) <= 1, "{scheduler}");
    }
}

#[test]
fn an_fsync_of_libaio_does_not_wait_for_writes_in_flight_and_one_of_posixaio_does() {
    for scheduler in ALL_SCHEDULERS {
        let (_, commands) = simulate("[log]\nfsync=2\niodepth=8\n", scheduler, &[]);
        assert!(2 * commands.flushes_beside_writes > commands.flushes && commands.flushes > 100, "{scheduler}");
        let (_, commands) = simulate("[log]\nfsync=2\niodepth=8\nioengine=posixaio\n", scheduler, &[]);
        assert!(commands.flushes_beside_writes == 0 && commands.flushes > 100, "{scheduler}");
    }
}

#[test]
fn a_synchronous_write_with_sync_flushes_the_device_once_more() {
    for scheduler in ALL_SCHEDULERS {
        let (processes, commands) = simulate("[log]\nsync=1\nioengine=psync\n", scheduler, &[]);
        assert!(commands.writes > 500 && commands.flushes.abs_diff(2 * commands.writes) <= 2, "{scheduler}");
        // It is part of the write, and no fsync of the process.
        assert!(commands.writes.abs_diff(processes[0].directions[1].ios) <= 1, "{scheduler}");
        assert_eq!(syncs(&processes), 0, "{scheduler}");
    }
}

#[test]
fn write_through_makes_an_fsync_free() {
    for scheduler in ALL_SCHEDULERS {
        let (with, _) = simulate("[wal]\nfsync=1\n", scheduler, &[]);
        let (without, commands) = simulate("[wal]\nfsync=1\n", scheduler, &[("write_cache", "write through")]);
        assert_eq!(commands.flushes, 0, "{scheduler}");
        assert!(syncs(&without) as f64 > 1.2 * syncs(&with) as f64, "{scheduler}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let twice = [(); 2].map(|()| simulate("[wal]\nfsync=4\nnumjobs=3\niodepth=4\n", "bfq", &[]));
    assert_eq!(format!("{:?}", twice[0].0), format!("{:?}", twice[1].0));
}
