//! Runs a comparison of schedulers and prints one of its figures.

use hoistway_answer::Analysis;
use hoistway_experiment::{Alone, Comparison, Load};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let job = "[reader]\nfilename=/dev/sda\ndirect=1\nrw=randread\nruntime=1\ntime_based\n\
               [writer]\nfilename=/dev/sda\ndirect=1\nrw=write\nbs=1m\nioengine=libaio\niodepth=16\nruntime=1\ntime_based\n";
    let document = Comparison {
        load: Load::text(job),
        devices: vec!["intel-s3520-1600gb".into()],
        schedulers: ["none", "mq-deadline", "bfq"].map(str::to_owned).to_vec(),
        ..Comparison::default()
    }
    .run(&Alone)?;
    for (scheduler, latency) in Analysis::of(&document).figure(&"reader:read:p99".parse()?)? {
        println!("{scheduler}: {:.1} ms", latency.mean / 1e6);
    }
    Ok(())
}
