//! The two sentences under a comparison: that they follow from its figures, and never claim what noise may have made.

mod support;

use hoistway_report::{conclusion, figure_in_words};
use hoistway_results::document::Run;
use hoistway_results::{Comparison, Direction, Figure, FigureName, ResultsDocument, Settling};
use proptest::prelude::*;

use support::{direction, document, run};

/// Repeats of one job of reads with these IOPS under each scheduler.
fn repeated(schedulers: &[(&str, &[f64])]) -> ResultsDocument {
    let runs = schedulers.iter().flat_map(|(name, iops)| {
        iops.iter().zip(0..).map(|(iops, repeat)| Run {
            repeat,
            ..run(name, vec![("a", 1, vec![direction(Direction::Read, *iops, 1e9 / iops)])])
        })
    });
    document(runs.collect())
}

fn sentences(document: &ResultsDocument) -> [String; 2] {
    conclusion(document).try_into().unwrap()
}

#[test]
fn whoever_is_beyond_the_noise_of_all_others_gives_the_lowest_latency() {
    let document = repeated(&[
        ("none", &[1000.0, 1010.0, 990.0]),
        ("kyber", &[2000.0, 2020.0, 1985.0]),
        ("bfq", &[1200.0, 1190.0, 1210.0]),
    ]);
    let [meaning, doubt] = sentences(&document);
    assert!(
        meaning
            .starts_with("For this load on nvme-datacenter, kyber gives the lowest p99 read latency of a (2.00 ms ±"),
        "{meaning}"
    );
    assert!(meaning.contains("; none 4.00 ms ±") && meaning.contains(", -50.0%)"), "{meaning}");
    assert!(doubt.starts_with("Nothing in the data speaks against it: 3 repeats agree"), "{doubt}");
}

#[test]
fn whoever_is_within_the_noise_is_not_told_apart() {
    let document = repeated(&[
        ("none", &[1000.0, 1010.0, 990.0]),
        ("kyber", &[2000.0, 2020.0, 1985.0]),
        ("bfq", &[2010.0, 1990.0, 2000.0]),
    ]);
    let [meaning, _] = sentences(&document);
    assert!(
        meaning.contains("kyber and bfq cannot be told apart at the lowest")
            || meaning.contains("bfq and kyber cannot be told apart"),
        "{meaning}"
    );
    assert!(meaning.contains("none is worst (4.00 ms"), "{meaning}");
    let same = repeated(&[("none", &[1000.0, 1010.0]), ("kyber", &[1005.0, 1002.0])]);
    let [meaning, doubt] = sentences(&same);
    assert!(meaning.contains("no difference between the schedulers in p99 read latency of a can be told"), "{meaning}");
    assert!(doubt.contains("of all others from none is within the noise of 2 repeats"), "{doubt}");
}

#[test]
fn single_runs_are_told_as_what_they_are() {
    let [meaning, doubt] = sentences(&repeated(&[("none", &[1000.0]), ("kyber", &[2000.0])]));
    assert!(
        meaning.contains("kyber had the lowest p99 read latency of a in this one run (2.00 ms; none 4.00 ms"),
        "{meaning}"
    );
    assert!(doubt.contains("--repeat 5"), "{doubt}");
    let [meaning, _] = sentences(&repeated(&[("none", &[1000.0]), ("kyber", &[1000.0])]));
    assert!(meaning.contains("all schedulers had the same"), "{meaning}");
}

#[test]
fn the_price_is_what_the_winner_loses_elsewhere() {
    let runs = [("none", 1000.0, 5000.0), ("kyber", 2000.0, 4000.0)].map(|(name, reads, writes)| {
        let jobs = vec![
            ("log", 1, vec![direction(Direction::Write, writes, 1e9)]),
            ("a", 1, vec![direction(Direction::Read, reads, 1e9 / reads)]),
        ];
        run(name, jobs)
    });
    let [meaning, _] = sentences(&document(runs.into()));
    assert!(meaning.ends_with(", at the price of -20.0% write IOPS of log (against none)."), "{meaning}");
}

#[test]
fn the_author_of_a_load_may_say_what_it_is_about() {
    let mut document = repeated(&[("none", &[1000.0, 1010.0]), ("kyber", &[2000.0, 2010.0])]);
    let focus: FigureName = "a:read:iops".parse().unwrap();
    assert_eq!(figure_in_words(&focus), "read IOPS of a");
    (document.focus, document.doubts) = (Some(focus), vec!["the device is unlike yours".to_owned()]);
    let [meaning, doubt] = sentences(&document);
    assert!(meaning.contains("kyber gives the highest read IOPS of a"), "{meaning}");
    assert_eq!(doubt, "What makes this uncertain: the device is unlike yours.");
}

#[test]
fn a_figure_that_the_results_do_not_have_is_replaced_by_one_that_they_have() {
    let mut document = repeated(&[("none", &[1000.0, 1010.0]), ("kyber", &[2000.0, 2010.0])]);
    document.focus = Some("a:write:iops".parse().unwrap());
    assert!(sentences(&document)[0].contains("p99 read latency of a"));
}

#[test]
fn runs_that_had_not_settled_are_named() {
    let mut document = repeated(&[("none", &[1000.0, 1010.0]), ("kyber", &[2000.0, 2010.0])]);
    let figure = hoistway_results::settling::SettlingFigure::Iops;
    document.runs[0].jobs[0].directions[0].settling = Settling::WarmUp { seconds: 2.5, figure, difference: 0.4 };
    document.runs[2].jobs[0].directions[0].settling = Settling::Unsettled { figure, difference: -0.3 };
    let [_, doubt] = sentences(&document);
    assert!(
        doubt.contains("a under kyber had not settled by the end (up to IOPS -30.0% at first, by MSER)"),
        "{doubt}"
    );
    assert!(doubt.contains("the first 2.50 s of a under none are unlike the rest (up to IOPS +40.0%"), "{doubt}");
}

#[test]
fn nothing_is_concluded_from_nothing() {
    assert!(conclusion(&document(Vec::new())).is_empty());
    assert!(conclusion(&repeated(&[("none", &[1000.0])])).is_empty());
}

proptest! {
    #[test]
    fn nobody_is_called_the_best_whose_interval_against_anyone_includes_zero(
        samples in prop::collection::vec(prop::collection::vec(900.0..1100.0_f64, 2..6), 2..5),
    ) {
        let names = ["none", "kyber", "bfq", "mq-deadline"];
        let schedulers: Vec<(&str, &[f64])> = names.into_iter().zip(samples.iter().map(Vec::as_slice)).collect();
        let document = repeated(&schedulers);
        let [meaning, _] = sentences(&document);
        let comparison = Comparison::of(&document);
        let rows = &comparison.jobs[0].operations[0].rows;
        for (index, row) in rows.iter().enumerate() {
            let claim = format!("{} gives the lowest", comparison.variants[row.variant].label);
            if meaning.contains(&claim) {
                for (_, other) in rows.iter().enumerate().filter(|(other, _)| *other != index) {
                    let difference = row.difference(other, Figure::P99).unwrap();
                    prop_assert_eq!(difference.is_significant(), Some(true), "{}", &meaning);
                    prop_assert!(difference.mean < 0.0, "{}", &meaning);
                }
            }
        }
    }
}
