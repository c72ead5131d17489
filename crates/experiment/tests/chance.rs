//! How often chance changes a verdict: verdicts on a few of many runs, compared with the verdict on all of them.
//!
//! `HOISTWAY_REPEATS=60 cargo test --release -p hoistway-experiment --test all chance -- --nocapture` takes all bundled loads at full length and
//! prints the table of docs/results.md; with `HOISTWAY_DOCUMENTS=FOLDER` in addition, it reads the runs from FOLDER/LOAD.json, made by
//! `hoistway compare LOAD --repeat 60 --seed 1000 --format json`. Without either it takes a shortened example.

use hoistway_answer::document::{Decision, Outcome, Verdict};
use hoistway_answer::verdict::verdicts;
use hoistway_answer::{Analysis, ResultsDocument};
use hoistway_experiment::{Alone, Comparison, Load, MeasuredTime, scenarios};

/// The name of the example in these tests.
const EXAMPLE: &str = "example";

/// Numbers of repeats that are checked: few are enough where a decision is certain.
const GROUPS: [u32; 3] = [10, 5, 3];

fn compared(load: &str, repeats: u32, runtime_ns: Option<u64>) -> ResultsDocument {
    if let Ok(folder) = std::env::var("HOISTWAY_DOCUMENTS") {
        let file = format!("{folder}/{load}.json");
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        return ResultsDocument::from_json(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
    Comparison {
        load: if load == EXAMPLE { Load::Example } else { Load::Scenario(load.to_owned()) },
        seed: 1000,
        repeats,
        runtime_ns,
        measured: MeasuredTime::Lasting,
        ..Comparison::default()
    }
    .run(&Alone)
    .unwrap_or_else(|error| panic!("{load}: {error}"))
}

fn verdict(document: &ResultsDocument) -> Verdict {
    let mut verdicts = verdicts(&Analysis::of(document));
    assert_eq!(verdicts.len(), 1);
    verdicts.remove(0)
}

/// The verdicts on each group of this many repeats of a document.
fn of_groups(document: &ResultsDocument, of: u32) -> Vec<Verdict> {
    let repeats = document.runs.iter().map(|run| run.repeat + 1).max().unwrap_or(0);
    let group = |first: u32| {
        let mut some = document.clone();
        some.runs.retain(|run| (first..first + of).contains(&run.repeat));
        verdict(&some)
    };
    (0..repeats / of).map(|number| group(number * of)).collect()
}

/// Counts of verdicts on a few runs that differ from the verdict on all.
#[derive(Default)]
struct Differ {
    of: usize,
    /// They recommend another one.
    flips: usize,
    /// Those of them that claim to be certain.
    sure: usize,
    /// They recommend another one, which the verdict on all finds as good as its own.
    sure_as_good: usize,
    /// They recommend another one, which it does not.
    sure_flips: usize,
}

impl Differ {
    fn count(all: &Verdict, few: &[Verdict]) -> Self {
        let mut differ = Differ { of: few.len(), ..Differ::default() };
        for one in few {
            let is_other = one.recommended != all.recommended;
            differ.flips += usize::from(is_other);
            if one.is_sure() {
                differ.sure += 1;
                let is_as_good = is_as_good(all, one);
                differ.sure_as_good += usize::from(is_other && is_as_good);
                differ.sure_flips += usize::from(is_other && !is_as_good);
            }
        }
        differ
    }
}

/// Whether a verdict considers another verdict's recommendation better than the reference, and not worse than its own by the smallest effect.
fn is_as_good(all: &Verdict, few: &Verdict) -> bool {
    let of = |scheduler: &str| all.candidates.iter().find(|candidate| candidate.scheduler == scheduler);
    let balance = |scheduler: &str| Some(of(scheduler)?.balance?.factor);
    let is_better = |outcome: Outcome| matches!(outcome, Outcome::Better | Outcome::BetterElsewhere);
    let is_change = all.decision == Decision::Change && of(&few.recommended).is_some_and(|one| is_better(one.outcome));
    let [ours, theirs] = [&all.recommended, &few.recommended].map(|scheduler| balance(scheduler));
    is_change && ours.zip(theirs).is_some_and(|(ours, theirs)| theirs * (1.0 + all.smallest_effect) >= ours)
}

#[test]
fn a_few_runs_seldom_claim_what_many_runs_do_not_confirm() {
    let shown: Option<u32> = std::env::var("HOISTWAY_REPEATS").ok().map(|repeats| repeats.parse().expect("a number"));
    let loads: Vec<&str> =
        if shown.is_some() { [EXAMPLE].into_iter().chain(scenarios::names()).collect() } else { vec![EXAMPLE] };
    let (repeats, runtime_ns) = (shown.unwrap_or(20), shown.is_none().then_some(1_000_000_000));
    let mut sums = [const { (0, 0, 0) }; GROUPS.len()];
    for load in loads {
        let document = compared(load, repeats, runtime_ns);
        let all = verdict(&document);
        let mut row = format!(
            "| {load} | {:?} {} ({:.1} %)",
            all.decision,
            all.recommended,
            100.0 * all.certainty.unwrap_or(0.0)
        );
        for (of, sum) in GROUPS.into_iter().zip(&mut sums) {
            let Differ { of, flips, sure, sure_as_good, sure_flips } = Differ::count(&all, &of_groups(&document, of));
            row += &format!(" | {flips} of {of}; sure {sure}, wrong {sure_flips}, as good {sure_as_good}");
            *sum = (sum.0 + sure, sum.1 + sure_flips, sum.2 + sure_as_good);
            assert!(shown.is_some() || sure_flips == 0, "{load}: {sure_flips} of {sure}");
        }
        println!("{row} |");
    }
    let of_all = GROUPS.into_iter().zip(sums);
    for (of, (sure, flips, as_good)) in of_all {
        println!("{of} runs: sure {sure}, wrong {flips}, as good {as_good}");
    }
}
