//! io.latency in comparisons: its targets, what the document says about it, and what is refused. Rules: IL-1, IL-3, IL-7.

use hoistway_answer::ResultsDocument;
use hoistway_experiment::{Alone, CgroupFile, Comparison, Field, Guests, Load, Plan, QueueFile, Vary};

const JOB: &str = "[global]\ndirect=1\nioengine=libaio\nrw=randread\nbs=4k\nsize=1g\niodepth=32\nruntime=300ms\ntime_based\n\
                   [db]\nfilename=/dev/sda:/dev/sdb\niodepth=1\ncgroup=pods/db\n[batch]\nfilename=/dev/sda:/dev/sdb\ncgroup=batch\n";

fn with(targets: &[(&str, &str)]) -> Comparison {
    let target = |&(cgroup, text): &(&str, &str)| CgroupFile { cgroup: cgroup.to_owned(), text: text.to_owned() };
    Comparison {
        load: Load::text(JOB),
        devices: vec!["samsung-980pro-1tb".into()],
        schedulers: vec!["none".to_owned()],
        io_latency: targets.iter().map(target).collect(),
        ..Comparison::default()
    }
}

fn run(comparison: &Comparison) -> ResultsDocument {
    comparison.run(&Alone).unwrap_or_else(|error| panic!("{error}"))
}

/// The targets of each device, us, for pods, pods/db and batch.
fn targets(document: &ResultsDocument) -> Vec<(String, Vec<u32>)> {
    let of_disk = |groups: &[hoistway_measure::IoLatencyGroup]| groups.iter().map(|group| group.target_us).collect();
    document.runs[0].io_latency.iter().map(|disk| (disk.disk.clone(), of_disk(&disk.groups))).collect()
}

#[track_caller]
fn refused(comparison: Comparison, words: &str) {
    let error = Plan::of(&comparison, &Alone).err().unwrap_or_else(|| panic!("{comparison:?} is possible"));
    assert_eq!(error.field, Field::IoLatency, "{error}");
    assert!(error.message.contains(words), "{error}");
}

#[test]
fn targets_read_back_as_they_were_written_per_device() {
    let writes = [
        ("pods", "target=3000"),
        ("pods/db", "sda target=2000"),
        ("/pods/db/", "/dev/sdb target=500"),
        ("pods", "sdb target=0"),
    ];
    let expected = [("/dev/sda", vec![3000, 2000, 0]), ("/dev/sdb", vec![0, 500, 0])];
    assert_eq!(targets(&run(&with(&writes))), expected.map(|(disk, us)| (disk.to_owned(), us)));
    let one = [("batch", "sdb target=9")];
    assert_eq!(targets(&run(&with(&one))), [("/dev/sdb".to_owned(), vec![0, 0, 9])], "the other device has none");
}

#[test]
fn a_document_says_what_io_latency_did_and_what_is_inferred() {
    let queue_files = vec![QueueFile { file: "nr_requests".to_owned(), text: "4".to_owned() }];
    let document = run(&Comparison { queue_files, ..with(&[("pods", "target=1"), ("pods/db", "target=1")]) });
    let [_, db, batch] = &document.runs[0].io_latency[0].groups[..] else { panic!("three groups") };
    assert!(db.missed > 0 && db.missed == db.windows && db.avg_lat_us > 10.0 && db.win_ms == 100.0, "{db:?}");
    assert_eq!((db.depth, batch.lowest_depth, batch.use_delay, batch.delay_us), (None, Some(2), 0, 0.0));
    let notices = document.notices.join("\n");
    assert!(notices.contains("io.latency under none on /dev/sda: pods with target=1 missed it in "), "{notices}");
    assert!(notices.contains("time with I/O held back: batch ") && notices.contains("(depth down to 2)"), "{notices}");
    assert!(!notices.contains("only `io_max` acts on groups"), "{notices}");
    assert!(
        document
            .doubts
            .iter()
            .any(|doubt| doubt.contains("io.latency is simulated from its description and recordings"))
    );
}

#[test]
fn a_run_that_is_shorter_than_a_limit_takes_to_fall_says_so() {
    let doubts = |ms: u64, us: u32| {
        let queue_files = vec![QueueFile { file: "nr_requests".to_owned(), text: "4".to_owned() }];
        let target = format!("target={us}");
        let comparison = with(&[("pods", &target), ("pods/db", &target)]);
        let comparison = Comparison { queue_files, runtime_ns: Some(ms * 1_000_000), ..comparison };
        run(&comparison)
            .doubts
            .iter()
            .filter(|doubt| doubt.contains("which takes 1.0 s from 4 requests to one"))
            .count()
    };
    assert_eq!([doubts(300, 1), doubts(1500, 1), doubts(300, 1_000_000)], [1, 0, 0]);
}

#[test]
fn a_leaf_whose_parent_has_no_target_is_named() {
    let notices = run(&with(&[("pods/db", "target=5000")])).notices.join("\n");
    assert!(notices.contains("`io_latency`: pods/db is protected from groups below pods only"), "{notices}");
    let notices = run(&with(&[("pods", "target=5000"), ("pods/db", "target=5000")])).notices.join("\n");
    assert!(!notices.contains("is protected from"), "{notices}");
}

#[test]
fn without_io_latency_nothing_of_it_is_in_the_document() {
    let comparison = with(&[]);
    let text = serde_json::to_string(&run(&comparison)).unwrap() + &serde_json::to_string(&comparison).unwrap();
    assert!(!text.contains("io_latency") && !text.contains("io.latency"), "{text}");
}

#[test]
fn what_makes_no_sense_is_refused_with_what_was_expected() {
    for (cgroup, text, words) in [
        ("/", "target=5", "the root cgroup has no io.latency"),
        ("nobody", "target=5", "no job is in cgroup \"nobody\""),
        ("pods", "target=2ms", "\"target=2ms\" at character 1: expected a number of microseconds"),
        ("pods", "sda target=2ms", "\"target=2ms\" at character 5: expected a number of microseconds"),
        ("pods", "2000", "2000 is not a device of the load"),
        ("pods", "sdc target=5", "sdc is not a device of the load"),
        ("pods", "8:0 target=5", "they have no numbers"),
        ("pods", "sda", "expected target=MICROSECONDS"),
    ] {
        refused(with(&[(cgroup, text)]), words);
    }
    refused(
        Comparison { kernels: vec!["4.18".to_owned()], ..with(&[("pods", "target=5")]) },
        "Linux 4.18 has no io.latency",
    );
    let guests = Guests { schedulers: vec!["none".to_owned()], ..Guests::default() };
    refused(Comparison { guests, ..with(&[("pods", "target=5")]) }, "below guests");
}

fn varied(name: &str, texts: &[&str]) -> Vary {
    let texts = texts.iter().map(|&text| text.to_owned()).collect();
    Vary { of: Vary::IO_LATENCY.to_owned(), name: name.to_owned(), texts }
}

#[test]
fn targets_are_varied_on_the_devices_that_have_one_or_on_all_and_0_is_as_without() {
    let shown = |writes: &[(&str, &str)]| {
        let vary = vec![varied("batch.target", &["0", "900"])];
        let document = run(&Comparison { vary, ..with(writes) });
        let labels: Vec<String> = document.runs.iter().map(|run| run.variant.label.clone()).collect();
        let targets = document.runs.iter().map(|run| {
            run.io_latency.iter().map(|disk| disk.groups.last().map_or(0, |group| group.target_us)).collect::<Vec<_>>()
        });
        (labels, targets.collect::<Vec<_>>(), document.runs[0].variant.is_default)
    };
    let labels = ["none io.latency.batch.target=0", "none io.latency.batch.target=900"].map(str::to_owned).to_vec();
    assert_eq!(shown(&[]), (labels.clone(), vec![vec![], vec![900, 900]], true));
    let of_one = [("batch", "sdb target=5")];
    let labels = [vec!["none".to_owned()], labels].concat();
    assert_eq!(shown(&of_one), (labels, vec![vec![5], vec![], vec![900]], true), "sda never had one");
}

#[test]
fn notices_know_of_targets_that_are_varied() {
    let notices = |names: &[&str]| {
        let vary = names.iter().map(|name| varied(name, &["5000"])).collect();
        run(&Comparison { vary, ..with(&[]) }).notices.join("\n")
    };
    let alone = notices(&["pods/db.target"]);
    assert!(alone.contains("`io_latency`: pods/db is protected from groups below pods only"), "{alone}");
    let both = notices(&["pods.target", "pods/db.target"]);
    assert!(!both.contains("is protected from") && both.contains("pods/db with target=5000"), "{both}");
}

#[test]
fn varied_targets_are_refused_where_there_is_no_io_latency() {
    let vary = || vec![varied("batch.target", &["5"])];
    let old = Comparison { kernels: vec!["4.18".to_owned()], vary: vary(), ..with(&[]) };
    let guests = Guests { schedulers: vec!["none".to_owned()], ..Guests::default() };
    for (comparison, words) in [
        (old, "Linux 4.18 has no io.latency"),
        (Comparison { guests, vary: vary(), ..with(&[]) }, "below guests"),
        (Comparison { vary: vec![varied("batch.target", &["2ms"])], ..with(&[]) }, "expected a number of microseconds"),
    ] {
        let error = Plan::of(&comparison, &Alone).err().unwrap();
        assert!(error.field == Field::Vary && error.message.contains(words), "{error}");
    }
}
