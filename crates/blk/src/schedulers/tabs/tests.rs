//! tabs against its rules, with the requests that it decides on around it.

use super::*;
use crate::bio::Bio;
use crate::ground::ids::Sector;
use crate::policy::RequestStore;
use crate::schedulers::test_bench::{Bench, CAPACITY, random_calls};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn bench() -> Bench<RequestStore<Tabs>> {
    Bench::new(Tabs::new(CAPACITY))
}

fn read(sector: u64) -> Bio {
    Bio::new(Op::Read, Sector(sector * 1000), 8)
}

fn write(sector: u64) -> Bio {
    Bio::new(Op::Write, Sector(sector * 1000), 8)
}

fn fua(sector: u64) -> Bio {
    Bio { flags: BioFlags::FUA, ..write(sector) }
}

/// Reads and FUA writes wait and are at the device, on one that reads 100 MB/s and writes 10 MB/s with FUA.
fn contended() -> Bench<RequestStore<Tabs>> {
    let mut bench = bench().with("read_mbps", "100").with("fua_write_mbps", "10");
    for n in 0..8 {
        bench.insert(read(n));
        bench.insert(fua(100 + n));
    }
    bench.dispatch();
    bench.at.0 += 101 * MS;
    bench
}

#[test]
fn without_both_types_all_go_in_the_order_in_which_they_came_within_their_type() {
    let mut bench = bench();
    let writes = [0, 1].map(|n| bench.insert(fua(n)));
    let other = bench.insert(write(5));
    let reads = [7, 8].map(|n| bench.insert(read(n)));
    assert_eq!(bench.dispatch_to(0), (Some(writes[0]), Reason::FuaToken));
    assert_eq!(bench.dispatch_to(0), (Some(writes[1]), Reason::FuaToken));
    assert_eq!(bench.dispatch_to(0), (Some(other), Reason::Fifo));
    assert_eq!(bench.dispatch(), reads);
    assert_eq!(bench.requeue(1), writes[1]);
    assert_eq!(bench.dispatch_to(0), (Some(writes[1]), Reason::HeadList));
    assert_eq!(bench.dispatch_to(0), (None, Reason::Empty));
}

#[test]
fn beside_reads_fua_writes_wait_until_the_bucket_covers_all_of_them() {
    let mut bench = contended();
    let waiting = [200, 201].map(|n| bench.insert(fua(n)));
    assert_eq!(bench.dispatch_to(0), (None, Reason::NoFuaToken));
    assert!(!bench.has_work());
    let other = bench.insert(read(50));
    assert_eq!(bench.dispatch_to(0), (Some(other), Reason::Fifo), "reads are not throttled");
    // Half of 10 MB/s: 8 KiB take 1.64 ms.
    bench.at.0 += 16 * MS / 10;
    assert_eq!(bench.dispatch_to(0).0, None);
    bench.at.0 += MS / 10;
    let read_index = bench.at_device.iter().position(|rq| rq.op == Op::Read).unwrap();
    bench.complete(read_index);
    assert!(bench.requested.run_queues, "a completion looks at the bucket");
    assert_eq!(bench.dispatch(), waiting);
}

#[test]
fn a_fua_write_goes_whatever_the_bucket_holds_if_nothing_was_at_the_device_for_a_hundredth_of_a_window() {
    let mut bench = contended();
    let late = bench.insert(fua(300));
    assert_eq!(bench.dispatch_to(0).0, None);
    while !bench.at_device.is_empty() {
        bench.complete(0);
    }
    assert!(!bench.has_work());
    assert_eq!(bench.timer, Some(Instant(bench.at.0 + MS)));
    bench.fire();
    assert!(bench.has_work() && bench.requested.run_queues);
    assert_eq!(bench.dispatch_to(0), (Some(late), Reason::FuaToken));
}

#[test]
fn what_is_not_given_is_measured_alone_once_and_the_other_type_waits_for_it() {
    let mut bench = bench();
    let first_read = bench.insert(read(0));
    let first_write = bench.insert(fua(1));
    bench.dispatch();
    bench.at.0 += 100 * MS;
    let (held_write, free_read) = (bench.insert(fua(2)), bench.insert(read(3)));
    assert_eq!(bench.dispatch_to(0), (Some(free_read), Reason::Fifo));
    assert_eq!(bench.dispatch_to(0), (None, Reason::OtherTypeMeasured), "FUA writes wait for the measurement of reads");
    let complete = |bench: &mut Bench<RequestStore<Tabs>>, id| {
        let index = bench.at_device.iter().position(|rq| rq.id() == id).unwrap();
        bench.complete(index);
    };
    complete(&mut bench, first_write);
    bench.at.0 += MS;
    complete(&mut bench, first_read);
    bench.at.0 += 25 * MS;
    assert_eq!(bench.dispatch_to(0), (Some(held_write), Reason::FuaToken), "now FUA writes are measured");
    let held_read = bench.insert(read(4));
    assert_eq!(bench.dispatch_to(0), (None, Reason::OtherTypeMeasured));
    complete(&mut bench, free_read);
    bench.insert(fua(5));
    bench.dispatch();
    bench.at.0 += 10 * MS;
    complete(&mut bench, held_write);
    bench.at.0 += 25 * MS;
    assert_eq!(bench.dispatch_to(0), (Some(held_read), Reason::Fifo));
    assert_eq!((bench.shown("read_mbps"), bench.shown("fua_write_mbps")), (0, 0), "what is measured is not shown");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn requests_end_once_and_something_goes_while_the_device_is_empty(seed in any::<u64>()) {
        random_calls(bench(), seed, |bench| {
            let tabs = bench.policy();
            let waiting: usize = tabs.lists.iter().map(|list| list.iter(&tabs.links).count()).sum();
            assert_eq!(waiting, bench.waiting());
            let fua = tabs.lists[FUA_WRITES].iter(&tabs.links).map(|id| tabs.entries[id as usize].bytes).sum::<u64>();
            assert_eq!(fua, tabs.fua_waiting_bytes);
            assert_eq!(tabs.at_device.iter().sum::<u32>() as usize, bench.at_device.len());
        });
    }
}
