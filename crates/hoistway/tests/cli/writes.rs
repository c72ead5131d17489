//! `compare --at`: files of `queue/` that are written while the loads run.

use crate::support::{hoistway, refused, succeeded};

fn compare(options: &[&str]) -> assert_cmd::Command {
    let mut command = hoistway();
    command.args(["compare", "--runtime", "1s"]).args(options);
    command
}

#[test]
fn a_scheduler_and_its_tunables_are_changed_while_the_load_runs() {
    let short = ["--schedulers", "none,kyber", "--repeat", "2"];
    let at = ["--at", "300ms:scheduler=bfq", "--at", "600ms:bfq.slice_idle=0"];
    let table = succeeded(&mut compare(&[&short[..], &at].concat()));
    assert!(table.contains("none") && table.contains("kyber"), "{table}");
    let unchanged = succeeded(&mut compare(&short));
    assert_ne!(table, unchanged);
}

#[test]
fn writes_that_cannot_be_done_are_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    for (at, problem) in [
        ("scheduler=bfq", "expected TIME:KEY=VALUE, such as 10s:scheduler=bfq"),
        ("1s:scheduler", "expected TIME:KEY=VALUE"),
        ("soon:scheduler=bfq", "--at soon:scheduler=bfq"),
        ("1s:colour=red", "no such file (expected SCHED.TUNABLE, or one of scheduler, nr_requests"),
        ("1s:rq_affinity=on", "invalid value (EINVAL)"),
        ("1s:cfo.quantum=1", "unknown scheduler \"cfo\""),
        ("1s:scheduler=cfq", "none cannot be changed to that (expected none, mq-deadline, kyber, bfq"),
        ("1s:nr_requests=0x10", "invalid value (EINVAL) in the run that begins with none"),
    ] {
        refused(folder.path(), &["compare", "--schedulers", "none", "--at", at], &[problem]);
    }
    let arguments = ["compare", "--schedulers", "bfq", "--at", "1s:bfq.slice_idle=never"];
    refused(folder.path(), &arguments, &["iosched/slice_idle=never: invalid value (EINVAL)"]);
}
