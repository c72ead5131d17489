//! `hoistway tune`.

use std::fs;

use serde_json::Value;

use crate::support::{ended_with, hoistway, refused, succeeded};
use crate::vary::with_load;

const OBJECTIVE: &str = "min readers:read:mean subject to writers:write:iops >= 0.6*default";
const VARIED: [&str; 6] =
    ["--over", "none,mq-deadline", "--vary", "queue.nr_requests=8,16,48", "--vary", "mq-deadline.fifo_batch"];

fn tune(objective: &str) -> Vec<&str> {
    [&["tune", "load.fio", "--objective", objective], &VARIED[..]].concat()
}

#[test]
fn the_best_setting_is_reported_with_its_cost_and_what_mattered() {
    let folder = with_load();
    let table = succeeded(hoistway().current_dir(&folder).args(tune(OBJECTIVE)));
    let prose = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(prose.contains("For this load on intel-s3520-1600gb: change from mq-deadline to "), "{prose}");
    assert!(prose.contains("nr_requests=16") && prose.contains("mean read latency of readers "), "{prose}");
    assert!(prose.contains("It meets \"writers:write:iops >= 0.6*default\" beyond the noise"), "{prose}");
    assert!(
        table.contains(
            "tunables by their effect on the mean read latency of readers, each over the settings that have it\n"
        ),
        "{table}"
    );
    assert!(
        table.contains("settings that no other beats in every figure") && table.contains("mq-deadline.nr_requests"),
        "{table}"
    );
    let json = succeeded(hoistway().current_dir(&folder).args(tune(OBJECTIVE)).args(["--format", "json", "--stable"]));
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&document["format"], &document["objective"]), (&"hoistway-tune/1".into(), &OBJECTIVE.into()));
    assert_eq!(document["found"]["best"]["setting"]["queue_files"]["nr_requests"], "16");
    assert!(document["runs"].as_array().unwrap().len() <= 200);
    for sentence in document["conclusion"].as_array().unwrap() {
        assert!(prose.contains(sentence.as_str().unwrap()), "{prose}");
    }
    let single = succeeded(
        hoistway()
            .current_dir(&folder)
            .env("RAYON_NUM_THREADS", "1")
            .args(tune(OBJECTIVE))
            .args(["--format", "json", "--stable"]),
    );
    assert_eq!(single, json);
}

#[test]
fn unmet_conditions_end_with_status_3_and_the_closest_setting() {
    let folder = with_load();
    let objective = "min readers:read:mean subject to writers:write:iops >= 5*none";
    let table = ended_with(3, hoistway().current_dir(&folder).args(tune(objective)));
    let prose = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(prose.contains("no setting that was tried meets the conditions. The closest is "), "{prose}");
    assert!(prose.contains("which misses \"writers:write:iops >= 5*none\" (by a factor of "), "{prose}");
}

#[test]
fn a_search_resumes_from_its_file_and_refuses_that_of_another() {
    let folder = with_load();
    let state = ["--state", "state.json"];
    let with = |budget: &str| {
        let options = [&tune(OBJECTIVE)[..], &state, &["--budget", budget, "--format", "json", "--stable"]].concat();
        succeeded(hoistway().current_dir(&folder).args(options))
    };
    let runs = || -> usize {
        let text = fs::read_to_string(folder.path().join("state.json")).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["runs"].as_array().unwrap().len()
    };
    let small = with("70");
    let before = runs();
    assert!(before > 0 && before <= 70);
    assert_eq!(with("70"), small);
    assert_eq!(runs(), before, "nothing ran twice");
    with("160");
    assert!(runs() > before);
    let refuse = |objective: &str, words: &[&str]| {
        refused(folder.path(), &[&tune(objective)[..], &state].concat(), words);
    };
    refuse("min readers:read:p99", &["--state state.json: `search.objective` differs from this search"]);
    let text = fs::read_to_string(folder.path().join("state.json")).unwrap();
    fs::write(folder.path().join("state.json"), &text[..text.len() / 2]).unwrap();
    refuse(OBJECTIVE, &["--state state.json: EOF while parsing"]);
    let endless = [&tune(OBJECTIVE)[..], &["--state", "/dev/zero"]].concat();
    refused(folder.path(), &endless, &["--state /dev/zero: cannot be read", "not a regular file"]);
    refused(
        folder.path(),
        &[&tune(OBJECTIVE)[..], &["--state", "load.fio"]].concat(),
        &["load.fio: is read by this command"],
    );
}

#[test]
fn an_invalid_search_is_refused_with_the_grammar_and_the_names() {
    let folder = with_load();
    let refuse = |objective: &str, more: &[&str], words: &[&str]| {
        refused(folder.path(), &[&["tune", "load.fio", "--objective", objective], more].concat(), words);
    };
    refuse("readers:read:p99", &[], &["it begins with", "expected \"min FIGURE\" or \"max FIGURE\""]);
    refuse("min readers:p99", &[], &["it has no operation and figure"]);
    let both = "min readers:read:p99 subject to readers:read:mean <= 1ms and readers:read:mean >= 2ms";
    refuse(both, &[], &["\"readers:read:mean <= 1ms\" and \"readers:read:mean >= 2ms\" contradict each other"]);
    refuse(
        "min reader:read:p99",
        &[],
        &["there is no job \"reader\" (did you mean \"readers\"? expected one of readers, writers)"],
    );
    refuse(
        "min readers:write:p99",
        &["--runtime", "20ms"],
        &["no such I/O happened (expected one of readers:read, writers:write)"],
    );
    let p99 = "min readers:read:p99";
    refuse(p99, &["--over", "bfqq"], &["--over bfqq: unknown scheduler (did you mean \"bfq\"?"]);
    refuse(p99, &["--vary", "fifo_batch"], &["--vary fifo_batch: expected SCHED.TUNABLE, queue.FILE"]);
    refuse(
        p99,
        &["--vary", "mq-deadline.fifo_bach"],
        &["--vary mq-deadline.fifo_bach:", "did you mean \"fifo_batch\"?"],
    );
    refuse(p99, &["--set", "bfq.slice_idle=0", "--vary", "bfq.slice_idle=0,1"], &["--set bfq.slice_idle=0 sets"]);
    refuse(p99, &["--budget", "0"], &["expected a number of runs, or a time such as 30m"]);
    refuse(p99, &["--budget", "5"], &["--budget 5 runs: too little for 4 schedulers (expected at least "]);
    refuse(p99, &["--device", "null,hdd"], &["a search uses one device"]);
    refuse(p99, &["-o", "x", "--state", "x"], &["is also the output file"]);
    refused(
        folder.path(),
        &["tune", "guests", "--objective", "min a:read:p99"],
        &["expected one scheduler for all guests"],
    );
}

#[test]
fn a_search_takes_the_place_that_a_comparison_takes() {
    let folder = with_load();
    let found = |options: &[&str]| -> Value {
        let objective = "min readers:read:mean";
        // The former name of --vary.
        let arguments = ["tune", "load.fio", "--objective", objective, "--over", "none", "--knob", "queue.nomerges=2"];
        let options = [&arguments[..], options, &["--format", "json", "--stable"]].concat();
        serde_json::from_str(&succeeded(hoistway().current_dir(&folder).args(options))).unwrap()
    };
    let plain = found(&[]);
    let same = |document: &Value| document["runs"] == plain["runs"];
    assert!(same(&found(&[])));
    // Each changes the result, so none is ignored.
    for options in [
        &["--hw-queues", "4"][..],
        &["--nr-requests", "32"],
        &["--at", "10ms:nr_requests=8"],
        &["--guest-scheduler", "mq-deadline"],
        &["--guest-scheduler", "none", "--virtual-disk", "virtio-blk", "--hw-queues", "2"],
    ] {
        assert!(!same(&found(options)), "{options:?} does nothing");
    }
    let guests = found(&["--guest-scheduler", "bfq"]);
    let notices = guests["notices"].to_string();
    assert!(notices.contains("All guests have bfq; settings are those of the host."), "{notices}");
    assert_eq!(guests["search"]["comparison"]["guests"]["schedulers"], serde_json::json!(["bfq"]));
    let refuse = |options: &[&str], words: &[&str]| {
        let tune = ["tune", "load.fio", "--objective", "min readers:read:mean", "--vary", "queue.nr_requests=16"];
        refused(folder.path(), &[&tune[..], options].concat(), words);
    };
    refuse(&["--at", "10ms:nr_requests=8"], &["nr_requests=8: the search sets this file itself"]);
    refuse(&["--at", "10ms:scheduler=bfq"], &["scheduler=bfq: the search sets this file itself"]);
    refuse(&["--io-max", "nobody wbps=1"], &["--io-max \"nobody wbps=1\""]);
    refuse(&["--hw-queues", "0"], &["--hw-queues"]);
    refuse(&["--elevator", "bfqq"], &["--elevator bfqq"]);
    refuse(&["--guest-scheduler", "bfqq"], &["--guest-scheduler bfqq"]);
}

#[test]
fn a_limit_of_a_cgroup_holds_in_every_run_of_a_search() {
    let folder = with_load();
    let load = fs::read_to_string(folder.path().join("load.fio")).unwrap().replace("[writers]", "[writers]\ncgroup=w");
    fs::write(folder.path().join("load.fio"), load).unwrap();
    let arguments = ["tune", "load.fio", "--objective", "max writers:write:iops", "--over", "none", "--format", "json"];
    let json = succeeded(hoistway().current_dir(&folder).args(arguments).args(["--io-max", "w wiops=1000"]));
    let document: Value = serde_json::from_str(&json).unwrap();
    for run in document["runs"].as_array().unwrap() {
        let iops = run["figures"]["writers:write:iops"].as_f64().unwrap();
        assert!(iops > 100.0 && iops < 1500.0, "{iops}");
    }
}

#[test]
fn settings_of_io_cost_are_searched_and_end_with_the_lines_that_write_and_undo_them() {
    let folder = with_load();
    let load = ["tune", "etcd-beside-pods", "--runtime", "4s", "--ramp", "100ms", "--over", "none", "--budget", "40"];
    let asked = ["--objective", "min etcd:write:mean", "--vary", "io.cost.qos"];
    let on = ["--io-cost", "enable=1"];
    let table = succeeded(hoistway().current_dir(&folder).args(load).args(asked).args(on));
    let (_, lines) = table.split_once("\nFiles of cgroups for nvme0n1, until the next boot, as root:\n").unwrap();
    let (now, back) = lines.split_once("To undo:\n").unwrap();
    let qos = "    echo \"$(cat /sys/block/nvme0n1/dev) enable=1 ctrl=";
    assert!(now.contains(&format!("{qos}user ")) && now.contains("\" > /sys/fs/cgroup/io.cost.qos\n"), "{now}");
    assert!(back.contains(&format!("{qos}auto rpct=95.00 rlat=75000 wpct=95.00 wlat=150000 min=50.00 max=150.00")));
    let off = [&load[..], &asked].concat();
    refused(folder.path(), &off, &["--vary io.cost.qos: io.cost is off in all runs (expected --io-cost \"enable=1\")"]);
}
