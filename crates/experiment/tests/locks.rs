//! Lock contention of schedulers in documents.

use hoistway_answer::document::LockSummary;
use hoistway_experiment::{Alone, Comparison, Load};

/// The lock summaries of runs with this many processes, which read at high depth from a fast drive.
fn locks(processes: u32, host: &str) -> Vec<Option<LockSummary>> {
    let job = format!(
        "[a]\nfilename=/dev/nvme0n1\nioengine=io_uring\ndirect=1\nrw=randread\nnorandommap=1\nbs=4k\niodepth=32\n\
         numjobs={processes}\ntime_based\nruntime=20ms\n"
    );
    let document = Comparison {
        load: Load::text(job),
        devices: vec!["samsung-980pro-1tb".into()],
        hosts: vec![host.into()],
        cpus: Some(8),
        schedulers: ["none", "mq-deadline", "kyber", "bfq"].map(str::to_owned).to_vec(),
        ..Comparison::default()
    }
    .run(&Alone)
    .unwrap();
    document.runs.iter().map(|run| run.locks).collect()
}

#[test]
fn deep_reads_of_many_processes_are_bound_by_a_schedulers_one_lock_and_those_of_one_are_not() {
    let [none, deadline, kyber, bfq] = locks(8, "server")[..] else { panic!("four schedulers") };
    assert_eq!(none, None, "no scheduler, no lock");
    assert!(kyber.unwrap().ceiling_iops.is_none() && kyber.unwrap().held_percent > 0.0, "it has several");
    for one in [deadline, bfq].map(Option::unwrap) {
        assert!(one.bound_iops().is_some() && one.waited_percent > one.held_percent, "{one:?}");
    }
    let [_, alone, _, _] = locks(1, "server")[..] else { panic!("four schedulers") };
    let alone = alone.unwrap();
    assert!(alone.bound_iops().is_none() && alone.ceiling_iops > deadline.unwrap().ceiling_iops, "{alone:?}");
}

#[test]
fn a_host_with_free_locks_reports_no_lock_summary() {
    assert_eq!(locks(2, "instant"), vec![None; 4]);
}
