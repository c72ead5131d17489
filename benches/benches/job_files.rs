//! The cost of generating an I/O and of reading a job file.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hoistway_fio::{Environment, JobFile};
use hoistway_load::Generator;

/// Size of the device of all jobs: a partition of 1.6 TB.
const DEVICE_BYTES: u64 = 1_598 * 1_000_000_000;

fn generator(options: &str) -> Generator {
    let text = format!("[job]\nfilename=/dev/sda\ndirect=1\nruntime=1h\ntime_based\n{options}\n");
    let job_file = JobFile::parse(&text, "bench.fio", &Environment::empty()).expect("a valid job");
    job_file.load.processes[0].generator(0, 1, |_| DEVICE_BYTES).expect("a job that fits")
}

fn draw_an_io(c: &mut Criterion) {
    let mut group = c.benchmark_group("draw an I/O");
    group.throughput(Throughput::Elements(1));
    for (name, options) in [
        ("read", "rw=read"),
        ("randread", "rw=randread"),
        ("randrw", "rw=randrw"),
        ("randrw, norandommap", "rw=randrw\nnorandommap"),
        ("randrw, lfsr", "rw=randrw\nrandom_generator=lfsr"),
        ("randrw, bssplit", "rw=randrw\nbssplit=4k/60:8k/30:64k/10"),
        ("randrw, fsync", "rw=randrw\nfsync=32"),
        ("randread, zipf", "rw=randread\nrandom_distribution=zipf:1.2"),
    ] {
        let mut ios = generator(options);
        group.bench_function(BenchmarkId::from_parameter(name), |b| b.iter(|| black_box(ios.next())));
    }
    group.finish();
}

fn read_a_job_file(c: &mut Criterion) {
    let mut text = String::from("[global]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\n");
    for i in 0..10_000 {
        text.push_str(&format!("[job {i}]\nrw=randrw\nrwmixread=40\nbs=4k\niodepth=8\nruntime=60s\n"));
    }
    let parse = || JobFile::parse(&text, "bench.fio", &Environment::empty()).expect("a valid file");
    c.bench_function("read a file of 10,000 jobs", |b| b.iter(|| black_box(parse())));
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    targets = draw_an_io, read_a_job_file
}
criterion_main!(benches);
