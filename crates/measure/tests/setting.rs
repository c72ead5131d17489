//! Settings: their order, names and texts.

use hoistway_measure::Setting;

fn setting() -> Setting {
    let tuned = Setting::untouched("mq-deadline").with("iosched/fifo_batch", "4").with("nomerges", "2");
    tuned.with("iosched/read_expire", "90").with("nr_requests", "64")
}

#[test]
fn requests_are_written_first_and_tunables_last() {
    let files: Vec<String> = setting().writes.into_iter().map(|(file, _)| file).collect();
    assert_eq!(files, ["nr_requests", "nomerges", "iosched/fifo_batch", "iosched/read_expire"]);
}

#[test]
fn a_label_has_the_tunables_first_by_their_plain_names() {
    assert_eq!(setting().to_string(), "mq-deadline fifo_batch=4 read_expire=90 nr_requests=64 nomerges=2");
    assert_eq!(Setting::untouched("bfq").to_string(), "bfq");
}

#[test]
fn a_file_has_one_text_and_the_last_one_counts() {
    let again = setting().with("iosched/fifo_batch", "8");
    assert_eq!((again.text("iosched/fifo_batch"), again.writes.len()), (Some("8"), 4));
    assert_eq!((again.text("fifo_batch"), Setting::untouched("bfq").is_kernel_default()), (None, true));
}

#[test]
fn a_stored_setting_names_tunables_and_other_files_separately() {
    let stored = r#"{"scheduler":"mq-deadline","tunables":{"fifo_batch":"4","read_expire":"90"},"queue_files":{"nomerges":"2","nr_requests":"64"}}"#;
    let read: Setting = serde_json::from_str(stored).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), stored);
    assert_eq!(serde_json::to_string(&setting()).unwrap(), stored);
    assert_eq!(serde_json::to_string(&Setting::untouched("none")).unwrap(), r#"{"scheduler":"none"}"#);
    let unknown = serde_json::from_str::<Setting>(r#"{"scheduler":"none","tunable":{}}"#).unwrap_err();
    assert!(unknown.to_string().contains("unknown field `tunable`"), "{unknown}");
}

#[test]
fn settings_are_ordered_by_scheduler_tunables_and_files() {
    let plain = Setting::untouched("mq-deadline").with("iosched/fifo_batch", "4");
    let (more, requests) = (plain.clone().with("iosched/writes_starved", "1"), plain.clone().with("nr_requests", "8"));
    let mut all = [more.clone(), requests.clone(), plain.clone(), Setting::untouched("none")];
    all.sort();
    assert_eq!(all, [plain, requests, more, Setting::untouched("none")]);
}

#[test]
fn settings_of_cgroups_come_last_and_are_neither_tunables_nor_files_of_the_queue() {
    let [cost, target] = ["io.cost.qos.max", "io.latency.pods/db.target"];
    let setting = Setting::untouched("bfq").with(cost, "50").with("iosched/slice_idle", "0").with(target, "900");
    let setting = setting.with("nr_requests", "64").with("io_timeout", "5");
    let files: Vec<&str> = setting.writes.iter().map(|(file, _)| file.as_str()).collect();
    assert_eq!(files, ["nr_requests", "io_timeout", "iosched/slice_idle", cost, target]);
    assert_eq!(setting.cgroup_files().collect::<Vec<_>>(), [(cost, "50"), (target, "900")]);
    assert_eq!((setting.queue_files().count(), setting.tunables().count()), (2, 1));
    assert_ne!(setting, setting.clone().with(cost, "60"));
    assert_eq!(setting.cmp(&setting.clone().with(cost, "60")), std::cmp::Ordering::Less);
    let text = serde_json::to_string(&setting).unwrap();
    assert!(text.contains("\"cgroup_files\":{\"io.cost.qos.max\":\"50\""), "{text}");
    let read: Setting = serde_json::from_str(&text).unwrap();
    assert_eq!(read.cgroup_files().collect::<Vec<_>>(), [(cost, "50"), (target, "900")]);
    assert!(setting.to_string().ends_with(" io.cost.qos.max=50 io.latency.pods/db.target=900"), "{setting}");
}
