//! The effect of contention options in virtual time.

use hoistway_answer::document::{JobSummary, Run};
use hoistway_experiment::{Alone, Comparison, Load, QueueFile};
use hoistway_measure::Operation;

/// Each option alone.
const SINGLE: [&str; 5] = ["single-dispatcher", "try-merge", "batch-dispatch", "insertion-buckets", "pending-lists"];
/// Several options together.
const TOGETHER: [&str; 4] = [
    "single-dispatcher,insertion-buckets",
    "single-dispatcher,try-merge,pending-lists",
    "all",
    "single-dispatcher,try-merge,batch-dispatch,pending-lists",
];

/// A run of this job file under a scheduler.
fn run_of(job: String, device: &str, (scheduler, techniques): (&str, &str), other: Comparison) -> Run {
    let comparison = Comparison {
        load: Load::text(job),
        devices: vec![device.into()],
        schedulers: vec![scheduler.to_owned()],
        techniques: Some(techniques.to_owned()),
        ..other
    };
    comparison.run(&Alone).unwrap().runs.remove(0)
}

/// Processes that read in batches of four on the null block device, each on a CPU of its own.
fn readers(processes: u16, scheduler: &str, host: &str, techniques: &str) -> Run {
    let job = format!(
        "[a]\nfilename=/dev/nullb0\nioengine=io_uring\ndirect=1\nrw=randread\nnorandommap=1\nbs=4k\niodepth=4\n\
         iodepth_batch_submit=4\niodepth_batch_complete=4\nnumjobs={processes}\ntime_based\nruntime=20ms\n"
    );
    let other = Comparison { hosts: vec![host.into()], cpus: Some(processes), ..Comparison::default() };
    run_of(job, "null", (scheduler, techniques), other)
}

fn iops_of(run: &Run) -> f64 {
    run.jobs.iter().flat_map(|job| job.transfers()).map(|transfers| transfers.iops).sum()
}

fn iops(processes: u16, scheduler: &str, host: &str, techniques: &str) -> f64 {
    iops_of(&readers(processes, scheduler, host, techniques))
}

fn file(name: &str, text: &str) -> QueueFile {
    QueueFile { file: name.to_owned(), text: text.to_owned() }
}

/// CPU time per I/O that is spent spinning for locks, us.
fn spun_us(run: &Run, cpus: f64) -> f64 {
    run.locks.unwrap().waited_percent / 100.0 * cpus * 1e6 / iops_of(run)
}

#[test]
fn no_contention_option_loses_under_lock_contention_and_all_together_gain() {
    for scheduler in ["mq-deadline", "bfq"] {
        let gain = |techniques| iops(8, scheduler, "server", techniques) / iops(8, scheduler, "server", "none");
        let each = SINGLE.map(gain);
        let all = gain("all");
        eprintln!("{scheduler}: {each:?}, all {all}");
        // Lists of pending requests are worth least: 2 to 3 % less than nothing where hand-overs are dear.
        assert!(each.iter().all(|&gain| gain > 0.97), "{scheduler}: {each:?}");
        // With eight readers, try-merge alone gains a little more.
        assert!(all > 1.15, "{scheduler}: {each:?}, all {all}");
    }
}

#[test]
fn a_single_dispatcher_gains_where_many_cpus_come_to_the_lock_at_once() {
    // Published for 32 processes on a device that completes at once: 1.82.
    for scheduler in ["mq-deadline", "bfq"] {
        let gain = iops(32, scheduler, "server", "single-dispatcher") / iops(32, scheduler, "server", "none");
        assert!(gain > 1.1, "{scheduler}: {gain}");
    }
}

#[test]
fn contention_options_gain_nothing_for_one_process_or_free_locks() {
    for (processes, host) in [(1, "server"), (8, "instant")] {
        let [plain, with] = ["none", "all"].map(|techniques| iops(processes, "mq-deadline", host, techniques));
        // With the options, a dispatch that finds nothing does not take the lock separately.
        assert!((with / plain - 1.0).abs() < 0.04, "{processes} on {host}: {plain} {with}");
    }
}

#[test]
fn insertion_buckets_reduce_waiting_with_many_inserters_and_not_with_one() {
    let [plain, buckets] = ["single-dispatcher,try-merge,batch-dispatch", "all"].map(|techniques| {
        let run = readers(32, "mq-deadline", "server", techniques);
        (iops_of(&run), spun_us(&run, 32.0), run.locks.unwrap())
    });
    eprintln!("{plain:?} {buckets:?}");
    // Beside batches the longer holds of inserting CPUs cost some of the rate.
    assert!(buckets.0 > 0.9 * plain.0 && buckets.1 < 0.6 * plain.1, "{plain:?} {buckets:?}");
    assert!(buckets.2.taken_per_io < plain.2.taken_per_io, "{plain:?} {buckets:?}");
    assert!(plain.2.lists_taken_per_io.is_none() && buckets.2.lists_taken_per_io.is_some(), "{plain:?} {buckets:?}");
    let alone = readers(1, "mq-deadline", "server", "insertion-buckets");
    assert_eq!(alone.locks.unwrap().lists_taken_per_io, None, "none is met");
}

#[test]
fn requests_wait_in_pending_lists_for_the_next_dispatcher_and_not_for_the_schedulers_lock() {
    let [plain, lists] =
        ["single-dispatcher,try-merge", "single-dispatcher,try-merge,pending-lists"].map(|techniques| {
            let run = readers(16, "mq-deadline", "server", techniques);
            (iops_of(&run), spun_us(&run, 16.0))
        });
    assert!(lists.0 > 0.98 * plain.0 && lists.1 < plain.1 / 5.0, "{plain:?} {lists:?}");
}

#[test]
fn every_io_is_done_once_with_any_contention_option() {
    let job = |processes: u32| {
        format!(
            "[global]\nfilename=/dev/sda\nioengine=io_uring\ndirect=1\nbs=4k\niodepth=8\niodepth_batch_submit=4\n\
             iodepth_batch_complete_min=1\nnumber_ios=200\nsize=64m\n[r]\nrw=randread\nnumjobs={processes}\n\
             [w]\nrw=write\nfsync=16\noffset=1g\noffset_increment=64m\nnumjobs={processes}\n"
        )
    };
    for scheduler in ["mq-deadline", "bfq"] {
        let done = |techniques: &str| {
            let other = Comparison { queue_files: vec![file("nr_requests", "16")], ..Comparison::default() };
            let run = run_of(job(6), "intel-s3520-1600gb", (scheduler, techniques), other);
            // At greater depth the number of syncs depends on which writes have completed, as in fio with io_uring.
            let counted = |job: &JobSummary| {
                let operations = job.operations.iter().filter(|of| of.operation != Operation::Sync);
                operations.map(|of| (of.operation, of.ios)).collect()
            };
            let ios = run.jobs.iter().map(counted);
            (ios.collect::<Vec<Vec<_>>>(), run.disks[0].stat.clone())
        };
        let plain = done("none");
        assert_eq!(plain.0[0], [(Operation::Read, 6 * 200)], "{scheduler}: {plain:?}");
        for techniques in SINGLE.iter().chain(&TOGETHER) {
            let with = done(techniques);
            assert_eq!(with.0, plain.0, "{scheduler} with {techniques}: {with:?} {plain:?}");
        }
    }
}

#[test]
fn sequential_writers_beyond_the_tags_are_merged_with_pending_lists_as_without() {
    let job = "[w]\nfilename=/dev/sda\nioengine=io_uring\ndirect=1\nrw=write\nbs=4k\niodepth=32\nnumjobs=64\n\
               offset_increment=1g\nsize=1g\ntime_based\nruntime=500ms\n";
    let requests_and_iops = |techniques: &str, nomerges: &str| {
        let queue_files = vec![file("nomerges", nomerges), file("nr_requests", "64")];
        let other = Comparison { queue_files, ..Comparison::default() };
        let run = run_of(job.to_owned(), "hgst-he10-8tb", ("mq-deadline", techniques), other);
        let writes: f64 = run.disks[0].stat.split_whitespace().nth(4).unwrap().parse().unwrap();
        (writes, iops_of(&run))
    };
    let direct = requests_and_iops("none", "0");
    let unmerged = requests_and_iops("pending-lists", "2");
    for techniques in ["pending-lists", TOGETHER[1], TOGETHER[3]] {
        let lists = requests_and_iops(techniques, "0");
        assert!(lists.0 < 1.05 * direct.0 && lists.1 > 0.95 * direct.1, "{techniques}: {lists:?}, {direct:?}");
        assert!(lists.0 < unmerged.0 / 4.0, "{techniques}: {lists:?}, {unmerged:?}");
    }
}
