//! The cost of recording a latency, and of a percentile.
#![allow(missing_docs, reason = "criterion's macros write functions without docs")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hoistway_measure::LatencyHistogram;

/// Latencies from about 10 us to 20 ms, as of a busy device.
fn latencies() -> Vec<u64> {
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    (0..4096).map(|_| 10_000 + (random() % 20_000) * (random() % 1000)).collect()
}

fn histogram(criterion: &mut Criterion) {
    let latencies = latencies();
    let mut group = criterion.benchmark_group("histogram");
    group.throughput(Throughput::Elements(latencies.len() as u64));
    group.bench_function("record", |bencher| {
        let mut histogram = LatencyHistogram::new();
        bencher.iter(|| latencies.iter().for_each(|&ns| histogram.record(black_box(ns))));
        black_box(&histogram);
    });
    group.throughput(Throughput::Elements(1));
    group.bench_function("percentile", |bencher| {
        let mut histogram = LatencyHistogram::new();
        latencies.iter().for_each(|&ns| histogram.record(ns));
        bencher.iter(|| histogram.percentile(black_box(99.9)));
    });
    group.finish();
}

criterion_group!(benches, histogram);
criterion_main!(benches);
