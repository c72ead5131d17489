//! What techniques against contention are worth in virtual time.

use hoistway_lab::reproduction::{Length, Table};
use hoistway_lab::{Alone, Comparison, Load};

/// I/Os a second of processes that read in batches of four on the null block device, each on a CPU of its own.
fn iops(processes: u16, scheduler: &str, host: &str, techniques: &str) -> f64 {
    let job = format!(
        "[a]\nfilename=/dev/nullb0\nioengine=io_uring\ndirect=1\nrw=randread\nnorandommap=1\nbs=4k\niodepth=4\n\
         iodepth_batch_submit=4\niodepth_batch_complete=4\nnumjobs={processes}\ntime_based\nruntime=20ms\n"
    );
    let document = Comparison {
        load: Load::text(job),
        devices: vec!["null".into()],
        hosts: vec![host.into()],
        cpus: Some(processes),
        schedulers: vec![scheduler.to_owned()],
        techniques: Some(techniques.to_owned()),
        ..Comparison::default()
    }
    .run(&Alone)
    .unwrap();
    document.runs[0].fio.jobs.iter().map(|job| job.read.iops).sum()
}

#[test]
fn each_technique_gains_where_many_cpus_want_one_lock_and_all_together_gain_most() {
    for scheduler in ["mq-deadline", "bfq"] {
        let gain = |techniques| iops(8, scheduler, "server", techniques) / iops(8, scheduler, "server", "none");
        let each = ["single-dispatcher", "try-merge", "batch-dispatch"].map(gain);
        let all = gain("all");
        eprintln!("{scheduler}: {each:?}, all {all}");
        assert!(each.iter().all(|&gain| gain > 0.98), "{scheduler}: {each:?}");
        assert!(all > 1.2 && each.iter().all(|&gain| all > 0.98 * gain), "{scheduler}: {each:?}, all {all}");
    }
}

#[test]
fn alone_a_process_gains_nothing_and_where_locks_cost_nothing_nobody_does() {
    for (processes, host) in [(1, "server"), (8, "instant")] {
        let [plain, with] = ["none", "all"].map(|techniques| iops(processes, "mq-deadline", host, techniques));
        // A draw that finds nothing needs no hold of its own.
        assert!((with / plain - 1.0).abs() < 0.04, "{processes} on {host}: {plain} {with}");
    }
}

#[test]
fn the_patches_against_contention_show_in_the_published_direction() {
    let table = Table::named("axboe-contention").unwrap().reproduce(Length::Settled).unwrap();
    let ours: Vec<_> = table.cells.iter().map(|cell| (cell.row.as_str(), cell.column.as_str(), cell.ours)).collect();
    eprintln!("{ours:#?}");
    let [_, share_before, _, share_after, ratio] = ours[..] else { panic!("{ours:?}") };
    assert!(ratio.2 > 1.5 && share_before.2 > 80.0 && share_after.2 < share_before.2, "{ours:?}");
}
