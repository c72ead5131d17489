//! How often a verdict comes out otherwise by chance: the verdict on a few of many runs, beside that on all of them.
//!
//! `HOISTWAY_REPEATS=60 cargo test --release -p hoistway-experiment --test chance -- --nocapture` takes all bundled loads at their whole length and
//! prints how many verdicts name another one that is as good, keep, or mislead, whose sums stand in docs/results.md; without it the example
//! is looked at, cut short.

use hoistway_answer::document::{Decision, Outcome, Verdict};
use hoistway_answer::verdict::verdicts;
use hoistway_answer::{Analysis, ResultsDocument};
use hoistway_experiment::{Alone, Comparison, Load, scenarios};

/// What the example is called here.
const EXAMPLE: &str = "example";

/// Default repeats of a comparison: on a quick machine, and on slower ones.
const GROUPS: [u32; 3] = [10, 7, 3];

fn compared(load: &str, repeats: u32, runtime_ns: Option<u64>) -> ResultsDocument {
    Comparison {
        load: if load == EXAMPLE { Load::Example } else { Load::Scenario(load.to_owned()) },
        seed: 1000,
        repeats,
        runtime_ns,
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

/// The verdicts on each so many of a document's runs.
fn of_groups(document: &ResultsDocument, of: u32) -> Vec<Verdict> {
    let repeats = document.runs.iter().map(|run| run.repeat + 1).max().unwrap_or(0);
    let group = |first: u32| {
        let mut some = document.clone();
        some.runs.retain(|run| (first..first + of).contains(&run.repeat));
        verdict(&some)
    };
    (0..repeats / of).map(|number| group(number * of)).collect()
}

/// How the verdicts on a few runs differ from that on all.
#[derive(Default)]
struct Differ {
    of: usize,
    /// They recommend another one that the verdict on all calls better than the reference, too.
    another_as_good: usize,
    /// They keep what should be changed.
    keep: usize,
    /// They change to what the verdict on all does not call better.
    mislead: usize,
}

impl Differ {
    fn count(all: &Verdict, few: &[Verdict]) -> Self {
        let mut differ = Differ { of: few.len(), ..Differ::default() };
        for one in few.iter().filter(|one| one.recommended != all.recommended) {
            let is_better = |outcome: Outcome| matches!(outcome, Outcome::Better | Outcome::BetterElsewhere);
            let of_all = all.candidates.iter().find(|candidate| candidate.scheduler == one.recommended);
            match of_all {
                _ if one.decision == Decision::Keep => differ.keep += 1,
                Some(candidate) if is_better(candidate.outcome) => differ.another_as_good += 1,
                _ => differ.mislead += 1,
            }
        }
        differ
    }
}

#[test]
fn a_few_runs_seldom_say_what_many_do_not() {
    let shown: Option<u32> = std::env::var("HOISTWAY_REPEATS").ok().map(|repeats| repeats.parse().expect("a number"));
    let loads: Vec<&str> =
        if shown.is_some() { [EXAMPLE].into_iter().chain(scenarios::names()).collect() } else { vec![EXAMPLE] };
    let (repeats, runtime_ns) = (shown.unwrap_or(20), shown.is_none().then_some(1_000_000_000));
    for load in loads {
        let document = compared(load, repeats, runtime_ns);
        let all = verdict(&document);
        let mut row = format!("| {load} | {:?} {}", all.decision, all.recommended);
        for of in GROUPS {
            let Differ { of, another_as_good, keep, mislead } = Differ::count(&all, &of_groups(&document, of));
            row += &format!(" | {another_as_good}, {keep}, {mislead} of {of}");
            assert!(shown.is_some() || keep + mislead == 0, "{load}: {keep} and {mislead} of {of}");
        }
        println!("{row} |");
    }
}
