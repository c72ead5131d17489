//! Instructions of 1000 requests through the whole block layer, counted by valgrind: independent of the load of the
//! machine.

#![allow(missing_docs)]

mod load;

use std::hint::black_box;

use gungraun::{library_benchmark, library_benchmark_group, main};
use load::{Load, Pattern};

/// A warmed-up load, whose reused buffers have grown.
fn warm(scheduler: &str, depth: u32) -> Load {
    let mut load = Load::new(scheduler, depth, Pattern::Random);
    (0..1000).for_each(|_| load.cycle());
    load
}

#[library_benchmark]
#[bench::none_1(warm("none", 1))]
#[bench::none_32(warm("none", 32))]
#[bench::none_256(warm("none", 256))]
#[bench::mq_deadline_1(warm("mq-deadline", 1))]
#[bench::mq_deadline_32(warm("mq-deadline", 32))]
#[bench::mq_deadline_256(warm("mq-deadline", 256))]
fn thousand_requests(mut load: Load) -> Load {
    for _ in 0..1000 {
        black_box(&mut load).cycle();
    }
    load
}

library_benchmark_group!(name = requests, benchmarks = thousand_requests);
main!(library_benchmark_groups = requests);
