//! The verdict of `hoistway compare` on all bundled loads, and on loads with which people were misled.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::support::{hoistway, printed, refused, succeeded};

/// The jobs of a database: backends, commits to a log, a checkpointer and a backup.
const POSTGRES: &str = "[global]\nfilename=/dev/sda\ndirect=1\nruntime=2\ntime_based\n\
                        [backup]\nrw=read\nbs=256k\nioengine=libaio\niodepth=4\n\
                        [wal]\nrw=write\nbs=8k\nfdatasync=1\nsize=2%\n\
                        [checkpointer]\nrw=randwrite\nbs=8k\nioengine=libaio\niodepth=32\n\
                        [backends]\nrw=randread\nbs=8k\nnumjobs=16\n";

fn with_load(text: &str) -> TempDir {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("load.fio"), text).unwrap();
    folder
}

fn compared(folder: &Path, options: &[&str]) -> Value {
    let mut command = hoistway();
    command.current_dir(folder).args(["compare", "load.fio", "--format", "json"]).args(options);
    serde_json::from_str(&succeeded(&mut command)).unwrap()
}

fn conclusion(document: &Value) -> String {
    let sentences = document["conclusion"].as_array().unwrap().iter();
    sentences.map(|sentence| sentence.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

/// Asserts that a verdict follows its rules.
fn assert_sound(document: &Value, of: &str) {
    let verdicts = document["verdicts"].as_array().unwrap();
    assert_eq!(verdicts.len(), 1, "{of}");
    let verdict = &verdicts[0];
    let candidates = verdict["candidates"].as_array().unwrap();
    let recommended = candidates.iter().find(|candidate| candidate["scheduler"] == verdict["recommended"]);
    match verdict["decision"].as_str().unwrap() {
        "keep" => assert_eq!(verdict["recommended"], verdict["reference"], "{of}"),
        "change" => {
            let recommended = recommended.unwrap();
            let balance = &recommended["balance"];
            let [factor, low] = ["factor", "low"].map(|key| balance[key].as_f64().unwrap());
            assert!(factor >= 1.02 && low > 1.0, "{of}: {recommended}");
            assert!(["better", "better_elsewhere"].contains(&recommended["outcome"].as_str().unwrap()), "{of}");
        }
        other => panic!("{of}: {other} of several runs of several schedulers"),
    }
    let runs = document["runs"].as_array().unwrap();
    let of_kernel = |label: &Value| {
        let label = label.as_str().unwrap().trim_end_matches(" (legacy)");
        runs.iter().any(|run| run["variant"]["label"] == label && run["ran_as"].is_null())
    };
    assert!(candidates.iter().all(|candidate| of_kernel(&candidate["scheduler"])), "{of}: {verdict}");
}

#[test]
fn on_every_bundled_load_the_verdict_keeps_to_its_rules() {
    let list = printed(&["scenarios"]);
    let names = list.lines().take_while(|line| !line.is_empty()).map(|line| line.split_whitespace().next().unwrap());
    // Alternates between a few cases; tests/verdicts.rs of hoistway-experiment has many more.
    let places = [&[][..], &["--kernel", "4.19", "--schedulers", "all"], &["--device", "hgst-he10-8tb"]];
    for (name, more) in names.zip(places.into_iter().cycle()) {
        let short = ["compare", name, "--runtime", "300ms", "--ramp", "0", "--repeat", "3", "--format", "json"];
        let document: Value = serde_json::from_str(&printed(&[&short[..], more].concat())).unwrap();
        assert_sound(&document, &format!("{name} {more:?}"));
    }
}

#[test]
fn the_desktop_freeze_verdict_never_recommends_a_stalling_scheduler() {
    for seed in ["1", "2"] {
        let arguments =
            ["compare", "desktop-freeze", "--runtime", "8s", "--repeat", "3", "--format", "json", "--seed", seed];
        let document: Value = serde_json::from_str(&printed(&arguments)).unwrap();
        assert_sound(&document, seed);
        let bfq =
            document["verdicts"][0]["candidates"].as_array().unwrap().iter().find(|one| one["scheduler"] == "bfq");
        let losses = bfq.unwrap()["losses"].to_string();
        assert!(losses.contains(r#"{"figure":"max"}"#) || losses.contains(r#"{"figure":"p99"}"#), "{losses}");
    }
}

#[test]
fn a_database_is_judged_by_its_backends_unless_a_focus_is_given() {
    let folder = with_load(POSTGRES);
    let document = compared(folder.path(), &["--repeat", "3", "--runtime", "500ms"]);
    assert_eq!(document["verdicts"][0]["focus"][0]["figure"], "backends:read:p99");
    assert!(
        conclusion(&document).contains("--focus JOB:OPERATION:FIGURE, such as backends:read:p99"),
        "{}",
        conclusion(&document)
    );
    let of =
        ["--focus", "wal:sync:p99*2", "--focus", "backup:read:bandwidth", "--schedulers", "none,bfq", "--repeat", "2"];
    let document = compared(folder.path(), &of);
    let focus = &document["verdicts"][0]["focus"];
    assert_eq!((&focus[0]["figure"], &focus[0]["weight"]), (&"wal:sync:p99".into(), &2.0.into()));
    assert_eq!(focus[1]["figure"], "backup:read:bandwidth");
    let text = conclusion(&document);
    assert!(text.contains("p99 fsync latency of wal") && text.contains("read bandwidth of backup"), "{text}");
}

#[test]
fn twenty_guests_that_do_the_same_are_one_party_with_a_fairness() {
    let mut text =
        "[global]\ndirect=1\nrw=randread\nioengine=libaio\niodepth=4\nruntime=1\ntime_based\nfilename=/dev/sda\n"
            .to_owned();
    for guest in 0..20 {
        text += &format!("[guest{guest}]\noffset={}%\nsize=5%\n", guest * 5);
    }
    let folder = with_load(&text);
    let document = compared(folder.path(), &["--repeat", "2", "--runtime", "200ms"]);
    assert_eq!(document["verdicts"][0]["alike"].as_array().unwrap().len(), 20);
    assert!(conclusion(&document).contains("guest0 and the 19 jobs like it (median)"), "{}", conclusion(&document));
}

#[test]
fn an_invalid_focus_is_refused_with_the_available_figures() {
    let folder = with_load(POSTGRES);
    let refuse = |focus: &str, words: &[&str]| {
        refused(folder.path(), &["compare", "load.fio", "--runtime", "50ms", "--repeat", "1", "--focus", focus], words);
    };
    refuse("backends:p99", &["--focus backends:p99", "expected JOB:OPERATION:FIGURE, such as"]);
    refuse("backends:read:p99*0", &["after * a weight is expected"]);
    refuse("backend:read:p99", &["there is no job \"backend\" (expected one of backup, wal, checkpointer, backends)"]);
    refuse("backends:write:p99", &["no such I/O happened", "backends:read"]);
    refused(
        folder.path(),
        &["compare", "load.fio", "--smallest-effect", "200%"],
        &["expected a percentage from 0 to below 100"],
    );
}

#[test]
fn schedulers_that_a_kernel_has_not_yet_are_refused_and_left_out_of_all_with_a_word() {
    let folder = with_load(POSTGRES);
    refused(
        folder.path(),
        &["compare", "load.fio", "--kernel", "4.4", "--schedulers", "none,kyber"],
        &[
            "--schedulers kyber: Linux 4.4 does not have it yet",
            "expected some of none, noop, deadline, cfq, or --kernel 4.12 or later",
        ],
    );
    let document = compared(folder.path(), &["--kernel", "4.4", "--schedulers", "all", "--runtime", "50ms"]);
    let names: Vec<_> = document["runs"].as_array().unwrap().iter().map(|run| run["scheduler"].clone()).collect();
    assert_eq!(names, ["none", "noop", "deadline", "cfq"]);
    assert!(
        document["notices"]
            .to_string()
            .contains("Linux 4.4 is older than mq-deadline (4.11), kyber (4.12), bfq (4.12): left out.")
    );
}

#[test]
fn tables_repeat_until_the_decision_is_sure_and_documents_run_once() {
    let folder = with_load(POSTGRES);
    let table = |format: &str| {
        let mut command = hoistway();
        command.current_dir(folder.path()).args(["compare", "load.fio", "--runtime", "20ms", "--format", format]);
        succeeded(&mut command)
    };
    let repeats = |text: &str| -> u32 {
        let (_, behind) = text.split_once("Means of ").unwrap_or_else(|| panic!("{text}"));
        behind.split(' ').next().unwrap().parse().unwrap()
    };
    let (text, markdown) = (table("table"), table("markdown"));
    assert!((3..=60).contains(&repeats(&text)) && repeats(&text) == repeats(&markdown), "{text}");
    let is_sure =
        text.contains("The decision is the same in 99 %") || text.contains("The decision is the same in 100 %");
    assert!(is_sure || repeats(&text) == 60, "{text}");
    assert_eq!(serde_json::from_str::<Value>(&table("json")).unwrap()["seeds"].as_array().unwrap().len(), 1);
}

#[test]
fn the_etcd_disk_check_load_runs_and_reports_commit_latency() {
    let folder = with_load("[etcd]\nfilename=/dev/sda\nrw=write\nioengine=sync\nfdatasync=1\nsize=2m\nbs=2300\n");
    let document = compared(folder.path(), &["--schedulers", "mq-deadline", "--device", "hgst-he10-8tb"]);
    let job = &document["runs"][0]["jobs"][0];
    let (writes, commits) = (&job["operations"][0], &job["operations"][1]);
    assert_eq!((writes["ios"].as_u64(), writes["bytes"].as_u64()), (Some(912), Some(912 * 2300)));
    // As in fio, none follows the last write.
    assert_eq!(commits["ios"], 911);
    // A write completes in memory, and a commit on the disk.
    assert!(writes["lat_ns"]["mean"].as_f64().unwrap() < 10e3, "{writes}");
    assert!(commits["lat_ns"]["p99"].as_f64().unwrap() > 1e6, "{commits}");
    assert_eq!(document["verdicts"][0]["focus"][0]["figure"].as_str().unwrap().split_once(':').unwrap().1, "sync:mean");
    let direct = ["compare", "load.fio", "--schedulers", "none"];
    fs::write(folder.path().join("load.fio"), "[etcd]\nfilename=/dev/sda\ndirect=1\nrw=write\nbs=2300\n").unwrap();
    refused(folder.path(), &direct, &["load.fio:5: [etcd] bs: 2300 bytes are not a multiple of a sector of 512"]);
}

#[test]
fn a_broken_limit_is_reported_and_exits_with_status_3() {
    let folder = with_load(POSTGRES);
    let ended = |limits: &[&str]| {
        let mut command = hoistway();
        command.current_dir(folder.path()).args([
            "compare",
            "load.fio",
            "--runtime",
            "100ms",
            "--schedulers",
            "none,bfq",
        ]);
        for limit in limits {
            command.args(["--fail-if", limit]);
        }
        let output = command.output().unwrap();
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("backends, 16 processes"),
            "the table is there nevertheless"
        );
        (output.status.code(), crate::interrupts::complaints(&output.stderr))
    };
    assert_eq!(ended(&["backends:read:p99>10s", "backends:read:iops<1"]), (Some(0), String::new()));
    let (status, shown) = ended(&["backends:read:p99>10s", "backends:read:p99>1us", "wal:sync:iops<1M"]);
    assert_eq!((status, shown.lines().count()), (Some(3), 2), "{shown}");
    assert!(
        shown.starts_with("hoistway: --fail-if backends:read:p99>1us: ") && shown.contains(" under none, "),
        "{shown}"
    );
    let short = ["compare", "load.fio", "--runtime", "50ms", "--fail-if"];
    refused(folder.path(), &[&short[..], &["backends:read:p99>2"]].concat(), &["\"2\" is not a value for p99"]);
    refused(folder.path(), &[&short[..], &["backends:sync:p99>2s"]].concat(), &["no such I/O happened"]);
    // What cannot be met is refused before the first run: this one would take hours.
    let hours = ["compare", "load.fio", "--runtime", "7d", "--schedulers", "none,bfq", "--fail-if"];
    for (limit, problem) in [
        ("backend:read:p99>2s", "there is no job \"backend\" (expected one of backup, wal, checkpointer, backends)"),
        (
            "backends:read:p99>2*kyber",
            "\"kyber\" is not among the compared schedulers (expected default, or one of bfq, none)",
        ),
        ("backends:read:p99>2*one", "\"one\" is not among the compared schedulers"),
    ] {
        refused(folder.path(), &[&hours[..], &[limit]].concat(), &[problem]);
    }
}

#[test]
fn stable_documents_are_the_same_to_the_byte() {
    let folder = with_load(POSTGRES);
    let document = |format: &str, more: &[&str]| {
        let mut command = hoistway();
        let arguments = ["compare", "load.fio", "--runtime", "100ms", "--stable", "--format", format];
        succeeded(command.current_dir(folder.path()).args(arguments).args(more))
    };
    let one = document("json", &[]);
    assert!(one == document("json", &["--seed", "1"]), "two runs differ");
    assert!(one.contains("\"wall_seconds\": 0.0") && one.contains("\"command\": \"\""));
    let fio = ["--schedulers", "none"];
    assert!(document("fio-json+", &fio) == document("fio-json+", &fio));
    // The number of repeats is the one that makes the result certain, whatever the speed of the machine.
    assert!(document("markdown", &[]) == document("markdown", &[]));
}

#[test]
fn on_a_device_that_no_scheduler_keeps_up_with_the_one_that_costs_least_is_recommended_and_not_bfq() {
    let load = "[streams]\nfilename=/dev/nullb0\ndirect=1\nioengine=libaio\nbs=4k\niodepth=64\nnumjobs=8\nrw=randwrite\n\
                time_based\nruntime=50ms\n";
    let folder = with_load(load);
    for focus in [&[][..], &["--focus", "streams:write:iops"]] {
        let document = compared(
            folder.path(),
            &[&["--device", "null", "--repeat", "3", "--schedulers", "none,bfq"], focus].concat(),
        );
        let iops = |scheduler: &str| {
            let rows = document["statistics"]["rows"].as_array().unwrap();
            let row = rows.iter().find(|row| row["scheduler"] == scheduler).unwrap();
            row["figures"]["iops"]["mean"].as_f64().unwrap()
        };
        assert!(iops("none") > 1.5 * iops("bfq"), "{} and {}", iops("none"), iops("bfq"));
        assert_eq!(document["verdicts"][0]["recommended"], "none", "{}", conclusion(&document));
        let limits = "a load there is limited by its queue depth and by the CPU time of the block layer, the scheduler and its lock";
        assert!(document["notices"].to_string().contains(limits), "{}", document["notices"]);
        // bfq is limited by one lock for all CPUs, and by more CPU time per I/O.
        let cpu_us = |run: usize| document["runs"][run]["cpu_us_per_io"].as_f64().unwrap();
        assert_eq!(
            (&document["runs"][0]["scheduler"], &document["runs"][1]["scheduler"]),
            (&"none".into(), &"bfq".into())
        );
        assert!(cpu_us(1) > cpu_us(0), "{} and {}", cpu_us(0), cpu_us(1));
        let on_flash = compared(folder.path(), &["--device", "nvme", "--repeat", "1", "--schedulers", "none"]);
        assert!(!on_flash["notices"].to_string().contains(limits), "there the device takes its time");
    }
}

/// Real-time reads beside other reads that saturate the drive.
const REAL_TIME: &str = "[global]\nfilename=/dev/nvme0n1\ndirect=1\nioengine=libaio\nbs=4k\nruntime=300ms\ntime_based\nsize=40g\n\
    [urgent]\nrw=randread\nprioclass=1\nprio=0\n[bulk]\nrw=randread\niodepth=32\nnumjobs=3\n";

#[test]
fn a_verdict_does_not_advise_what_the_kernel_lacks() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("rt.fio"), REAL_TIME).unwrap();
    for schedulers in ["none,mq-deadline,research", "none,k2", "k2,none"] {
        let options = [
            "--device",
            "samsung-980pro-1tb",
            "--schedulers",
            schedulers,
            "--set",
            "k2.max_inflight=4",
            "--repeat",
            "3",
            "--focus",
            "urgent:read:p99",
            "--advice",
            "nvme0n1",
            "--format",
            "json",
        ];
        let job = folder.path().join("rt.fio");
        let text = printed(&[&["compare", job.to_str().unwrap()], &options[..]].concat());
        let document: Value = serde_json::from_str(&text).unwrap();
        let of_research = |run: &&Value| run["research"] == "RTSS 2019";
        assert!(document["runs"].as_array().unwrap().iter().filter(of_research).count() == 3, "{schedulers}");
        let verdict = &document["verdicts"][0];
        let is_named = |what: &Value| what.to_string().contains("k2");
        assert!(!is_named(&verdict["recommended"]) && !is_named(&verdict["candidates"]), "{schedulers}: {verdict}");
        assert!(!is_named(&verdict["reference"]) && is_named(&verdict["unavailable"]), "{schedulers}: {verdict}");
        assert!(
            document["advice"].as_array().is_some_and(|advice| !advice.is_empty()) && !is_named(&document["advice"])
        );
        let conclusion = document["conclusion"].as_array().unwrap();
        let named: Vec<_> = conclusion.iter().filter(|line| line.to_string().contains("k2")).collect();
        let expected = "If the kernel had it, k2 (unverified, RTSS 2019) would be better: ";
        assert!(named.len() == 1 && named[0].as_str().unwrap().contains(expected), "{schedulers}: {conclusion:#?}");
    }
}
