//! Folders that are incomplete or damaged, or belong to other versions or to several plans.

use std::fs;

use crate::support::{LOAD, PLAN, RUNS, files, folder, hoistway, merged, printed, refused};

#[test]
fn a_table_of_shards_that_are_missing_is_refused_with_their_numbers() {
    let folder = folder(PLAN);
    let at = folder.path();
    printed(at, &["sweep", "plan.toml", "--shard", "1/4", "-o", "runs"]);
    printed(at, &["sweep", "plan.toml", "--shard", "3/4", "-o", "runs"]);
    let message = refused(at, &["merge", "runs", "-o", "table.csv"]);
    assert!(message.contains("runs: 12 of 24 runs are missing, of shards 2/4 (6 runs), 4/4 (6 runs)"), "{message}");
    assert!(!at.join("table.csv").exists());
}

#[test]
fn a_damaged_file_is_named_and_left_alone() {
    let folder = folder(PLAN);
    let at = folder.path();
    printed(at, &["sweep", "plan.toml", "-o", "runs"]);
    let (path, content) = files(at, "runs").pop_first().unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    let mut flipped = content.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let head = content.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    for damaged in [&content[..content.len() - 1], &content[..head], &content[..10], b"", &flipped] {
        fs::write(&path, damaged).unwrap();
        for arguments in [["sweep", "plan.toml", "-o", "runs"], ["merge", "runs", "-o", "table.csv"]] {
            let message = refused(at, &arguments);
            assert!(message.contains(name) && message.contains("is damaged"), "{message}");
        }
        assert_eq!(fs::read(&path).unwrap(), damaged);
    }
    fs::remove_file(&path).unwrap();
    printed(at, &["sweep", "plan.toml", "-o", "runs"]);
    assert_eq!(merged(at, "runs").lines().count(), 1 + 7 * RUNS);
}

#[test]
fn a_fifo_in_place_of_a_run_file_is_refused() {
    let folder = folder(PLAN);
    let at = folder.path();
    printed(at, &["sweep", "plan.toml", "-o", "runs"]);
    for place in ["runs/runs/pipe.jsonl", "runs/sweeps/pipe.json"] {
        rustix::fs::mkfifoat(rustix::fs::CWD, at.join(place), rustix::fs::Mode::RWXU).unwrap();
        let message = refused(at, &["merge", "runs", "-o", "table.csv"]);
        assert!(message.contains(place) && message.contains("cannot be read: not a file"), "{message}");
        fs::remove_file(at.join(place)).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at.join(place)).unwrap();
        let message = refused(at, &["merge", "runs", "-o", "table.csv"]);
        assert!(message.contains(place) && message.contains("cannot be read: not a file"), "{message}");
        fs::remove_file(at.join(place)).unwrap();
    }
}

#[test]
fn a_damaged_sweep_is_named_and_left_alone() {
    let folder = folder(PLAN);
    let at = folder.path();
    printed(at, &["sweep", "plan.toml", "-o", "runs"]);
    let path = fs::read_dir(at.join("runs/sweeps")).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(&path).unwrap();
    let edited = text.replace("number_ios=1000", "number_ios=1001");
    fs::write(&path, &edited).unwrap();
    for arguments in [["sweep", "plan.toml", "-o", "runs"], ["merge", "runs", "-o", "table.csv"]] {
        assert!(refused(at, &arguments).contains("is damaged, its content does not match its name"));
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), edited);
}

#[test]
fn runs_of_another_version_are_named_left_alone_and_made_again() {
    let folder = folder(PLAN);
    let at = folder.path();
    printed(at, &["sweep", "plan.toml", "-o", "runs"]);
    for (path, content) in files(at, "runs") {
        // The version of a build from other sources.
        let version = format!("\"version\":\"{}\"", hoistway_experiment::sweep::VERSION);
        let text = String::from_utf8(content).unwrap().replacen(&version, &version.replacen("+", "+f", 1), 1);
        fs::write(path, text).unwrap();
    }
    let before = files(at, "runs");
    assert!(refused(at, &["merge", "runs", "-o", "table.csv"]).contains("24 of 24 runs are missing"));
    let output = hoistway(at, &["sweep", "plan.toml", "--shard", "1/2", "-o", "runs"]).output().unwrap();
    let complaints = String::from_utf8(output.stderr).unwrap();
    let named = |line: &str| line.ends_with("runs of another version of hoistway; ignored");
    assert_eq!(complaints.lines().filter(|line| named(line)).count(), before.len(), "{complaints}");
    assert!(String::from_utf8(output.stdout).unwrap().contains(": 0 were finished before, 12 ran"));
    let after = files(at, "runs");
    assert!(before.iter().all(|(path, content)| after[path] == *content));
}

#[test]
fn a_plan_with_more_seeds_makes_only_those() {
    let folder = folder(PLAN);
    let at = folder.path();
    printed(at, &["sweep", "plan.toml", "-o", "runs"]);
    fs::write(at.join("plan.toml"), PLAN.replace("seeds = 4", "seeds = 6")).unwrap();
    let shown = printed(at, &["sweep", "plan.toml", "-o", "runs"]);
    assert!(shown.starts_with("36 runs: 24 were finished before, 12 ran"), "{shown}");
    let message = refused(at, &["merge", "runs", "-o", "table.csv"]);
    let keys = message.split_once("holds 2 sweeps (expected one of ").unwrap().1;
    let keys: Vec<&str> = keys.split_once(" to be").unwrap().0.split(", ").collect();
    let tables = keys.iter().map(|key| {
        printed(at, &["merge", "runs", "-o", "table.csv", "--sweep", key]);
        fs::read_to_string(at.join("table.csv")).unwrap().lines().count()
    });
    let mut lines: Vec<usize> = tables.collect();
    lines.sort_unstable();
    assert_eq!(lines, [1 + 7 * 24, 1 + 7 * 36]);
}

#[test]
fn another_text_in_a_file_that_a_plan_names_is_another_experiment() {
    let folder = folder(PLAN);
    let at = folder.path();
    printed(at, &["sweep", "plan.toml", "-o", "runs"]);
    fs::write(at.join("load.fio"), LOAD.replace("iodepth=8", "iodepth=4")).unwrap();
    assert!(printed(at, &["sweep", "plan.toml", "-o", "runs"]).contains(" 0 were finished before, 24 ran"));
}
