//! io.cost in comparisons: its settings, what the document says about it, and what is refused. Rules: IC-4 to IC-6, IC-17, IC-18, IC-20.

use hoistway_answer::ResultsDocument;
use hoistway_experiment::{Alone, CgroupFile, Comparison, Field, Guests, Load, Plan, Vary};

const JOB: &str = "[global]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\nrw=randread\nbs=4k\niodepth=32\nruntime=100ms\ntime_based\n\
                   [a]\ncgroup=pods/a\n[b]\ncgroup=pods/b\n[outside]\niodepth=1\n";

/// A drive whose preset holds the figures, and these.
const DRIVE: &str = "HFS256GD9TNG-62A0A";
const FIGURES: &str = "rbps=1076000000 rseqiops=53200 rrandiops=63400 wbps=196000000 wseqiops=12300 wrandiops=16100";

fn with(io_cost: &[&str]) -> Comparison {
    Comparison {
        load: Load::text(JOB),
        devices: vec![DRIVE.into()],
        schedulers: vec!["none".to_owned()],
        io_cost: io_cost.iter().map(|&text| text.to_owned()).collect(),
        ..Comparison::default()
    }
}

fn run(comparison: &Comparison) -> ResultsDocument {
    comparison.run(&Alone).unwrap_or_else(|error| panic!("{error}"))
}

fn weight(cgroup: &str, text: &str) -> CgroupFile {
    CgroupFile { cgroup: cgroup.to_owned(), text: text.to_owned() }
}

#[track_caller]
fn refused(comparison: Comparison, field: Field, words: &str) {
    let error = Plan::of(&comparison, &Alone).err().unwrap_or_else(|| panic!("{comparison:?} is possible"));
    assert_eq!(error.field, field, "{error}");
    assert!(error.message.contains(words), "{error}");
}

#[test]
fn a_document_says_what_io_cost_did_and_that_rules_are_not_known() {
    let exact = "enable=1 rpct=0 wpct=0 min=50 max=50";
    let document = run(&Comparison { io_weight: vec![weight("pods/b", "300")], ..with(&[exact]) });
    let of_disk = &document.runs[0].io_cost[0];
    assert_eq!((of_disk.disk.as_str(), of_disk.mean_rate_percent), ("/dev/sda", 50.0));
    let times: Vec<f64> = of_disk.groups.iter().map(|group| group.device_time_ms).collect();
    assert_eq!(
        of_disk.groups.iter().map(|group| group.cgroup.as_str()).collect::<Vec<_>>(),
        ["pods", "pods/a", "pods/b"]
    );
    assert!(times[0] == 0.0 && (times[2] / times[1] - 3.0).abs() < 0.3, "{times:?}");
    assert!(of_disk.groups[1].throttled_ms > 50.0 && of_disk.groups[1].delayed > 100, "{of_disk:?}");
    let notices = document.notices.join("\n");
    assert!(notices.contains("io.cost under none: mean vrate 50.0 %; time with I/O held back: pods/b "), "{notices}");
    assert!(notices.contains("outside (without cgroup=) are not held back"), "{notices}");
    assert!(!notices.contains("no effect"), "{notices}");
    assert!(document.doubts.iter().any(|doubt| doubt.contains("was compared with one kernel")));
}

#[test]
fn without_io_cost_nothing_of_it_is_in_the_document() {
    let comparison = with(&[]);
    let text = serde_json::to_string(&run(&comparison)).unwrap() + &serde_json::to_string(&comparison).unwrap();
    assert!(!text.contains("io_cost") && !text.contains("io.cost") && !text.contains("io_weight"), "{text}");
}

#[test]
fn the_model_comes_from_the_drive_unless_it_is_written() {
    let figures = |comparison: &Comparison| {
        let mut document = run(comparison);
        document.runs.iter_mut().for_each(|run| run.wall_seconds = 0.0);
        serde_json::to_string(&document.runs).unwrap()
    };
    let qos = "enable=1 rpct=0 wpct=0 min=30 max=30";
    let automatic = figures(&with(&[qos]));
    let written = format!("{qos} ctrl=user model=linear {FIGURES}");
    assert_eq!(automatic, figures(&with(&[&written])));
    assert_eq!(automatic, figures(&with(&[qos, &format!("sda model=linear {FIGURES}")])));
    assert_eq!(automatic, figures(&with(&[&format!("8:0 {qos}"), "/dev/sda ctrl=auto model=linear"])));
    assert_ne!(automatic, figures(&with(&[qos, "rrandiops=30000"])), "a figure of the user");
}

#[test]
fn settings_are_varied_and_off_is_as_without() {
    let vary = |name: &str, texts: &[&str]| Vary {
        of: Vary::IO_COST.to_owned(),
        name: name.to_owned(),
        texts: texts.iter().map(|&text| text.to_owned()).collect(),
    };
    let off = "enable=0 rpct=0 wpct=0 min=50 max=50";
    let document = run(&Comparison { vary: vec![vary("qos.enable", &["0", "1"])], ..with(&[off]) });
    let labels: Vec<&str> = document.runs.iter().map(|run| run.variant.label.as_str()).collect();
    assert_eq!(labels, ["none io.cost.qos.enable=0", "none io.cost.qos.enable=1"]);
    assert_eq!(document.runs.iter().map(|run| run.variant.is_default).collect::<Vec<_>>(), [true, false]);
    let [off, on] = &document.runs[..] else { panic!("two runs") };
    assert!(off.io_cost.is_empty() && on.io_cost.len() == 1);
    assert_eq!(off.simulated_ios, run(&with(&[])).runs[0].simulated_ios);
    assert!(on.simulated_ios < off.simulated_ios * 3 / 4, "{} {}", on.simulated_ios, off.simulated_ios);
    for (name, text, words) in [
        ("qos.max", "none", "percentage from 1 to 10000"),
        ("qos.rbps", "5", "is a setting of io.cost.model"),
        ("model.max", "5", "is no setting of io.cost.model"),
        ("max", "5", "expected io.cost.qos.KEY"),
        ("qos.ctrl", "auto", "is not varied"),
    ] {
        refused(Comparison { vary: vec![vary(name, &[text])], ..with(&["enable=1"]) }, Field::Vary, words);
    }
    let bounds = vec![vary("qos.min", &["60", "120"]), vary("qos.max", &["100", "140"])];
    refused(
        Comparison { vary: bounds, ..with(&["enable=1"]) },
        Field::Vary,
        "io.cost.qos.min=120 with io.cost.qos.max=100",
    );
    refused(Comparison { vary: vec![vary("qos.max", &["5"])], ..with(&[]) }, Field::Vary, "no device has io.cost");
}

#[test]
fn what_makes_no_sense_is_refused_with_what_was_expected() {
    for (text, words) in [
        ("enable=1 rlat=4ms", "\"rlat=4ms\" at character 10: expected a number of microseconds"),
        ("sda enable=1 rlat=4ms", "\"rlat=4ms\" at character 14: "),
        ("sdb enable=1", "sdb is not a device of the load"),
        ("sda", "expected settings of io.cost.qos"),
        ("", "expected settings of io.cost.qos"),
    ] {
        refused(with(&[text]), Field::IoCost, words);
    }
    let on_null = |text| Comparison { devices: vec!["null".into()], ..with(&[text]) };
    refused(on_null("enable=1 rbps=5"), Field::IoCost, "the model of null does not hold rseqiops, rrandiops, wbps");
    assert!(Plan::of(&on_null(&format!("enable=1 {FIGURES}")), &Alone).is_ok());
    let two = "[a]\nfilename=/dev/sda:/dev/sdb\ndirect=1\ncgroup=g\n";
    refused(Comparison { load: Load::text(two), ..with(&["8:16 enable=1"]) }, Field::IoCost, "they have no numbers");
    let guests = Guests { schedulers: vec!["none".to_owned()], ..Guests::default() };
    refused(Comparison { guests, ..with(&["enable=1"]) }, Field::IoCost, "below guests");
    for (cgroup, text, words) in [
        ("pods", "0", "from 1 to 10000"),
        ("pods", "10001", "from 1 to 10000"),
        ("pods", "8:0 50", "from 1 to 10000"),
        ("nobody", "50", "no job is in cgroup"),
    ] {
        let comparison = Comparison { io_weight: vec![weight(cgroup, text)], ..with(&["enable=1"]) };
        refused(comparison, Field::IoWeight, words);
    }
    let twice = vec![weight("pods", "default 5"), weight("/pods", "6")];
    refused(Comparison { io_weight: twice, ..with(&["enable=1"]) }, Field::IoWeight, "has a weight already");
}

#[test]
fn settings_without_effect_are_named() {
    let notices = |comparison: &Comparison| run(comparison).notices.join("\n");
    assert!(notices(&with(&["enable=0"])).contains("holds nothing back without enable=1"));
    let weights = Comparison { io_weight: vec![weight("pods", "50")], ..with(&[]) };
    assert!(notices(&weights).contains("`io_weight`: no effect without `io_cost`"));
}
