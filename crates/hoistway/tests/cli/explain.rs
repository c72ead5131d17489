//! The output of `hoistway explain`.

use hoistway_blk::bio::Limits;
use hoistway_blk::ground::{Kernel, Local, Sector};
use hoistway_blk::queue::{Queue, QueueConfig, SCHEDULERS};
use hoistway_blk::request::Merging;
use serde_json::Value;
use tempfile::tempdir;

use crate::support::{keys, printed, refused};

fn explained(name: &str, kernel: &str) -> Value {
    serde_json::from_str(&printed(&["explain", name, "--kernel", kernel, "--format", "json"])).unwrap()
}

/// A flash drive with a queue of 1024 commands, and the scheduler's defaults.
fn queue(scheduler: &str, kernel: Kernel) -> Queue<Local> {
    let limits = Limits { capacity: Sector(1 << 30), ..Limits::new(1, 8, 65_535, 2560, 128) };
    let config = QueueConfig {
        kernel,
        cpus: 1,
        hw_queues: 1,
        queue_depth: 1024,
        nr_requests: None,
        merging: Merging::Full,
        limits,
        ..QueueConfig::new(kernel)
    };
    Queue::new(&config, scheduler).unwrap()
}

#[test]
fn each_tunable_of_each_kernel_is_explained_with_its_real_default_and_range() {
    for scheduler in SCHEDULERS {
        for kernel in Kernel::EXAMPLES.into_iter().filter(|&kernel| kernel >= Kernel::V4_12) {
            let queue = queue(scheduler, kernel);
            let document = explained(scheduler, &kernel.to_string());
            let stated = document["tunables"].as_array().unwrap();
            let real = queue.elevator(|elevator| elevator.tunables());
            assert_eq!(stated.len(), real.len(), "{scheduler} in {kernel}");
            for (stated, real) in stated.iter().zip(real) {
                assert_eq!(stated["name"], format!("{scheduler}.{}", real.name));
                let defaults = stated["defaults"].as_array().unwrap();
                let holds = |default: &&Value| {
                    ["any", "not rotating", "with nr_requests 256"].contains(&default["device"].as_str().unwrap())
                };
                let default = defaults.iter().find(holds).unwrap()["value"].as_i64().map(i128::from);
                assert_eq!(default, queue.elevator(|elevator| elevator.tunable(real.name)).ok(), "{stated}");
                assert_eq!(stated["min"].as_i64().map(i128::from), Some(real.min), "{stated}");
                assert_eq!(stated["unit"], real.unit.to_string());
            }
        }
    }
}

#[test]
fn explained_writes_match_what_the_policy_does() {
    let mut tried = 0;
    for scheduler in SCHEDULERS {
        for tunable in explained(scheduler, "6.18")["tunables"].as_array().unwrap() {
            let name = tunable["name"].as_str().unwrap().split_once('.').unwrap().1;
            for example in tunable["examples"].as_array().unwrap() {
                let queue = queue(scheduler, Kernel::V6_18);
                let written = example["written"].as_str().unwrap();
                let now = Kernel::V6_18.generation().hz.now(hoistway_blk::ground::Instant::ZERO);
                let outcome = queue.set_tunable(now, name, written, &mut hoistway_blk::drive::Effects::new());
                assert_eq!(outcome.is_ok(), example["error"].is_null(), "{name} {example}");
                if outcome.is_ok() {
                    let shown = queue.elevator(|elevator| elevator.tunable(name)).ok();
                    assert_eq!(example["shown"].as_i64().map(i128::from), shown, "{name} {example}");
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 100);
}

#[test]
fn everything_that_is_explained_reads_well() {
    let mut names: Vec<String> = ["none", "mq-deadline", "kyber", "bfq", "noop", "deadline", "cfq", "queue"]
        .into_iter()
        .chain(["io.cost", "io.latency"])
        .map(str::to_owned)
        .collect();
    for name in names.clone() {
        let document: Value = serde_json::from_str(&printed(&["explain", &name, "--format", "json"])).unwrap();
        assert_eq!(document["format"], "hoistway-explanation/1");
        let tunables = document["tunables"].as_array().into_iter().flatten();
        names.extend(tunables.map(|tunable| tunable["name"].as_str().unwrap().to_owned()));
        let files = document["files"].as_array().into_iter().flatten();
        names.extend(files.map(|file| file.as_str().unwrap().to_owned()));
    }
    assert_eq!(names.len(), 10 + 40 + 9);
    for name in names {
        let text = printed(&["explain", &name]);
        assert!(text.starts_with(&format!("{name}: ")) || name == "queue", "{text}");
        for line in text.lines() {
            // A command is not wrapped, and a table has its own width.
            let is_prose = line.contains(' ') && !line.contains("/sys/") && !line.starts_with(&name) && name != "queue";
            assert!(line.chars().count() <= 80 || !is_prose, "{name}: {line}");
            assert_eq!(line, line.trim_end(), "{name}");
        }
    }
}

#[test]
fn a_tunable_says_how_to_set_it_and_how_kernels_differ() {
    let text = printed(&["explain", "mq-deadline.read_expire"]);
    for words in [
        "Default:  500\n",
        "7 -> 8",
        "12abc -> EINVAL",
        "4 ms each at 250 Hz",
        "hoistway compare my-load.fio --set mq-deadline.read_expire=500",
        "echo 500 > /sys/block/DEV/queue/iosched/read_expire",
        "4.12, 4.19, 5.10: writes are read differently.",
    ] {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
    let other = printed(&["explain", "mq-deadline.read_expire", "--kernel", "5.10"]);
    assert!(other.contains("12abc -> 12") && other.contains("--kernel 5.10 --set"), "{other}");
}

#[test]
fn explain_says_when_the_kernel_lacks_the_tunable_or_scheduler() {
    let text = printed(&["explain", "mq-deadline.prio_aging_expire", "--kernel", "4.12"]);
    assert!(text.contains("Linux 4.12 does not have it; shown as in Linux 7.2."), "{text}");
    let document = explained("cfq", "6.18");
    assert_eq!((&document["kernel"], &document["kernel_has_it"]), (&"4.19".into(), &false.into()));
    assert_eq!(explained("cfq.slice_idle", "4.4")["kernel_has_it"], true);
    assert_eq!(explained("cfq.slice_idle_us", "4.4")["kernel_has_it"], false);
}

#[test]
fn the_documents_have_all_their_keys_in_order() {
    let tunable = "format kind kernel kernel_has_it name line unit defaults default_note min max kernels what higher \
                   lower when grammar ticks_hz examples set_here set_there versions";
    assert_eq!(keys(&explained("kyber.read_lat_nsec", "6.18")).join(" "), tunable);
    let scheduler = "format kind name title kernel kernel_has_it kernels linux front promises costs ioprio \
                     cgroup_weights default_for what when versions tunables";
    assert_eq!(keys(&explained("kyber", "6.18")).join(" "), scheduler);
    assert_eq!(explained("kyber.read_lat_nsec", "6.18")["max"], u64::MAX);
}

#[test]
fn controllers_of_cgroups_are_explained_with_their_options() {
    for (name, option) in [("io.cost", "--io-cost"), ("io.weight", "--io-cost"), ("io.latency", "--io-latency")] {
        let text = printed(&["explain", name]).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(option) && text.contains("was compared with one kernel"), "{name}");
    }
}

#[test]
fn a_tunable_without_its_scheduler_is_that_of_each_that_has_it() {
    let both = printed(&["explain", "slice_idle"]);
    assert_eq!(both, [printed(&["explain", "bfq.slice_idle"]), printed(&["explain", "cfq.slice_idle"])].join("\n"));
    let document: Value = serde_json::from_str(&printed(&["explain", "slice_idle", "--format", "json"])).unwrap();
    assert_eq!(document[0], explained("bfq.slice_idle", "7.2"));
    assert_eq!(document.as_array().unwrap().len(), 2);
    assert!(explained("prio_aging_expire", "6.18").is_object(), "of one only");
}

#[test]
fn unknown_names_get_the_nearest_ones() {
    let folder = tempdir().unwrap();
    for (name, near) in [
        ("bqf", "did you mean bfq?"),
        ("BFQ", "did you mean bfq?"),
        ("slice_idel", "did you mean bfq.slice_idle, cfq.slice_idle?"),
        ("bfq.fifo_batch", "did you mean mq-deadline.fifo_batch, deadline.fifo_batch?"),
        ("mq-deadline.fifo_bitch", "did you mean mq-deadline.fifo_batch?"),
        ("queue.nr_request", "did you mean queue.nr_requests?"),
        ("wbt", "did you mean queue.wbt_lat_usec?"),
        (
            "",
            "(expected none, mq-deadline, kyber, bfq, noop, deadline, cfq, k2, adios, mqfq, d2fq, blk-switch, tabs, vfair, cffq, SCHEDULER.TUNABLE, or queue.FILE with",
        ),
        (
            "xyzzy",
            "(expected none, mq-deadline, kyber, bfq, noop, deadline, cfq, k2, adios, mqfq, d2fq, blk-switch, tabs, vfair, cffq, SCHEDULER.TUNABLE, or queue.FILE with",
        ),
    ] {
        refused(folder.path(), &["explain", name], &[&format!("\"{name}\": unknown name"), near]);
    }
    refused(folder.path(), &["explain"], &["required arguments", "\n  <NAME>"]);
    refused(folder.path(), &["explain", "bfq", "--kernel", "2.6"], &["unknown kernel \"2.6\""]);
    refused(folder.path(), &["explain", "bfq", "--format", "table"], &["'table'", "text, json"]);
}

#[test]
fn a_tunable_that_no_kernel_has_is_explained_without_a_kernel() {
    let text = printed(&["explain", "k2.max_inflight"]);
    for part in [
        "Unit:",
        "requests",
        "Default:",
        "32",
        "1 to 65535",
        "none (RTSS 2019)",
        "How k2 parses writes",
        "0 -> ERANGE",
        "on a kernel: no release has k2",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(!text.contains("silently clamped") && !text.contains("/sys/block"), "{text}");
    for scheduler in ["k2", "adios", "mqfq", "d2fq", "blk-switch", "tabs", "vfair", "cffq"] {
        assert!(printed(&["explain", scheduler]).contains("unverified"), "{scheduler}");
    }
    let document: Value = serde_json::from_str(&printed(&["explain", "k2.merge", "--format", "json"])).unwrap();
    assert_eq!((&document["kernel_has_it"], &document["kernels"]), (&false.into(), &Value::Array(Vec::new())));
}
