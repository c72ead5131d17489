//! What lasts: a short run is judged as a long one is, although a scheduler favours what has just started.

use hoistway_answer::ResultsDocument;
use hoistway_answer::document::{Decision, Verdict};
use hoistway_experiment::{Alone, Comparison, Load};

use crate::metamorphic::{Case, Random};

/// A stream of writes and a reader that thinks and starts a second later, for this many seconds.
fn load(number: u64, seconds: u64) -> String {
    let mut random = Random(number);
    let (write_kib, depth) = (random.one_of(&[256, 512, 1024]), random.one_of(&[8, 16, 32]));
    let (read_kib, think_ms) = (random.one_of(&[4, 8, 16]), random.one_of(&[5, 10, 20]));
    format!(
        "[global]\ndirect=1\nioengine=libaio\ntime_based\nruntime={seconds}\nfilename=/dev/sda\n\
         [dump]\nrw=write\nbs={write_kib}k\niodepth={depth}\nsize=40g\n\
         [shop]\nrw=randread\nbs={read_kib}k\nsize=10g\nthinktime={think_ms}ms\nstartdelay=1\n"
    )
}

fn run(text: String, lasting: bool, ramp_seconds: Option<u64>) -> ResultsDocument {
    Comparison {
        load: Load::text(text),
        devices: vec!["sata-ssd".into()],
        schedulers: vec!["mq-deadline".to_owned(), "bfq".to_owned()],
        repeats: 3,
        ramp_ns: ramp_seconds.map(|seconds| seconds * 1_000_000_000),
        lasting,
        ..Comparison::default()
    }
    .run(&Alone)
    .unwrap()
}

/// The verdict's recommended variant, and its reference.
fn recommended(document: &ResultsDocument) -> (&str, &str) {
    let verdict: &Verdict = &document.verdicts[0];
    assert!(matches!(verdict.decision, Decision::Change | Decision::Keep));
    (&verdict.recommended, &verdict.reference)
}

#[test]
fn a_short_run_is_judged_as_what_lasts_is() {
    let mut overturned_from_start = 0;
    for number in 0..6 {
        let long = run(load(number, 40), false, Some(15));
        // A change is overturned if it is none in the long run, and what is kept if the long run changes.
        let is_overturned = |short: &ResultsDocument| recommended(short).0 != recommended(&long).0;
        let short = run(load(number, 6), true, None);
        assert!(
            !is_overturned(&short),
            "load {number}: {:?}, in a long run {:?}",
            recommended(&short),
            recommended(&long)
        );
        overturned_from_start += u32::from(is_overturned(&run(load(number, 6), false, None)));
    }
    assert!(overturned_from_start > 0, "nothing happens only after the start of these loads");
}

#[test]
fn a_job_that_catches_up_after_its_neighbour_is_measured_while_both_run() {
    let text = "[global]\ndirect=1\nioengine=libaio\ntime_based\nruntime=8\nfilename=/dev/sda\n\
                [dump]\nrw=write\nbs=1m\niodepth=16\nsize=40g\n\
                [shop]\nrw=randread\nbs=8k\nsize=10g\nrate_iops=100\nstartdelay=1\n";
    let rate = |document: &ResultsDocument| {
        let run = document.runs.iter().find(|run| run.scheduler == "mq-deadline").unwrap();
        run.jobs[1].operations[0].iops
    };
    let lasting = run(text.to_owned(), true, None);
    assert!(rate(&run(text.to_owned(), false, None)) > 95.0);
    assert!(rate(&lasting) < 50.0, "{}", rate(&lasting));
    let window = lasting.window.unwrap();
    assert!(window.from_seconds >= 1.0, "{window:?}");
}

/// A random load, under all schedulers of its kernel.
fn judged(case: &Case, seed: u64, change: impl Fn(&mut Comparison)) -> Option<Verdict> {
    let mut comparison = Comparison {
        load: Load::Text { name: "case.fio".to_owned(), text: case.job_file() },
        devices: vec![case.device.into()],
        kernels: vec![case.kernel.to_owned()],
        cpus: Some(case.cpus),
        seed,
        ..Comparison::default()
    };
    change(&mut comparison);
    let document = comparison.run(&Alone).unwrap_or_else(|error| panic!("{error}\n{}", case.in_words()));
    document.verdicts.into_iter().next()
}

/// Of the verdicts that are sure, runs five times as long, with other seeds and without their first fifth, overturn few. `HOISTWAY_CASES=300
/// cargo test --release -p hoistway-experiment --test all sure_verdicts -- --nocapture` prints those of 300 loads (docs/results.md).
#[test]
fn sure_verdicts_are_seldom_overturned_by_longer_runs() {
    let asked = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let (first, count) = (asked("HOISTWAY_SEED").unwrap_or(0), asked("HOISTWAY_CASES").unwrap_or(4));
    let (mut sure, mut overturned) = (0, 0);
    for number in first..first + count {
        let mut case = Case::new(number);
        case.runtime_ms = case.runtime_ms.max(300);
        let own_ns = case.runtime_ms * 1_000_000;
        let short = judged(&case, 1, |comparison| {
            (comparison.repeats, comparison.until_sure, comparison.lasting) = (60, true, true)
        });
        let is_sure = |verdict: &Verdict| verdict.certainty.is_some_and(|certainty| certainty >= 0.95);
        let Some(short) = short.filter(is_sure) else { continue };
        sure += 1;
        let Some(long) = judged(&case, 1000, |comparison| {
            (comparison.repeats, comparison.ramp_ns, comparison.runtime_ns) = (8, Some(own_ns), Some(4 * own_ns));
        }) else {
            continue;
        };
        let (ours, theirs) = (worth(&long, &short.recommended), worth(&long, &long.recommended));
        // What both find good enough is no mistake.
        if theirs > ours * (1.0 + long.smallest_effect) {
            overturned += 1;
            println!(
                "case {number}: {} ({ours:.3} in a long run), in a long run {} ({theirs:.3}, sure {:?})\n{}",
                short.recommended,
                long.recommended,
                long.certainty,
                case.in_words()
            );
        }
    }
    println!("{overturned} of {sure} sure verdicts on {count} loads are overturned");
    assert!(overturned <= 1 + sure / 20, "{overturned} of {sure}");
}

/// How much better than the reference a variant is by this verdict.
fn worth(verdict: &Verdict, label: &str) -> f64 {
    let candidate = verdict.candidates.iter().find(|candidate| candidate.scheduler == label);
    candidate.and_then(|candidate| candidate.balance).map_or(1.0, |balance| balance.factor)
}
