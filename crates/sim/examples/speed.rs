//! How fast is it? Runs a job file under the schedulers that are named and prints simulated I/Os per second.
use hoistway_blk::ground::{Kernel, Nanos};
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_sim::{Control, Host, QueueSettings, RunSpec, Scenario, run};
use std::time::Instant as Clock;
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let text = std::fs::read_to_string(&args[0]).unwrap();
    let seconds: u64 = args[1].parse().unwrap();
    let workload = JobFile::parse(&text, &args[0], &Environment::empty()).unwrap().load;
    let preset = Preset::builtin(&args[2]).unwrap();
    for scheduler in &args[4..] {
        let scenario = Scenario {
            workload: &workload,
            devices: vec![&preset; workload.files.len()],
            guests: None,
            queue: QueueSettings::new(args[3].parse::<Kernel>().unwrap(), 8),
            host: Host::builtin(Host::DEFAULT).unwrap(),
            runtime: Some(Nanos::from_secs(seconds)),
        };
        let start = Clock::now();
        let spec = RunSpec { scheduler: scheduler.clone(), tunables: vec![], guest: None, seed: 1 };
        let result = run(&scenario, &spec, &Control::default()).unwrap();
        let wall = start.elapsed().as_secs_f64();
        println!("{scheduler}: {} I/Os in {wall:.3} s = {:.2} M/s", result.ios, result.ios as f64 / wall / 1e6);
        for process in result.processes.iter().filter(|p| p.name != "writers").take(1).chain(result.processes.first()) {
            for d in &process.directions {
                if d.ios > 0 {
                    println!(
                        "  {} {:.1} IOPS  lat mean {:.4} ms max {:.2} slat {:.4}",
                        process.name,
                        d.ios as f64 / (process.runtime_ns as f64 / 1e9),
                        d.lat.mean() / 1e6,
                        d.lat.max().unwrap() as f64 / 1e6,
                        d.slat.mean() / 1e6
                    );
                }
            }
        }
    }
}
