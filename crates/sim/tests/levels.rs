//! What is measured of a process beside its latencies: depths, sizes of batches, and when its I/Os ended.

use crate::support::spec;
use hoistway_blk::ground::Kernel;
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_measure::{Direction, ProcessResult};
use hoistway_sim::{Control, Host, QueueSettings, Scenario, run};

/// The only process of a job file, on a host that costs no time: it begins at 0.
fn measured(job: &str) -> ProcessResult {
    let text = format!("[a]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\nsize=1g\n{job}");
    let workload = JobFile::parse(&text, "test.fio", &Environment::empty()).unwrap().load;
    let (preset, host) = (Preset::builtin("intel-s3520-1600gb").unwrap(), Host::builtin("instant").unwrap());
    let queue = QueueSettings::new(Kernel::V6_18, 4);
    let scenario = Scenario { workload: &workload, devices: vec![&preset], guests: None, queue, host, runtime: None };
    run(&scenario, &spec("none", &[], 1), &Control::default()).unwrap().processes.swap_remove(0)
}

#[test]
fn each_submission_and_each_completion_is_in_the_levels_from_the_first_moment_on() {
    let process = measured("rw=randread\nnumber_ios=500\n");
    let sum = |counts: &[u64; 7]| counts.iter().sum::<u64>();
    let levels =
        [process.depth_levels.counts(), process.submit_levels.counts(), process.complete_levels.counts()].map(sum);
    assert_eq!((process.total_ios(), levels), (500, [500; 3]), "one at a time");
}

#[test]
fn each_io_is_in_the_series_of_its_direction_with_its_latency() {
    let process = measured("rw=randrw\niodepth=8\nnumber_ios=3000\n");
    for direction in [Direction::Read, Direction::Write] {
        let of = process.direction(direction);
        // What ended in the last interval, which is not whole, is in the next one.
        let intervals = of.series.complete(process.runtime_ns + of.series.length_ns());
        let (ios, lat_ns) = intervals.iter().fold((0, 0), |(ios, ns), i| (ios + i.ios, ns + i.lat_ns));
        let mean = lat_ns as f64 / ios as f64;
        assert_eq!(ios, of.ios, "{direction:?}");
        assert!(ios > 1000 && (mean / of.lat.mean() - 1.0).abs() < 1e-9, "{mean} and {}", of.lat.mean());
    }
}

#[test]
fn the_ios_of_each_priority_have_latencies_of_their_own() {
    let process = measured("rw=randread\niodepth=8\nnumber_ios=1000\ncmdprio_percentage=30\ncmdprio_class=1\n");
    let reads = process.direction(Direction::Read);
    let mut ios: Vec<u64> = reads.prios.iter().map(|result| result.lat.count()).collect();
    ios.sort_unstable();
    assert!(ios.len() == 2 && (250..350).contains(&ios[0]) && ios[0] + ios[1] == 1000, "{ios:?}");
    let sum = |mean: &dyn Fn(usize) -> f64| {
        (0..2).map(|index| mean(index) * reads.prios[index].lat.count() as f64).sum::<f64>()
    };
    let [lat, clat] = [sum(&|index| reads.prios[index].lat.mean()), sum(&|index| reads.prios[index].clat.mean())];
    assert!((lat / 1000.0 / reads.lat.mean() - 1.0).abs() < 0.01, "{lat}");
    assert!((clat / 1000.0 / reads.clat.mean() - 1.0).abs() < 0.01, "{clat}");
}
