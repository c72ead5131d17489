//! Time of one request's whole way (submit, insert, dispatch, complete) at several depths.

#![allow(missing_docs)]

mod load;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use load::Load;

fn request(c: &mut Criterion) {
    let mut group = c.benchmark_group("request");
    for scheduler in hoistway_blk::SCHEDULERS {
        for depth in [1, 32, 256] {
            let mut load = Load::new(scheduler, depth);
            group.bench_function(BenchmarkId::new(scheduler, depth), |b| b.iter(|| load.cycle()));
        }
    }
    group.finish();
}

criterion_group!(benches, request);
criterion_main!(benches);
