//! A real-time reader beside writers under mq-deadline of 7.3, beside a real kernel: over a null block device whose commands take 1 ms, two
//! at a time, in a guest of 1 ns an instruction with one CPU, the reader does 493 reads and each of two writers 740 writes per second. The
//! worker that a completion calls dispatches writes before the reader, which it wakes, has submitted its next read.

use crate::support::{spec, writing};
use hoistway_blk::ground::{Kernel, Nanos};
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_sim::{Control, Host, QueueSettings, Scenario, run};

const JOB: &str = "[global]\nioengine=libaio\ndirect=1\nbs=4k\nfilename=/dev/nullb0\ntime_based\nruntime=1\n\
                   [reader]\nrw=randread\nprioclass=1\nprio=4\n[writers]\nrw=randwrite\niodepth=8\nnumjobs=2\n";
const HOST: &str = "name = \"guest\"\ndescription = \"a guest of 1 ns an instruction\"\nsubmit_ns = 12200\ncomplete_ns = 4000\n\
                    wake_ns = [3000, 5000]\nworker_ns = [3000, 5000]\n";
const READS: f64 = 493.0;
const WRITES: f64 = 2.0 * 740.0;

/// Reads and writes per second.
fn rates(seed: u64) -> [f64; 2] {
    let device = Preset::builtin_toml("null").unwrap().replace("delay_ns = 10_000", "delay_ns = 1000000");
    let device = device.replace("queue_depth = 64", "queue_depth = 2");
    let preset = Preset::from_toml(&device, "null.toml").unwrap();
    let workload = JobFile::parse(JOB, "test.fio", &Environment::empty()).unwrap().load;
    let queue = QueueSettings::new(Kernel::series(7, 2), 1);
    let host = Host::from_toml(HOST, "guest.toml").unwrap();
    let scenario = Scenario {
        workload: &workload,
        devices: vec![&preset],
        guests: None,
        queue,
        host,
        runtime: Some(Nanos::from_secs(1)),
    };
    let result =
        run(&scenario, &writing(spec("mq-deadline", &[], seed), "nr_requests", "64"), &Control::default()).unwrap();
    let mut rates = [0.0; 2];
    for (number, process) in result.processes.iter().enumerate() {
        rates[usize::from(number > 0)] += process.directions.iter().map(|direction| direction.ios).sum::<u64>() as f64;
    }
    rates
}

#[test]
fn the_worker_comes_before_the_reader_or_only_the_reader_is_served_as_the_first_process_decides() {
    let rates: Vec<[f64; 2]> = (1..=8).map(rates).collect();
    let is_near =
        |[reads, writes]: &[f64; 2]| (reads / READS - 1.0).abs() < 0.02 && (writes / WRITES - 1.0).abs() < 0.02;
    // While the reader alone has commands in flight, nothing calls the worker when one of them ends.
    let is_starved = |[reads, writes]: &[f64; 2]| *reads > 950.0 && *writes < 20.0;
    assert!(rates.iter().all(|rates| is_near(rates) || is_starved(rates)), "{rates:?}");
    assert!(rates.iter().filter(|rates| is_near(rates)).count() >= 3, "{rates:?}");
}
