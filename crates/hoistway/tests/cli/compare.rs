//! The output of `hoistway compare`.

use std::fs;

use hoistway_legacy::{ALL_SCHEDULERS, LEGACY_SCHEDULERS};
use serde_json::Value;
use tempfile::tempdir;

use crate::support::{hoistway, keys, printed, repeatable, succeeded};

/// A short load, with these additional options.
fn compare_json(options: &[&str]) -> String {
    printed(&[&["compare", "--runtime", "300ms", "--format", "json"], options].concat())
}

/// The run of a scheduler.
fn run_of<'a>(document: &'a Value, scheduler: &str) -> &'a Value {
    let runs = document["runs"].as_array().unwrap();
    runs.iter().find(|run| run["scheduler"] == scheduler).unwrap()
}

#[test]
fn without_arguments_it_compares_the_schedulers_of_the_kernel_and_says_on_which_device() {
    let table = printed(&["compare", "--repeat", "1"]);
    for scheduler in ALL_SCHEDULERS {
        let rows = table.lines().filter(|line| line.split_whitespace().next() == Some(scheduler));
        // One job writes, and the other also reads.
        let is_there = rows.count() >= 3;
        assert_eq!(is_there, !LEGACY_SCHEDULERS.contains(&scheduler), "{scheduler}:\n{table}");
    }
    let first = table.lines().next().unwrap();
    assert!(first.contains("on intel-s3520-1600gb, Linux 7.2"), "{first}");
    assert!(table.contains("No --device given; using intel-s3520-1600gb"), "{table}");
    assert!(!table.contains('\x1b'), "escape codes without a terminal");
}

#[test]
fn a_device_that_was_named_needs_no_notice() {
    let table = printed(&["compare", "--runtime", "50ms", "--device", "null", "--schedulers", "none"]);
    assert!(table.contains("on null,") && !table.contains("No --device"), "{table}");
}

#[test]
fn the_document_says_which_host_it_was() {
    let document: Value = serde_json::from_str(&compare_json(&["--cpus", "3"])).unwrap();
    assert_eq!(document["host"]["name"], "server");
    assert_eq!(document["cpus"], 3);
    let folder = tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let profile = "name = \"mine\"\ndescription = \"slow\"\ncpus = 2\nsubmit_ns = 9\ncomplete_ns = 9\n\
                   wake_ns = [1, 2]\nworker_ns = [3, 3]\n";
    fs::write(&file, profile).unwrap();
    let document: Value = serde_json::from_str(&compare_json(&["--host", file.to_str().unwrap()])).unwrap();
    assert_eq!((&document["host"]["name"], &document["cpus"]), (&Value::from("mine"), &Value::from(2)));
    assert_eq!(document["host"]["wake_ns"], Value::from(vec![1, 2]));
}

#[test]
fn the_json_document_has_all_its_keys_in_order() {
    let text = compare_json(&["--schedulers", "all", "--from-start"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    let expected = "format revision version command arguments job_file job_text device guests kernel cpus hw_queues nr_requests \
                    host seed seeds wall_seconds simulated_ios partial notices default_scheduler baseline focus \
                    smallest_effect doubts verdicts conclusion statistics runs";
    assert_eq!(keys(&document).join(" "), expected);
    assert_eq!(document["format"], "hoistway-results/2");
    assert_eq!(document["partial"], false);
    let expected = "scheduler front tunables variant repeat seed simulated_seconds simulated_ios wall_seconds cpu_us_per_io \
                    disks jobs";
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(|run| run["scheduler"].as_str().unwrap()).collect::<Vec<_>>(), ALL_SCHEDULERS);
    for run in runs {
        let is_legacy = LEGACY_SCHEDULERS.contains(&run["scheduler"].as_str().unwrap());
        assert_eq!(run["front"], if is_legacy { "legacy" } else { "mq" });
        let ran_as = if is_legacy { " ran_as" } else { "" };
        // Locks of a scheduler are counted, if there is one.
        let locks = if run["scheduler"] == "none" { "" } else { " locks" };
        let expected = expected.replace(" tunables", &format!("{ran_as} tunables"));
        assert_eq!(keys(run).join(" "), expected.replace(" jobs", &format!("{locks} jobs")));
        assert!(run["simulated_ios"].as_u64().unwrap() > 1000, "{run}");
    }
}

#[test]
fn a_file_receives_the_printed_output_and_no_other_file_is_left() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("results.json");
    let printed = compare_json(&[]);
    for _ in ["new", "there already"] {
        assert_eq!(compare_json(&["-o", file.to_str().unwrap()]), "");
        assert_eq!(repeatable(&fs::read_to_string(&file).unwrap()), repeatable(&printed));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_one_thread_and_on_two() {
    let runs = ["1", "2", "2"].map(|threads| {
        let arguments = ["compare", "--runtime", "300ms", "--format", "json", "--seed", "7"];
        let json = succeeded(hoistway().args(arguments).env("RAYON_NUM_THREADS", threads));
        repeatable(&json).to_string()
    });
    assert!(runs[0] == runs[1], "one thread and two differ");
    assert!(runs[1] == runs[2], "two runs differ");
}

#[test]
fn time_based_jobs_run_for_the_runtime_of_the_command_line() {
    let folder = tempdir().unwrap();
    let text = "[a]\nfilename=/dev/sda\ndirect=1\nrw=read\nsize=64k\ntime_based\n";
    fs::write(folder.path().join("load.fio"), text).unwrap();
    let arguments = ["compare", "load.fio", "--schedulers", "none", "--repeat", "1", "--format", "json"];
    let command = |runtime: &[&str]| succeeded(hoistway().current_dir(folder.path()).args(arguments).args(runtime));
    let seconds = |json: &str| {
        let document: Value = serde_json::from_str(json).unwrap();
        (document["runs"][0]["simulated_seconds"].as_f64().unwrap(), document["notices"].to_string())
    };
    let (passing, notices) = seconds(&command(&[]));
    assert!(passing < 0.05 && notices.contains("time_based has no effect without runtime"), "{passing} s: {notices}");
    let (going_on, notices) = seconds(&command(&["--runtime", "300ms"]));
    assert!(going_on >= 0.3 && !notices.contains("time_based"), "{going_on} s: {notices}");
}

#[test]
fn more_threads_than_a_host_can_have_are_refused() {
    let output = hoistway().arg("compare").env("RAYON_NUM_THREADS", "999999999").output().unwrap();
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true));
    let message = crate::interrupts::complaints(&output.stderr);
    assert!(message.contains("RAYON_NUM_THREADS=999999999: expected"), "{message}");
}

#[test]
fn another_seed_gives_other_figures() {
    let [one, two] = ["1", "2"].map(|seed| repeatable(&compare_json(&["--seed", seed, "--schedulers", "all"])));
    for scheduler in ALL_SCHEDULERS {
        assert_ne!(run_of(&one, scheduler)["jobs"], run_of(&two, scheduler)["jobs"], "{scheduler}");
    }
}

#[test]
fn a_tunable_changes_the_run_of_its_scheduler_and_no_other() {
    let all = ["--schedulers", "all"];
    let default = repeatable(&compare_json(&all));
    let set = repeatable(&compare_json(&[&all[..], &["--set", "mq-deadline.fifo_batch=1"]].concat()));
    assert_eq!(run_of(&set, "mq-deadline")["tunables"].to_string(), r#"{"fifo_batch":1}"#);
    for scheduler in ALL_SCHEDULERS {
        let same = run_of(&default, scheduler)["jobs"] == run_of(&set, scheduler)["jobs"];
        assert_eq!(same, scheduler != "mq-deadline", "{scheduler}");
    }
}

#[test]
fn a_value_that_the_kernel_takes_for_another_gets_a_notice() {
    let table = printed(&["compare", "--runtime", "50ms", "--set", "mq-deadline.fifo_batch=-5"]);
    assert!(table.contains("--set mq-deadline.fifo_batch=-5: the kernel reads this as 0."), "{table}");
}

#[test]
fn schedulers_that_the_kernel_no_longer_has_are_named_and_run_as_in_the_last_one_that_had_them() {
    let table = |kernel| printed(&["compare", "--runtime", "50ms", "--kernel", kernel, "--schedulers", "all"]);
    let notice = "noop, deadline, cfq: the legacy single queue, which Linux 6.18 no longer has; run as in 4.20";
    assert!(table("6.18").contains(notice) && table("6.18").contains("deadline (legacy)"));
    assert!(!table("4.19").contains("no longer has"));
    let figures = |kernel| {
        let json = compare_json(&["--kernel", kernel, "--schedulers", "cfq"]);
        run_of(&repeatable(&json), "cfq")["jobs"].clone()
    };
    assert_eq!(figures("6.18"), figures("4.19"));
}

#[test]
fn a_job_file_may_come_from_standard_input() {
    let job = "[a]\nfilename=/dev/sda\ndirect=1\nrw=randread\ntime_based\nruntime=1\n";
    let arguments = ["compare", "-", "--runtime", "50ms", "--schedulers", "none"];
    let table = succeeded(hoistway().args(arguments).write_stdin(job));
    assert!(table.contains("\na, 1 process\n"), "{table}");
}

#[test]
fn schedulers_are_compared_in_the_order_given_and_once() {
    let json = compare_json(&["--schedulers", "mq-deadline,none,mq-deadline"]);
    let document: Value = serde_json::from_str(&json).unwrap();
    let names: Vec<_> = document["runs"].as_array().unwrap().iter().map(|run| run["scheduler"].clone()).collect();
    assert_eq!(names, ["mq-deadline", "none"]);
}

#[test]
fn runs_that_could_last_longer_than_a_counter_holds_are_stopped_like_others() {
    let folder = tempdir().unwrap();
    let job = folder.path().join("two.fio");
    let phase = "filename=/dev/sda\ndirect=1\nrw=randread\ntime_based\nruntime=3650d\n";
    fs::write(&job, format!("[a]\n{phase}[b]\nstonewall\n{phase}")).unwrap();
    let job = job.to_str().unwrap();
    let table = printed(&["compare", job, "--runtime", "20ms", "--schedulers", "none"]);
    assert!(table.contains("\nb, 1 process\n"), "{table}");
}

#[test]
fn files_of_the_queue_can_be_written_for_a_comparison() {
    let with = |options: &[&str]| -> Value { serde_json::from_str(&compare_json(options)).unwrap() };
    let few = with(&["--queue", "nr_requests=4", "--queue", "nomerges=2"]);
    assert_eq!(few["nr_requests"], 4);
    let latency = |document: &Value| run_of(document, "mq-deadline")["jobs"][0]["operations"][0]["iops"].clone();
    assert_ne!(latency(&few), latency(&with(&[])), "four requests at once are fewer than 64");
    let notices = with(&["--queue", "nomerges=7"])["notices"].to_string();
    assert!(notices.contains(r#"--queue nomerges=7: the kernel reads this as \"1\""#), "{notices}");
}

#[test]
fn every_built_in_host_is_in_the_help_and_can_be_chosen() {
    let help = printed(&["compare", "--help"]);
    let names: Vec<_> = hoistway_sim::Host::builtin_names().collect();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains(&format!("a built-in profile ({})", names.join(", "))), "{help}");
    for name in names {
        let document: Value = serde_json::from_str(&compare_json(&["--host", name, "--schedulers", "none"])).unwrap();
        assert_eq!(document["host"]["name"], name);
    }
}

#[test]
fn cpu_time_per_io_is_the_hosts_charge_and_appears_only_in_documents() {
    let load = ["--schedulers", "none", "--device", "null"];
    let document: Value = serde_json::from_str(&compare_json(&load)).unwrap();
    let run = &document["runs"][0];
    let (of_run, of_job) = (run["cpu_us_per_io"].as_f64().unwrap(), run["jobs"][0]["cpu_us_per_io"].as_f64().unwrap());
    // On the host `server` these are 1.60 us and 1.02 us, and 5.08 us more if each I/O is a turn of its own.
    assert!((2.62..7.71).contains(&of_run) && (2.62..7.71).contains(&of_job), "{of_run} {of_job}");
    let table = printed(&[&["compare", "--runtime", "300ms", "--repeat", "2"], &load[..]].concat());
    assert!(!table.contains("CPU\n") && !table.contains("per I/O"), "{table}");
    let document: Value = serde_json::from_str(&compare_json(&[&load[..], &["--host", "instant"]].concat())).unwrap();
    assert_eq!(document["runs"][0]["cpu_us_per_io"], 0.0);
}
