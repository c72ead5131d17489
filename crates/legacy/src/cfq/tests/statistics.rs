//! The statistics of cgroups.
//!
//! Rules: `cfq.md` 21.

use hoistway_blk::{CgroupId, DeviceNumber, Scheduler};

use super::*;

const DISK: DeviceNumber = DeviceNumber { major: 8, minor: 16 };

fn shown(bench: &Bench, cgroup: u32, file: &str) -> String {
    bench.policy.cgroup_statistics(CgroupId(cgroup), file, DISK).expect("a file")
}

#[test]
fn files_show_what_a_cgroup_has_done_by_kind_of_request() {
    let mut bench = Bench::new(31);
    let member = |pid| Job { cgroup: CgroupId(1), ..Job::new(pid, 1) };
    let read = bench.allocate(member(1));
    bench.now = MS;
    bench.enter(read);
    bench.insert(Job { sectors: 8, ..member(2).asynchronous() });
    assert_eq!(shown(&bench, 1, "io_queued").lines().last(), Some("Total 2"));
    bench.now = 4 * MS;
    let read = bench.pull().expect("the read");
    bench.now = 9 * MS;
    bench.finish(read);
    let expected = "8:16 Read 32768\n8:16 Write 0\n8:16 Sync 32768\n8:16 Async 0\n8:16 Discard 0\n8:16 Total 32768\n\
                    Total 32768\n";
    assert_eq!(shown(&bench, 1, "io_service_bytes"), expected);
    assert_eq!(shown(&bench, 1, "io_serviced").lines().next(), Some("8:16 Read 1"));
    assert_eq!(shown(&bench, 1, "io_service_time").lines().next(), Some("8:16 Read 5000000"));
    assert_eq!(shown(&bench, 1, "io_wait_time").lines().next(), Some("8:16 Read 4000000"));
    assert_eq!(shown(&bench, 1, "sectors"), "8:16 64\n");
    let queued = shown(&bench, 1, "io_queued");
    assert!(queued.contains("8:16 Write 1\n") && queued.contains("8:16 Async 1\n"), "{queued}");
    assert_eq!(bench.policy.cgroup_statistics(CgroupId(1), "empty_time", DISK), None, "only for debugging");
    assert_eq!(bench.policy.cgroup_statistics(CgroupId(2), "sectors", DISK), None, "it has done nothing");
}

#[test]
fn merges_and_time_are_counted() {
    let mut bench = Bench::new(1);
    let first = bench.insert(Job { sector: 0, ..Job::new(1, 1) });
    let second = bench.insert(Job { sector: 64, ..Job::new(1, 1) });
    bench.call(|policy, cx| policy.absorbed(cx, first, second));
    bench.call(|policy, cx| policy.grown(cx, first, hoistway_blk::Edge::Back));
    assert_eq!(shown(&bench, 0, "io_merged").lines().next(), Some("8:16 Read 2"));
    assert_eq!(shown(&bench, 0, "io_queued").lines().last(), Some("Total 1"));
    let rq = bench.pull().expect("both as one");
    bench.now = 2 * MS;
    bench.finish(rq);
    bench.now = 5 * MS;
    bench.exit(1);
    assert_eq!(shown(&bench, 0, "time"), "8:16 2999999\n", "from the first completion on");
}

#[test]
fn recursive_files_include_the_cgroups_below_also_removed_ones_and_a_reset_forgets_the_own() {
    let mut bench = Bench::new(1);
    bench.call(|policy, cx| policy.cgroup_added(cx, CgroupId(2), CgroupId(1)));
    for (cgroup, pid) in [(1, 1), (2, 2)] {
        bench.add(Job { cgroup: CgroupId(cgroup), count: 3, ..Job::new(pid, 1) });
    }
    bench.run_until(100 * MS);
    assert_eq!(
        (shown(&bench, 1, "sectors"), shown(&bench, 1, "sectors_recursive")),
        ("8:16 192\n".into(), "8:16 384\n".into())
    );
    bench.exit(2);
    bench.call(|policy, cx| policy.cgroup_removed(cx, CgroupId(2)));
    assert_eq!(shown(&bench, 1, "sectors_recursive"), "8:16 384\n");
    assert_eq!(bench.policy.cgroup_statistics(CgroupId(2), "sectors", DISK), None);
    bench.policy.reset_cgroup_statistics(CgroupId(1));
    assert_eq!(shown(&bench, 1, "sectors"), "8:16 0\n");
}
