//! Commands that fail at the device fail for the process that waits for them.

use crate::support::{run_job, spec};
use hoistway_blk::ground::Kernel;
use hoistway_device::Preset;
use hoistway_legacy::ALL_SCHEDULERS;
use hoistway_sim::QueueSettings;

const JOB: &str = "[global]\nioengine=libaio\ndirect=1\nfilename=/dev/sda\nbs=4k\niodepth=8\nruntime=1\n\
                   [reader]\nrw=randread\n[writer]\nrw=randwrite\n";

const FAULTS: &str = "[faults]\nerrors_per_million = 20000\nstalls_per_million = 0\nstall_ms = 0\nlost_per_million = 0\n\
                      lost_after_ms = 30000\ntorn_writes_per_million = 0\n";

fn errors(job: &str, faults: &str, scheduler: &str) -> Vec<i32> {
    let text = include_str!("../../device/presets/intel-s3520-1600gb.toml");
    let preset = Preset::from_toml(&format!("{text}\n{faults}"), "faulty.toml").unwrap();
    let queue = QueueSettings::new(Kernel::V6_18, 8);
    let processes = run_job(job, &preset, queue, None, &spec(scheduler, &[], 1)).processes;
    processes.iter().map(|process| process.error).collect()
}

#[test]
fn a_process_whose_io_fails_gets_the_error_and_stops() {
    for scheduler in ALL_SCHEDULERS {
        assert_eq!(errors(JOB, "", scheduler), [0, 0], "{scheduler}");
        assert!(errors(JOB, FAULTS, scheduler).iter().all(|&errno| errno != 0), "{scheduler}");
    }
}

#[test]
fn a_failed_buffered_write_is_reported_only_to_a_process_that_syncs() {
    let job = JOB.replace("direct=1\n", "").replace("[reader]", "[reader]\nsize=10g")
        + "fsync=8\n[careless]\nrw=write\noffset=50%\nsize=1g\nnumber_ios=200\n";
    for scheduler in ALL_SCHEDULERS {
        assert_eq!(errors(&job, "", scheduler), [0, 0, 0], "{scheduler}");
        let [reader, writer, careless] = errors(&job, FAULTS, scheduler)[..] else { panic!() };
        assert!(reader != 0 && writer != 0 && careless == 0, "{scheduler}: {reader}, {writer}, {careless}");
    }
}
