//! What lasts: a short run is judged as a long one is, although a scheduler favours what has just started.

use hoistway_answer::document::{Decision, Verdict};
use hoistway_answer::tuning::Setting;
use hoistway_answer::{Figure, ResultsDocument};
use hoistway_experiment::sweep::{Space, Sweep};
use hoistway_experiment::tune::{Evaluate as _, Evaluator};
use hoistway_experiment::{Alone, Comparison, Load, MeasuredTime};

use crate::metamorphic::{Case, Random};

/// A stream of writes and a reader that thinks and starts a second later, for this many seconds.
fn load(number: u64, seconds: u64) -> String {
    let mut random = Random(number);
    let (write_kib, depth) = (random.one_of(&[64, 256, 1024]), random.one_of(&[8, 16, 32]));
    let (read_kib, think_ms) = (random.one_of(&[4, 8, 16]), random.one_of(&[1, 5, 20]));
    format!(
        "[global]\ndirect=1\nioengine=libaio\ntime_based\nruntime={seconds}\nfilename=/dev/sda\n\
         [dump]\nrw=write\nbs={write_kib}k\niodepth={depth}\nsize=40g\n\
         [shop]\nrw=randread\nbs={read_kib}k\nsize=10g\nthinktime={think_ms}ms\nstartdelay=1\n"
    )
}

fn comparison(text: String, measured: MeasuredTime) -> Comparison {
    Comparison {
        load: Load::text(text),
        devices: vec!["sata-ssd".into()],
        schedulers: vec!["mq-deadline".to_owned(), "bfq".to_owned()],
        repeats: 3,
        measured,
        ..Comparison::default()
    }
}

fn run(text: String, lasting: bool, ramp_seconds: Option<u64>) -> ResultsDocument {
    let measured = if lasting { MeasuredTime::Lasting } else { MeasuredTime::AsFio };
    let ramp_ns = ramp_seconds.map(|seconds| seconds * 1_000_000_000);
    Comparison { ramp_ns, ..comparison(text, measured) }.run(&Alone).unwrap()
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

/// A reader with a limited rate, which starts and ends a second after a stream of writes.
const CATCHES_UP: &str = "[global]\ndirect=1\nioengine=libaio\ntime_based\nruntime=8\nfilename=/dev/sda\n\
                          [dump]\nrw=write\nbs=1m\niodepth=16\nsize=40g\n\
                          [shop]\nrw=randread\nbs=8k\nsize=10g\nrate_iops=100\nstartdelay=1\n";

#[test]
fn the_time_in_which_all_jobs_run_needs_no_longer_runs() {
    let comparison = comparison(CATCHES_UP.to_owned(), MeasuredTime::Together);
    let document = comparison.run(&Alone).unwrap();
    let window = document.window.unwrap();
    assert_eq!((window.from_seconds, window.until_seconds), (1.0, 8.0));
    assert!(window.unsteady.is_empty());
    let base = Comparison { load: comparison.load.clone(), ..Comparison::default() };
    let iops_of_shop = |from_start: bool| {
        let schedulers = vec!["mq-deadline".to_owned()];
        let devices = vec!["sata-ssd".into()];
        let space = Space { base: base.clone(), devices, schedulers, from_start, ..Space::default() };
        let mut iops = 0.0;
        let sweep = Sweep::of(space, &Alone, 10).unwrap().0;
        sweep
            .run([0], &Sweep::controls(), |_, _, record| {
                iops = record.operations[1].figures.iter().find(|(figure, _)| *figure == Figure::Iops).unwrap().1;
            })
            .unwrap();
        iops
    };
    let of_compare = document.runs[0].jobs[1].operations[0].iops;
    assert_eq!(iops_of_shop(false), of_compare);
    assert!(iops_of_shop(true) > 1.5 * of_compare, "{} and {of_compare}", iops_of_shop(true));
}

#[test]
fn a_window_that_was_found_gives_the_same_runs_elsewhere() {
    let comparison = comparison(load(1, 6), MeasuredTime::Lasting);
    let setting = Setting::untouched("bfq");
    let figures = |comparison: &Comparison| {
        let evaluator = Evaluator::new(comparison, &Alone).unwrap();
        (evaluator.measured().unwrap(), evaluator.figures(&setting, 1, None).unwrap())
    };
    let (measured, here) = figures(&comparison);
    assert!(matches!(measured, MeasuredTime::Window { from_ns: 1_000_000_000.., .. }), "{measured:?}");
    assert_eq!(figures(&Comparison { measured, ..comparison }), (measured, here));
}

#[test]
fn a_job_that_catches_up_after_its_neighbour_is_measured_while_both_run() {
    let text = CATCHES_UP;
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
fn judged(case: &Case, seed: u64, change: impl Fn(&mut Comparison)) -> ResultsDocument {
    let mut comparison = Comparison {
        load: Load::Text { name: "case.fio".to_owned(), text: case.job_file() },
        devices: vec![case.device.into()],
        kernels: vec![case.kernel.to_owned()],
        cpus: Some(case.cpus),
        seed,
        ..Comparison::default()
    };
    change(&mut comparison);
    comparison.run(&Alone).unwrap_or_else(|error| panic!("{error}\n{}", case.in_words()))
}

/// Of the verdicts that are sure, runs five times as long, with other seeds and without their first fifth and what the verdict left out as
/// a start, overturn few. `HOISTWAY_CASES=300
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
        let document = judged(&case, 1, |comparison| {
            (comparison.repeats, comparison.until_sure, comparison.measured) = (60, true, MeasuredTime::Lasting)
        });
        let is_sure = |verdict: &Verdict| verdict.certainty.is_some_and(|certainty| certainty >= 0.95);
        let Some(short) = document.verdicts.first().filter(|verdict| is_sure(verdict)) else { continue };
        let start_ns = document.window.as_ref().map_or(0.0, |window| window.from_seconds) * 1e9;
        sure += 1;
        let ramp_ns = own_ns.max(start_ns as u64);
        let long = judged(&case, 1000, |comparison| {
            (comparison.repeats, comparison.ramp_ns, comparison.runtime_ns) = (8, Some(ramp_ns), Some(4 * own_ns));
        });
        let Some(long) = long.verdicts.first() else { continue };
        let (ours, theirs) = (worth(long, &short.recommended), worth(long, &long.recommended));
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
