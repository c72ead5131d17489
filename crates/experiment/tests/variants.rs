//! Settings with several values to compare.

use hoistway_answer::ResultsDocument;
use hoistway_answer::analysis::Analysis as Results;
use hoistway_experiment::{Alone, Comparison, Field, Guests, Load, Plan, QueueFile, Tunable, Vary};

const JOB: &str = "[global]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\nruntime=20ms\ntime_based\n\
    [a]\nrw=randread\niodepth=4\n[b]\nrw=write\nbs=64k\niodepth=40\n";

fn small(schedulers: &[&str]) -> Comparison {
    Comparison {
        load: Load::text(JOB),
        devices: vec!["intel-s3520-1600gb".into()],
        schedulers: schedulers.iter().map(|&name| name.to_owned()).collect(),
        ..Comparison::default()
    }
}

fn vary(of: &str, name: &str, texts: &[&str]) -> Vary {
    let texts = texts.iter().map(|&text| text.to_owned()).collect();
    Vary { of: of.to_owned(), name: name.to_owned(), texts }
}

fn set(scheduler: &str, name: &str, text: &str) -> Tunable {
    Tunable { scheduler: scheduler.to_owned(), name: name.to_owned(), text: text.to_owned() }
}

fn run(comparison: &Comparison) -> ResultsDocument {
    comparison.run(&Alone).unwrap_or_else(|error| panic!("{error}"))
}

fn labels(document: &ResultsDocument) -> Vec<&str> {
    document.runs.iter().map(|run| run.variant.label.as_str()).collect()
}

#[test]
fn a_scheduler_runs_with_each_combination_and_others_as_they_are() {
    let comparison = Comparison {
        vary: vec![vary("mq-deadline", "fifo_batch", &["1", "16"]), vary("mq-deadline", "front_merges", &["0", "1"])],
        ..small(&["none", "mq-deadline"])
    };
    let document = run(&comparison);
    let expected = [
        "none",
        "mq-deadline fifo_batch=1 front_merges=0",
        "mq-deadline fifo_batch=1 front_merges=1",
        "mq-deadline fifo_batch=16 front_merges=0",
        "mq-deadline fifo_batch=16 front_merges=1",
    ];
    assert_eq!(labels(&document), expected);
    let defaults = document.runs.iter().map(|run| run.variant.is_default).collect::<Vec<_>>();
    assert_eq!(defaults, [false, false, false, false, true], "16 and 1 are what it has anyway");
    assert_eq!(document.runs[1].tunables["fifo_batch"], 1);
    assert_eq!(document.runs[1].seed, document.runs[4].seed);
    assert_eq!(Results::of(&document).baseline, 4, "the kernel's default with its default settings");
    // Each variant gives the same result as in a comparison of its own.
    for (run, [batch, merges]) in document.runs[1..].iter().zip([["1", "0"], ["1", "1"], ["16", "0"], ["16", "1"]]) {
        let tunables = vec![set("mq-deadline", "fifo_batch", batch), set("mq-deadline", "front_merges", merges)];
        let alone = self::run(&Comparison { tunables, ..small(&["mq-deadline"]) });
        assert_eq!((&alone.runs[0].jobs, &alone.runs[0].tunables), (&run.jobs, &run.tunables));
    }
    let text = serde_json::to_string(&comparison).unwrap();
    assert_eq!(serde_json::from_str::<Comparison>(&text).unwrap(), comparison);
    assert_eq!(ResultsDocument::from_json(&serde_json::to_string(&document).unwrap()).unwrap(), document);
}

#[test]
fn the_default_of_a_scheduler_comes_first_if_not_among_the_values() {
    let batch = || vec![vary("mq-deadline", "fifo_batch", &["1", "4"])];
    let three = ["mq-deadline", "mq-deadline fifo_batch=1", "mq-deadline fifo_batch=4"];
    let document = run(&Comparison { vary: batch(), ..small(&["mq-deadline"]) });
    assert_eq!(labels(&document), three);
    assert!(document.runs[0].variant.is_default && document.runs[0].tunables.is_empty());
    // Settings of all runs apply to each variant.
    let fixed = vec![set("mq-deadline", "read_expire", "100")];
    let document = run(&Comparison { vary: batch(), tunables: fixed, ..small(&["mq-deadline"]) });
    assert_eq!(labels(&document), three);
    assert!(document.runs.iter().all(|run| run.tunables["read_expire"] == 100));
}

#[test]
fn files_of_the_queue_are_varied_for_all_schedulers_and_left_out_where_they_cannot_be() {
    let document = run(&Comparison {
        vary: vec![vary("queue", "nr_requests", &["8", "64"])],
        queue_files: vec![QueueFile { file: "nomerges".to_owned(), text: "1".to_owned() }],
        ..small(&["none", "kyber"])
    });
    assert_eq!(labels(&document), ["none", "none nr_requests=8", "kyber nr_requests=8", "kyber nr_requests=64"]);
    let defaults = document.runs.iter().map(|run| run.variant.is_default).collect::<Vec<_>>();
    assert_eq!(defaults, [true, false, false, true]);
    let left_out = document.notices.iter().find(|notice| notice.starts_with("Left out: ")).unwrap();
    assert!(left_out.contains("`vary` queue.nr_requests=64") && left_out.contains("32 tags"), "{left_out}");
    assert_eq!(
        (&document.runs[1].queue_files["nr_requests"], &document.runs[1].queue_files["nomerges"]),
        (&8.into(), &1.into())
    );
    assert!(!document.runs[0].queue_files.contains_key("nr_requests"));
    assert_ne!(document.runs[2].jobs, document.runs[3].jobs, "eight requests are fewer than the load has");
}

#[test]
fn guests_and_host_are_varied_each_by_name() {
    let guests = Guests { schedulers: vec!["none".to_owned(), "mq-deadline".to_owned()], ..Guests::default() };
    let document =
        run(&Comparison { guests, vary: vec![vary("mq-deadline", "fifo_batch", &["1"])], ..small(&["none"]) });
    assert_eq!(
        labels(&document),
        ["none-over-none", "mq-deadline-over-none", "mq-deadline-over-none mq-deadline.fifo_batch=1"]
    );
}

#[test]
fn results_do_not_depend_on_how_many_run_at_once() {
    let comparison = Comparison {
        vary: vec![vary("kyber", "read_lat_nsec", &["100000", "9000000"]), vary("queue", "nr_requests", &["8", "16"])],
        repeats: 2,
        ..small(&["kyber"])
    };
    let with = |threads| {
        rayon_core::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| run(&comparison))
    };
    assert_eq!(with(1), with(3));
}

#[track_caller]
fn refused(comparison: Comparison, words: &[&str]) {
    let error = Plan::of(&comparison, &Alone).err().unwrap_or_else(|| panic!("{comparison:?} is possible"));
    assert_eq!(error.field, Field::Vary, "{error}");
    assert!(words.iter().all(|words| error.message.contains(words)), "{error}");
}

#[test]
fn an_invalid_variation_is_refused_before_anything_runs() {
    let of = |varied: &[Vary]| Comparison { vary: varied.to_vec(), ..small(&["none", "mq-deadline"]) };
    let batch = vary("mq-deadline", "fifo_batch", &["1", "4"]);
    refused(of(&[vary("mq-deadline", "fifo_batch", &["1", "x"])]), &["fifo_batch=x", "expected 0 to 2147483647"]);
    refused(of(&[vary("mq-deadline", "fifo_bach", &["1"])]), &["did you mean \"fifo_batch\"?"]);
    refused(of(&[vary("mq-dedline", "fifo_batch", &["1"])]), &["is not a scheduler (did you mean \"mq-deadline\"?"]);
    refused(of(&[vary("bfq", "slice_idle", &["1"])]), &["bfq is not among the compared schedulers"]);
    refused(of(&[vary("mq-deadline", "fifo_batch", &[])]), &["expected some values"]);
    refused(of(&[vary("mq-deadline", "fifo_batch", &["4", "04"])]), &["04 is given twice"]);
    refused(
        of(&[batch.clone(), vary("mq-deadline", "fifo_batch", &["8"])]),
        &["fifo_batch=8", "fifo_batch=1,4 was already given"],
    );
    refused(of(&[vary("queue", "nr_requests", &["many"])]), &["queue.nr_requests=many: expected a whole number"]);
    refused(of(&[vary("queue", "scheduler", &["none"])]), &["use `schedulers`"]);
    refused(of(&[vary("queue", "nr_request", &["4"])]), &["did you mean \"nr_requests\"?"]);
    let tunables = vec![set("mq-deadline", "fifo_batch", "2")];
    refused(Comparison { tunables, ..of(&[batch]) }, &["fifo_batch=1,4: ", "`tunables` mq-deadline.fifo_batch=2 sets"]);
    let queue_files = vec![QueueFile { file: "nr_requests".to_owned(), text: "8".to_owned() }];
    let requests = vary("queue", "nr_requests", &["4", "8"]);
    refused(Comparison { queue_files, ..of(&[requests]) }, &["`queue_files` nr_requests=8 sets queue.nr_requests"]);
}

#[test]
fn too_many_variants_say_how_many_runs_they_mean() {
    let numbers = |from: u32| (from..from + 40).map(|number| number.to_string()).collect::<Vec<_>>();
    let vary = |name: &str| Vary { of: "mq-deadline".to_owned(), name: name.to_owned(), texts: numbers(1) };
    let comparison =
        Comparison { vary: vec![vary("fifo_batch"), vary("writes_starved")], repeats: 3, ..small(&["mq-deadline"]) };
    refused(comparison, &["fifo_batch (40 values)", "makes 1600 variants", "4800 runs", "expected at most 1000"]);
}
