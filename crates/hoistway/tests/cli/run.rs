//! `hoistway run`: real I/O.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::tempdir;

use crate::fio_run;
use crate::support::{ended_with, hoistway, succeeded};

const HEAD: &str = "[global]\nfilename=data\ndirect=1\nioengine=libaio\nsize=4m\n";

/// A job file in a folder.
fn job(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("job.fio");
    fs::write(&path, HEAD.to_owned() + text).unwrap();
    path
}

/// The output of a run with these arguments in a folder.
fn run_in(folder: &Path, arguments: &[&str]) -> String {
    succeeded(hoistway().current_dir(folder).arg("run").arg("job.fio").args(arguments))
}

fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = hoistway().current_dir(folder).arg("run").arg("job.fio").args(arguments).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_file_is_made_once_and_overwritten_only_if_it_is_ours() {
    let folder = tempdir().unwrap();
    job(folder.path(), "[w]\nrw=randwrite\nbs=4k\niodepth=8\n");
    let table = run_in(folder.path(), &["--target", "file:ours", "--scheduler", "none,bfq"]);
    assert!(table.starts_with("job.fio on ours, Linux 7.2"), "{table}");
    assert!(table.contains("bfq") && table.contains("for real"), "{table}");
    let content = fs::read(folder.path().join("ours")).unwrap();
    assert!(content.len() == 4 << 20 && content.chunks(4096).all(|block| block.iter().any(|&byte| byte != 0)));

    fs::write(folder.path().join("theirs"), vec![7; 4 << 20]).unwrap();
    let error = refused(folder.path(), &["--target", "file:theirs"]);
    assert!(
        error.contains("--target file:theirs: the load would overwrite a file") && error.contains("expected --writes"),
        "{error}"
    );
    let error = refused(folder.path(), &["--target", "file:theirs", "--writes", "their"]);
    assert!(error.contains("--writes their: is not the target (expected file:theirs again)"), "{error}");
    assert_eq!(fs::read(folder.path().join("theirs")).unwrap(), vec![7; 4 << 20]);
    run_in(folder.path(), &["--target", "file:theirs", "--writes", "theirs"]);
    assert_ne!(fs::read(folder.path().join("theirs")).unwrap()[..4096], vec![7; 4096]);

    // This pipe is never written to.
    let made = Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap();
    assert!(made.success());
    let error = refused(folder.path(), &["--target", "file:pipe"]);
    assert!(error.contains("--target file:pipe: is neither a file nor a block device"), "{error}");

    job(folder.path(), "[r]\nrw=randread\n");
    run_in(folder.path(), &["--target", "file:theirs"]);
}

#[test]
fn every_target_runs_under_every_scheduler_and_results_are_those_of_a_comparison() {
    let folder = tempdir().unwrap();
    job(folder.path(), "[r]\nrw=randrw\nbs=4k\niodepth=8\nnumber_ios=200\n");
    for target in ["mem:16M", "null:", "sim:micron-9100-1600gb"] {
        let schedulers = "none,mq-deadline,kyber,bfq";
        let json = run_in(folder.path(), &["--target", target, "--scheduler", schedulers, "--format", "json"]);
        let document: Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&document["format"], &document["is_real"]), (&"hoistway-results/2".into(), &true.into()));
        for run in document["runs"].as_array().unwrap() {
            assert_eq!(run["simulated_ios"], 200, "{target} {}", run["scheduler"]);
        }
    }
    let json = run_in(
        folder.path(),
        &[
            "--target",
            "mem:16M",
            "--scheduler",
            "bfq",
            "--set",
            "bfq.slice_idle=0",
            "--queue",
            "nr_requests=32",
            "--format",
            "json",
        ],
    );
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&document["runs"][0]["tunables"]["slice_idle"], &document["nr_requests"]), (&0.into(), &32.into()));
}

/// A small load on flash, with three runs under each of two schedulers.
const COMPARED: [&str; 6] = ["--target", "sim:micron-9100-1600gb", "--scheduler", "none,mq-deadline", "--repeat", "3"];

#[test]
fn a_run_under_several_schedulers_has_a_verdict_and_is_read_like_a_comparison() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    job(folder, "[reads]\nrw=randread\nbs=4k\niodepth=8\nnumber_ios=300\n[log]\nrw=write\nnumber_ios=100\nfsync=4\n");
    let json = ["--format", "json", "-o", "real.json", "--report", "page.html", "--focus", "reads:read:p99"];
    run_in(folder, &[&COMPARED[..], &json].concat());
    let text = fs::read_to_string(folder.join("real.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let verdict = &document["verdicts"][0];
    assert_eq!((&verdict["reference"], &verdict["focus_from"]), (&"none".into(), &"asked".into()));
    assert!(["keep", "change"].contains(&verdict["decision"].as_str().unwrap()), "{verdict}");
    assert_eq!(verdict["candidates"][0]["scheduler"], "mq-deadline");
    let sentences = document["conclusion"].as_array().unwrap();
    assert!(sentences[0].as_str().unwrap().starts_with("For this load on micron-9100-1600gb in real time: "));
    let repeats: Vec<(&str, u64)> = document["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| (run["scheduler"].as_str().unwrap(), run["repeat"].as_u64().unwrap()))
        .collect();
    let rounds = [("none", 0), ("mq-deadline", 0), ("none", 1), ("mq-deadline", 1), ("none", 2), ("mq-deadline", 2)];
    assert_eq!(repeats, rounds);
    assert_eq!(document["seeds"].as_array().unwrap().len(), 3);
    let disk = &document["runs"][1]["disks"][0];
    assert_eq!((&disk["file"], &disk["read_ios"]), (&"data".into(), &300.into()));
    assert!(disk["choices"].is_u64() && verdict["had_a_choice"].is_boolean(), "{disk}");
    let job = &document["runs"][1]["jobs"][1];
    assert_eq!((&job["demand"]["syncs"], &job["random"]), (&true.into(), &false.into()));
    // Commands that read comparisons read its results, too.
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(page.contains("micron-9100-1600gb in real time") && !page.contains("simulated"));
    let again = succeeded(hoistway().current_dir(folder).args(["report", "real.json"]));
    assert!(again.contains("micron-9100-1600gb in real time"));
    run_in(folder, &[&COMPARED[..], &["--format", "json", "-o", "again.json"]].concat());
    let diff = succeeded(hoistway().current_dir(folder).args(["diff", "real.json", "again.json", "--all"]));
    assert!(diff.contains("reads:read:p99"), "{diff}");
}

#[test]
fn values_that_are_varied_are_variants_and_mistakes_are_refused_before_the_first_run() {
    let folder = tempdir().unwrap();
    job(folder.path(), "[r]\nrw=randread\nbs=4k\niodepth=4\nio_size=400k\n");
    let target = ["--target", "sim:sata-ssd", "--scheduler", "none,mq-deadline"];
    let with = |more: &[&'static str]| [&target[..], more].concat();
    let varied = ["--vary", "mq-deadline.fifo_batch=1,16", "--vary", "mq-deadline.writes_starved=9", "--repeat", "2"];
    let document: Value =
        serde_json::from_str(&run_in(folder.path(), &[&with(&varied)[..], &["--format", "json"]].concat())).unwrap();
    let runs: Vec<(String, u64)> = document["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| (run["variant"]["label"].as_str().unwrap().to_owned(), run["repeat"].as_u64().unwrap()))
        .collect();
    let labels = [
        "none",
        "mq-deadline",
        "mq-deadline fifo_batch=1 writes_starved=9",
        "mq-deadline fifo_batch=16 writes_starved=9",
    ];
    let expected: Vec<(String, u64)> =
        (0..2).flat_map(|repeat| labels.map(|label| (label.to_owned(), repeat))).collect();
    assert_eq!(runs, expected);

    let read_otherwise = ["--set", "mq-deadline.front_merges=5", "--vary", "mq-deadline.fifo_batch=-5,16"];
    let table = run_in(folder.path(), &with(&read_otherwise));
    for (setting, value) in [("--set mq-deadline.front_merges=5", 1), ("--vary mq-deadline.fifo_batch=-5", 0)] {
        let notice = format!("{setting}: the kernel reads this as {value}.");
        assert_eq!(table.matches(&notice).count(), 1, "{notice} {table}");
    }

    for (more, message) in [
        (
            ["--vary", "mq-deadline.fifo_bach=1"],
            "mq-deadline has no tunable \"fifo_bach\" (did you mean \"fifo_batch\"?",
        ),
        (
            ["--vary", "mq-deadline.fifo_batch=1,x"],
            "--vary mq-deadline.fifo_batch=x: not a number (EINVAL); expected 0 to",
        ),
        (["--set", "mq-deadline.fifo_batch=x"], "--set mq-deadline.fifo_batch=x: not a number (EINVAL); expected 0 to"),
        (["--vary", "kyber.read_lat_nsec=1"], "kyber is not among the compared schedulers"),
        (["--vary", "io.cost.qos.max=50"], "a run in real time has no io.cost"),
        (["--vary", "queue.nr_requests=100000"], "--vary queue.nr_requests=100000 under none: invalid value"),
        (["--queue", "nr_request=1"], "no such file (did you mean \"nr_requests\"?"),
    ] {
        let error = refused(folder.path(), &with(&more));
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn a_scheduler_that_is_named_several_times_runs_as_often() {
    let folder = tempdir().unwrap();
    job(folder.path(), "[r]\nrw=randread\nnumber_ios=100\n");
    let json = run_in(folder.path(), &["--target", "mem:8M", "--scheduler", "none,none,bfq", "--format", "json"]);
    let document: Value = serde_json::from_str(&json).unwrap();
    let repeats: Vec<u64> =
        document["runs"].as_array().unwrap().iter().map(|run| run["repeat"].as_u64().unwrap()).collect();
    assert_eq!(repeats, [0, 1, 0]);
}

#[test]
fn jobs_are_measured_while_all_of_them_run() {
    let folder = tempdir().unwrap();
    let both = "time_based\nruntime=600ms\n[a]\nrw=randread\n[b]\nrw=randread\nstartdelay=300ms\n";
    job(folder.path(), both);
    let document = |more: &[&str]| -> Value {
        let arguments = [&["--target", "mem:8m", "--format", "json"], more].concat();
        serde_json::from_str(&run_in(folder.path(), &arguments)).unwrap()
    };
    let window = &document(&[])["window"];
    assert_eq!((window["from_seconds"].as_f64(), window["until_seconds"].as_f64()), (Some(0.3), Some(0.6)), "{window}");
    assert!(document(&["--from-start"])["window"].is_null());
}

#[test]
fn a_limit_that_is_broken_ends_with_status_3() {
    let folder = tempdir().unwrap();
    job(folder.path(), "[r]\nrw=randread\nnumber_ios=100\n");
    let limited = |limit: &str| {
        let arguments = ["run", "job.fio", "--target", "sim:micron-9100-1600gb", "--fail-if", limit];
        hoistway().current_dir(folder.path()).args(arguments).output().unwrap()
    };
    let output = limited("r:read:p99>1us");
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8(output.stdout).unwrap().contains("for real"), "results are printed first");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("hoistway: --fail-if r:read:p99>1us: ") && said.contains(" under none"), "{said}");
    assert_eq!(limited("r:read:p99>10s").status.code(), Some(0));
    assert_eq!(limited("x:read:p99>1us").status.code(), Some(2));
}

#[test]
fn advice_is_for_the_devices_that_the_job_file_names_unless_the_target_is_one() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("job.fio"), HEAD.replace("=data", "=/dev/sdq") + "[r]\nrw=randread\nnumber_ios=50\n")
        .unwrap();
    let wanted = ["--target", "mem:8M", "--scheduler", "none,bfq", "--repeat", "2", "--advice"];
    let table = run_in(folder.path(), &wanted);
    assert!(table.contains("Commands for sdq:\n"), "{table}");
    let table = run_in(folder.path(), &[&wanted[..], &["vdb"]].concat());
    assert!(table.contains("Commands for vdb:\n"), "{table}");
}

#[test]
fn options_that_make_no_difference_to_a_run_are_named() {
    let folder = tempdir().unwrap();
    job(folder.path(), "[r]\nrw=randread\nnumber_ios=50\ncpus_allowed=0\nnumjobs=2\nlog_avg_msec=10\n");
    let table = run_in(folder.path(), &["--target", "mem:8M"]);
    assert!(table.contains("cpus_allowed of r has no effect: processes of a real run share worker threads"), "{table}");
    assert!(table.contains("Logging options (log_avg_msec and others) have no effect without --fio-logs."), "{table}");
}

#[test]
fn logs_of_a_run_are_those_that_fio_would_write() {
    let folder = tempdir().unwrap();
    job(folder.path(), "[r]\nrw=randread\nnumber_ios=50\n");
    run_in(folder.path(), &["--target", "mem:8M", "--scheduler", "none,bfq", "--fio-logs", "logs"]);
    for scheduler in ["none", "bfq"] {
        let log = fs::read_to_string(folder.path().join("logs").join(scheduler).join("r_lat.1.log")).unwrap();
        assert_eq!(log.lines().count(), 50, "{log}");
        let json = fs::read_to_string(folder.path().join("logs").join(scheduler).join("fio.json")).unwrap();
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["jobs"][0]["read"]["total_ios"], 50);
    }
}

#[test]
fn a_document_of_a_version_that_judged_no_runs_is_still_read() {
    let old = include_str!("run-without-verdict.json");
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("old.json"), old).unwrap();
    let page = succeeded(hoistway().current_dir(folder.path()).args(["report", "old.json"]));
    assert!(page.contains("micron-9100-1600gb in real time") && page.contains("old.fio"));
    let diff = succeeded(hoistway().current_dir(folder.path()).args(["diff", "old.json", "old.json"]));
    assert!(diff.starts_with("The inputs are the same."), "{diff}");
}

#[test]
fn invalid_run_options_are_refused_with_what_was_expected() {
    let folder = tempdir().unwrap();
    job(folder.path(), "[r]\nrw=randread\n");
    for (arguments, expected) in [
        (&["--target", "disk"][..], "--target disk: expected file:PATH, blk:PATH, mem:SIZE"),
        (&["--target", "mem:9"], "--target mem:9: expected a size from 4K to 1024T"),
        (&["--target", "mem:1M"], "the job ends at byte 4194304, but the device has 1048576"),
        (&["--target", "blk:job.fio"], "--target blk:job.fio: is not a block device"),
        (&["--target", "file:."], ".: is neither a file nor a block device"),
        (&["--target", "sim:none"], "--target sim:none: there is no built-in device"),
        (&["--target", "mem:8M", "--scheduler", "cfq"], "\"cfq\" is unknown (expected one of none, mq-deadline"),
        (&["--target", "mem:8M", "--set", "bfq.slice_idle=0"], "--set bfq.slice_idle=0: bfq does not run"),
        (&["--target", "mem:8M", "--queue", "nr_requests=x"], "--queue nr_requests=x under none: invalid value"),
        (&["--target", "mem:8M", "--scheduler", "none,bfq", "--format", "fio-json"], "fio's document holds one run"),
        (&["--target", "mem:8M", "--repeat", "2", "--format", "fio-json"], "fio's document holds one run"),
        (&["--target", "mem:8M", "--repeat", "0"], "invalid value '0' for '--repeat <K>'"),
        (&["--target", "mem:8M", "--baseline", "bfq"], "--baseline bfq: not among the compared schedulers"),
        (
            &["--target", "mem:8M", "--focus", "x:read:p99"],
            "--focus x:read:p99: there is no job \"x\" (expected one of r)",
        ),
        (&["--target", "mem:8M", "--advice", "sda", "--format", "csv"], "--advice: --format csv has no place for it"),
    ] {
        let error = refused(folder.path(), arguments);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    fs::write(folder.path().join("job.fio"), "[r]\nfilename=x\nsize=1m\n").unwrap();
    let error = refused(folder.path(), &["--target", "mem:8M"]);
    assert!(error.contains("r: I/O through the page cache (expected direct=1"), "{error}");
    fs::write(folder.path().join("job.fio"), "[r]\nfilename=x\ndirect=1\n").unwrap();
    let error = refused(folder.path(), &["--target", "file:new"]);
    assert!(error.contains("does not exist, and the load does not set its size"), "{error}");
    assert!(!folder.path().join("new").exists());
}

#[test]
fn an_interrupted_run_prints_its_partial_results() {
    use rustix::process::{Pid, Signal, kill_process};
    let folder = tempdir().unwrap();
    job(folder.path(), "[r]\nrw=randread\ntime_based\nruntime=1h\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoistway"));
    command.current_dir(folder.path()).args([
        "run",
        "job.fio",
        "--target",
        "sim:micron-9100-1600gb",
        "--format",
        "json",
    ]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let process = Pid::from_child(&child);
    // A run that has used some CPU time has begun, since it polls for completions.
    let has_begun = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() >= 20
    };
    let begin = std::time::Instant::now();
    while !has_begun() && begin.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(process, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["partial"], true);
    assert!(document["simulated_ios"].as_u64().unwrap() > 0);
}

#[test]
fn an_interrupted_file_fill_leaves_no_partial_file() {
    use rustix::process::{Pid, Signal, kill_process};
    let folder = tempdir().unwrap();
    // Larger than what can be filled before the signal arrives.
    job(folder.path(), "[r]\nrw=randread\nsize=1t\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoistway"));
    command.current_dir(folder.path()).args(["run", "job.fio", "--target", "file:new"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The file is filled under another name, so that under its own name it is always complete.
    let part = folder.path().join(".new.hoistway-part");
    let begin = std::time::Instant::now();
    while !part.exists() && begin.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(part.exists());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(130), 0), "{said}");
    assert_eq!(said, "hoistway: file:new: interrupted while it was filled; removed\n");
    assert!(!part.exists() && !folder.path().join("new").exists());
}

#[test]
fn a_job_that_fails_fails_the_run() {
    let folder = tempdir().unwrap();
    // Flash takes longer than the time allowed.
    job(folder.path(), "[r]\nrw=randread\nmax_latency=1us\n");
    let arguments = ["run", "job.fio", "--target", "sim:micron-9100-1600gb"];
    let table = ended_with(1, hoistway().current_dir(folder.path()).args(arguments));
    assert!(table.contains("r under none (1 of 1 process, ETIMEDOUT)"), "{table}");
}

/// fio and hoistway do the same I/O for the same job file on the same file.
#[test]
fn fio_counts_the_same() {
    if !fio_run::is_installed() {
        return;
    }
    let folder = fio_run::directory("run");
    let jobs = "[w]\nrw=randwrite\nbs=4k\niodepth=8\nfsync=100\n[m]\nstonewall\nrw=write\nbsrange=4k-64k\niodepth=4\n\
                [r]\nstonewall\nrw=read\nbs=64k\niodepth=4\nnumjobs=2\n[t]\nstonewall\nrw=randread\nbs=512\nnumber_ios=77\n\
                [a]\nstonewall\nrw=write\nbs=4k\niodepth=8\nsize=192k\nfsync=3\nioengine=libaio\n\
                [b]\nstonewall\nrw=write\nbs=4k\niodepth=8\nsize=192k\nfsync=3\nioengine=posixaio\n\
                [c]\nstonewall\nrw=write\nbs=4k\nsize=192k\nfsync=3\nioengine=psync\n";
    job(&folder, jobs);
    let output = fio_run::run(&folder, &(HEAD.to_owned() + jobs), &[], &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    let theirs: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let ours = run_in(&folder, &["--target", "file:data", "--force", "--format", "fio-json"]);
    let ours: Value = serde_json::from_str(&ours).unwrap();
    let counts = |document: &Value| -> Vec<Vec<u64>> {
        let count = |job: &Value| {
            let of = |direction: &str, key: &str| job[direction][key].as_u64().unwrap();
            // The order of block sizes is random.
            let is_drawn = job["jobname"] == "m";
            let ios = |direction| if is_drawn { 0 } else { of(direction, "total_ios") };
            // fio counts an fsync again when it has to resubmit it because others are in flight.
            let hands_in_again = ["a", "b"].contains(&job["jobname"].as_str().unwrap());
            let syncs = if hands_in_again { 0 } else { of("sync", "total_ios") };
            vec![ios("read"), ios("write"), of("read", "io_bytes"), of("write", "io_bytes"), syncs]
        };
        document["jobs"].as_array().unwrap().iter().map(count).collect()
    };
    assert_eq!(counts(&ours), counts(&theirs));
    fs::remove_dir_all(folder).unwrap();
}
