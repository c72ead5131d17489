//! How fast is it? Runs a job file under each scheduler that is named, and prints simulated I/Os and how many there were in a second:
//! `speed JOB.fio SECONDS DEVICE KERNEL SCHEDULER...`. A scheduler may be followed by `/` and settings of io.cost. `scripts/instructions` counts the instructions of its runs.

use std::time::Instant as Clock;

use hoistway_blk::ground::{Kernel, Nanos};
use hoistway_cgroup::IoCostSettings;
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_sim::{Control, DiskIoCost, Host, QueueSettings, RunSpec, Scenario, run};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [job_file, seconds, device, kernel, schedulers @ ..] = &arguments[..] else {
        panic!("expected JOB.fio SECONDS DEVICE KERNEL SCHEDULER...")
    };
    let text = std::fs::read_to_string(job_file).expect("a job file that can be read");
    let runtime = Nanos((seconds.parse::<f64>().expect("a number of seconds") * 1e9) as u64);
    let load = JobFile::parse(&text, job_file, &Environment::empty()).unwrap_or_else(|error| panic!("{error}")).load;
    let preset = Preset::builtin(device).expect("a bundled device");
    let kernel: Kernel = kernel.parse().expect("a release of Linux");
    for row in schedulers {
        let (scheduler, io_cost) = row.split_once('/').unwrap_or((row, ""));
        let mut queue = QueueSettings::new(kernel, 8);
        if !io_cost.is_empty() {
            let mut settings = IoCostSettings::default();
            settings.update(io_cost).unwrap_or_else(|error| panic!("{error}"));
            let model = settings.model.resolve(None).unwrap_or_else(|missing| panic!("{missing:?} are missing"));
            queue.io_cost = vec![Some(DiskIoCost { qos: settings.qos, model }); load.files.len()];
        }
        let scenario = Scenario {
            workload: &load,
            devices: vec![&preset; load.files.len()],
            guests: None,
            queue,
            host: Host::builtin(Host::DEFAULT).unwrap(),
            runtime: Some(runtime),
        };
        let spec = RunSpec::new(scheduler, 1);
        let begin = Clock::now();
        let result = run(&scenario, &spec, &Control::default()).unwrap_or_else(|error| panic!("{scheduler}: {error}"));
        let took_s = begin.elapsed().as_secs_f64();
        println!("{scheduler}: {} I/Os in {took_s:.3} s = {:.2} M/s", result.ios, result.ios as f64 / took_s / 1e6);
    }
}
