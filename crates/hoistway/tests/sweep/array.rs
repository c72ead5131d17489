//! An array of jobs, as in Slurm and Kubernetes: processes that share only a folder.

use std::fs;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{PLAN, RUNS, files, folder, hoistway, merged, printed, text, wait_for_a_file};

/// Long enough that a shard still runs after its first run.
const LONG: &str = r#"
loads = ["load.fio"]
devices = ["intel-s3520-1600gb"]
schedulers = ["none", "bfq"]
seeds = 200
"#;

#[test]
fn four_shards_of_which_one_is_killed_and_started_again_make_the_table_of_one_process() {
    let folder = folder(LONG);
    let at = folder.path();
    let shard = |shard: &'static str| hoistway(at, &["sweep", "plan.toml", "--shard", shard, "-o", "array"]);
    // This shard runs alone at first, so that all files at its death are its own.
    let mut victim = shard("2/4").stdout(Stdio::null()).spawn().unwrap();
    wait_for_a_file(at, "array");
    victim.kill().unwrap();
    victim.wait().unwrap();
    let finished = files(at, "array");
    let others = ["1/4", "3/4", "4/4"].map(|number| shard(number).stdout(Stdio::piped()).spawn().unwrap());
    for other in others {
        assert!(text(other.wait_with_output().unwrap()).contains(": 0 were finished before, 100 ran"));
    }
    let again = text(shard("2/4").output().unwrap());
    let were_there: u64 = again.split_whitespace().nth(5).unwrap().parse().unwrap();
    assert!((1..100).contains(&were_there), "{again}");
    for (path, content) in finished {
        assert_eq!(fs::read(path).unwrap(), content, "what was finished stays as it was");
    }
    printed(at, &["sweep", "plan.toml", "-o", "alone"]);
    assert!(merged(at, "array") == merged(at, "alone"));
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let folder = folder(PLAN);
    let table = |threads: &str| {
        let arguments = ["sweep", "plan.toml", "-o", threads];
        text(hoistway(folder.path(), &arguments).env("RAYON_NUM_THREADS", threads).output().unwrap());
        merged(folder.path(), threads)
    };
    assert!(table("1") == table("3"));
}

#[test]
fn an_interrupted_sweep_keeps_finished_runs_and_resumes() {
    let folder = folder(LONG);
    let at = folder.path();
    let child = hoistway(at, &["sweep", "plan.toml", "-o", "runs"]).stdout(Stdio::piped()).spawn().unwrap();
    wait_for_a_file(at, "runs");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("are missing. Run the same command again to continue."), "{shown}");
    let number = |text: &str, place| text.split_whitespace().nth(place).unwrap().parse::<u64>().unwrap();
    let made = number(&shown, 6);
    let again = printed(at, &["sweep", "plan.toml", "-o", "runs"]);
    assert_eq!((number(&again, 2), number(&again, 6)), (made, 400 - made), "{again}");
}

#[test]
fn a_finished_sweep_runs_nothing_again() {
    let folder = folder(PLAN);
    let at = folder.path();
    let dry = ["sweep", "plan.toml", "-o", "runs", "--dry-run"];
    assert_eq!(printed(at, &dry), format!("{RUNS} runs. 0 are finished, {RUNS} are missing.\n"));
    assert!(!at.join("runs").exists(), "nothing is made to try");
    printed(at, &["sweep", "plan.toml", "-o", "runs"]);
    let before = files(at, "runs");
    let shown = printed(at, &["sweep", "plan.toml", "-o", "runs"]);
    assert!(shown.starts_with(&format!("{RUNS} runs: {RUNS} were finished before, 0 ran")), "{shown}");
    assert_eq!(files(at, "runs"), before);
    let shard = printed(at, &[&dry[..], &["--shard", "1/5"]].concat());
    assert_eq!(shard, format!("{RUNS} runs. Shard 1/5 has 5. 5 are finished, 0 are missing.\n"));
}
