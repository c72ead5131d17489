//! Advice: commands follow from the verdict, and each sentence around them appears if and only if it is true.

use crate::support;
use crate::support::place;

use hoistway_answer::advice::{advice, check_name};
use hoistway_answer::document::{Advice, Front, Run, RunLabel};
use hoistway_answer::verdict::verdicts;
use hoistway_answer::{Analysis, ResultsDocument};
use hoistway_measure::Direction;
use hoistway_render::text::{Style, markdown, table};
use serde_json::{Map, Value, json};

use place::place;
use support::{direction, document, run};

/// A scheduler's runs: three, with this many I/Os a second.
fn runs(scheduler: &str, iops: f64, change: impl Fn(&mut Run)) -> Vec<Run> {
    let one = |(repeat, factor): (u32, f64)| {
        let iops = iops * factor;
        let mut run = run(scheduler, vec![("a", 1, vec![direction(Direction::Read, iops, 1e9 / iops)])]);
        run.repeat = repeat;
        change(&mut run);
        run
    };
    [(0, 1.0), (1, 1.01), (2, 0.995)].into_iter().map(one).collect()
}

/// The default and another scheduler that is twice as fast.
fn two(default: &str, better: &str) -> ResultsDocument {
    let mut document = document([runs(default, 1000.0, |_| {}), runs(better, 2000.0, |_| {})].concat());
    document.default_scheduler = Some(default.to_owned());
    document
}

/// The default and another scheduler that is half as fast.
fn keep(default: &str, worse: &str) -> ResultsDocument {
    let mut document = document([runs(default, 1000.0, |_| {}), runs(worse, 500.0, |_| {})].concat());
    document.default_scheduler = Some(default.to_owned());
    document
}

/// The document with its verdicts and the advice for a device.
fn advised(mut document: ResultsDocument, device: &str) -> ResultsDocument {
    document.verdicts = verdicts(&Analysis::of(&document));
    let names: Vec<String> = Some(device.to_owned()).into_iter().filter(|name| !name.is_empty()).collect();
    document.advice = advice(&Analysis::of(&document), &names).unwrap();
    document
}

fn only(document: &ResultsDocument) -> &Advice {
    let [advice] = &document.advice[..] else { panic!("{:?}", document.advice) };
    advice
}

/// The advice below the table.
fn shown_text(document: &ResultsDocument) -> String {
    let table = table(&Analysis::of(document), &Style::default());
    table.split_once("\nCommands for ").map(|(_, text)| text.to_owned()).unwrap_or_default()
}

/// The advice in one line.
fn line(document: &ResultsDocument) -> String {
    shown_text(document).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn tunables(of: &[(&str, i64)]) -> Map<String, Value> {
    of.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect()
}

#[test]
fn a_change_comes_with_the_file_to_write_a_rule_and_how_to_undo_both() {
    let document = advised(two("mq-deadline", "none"), "sda");
    let expected = r#"sda:
  Until the next boot, as root:
    echo none > /sys/block/sda/queue/scheduler
  To undo:
    echo mq-deadline > /sys/block/sda/queue/scheduler
  At every boot: /etc/udev/rules.d/90-hoistway-sda.rules with
    ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="sda", ATTR{queue/scheduler}="none"
  which takes effect without a reboot after
    udevadm control --reload
    udevadm trigger --action=change --subsystem-match=block --sysname-match=sda
  To remove the rule (and undo as above):
    rm /etc/udev/rules.d/90-hoistway-sda.rules
    udevadm control --reload
  To check:
    cat /sys/block/sda/queue/scheduler    # [none]
  sda may be another disk after the next boot. To bind the rule to this one put
  ENV{ID_SERIAL}=="..." for KERNEL=="sda"; udevadm info --query=property /dev/sda shows the value.
"#;
    assert_eq!(shown_text(&document), expected);
    assert!(markdown(&Analysis::of(&document)).contains(&format!("\n```\nCommands for {expected}```\n")));
    let read = ResultsDocument::from_json(&hoistway_render::text::json(&document)).unwrap();
    assert_eq!(read.advice, document.advice);
}

#[test]
fn only_unstable_device_names_get_a_warning() {
    let is_told = |device| line(&advised(two("mq-deadline", "none"), device)).contains("may be another disk");
    assert_eq!(["sda", "sdb3", "vda", "mmcblk0", "nvme0n1"].map(is_told), [true, true, false, false, false]);
}

#[test]
fn settings_are_written_behind_the_scheduler_and_undone_with_it() {
    let mut document = two("mq-deadline", "none");
    let set = |run: &mut Run| {
        run.tunables = tunables(&[("slice_idle", 0), ("low_latency", 0)]);
        run.queue_files = tunables(&[("nr_requests", 64)]);
        run.variant = RunLabel::new("bfq", tunables(&[("nr_requests", 64)]));
    };
    document.runs.extend(runs("bfq", 5000.0, set));
    let advice = only(&advised(document, "vda")).clone();
    assert_eq!(
        advice.now,
        [
            "echo bfq > /sys/block/vda/queue/scheduler",
            "echo 64 > /sys/block/vda/queue/nr_requests",
            "echo 0 > /sys/block/vda/queue/iosched/slice_idle",
            "echo 0 > /sys/block/vda/queue/iosched/low_latency",
        ]
    );
    assert_eq!(advice.back, ["echo mq-deadline > /sys/block/vda/queue/scheduler"], "it begins with its defaults");
    let rule = advice.rule.unwrap();
    assert_eq!(rule.lines.len(), 4);
    assert!(rule.lines[2].ends_with(r#"KERNEL=="vda", ATTR{queue/iosched/slice_idle}="0""#), "{rule:?}");
    let checks: Vec<_> = advice.check.iter().map(|check| check.expected.as_str()).collect();
    assert_eq!(checks, ["[bfq]", "64", "0", "0"]);
}

/// One scheduler with a setting and without it.
fn settings_of_one(name: &str, before: Option<i64>, after: i64) -> ResultsDocument {
    let with = |value: Option<i64>| {
        move |run: &mut Run| {
            let set: Vec<_> = value.map(|value| (name, value)).into_iter().collect();
            run.variant = RunLabel::new("mq-deadline", tunables(&set));
            match name.strip_prefix("queue.") {
                Some(file) => {
                    run.queue_files = tunables(&value.map(|value| (file, value)).into_iter().collect::<Vec<_>>())
                }
                None => run.tunables = tunables(&set),
            }
        }
    };
    let both = [runs("mq-deadline", 1000.0, with(before)), runs("mq-deadline", 2000.0, with(Some(after)))];
    let mut document = document(both.concat());
    document.default_scheduler = Some("mq-deadline".to_owned());
    document
}

#[test]
fn a_default_setting_is_undone_by_its_old_value_or_a_scheduler_restart() {
    let of = |name, before| only(&advised(settings_of_one(name, before, 1), "vda")).clone();
    let advice = of("fifo_batch", Some(16));
    assert_eq!(advice.now, ["echo 1 > /sys/block/vda/queue/iosched/fifo_batch"], "the scheduler is there");
    assert_eq!(advice.back, ["echo 16 > /sys/block/vda/queue/iosched/fifo_batch"]);
    for name in ["fifo_batch", "queue.nr_requests"] {
        let [away, again] = ["none", "mq-deadline"].map(|name| format!("echo {name} > /sys/block/vda/queue/scheduler"));
        assert_eq!(of(name, None).back, [away, again], "{name}");
    }
    assert_eq!(of("queue.wbt_lat_usec", None).back, ["echo -1 > /sys/block/vda/queue/wbt_lat_usec"]);
    let unknown = advised(settings_of_one("queue.nomerges", None, 2), "vda");
    assert!(line(&unknown).contains("Note the value of /sys/block/vda/queue/nomerges first, to restore it later."));
    assert!(!line(&advised(settings_of_one("queue.nomerges", Some(0), 2), "vda")).contains("Note the value of"));
}

#[test]
fn to_keep_the_default_takes_nothing_but_a_look() {
    let document = advised(keep("none", "kyber"), "vda");
    let advice = only(&document);
    assert!(advice.now.is_empty() && advice.back.is_empty() && advice.rule.is_none());
    assert_eq!(line(&document), "vda: Nothing: keep none. To check: cat /sys/block/vda/queue/scheduler # [none]");
}

#[test]
fn single_runs_and_single_schedulers_are_advised_nothing() {
    let mut one = two("none", "kyber");
    one.runs.retain(|run| run.repeat == 0);
    assert_eq!(line(&advised(one, "vda")), "vda: Nothing yet: a single run cannot show what is noise. Use --repeat 3.");
    let alone = document(runs("none", 1000.0, |_| {}));
    assert!(line(&advised(alone, "vda")).contains("Nothing: only one scheduler ran"));
    let partial = ResultsDocument { partial: true, ..two("none", "kyber") };
    assert!(advised(partial, "vda").advice.is_empty(), "it was cut short");
}

#[test]
fn stacked_devices_and_those_without_scheduler_get_only_the_reason() {
    for (device, reason) in [
        (
            "dm-0",
            "device-mapper device, as LVM and dm-crypt create them, and the schedulers of the disks below it apply. lsblk -s \
             /dev/dm-0",
        ),
        ("/dev/mapper/vg-home", "lsblk -s /dev/mapper/vg-home shows them"),
        ("mpatha", "several paths to one disk"),
        ("md127", "an md RAID"),
        ("bcache0", "stacked on other devices"),
        ("zram0", "in memory and has no scheduler"),
        ("loop3", "the scheduler of the disk that holds its file applies (losetup /dev/loop3"),
    ] {
        let document = advised(two("mq-deadline", "bfq"), device);
        let advice = only(&document);
        assert!(advice.now.is_empty() && advice.rule.is_none() && advice.check.is_empty(), "{advice:?}");
        assert!(line(&document).contains(reason), "{device}: {}", line(&document));
        assert!(!line(&advised(two("mq-deadline", "bfq"), "sda")).contains(reason));
    }
}

#[test]
fn a_partition_is_taken_for_its_disk_and_that_is_said() {
    let document = advised(two("mq-deadline", "bfq"), "/dev/sda1");
    assert_eq!(only(&document).device, "sda");
    assert!(line(&document).contains("sda1 is a partition; a scheduler belongs to the whole disk: sda."));
    assert!(!line(&advised(two("mq-deadline", "bfq"), "sda")).contains("partition"));
}

#[test]
fn only_advice_for_nvme_notes_that_none_is_the_default() {
    let is_default = "Linux gives NVMe drives none by default: check the current scheduler first (below).";
    assert!(line(&advised(two("mq-deadline", "none"), "nvme0n1")).contains(is_default));
    assert!(!line(&advised(two("mq-deadline", "none"), "sda")).contains(is_default));
    assert!(!line(&advised(two("none", "kyber"), "nvme0n1")).contains("Linux gives NVMe"));
    let other = "the results above are differences from mq-deadline: for nvme0n1 compare with --baseline none.";
    let document = advised(two("mq-deadline", "bfq"), "nvme0n1");
    assert!(line(&document).contains(other), "{}", line(&document));
    assert_eq!(only(&document).back, ["echo none > /sys/block/nvme0n1/queue/scheduler"]);
    let text = line(&advised(keep("mq-deadline", "bfq"), "nvme0n1p2"));
    assert!(text.contains(other) && !text.contains("keep mq-deadline"), "{text}");
}

#[test]
fn advice_for_schedulers_built_as_modules_includes_modprobe() {
    let is_told = |better, module: &str| {
        line(&advised(two("mq-deadline", better), "vda")).contains(&format!("try modprobe {module};"))
    };
    assert!(is_told("bfq", "bfq") && is_told("kyber", "kyber-iosched"));
    assert!(!line(&advised(two("mq-deadline", "none"), "vda")).contains("modprobe"));
    assert!(!line(&advised(two("bfq", "mq-deadline"), "vda")).contains("modprobe"));
}

#[test]
fn a_scheduler_that_the_kernel_lacks_is_not_to_be_written() {
    let mut lacking = two("noop", "cfq");
    lacking.runs.iter_mut().for_each(|run| run.ran_as = Some("4.20".to_owned()));
    let document = advised(lacking, "sda");
    assert!(line(&document).contains("Nothing to change: Linux 6.18 does not have cfq."), "{}", line(&document));
    assert!(only(&document).now.is_empty());
    assert!(!line(&advised(two("mq-deadline", "bfq"), "sda")).contains("does not have"));
}

/// A document of an old kernel with both queue kinds.
fn on_4_19(default: (&str, Front), better: (&str, Front)) -> ResultsDocument {
    let with = |front| move |run: &mut Run| run.front = front;
    let mut document =
        document([runs(default.0, 1000.0, with(default.1)), runs(better.0, 2000.0, with(better.1))].concat());
    document.kernel = "4.19.0-27-amd64".to_owned();
    document.default_scheduler = Some(default.0.to_owned());
    document
}

#[test]
fn between_the_two_queues_of_old_kernels_there_is_a_boot() {
    let (cfq, bfq, deadline) = (("cfq", Front::Legacy), ("bfq", Front::Mq), ("deadline", Front::Legacy));
    let document = advised(on_4_19(cfq, bfq), "sda");
    let sentence = "has this scheduler for sda only if it was booted with scsi_mod.use_blk_mq=1 or configured that way; to \
                    undo, boot without it.";
    assert!(line(&document).contains(sentence), "{}", line(&document));
    assert!(only(&document).back.is_empty());
    let document = advised(on_4_19(cfq, deadline), "sda");
    assert!(
        line(&document).contains("booted with scsi_mod.use_blk_mq=0 or configured that way."),
        "{}",
        line(&document)
    );
    assert_eq!(only(&document).back, ["echo cfq > /sys/block/sda/queue/scheduler"]);
    assert!(!line(&advised(two("mq-deadline", "bfq"), "sda")).contains("booted with"), "there is one queue only");
    let document = advised(on_4_19(cfq, deadline), "nvme0n1");
    assert!(line(&document).contains("deadline is a scheduler of the legacy queue, which NVMe drives such as nvme0n1"));
    assert!(only(&document).now.is_empty());
    assert!(!line(&advised(on_4_19(cfq, bfq), "nvme0n1")).contains("legacy queue"));
}

#[test]
fn without_a_name_advice_uses_the_devices_of_the_load_or_a_placeholder() {
    let with_files = |files: &[&str]| {
        let mut document = two("mq-deadline", "bfq");
        let disk = |file: &&str| {
            json!({"file": file, "stat": "", "read_ios": 0, "read_merges": 0, "read_ms": 0, "write_ios": 0, "write_merges": 0,
                "write_ms": 0, "in_queue_ms": 0, "util_percent": 0.0})
        };
        let disks: Vec<Value> = files.iter().map(disk).collect();
        document.runs.iter_mut().for_each(|run| run.disks = serde_json::from_value(json!(disks)).unwrap());
        document
    };
    let devices =
        |document: &ResultsDocument| document.advice.iter().map(|advice| advice.device.clone()).collect::<Vec<_>>();
    assert_eq!(devices(&advised(with_files(&["/dev/sda", "/dev/sdb", "a.0.0"]), "")), ["sda", "sdb"]);
    let nameless = advised(with_files(&["a.0.0"]), "");
    assert_eq!(devices(&nameless), ["DEVICE"]);
    assert!(line(&nameless).contains("Replace DEVICE by the name of your device"));
    assert!(!line(&advised(with_files(&["/dev/sda"]), "")).contains("DEVICE"));
    assert_eq!(devices(&advised(with_files(&["/dev/sda"]), "vda")), ["vda"], "a name that is given goes first");
}

#[test]
fn guests_and_their_host_have_a_line_each() {
    let mut document = two("none-over-none", "mq-deadline-over-bfq");
    document.default_scheduler = None;
    document.baseline = Some("none-over-none".to_owned());
    let guests = json!({"virtual_disk": {}, "schedulers": ["none", "mq-deadline"], "weights": {}});
    document.guests = serde_json::from_value(guests).unwrap();
    let text = line(&advised(document, "vdb"));
    assert!(
        text.contains("if its virtual disk is vda: echo mq-deadline > /sys/block/vda/queue/scheduler On the host:"),
        "{text}"
    );
    assert!(text.contains("echo bfq > /sys/block/vdb/queue/scheduler"), "{text}");
}

#[test]
fn each_place_is_advised_by_itself() {
    let mut document = two("mq-deadline", "bfq");
    let elsewhere = two("mq-deadline", "none");
    document.runs.extend(elsewhere.runs.into_iter().map(|run| Run { setup: 1, ..run }));
    let at = |kernel: &str| place("hdd", kernel, Some("mq-deadline"));
    document.setups = vec![at("6.1"), at("6.18")];
    for run in &mut document.runs {
        let kernel = ["6.1", "6.18"][run.setup as usize];
        let settings = Map::from_iter([("kernel".to_owned(), json!(kernel))]);
        run.variant = RunLabel::new(&run.scheduler, settings);
    }
    let text = line(&advised(document, "vda"));
    let (first, second) = text.split_once("Commands for vda (hdd, Linux 6.18):").unwrap();
    assert!(
        first.contains("vda (hdd, Linux 6.1):") && first.contains("echo bfq") && !first.contains("echo none"),
        "{text}"
    );
    assert!(second.contains("echo none") && !second.contains("echo bfq"), "{text}");
}

#[test]
fn the_table_says_where_advice_is_to_be_had_if_there_is_something_to_write() {
    let hint = "Use --advice DEVICE, such as --advice sda, to print the commands for this change.";
    let shown = |mut document: ResultsDocument| {
        document.verdicts = verdicts(&Analysis::of(&document));
        table(&Analysis::of(&document), &Style::default()).contains(hint)
    };
    assert!(shown(two("none", "kyber")));
    assert!(!shown(keep("none", "kyber")), "nothing is to be changed");
    assert!(shown(ResultsDocument { is_real: true, ..two("none", "kyber") }));
    assert!(
        !table(&Analysis::of(&advised(two("none", "kyber"), "sda")), &Style::default()).contains(hint),
        "it is there"
    );
}

#[test]
fn an_invalid_device_name_is_refused() {
    assert!(check_name("nvme0n1").is_ok() && check_name("/dev/sda").is_ok());
    let error = check_name("sda; reboot").unwrap_err().to_string();
    assert_eq!(
        error,
        "\"sda; reboot\" is not a block device name (expected a name as in /sys/block, such as sda or nvme0n1)"
    );
}

#[test]
fn keeping_a_scheduler_that_is_not_the_default_requires_a_write() {
    let mut unknown = keep("none", "kyber");
    unknown.default_scheduler = Some("mq-deadline".to_owned());
    let document = advised(unknown.clone(), "vda");
    let advice = only(&document);
    assert_eq!(advice.now, ["echo none > /sys/block/vda/queue/scheduler"]);
    assert_eq!(advice.back, ["echo mq-deadline > /sys/block/vda/queue/scheduler"]);
    assert!(advice.rule.is_some());
    let shown_text = line(&document);
    assert!(shown_text.starts_with("vda: Keep none if it is the current scheduler (check below). By default Linux gives vda mq-deadline, which was not compared"), "{shown_text}");
    // A named baseline is taken for the device's current scheduler; NVMe drives have none by default anyway.
    assert!(line(&advised(unknown.clone(), "nvme0n1")).contains("Nothing: keep none."));
    unknown.baseline = Some("none".to_owned());
    assert!(line(&advised(unknown, "vda")).starts_with("vda: Nothing: keep none."));
}

#[test]
fn undoing_a_change_leads_back_to_the_kernel_default_not_the_first_row() {
    let mut document = two("none", "kyber");
    document.default_scheduler = Some("mq-deadline".to_owned());
    let document = advised(document, "vda");
    assert_eq!(only(&document).now, ["echo kyber > /sys/block/vda/queue/scheduler"]);
    assert_eq!(only(&document).back, ["echo mq-deadline > /sys/block/vda/queue/scheduler"]);
    assert!(line(&document).contains("By default Linux gives vda mq-deadline, which was not compared"));
}

#[test]
fn advice_to_keep_a_scheduler_in_a_place_omits_the_place() {
    let mut document = keep("none", "kyber");
    for run in &mut document.runs {
        let settings = Map::from_iter([("kernel".to_owned(), json!("6.18"))]);
        run.variant = RunLabel::new(&run.scheduler, settings);
    }
    document.setups = vec![place("ssd", "6.18", Some("none")), place("ssd", "6.12", Some("none"))];
    assert!(line(&advised(document, "vda")).contains("Nothing: keep none."));
}
