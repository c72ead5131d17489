//! Invalid plans: one message that names the file and the field, and no file remains.

use std::fs;

use crate::support::{PLAN, folder, refused};

#[track_caller]
fn refuses(plan: &str, words: &[&str]) {
    let folder = folder(plan);
    let message = refused(folder.path(), &["sweep", "plan.toml", "-o", "runs"]);
    assert!(!folder.path().join("runs").exists(), "left something behind: {message}");
    for word in words {
        assert!(message.contains(word), "expected {word:?} in {message}");
    }
}

/// The plan with an additional line at its beginning.
fn with(line: &str) -> String {
    format!("{line}\n{PLAN}")
}

#[test]
fn plan_errors_are_reported_with_their_line() {
    refuses("loads = [", &["plan.toml:1: "]);
    refuses(&format!("{PLAN}\n[nonsense]\n"), &["plan.toml:10: unknown field `nonsense`", "`schedulers`"]);
    refuses(&PLAN.replace("seeds = 4", "seeds = \"many\""), &["plan.toml:5: ", "a number of seeds, or a list"]);
    refuses(&PLAN.replace("[1, 16]", "[1.5]"), &["plan.toml:8: ", "a whole number or a text"]);
    refuses(&PLAN.replace("\"null\"", "7"), &["plan.toml:3: ", "the name of a device"]);
}

#[test]
fn a_plan_is_refused_with_the_messages_of_a_comparison() {
    refuses(
        &PLAN.replace("\"null\"", "\"nulll\""),
        &["plan.toml: ", "no built-in device `nulll`", "did you mean \"null\"?"],
    );
    refuses(
        &PLAN.replace("\"none\"", "\"non\""),
        &["plan.toml: `schedulers` non: unknown scheduler (did you mean \"none\"?"],
    );
    refuses(
        &PLAN.replace("load.fio", "lod.fio"),
        &["plan.toml: lod.fio: cannot be read (expected a fio job file or a recording of block I/O)"],
    );
    refuses(&with("kernels = [\"six\"]"), &["plan.toml: ", "\"six\""]);
    refuses(&PLAN.replace("[1, 16]", "[1, \"many\"]"), &["plan.toml: `settings` mq-deadline.fifo_batch=many: "]);
    refuses(&PLAN.replace("fifo_batch", "fifo_bach"), &["`settings`", "mq-deadline has no tunable", "\"fifo_batch\"?"]);
    refuses(
        &format!("{PLAN}\n[base]\nruntime_ns = 0\n"),
        &["plan.toml: `base.runtime_ns` ", "between 1 us and 10 years"],
    );
}

#[test]
fn every_value_in_every_place_is_tried_before_anything_runs() {
    let plan = PLAN.replace("seeds = 4", "kernels = [\"7.2\", \"4.4\"]");
    refuses(&plan, &["`schedulers` mq-deadline: Linux 4.4 does not have it yet"]);
    let plan = format!("{PLAN}\n[settings.queue]\nnr_requests = [16, 4096]\n");
    refuses(&plan, &["plan.toml: `settings` nr_requests", "4096", "with none"]);
}

#[test]
fn an_invalid_load_is_refused_with_its_line() {
    let folder = folder(PLAN);
    fs::write(folder.path().join("load.fio"), "[r]\nfilename=/dev/sda\ndirect=1\nrw=sideways\n").unwrap();
    let message = refused(folder.path(), &["sweep", "plan.toml", "-o", "runs"]);
    assert!(message.contains("load.fio:4: ") && message.contains("\"sideways\""), "{message}");
}

#[test]
fn axes_and_multi_run_fields_are_refused_in_the_base() {
    for (field, expected) in [
        ("devices = [{ common = \"null\" }]", "`base.devices`: is an axis of the sweep (expected `devices`)"),
        ("schedulers = [\"bfq\"]", "(expected `schedulers`)"),
        ("repeats = 3", "(expected `seeds`)"),
        ("queue_files = [{ file = \"nr_requests\", text = \"4\" }]", "(expected `settings.queue`)"),
        ("baseline = \"none\"", "`base.baseline`: does not apply to a sweep, which stores the figures"),
        ("logs = true", "`base.logs`: does not apply to a sweep"),
        ("measured = \"lasting\"", "(expected `from_start`)"),
        ("load = { scenario = \"database\" }", "(expected one of it and `loads`)"),
    ] {
        refuses(&format!("{PLAN}\n[base]\n{field}\n"), &["plan.toml: ", expected]);
    }
}

#[test]
fn values_given_twice_or_not_at_all_are_refused() {
    refuses(&PLAN.replace("\"null\"", "\"intel-s3520-1600gb\""), &["`devices`", "is given twice"]);
    refuses(&PLAN.replace("seeds = 4", "seeds = [3, 3]"), &["`seeds` 3: is given twice"]);
    refuses(&PLAN.replace("[1, 16]", "[1, 1]"), &["`settings.mq-deadline.fifo_batch` 1: is given twice"]);
    refuses(&PLAN.replace("[1, 16]", "[]"), &["`settings.mq-deadline.fifo_batch`: expected at least one value"]);
    refuses(&PLAN.replace("seeds = 4", "seeds = 0"), &["`seeds` 0: expected at least one"]);
    refuses(
        &PLAN.replace("\"none\", \"mq-deadline\"", "\"none\""),
        &["mq-deadline is not among the compared schedulers"],
    );
    refuses("loads = [\"load.fio\"]\n", &["`schedulers`: each run has one scheduler"]);
    refuses("schedulers = [\"all\"]\n", &["`schedulers` all: each run has one scheduler, but this gives"]);
    refuses("loads = [\"guests\"]\nschedulers = [\"bfq\"]\n", &["`guest_schedulers` none: each run has one scheduler"]);
}

#[test]
fn a_space_that_explodes_says_how_many_runs_it_means() {
    refuses(
        &PLAN.replace("seeds = 4", "seeds = 400_000"),
        &["the space has 2400000 runs, more than 100000", "--limit 2400000"],
    );
    let values: Vec<String> = (1..=1000).map(|value| value.to_string()).collect();
    let many = format!("[{}]", values.join(", "));
    let files: Vec<String> = (0..8).map(|file| format!("file{file} = {many}")).collect();
    refuses(&format!("{PLAN}\n[settings.queue]\n{}\n", files.join("\n")), &["the space has more than 10^19 runs"]);
}

#[test]
fn a_table_needs_a_kind_and_a_data_set() {
    let folder = folder(PLAN);
    let at = folder.path();
    let message = refused(at, &["merge", ".", "-o", "table.txt"]);
    assert!(
        message.contains("-o table.txt: expected a name that ends in .csv (the Python package writes .parquet)"),
        "{message}"
    );
    assert!(refused(at, &["merge", ".", "-o", "t.csv"]).contains(".: holds no sweep"));
    assert!(refused(at, &["merge", "nowhere", "-o", "t.csv"]).contains("nowhere: cannot be read"));
}
