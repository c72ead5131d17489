//! Time of one request through the whole block layer (submit, insert, dispatch, complete) at several depths.

#![allow(missing_docs)]

mod load;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use load::{Load, Pattern};

fn request(c: &mut Criterion) {
    let mut group = c.benchmark_group("request");
    for scheduler in hoistway_legacy::ALL_SCHEDULERS {
        for depth in [1, 32, 256] {
            let mut load = Load::new(scheduler, depth, Pattern::Random);
            group.bench_function(BenchmarkId::new(scheduler, depth), |b| b.iter(|| load.cycle()));
        }
    }
    group.finish();
}

/// Eight bios that become one request.
fn merging(c: &mut Criterion) {
    let mut group = c.benchmark_group("merging");
    group.throughput(Throughput::Elements(8));
    // Without a scheduler no request waits here, so nothing can merge.
    for scheduler in hoistway_legacy::ALL_SCHEDULERS.into_iter().filter(|&name| name != "none") {
        let mut load = Load::new(scheduler, 32, Pattern::Runs);
        group.bench_function(scheduler, |b| b.iter(|| load.cycle()));
    }
    group.finish();
}

criterion_group!(benches, request, merging);
criterion_main!(benches);
