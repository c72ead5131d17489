//! `compare --at`: writes to files of `queue/` while loads run.

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
        ("1ms:none.x=1", "none.x=1: none has no tunables"),
        ("1s:colour=red", "no such file (expected SCHED.TUNABLE, or one of scheduler, nr_requests"),
        ("1s:rq_affinity=on", "invalid value (EINVAL)"),
        ("1s:cfo.quantum=1", "unknown scheduler \"cfo\""),
        ("1s:scheduler=cfq", "none cannot be changed to that (expected none, mq-deadline, kyber, bfq"),
        ("1s:nr_requests=0x10", "invalid value (EINVAL) in the run that starts with none"),
    ] {
        refused(folder.path(), &["compare", "--schedulers", "none", "--at", at], &[problem]);
    }
    let arguments = ["compare", "--schedulers", "bfq", "--at", "1s:bfq.slice_idle=never"];
    refused(folder.path(), &arguments, &["--at 1s:bfq.slice_idle=never: invalid value (EINVAL)"]);
}

#[test]
fn settings_changed_during_the_load_suppress_the_verdict_with_a_notice() {
    let at = ["--schedulers", "none,kyber", "--at", "300ms:scheduler=bfq", "--at", "600ms:bfq.slice_idle=0"];
    let table = succeeded(&mut compare(&[&at[..], &["--repeat", "1", "--advice", "sda", "--wide"]].concat()));
    let shown = "settings were changed while the load ran (300ms:scheduler=bfq, 600ms:bfq.slice_idle=0)";
    assert!(table.replace("\n ", "").contains(shown) && !table.contains("/sys/block/sda"), "{table}");
    let document = succeeded(&mut compare(&[&at[..], &["--repeat", "1", "--format", "json"]].concat()));
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["writes"], serde_json::json!(["300ms:scheduler=bfq", "600ms:bfq.slice_idle=0"]));
    assert!(document.get("verdicts").is_none(), "{document}");
    assert!(!document.to_string().contains("never written"), "{document}");
}

#[test]
fn a_tunable_of_a_scheduler_that_never_runs_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["compare", "--schedulers", "none", "--at", "10ms:bfq.slice_idle=0"];
    refused(folder.path(), &arguments, &["--at 10ms:bfq.slice_idle=0: never active (expected one of none)"]);
}

#[test]
fn scheduled_writes_that_never_happen_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let job = folder.path().join("short.fio");
    std::fs::write(&job, "[g]\nrw=randread\nio_size=4m\nsize=1g\ndirect=1\ncgroup=a\ncgroup_weight=200\n").unwrap();
    let mut command = hoistway();
    command.arg("compare").arg(&job).args(["--schedulers", "bfq", "--repeat", "1", "--wide"]);
    command.args(["--at", "5ms:scheduler=none", "--at", "6ms:bfq.slice_idle=0", "--at", "700s:nr_requests=8"]);
    let table = succeeded(&mut command);
    assert!(
        table.contains("--at 6ms:bfq.slice_idle=0: never written: another scheduler was active at that time."),
        "{table}"
    );
    assert!(table.contains("--at 700s:nr_requests=8: never written: the load had ended."), "{table}");
    assert!(!table.contains("--at 5ms:scheduler=none: "), "{table}");
    // Options without effect are also reported for schedulers that become active later.
    assert!(table.contains("cgroup_weight (g): no effect with none."), "{table}");
}
