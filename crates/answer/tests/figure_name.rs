//! Names of figures: parsing, display, and look-up in results.

use hoistway_answer::document::{JobSummary, ResultsDocument};
use hoistway_answer::{Analysis, Figure, FigureName};
use hoistway_measure::{Direction, Operation, ProcessResult};
use proptest::prelude::*;
use serde_json::json;

fn error(text: &str) -> String {
    text.parse::<FigureName>().unwrap_err().to_string()
}

#[test]
fn a_name_says_job_operation_and_figure() {
    let name: FigureName = "backends:read:p99".parse().unwrap();
    let same = FigureName { job: "backends".to_owned(), operation: Operation::Read, figure: Figure::P99 };
    assert_eq!((&name, name.to_string().as_str()), (&same, "backends:read:p99"));
    let quoted: FigureName = r#""the \"db\": a\\b":write:p99.9"#.parse().unwrap();
    assert_eq!((quoted.job.as_str(), quoted.figure), (r#"the "db": a\b"#, Figure::P99_9));
    let needless: FigureName = r#""log":trim:max"#.parse().unwrap();
    assert_eq!(needless.to_string(), "log:trim:max");
}

#[test]
fn an_invalid_figure_name_is_refused_with_the_grammar_and_known_names() {
    for (text, problem) in [
        ("", "it has no job"),
        (":read:p99", "it has no job"),
        ("backends", "it has no operation and figure"),
        ("backends:read", "it has no operation and figure"),
        ("a:b:read:p99", "it has too many parts"),
        ("backends:reads:p99", "\"reads\" is not an operation"),
        ("backends:read:p98", "\"p98\" is not a figure"),
        ("wal:sync:bandwidth", "a sync has no bandwidth"),
        ("\"a:read:p99", "the closing quotation mark is missing"),
        ("\"a\"read:p99", "no colon follows the quoted job"),
        ("\"a\\n\":read:p99", "after \\ only"),
    ] {
        let error = error(text);
        assert!(error.starts_with(&format!("{text:?} names no figure: {problem}")), "{error}");
        assert!(error.contains("expected JOB:OPERATION:FIGURE, such as backends:read:p99"), "{error}");
        assert!(error.contains("read, write, trim, sync") && error.contains("bandwidth, mean, p50"), "{error}");
    }
}

/// A document in which the job "log" wrote and "db:main" read.
fn document() -> ResultsDocument {
    let process = |job: u32, name: &str, direction, ios| {
        let mut process = ProcessResult { name: name.to_owned(), job, runtime_ns: 1_000_000_000, ..Default::default() };
        let measured = process.direction_mut(direction);
        measured.ios = ios;
        (0..ios).for_each(|_| measured.lat.record(100_000));
        process
    };
    let processes = [process(0, "log", Direction::Write, 10), process(1, "db:main", Direction::Read, 20)];
    serde_json::from_value(json!({
        "format": "hoistway-results/2", "version": "0.1.0", "command": "", "job_file": "a.fio", "job_text": "",
        "device": "null", "kernel": "6.18", "cpus": 1, "hw_queues": 1, "nr_requests": 2, "host": "instant", "seed": 1,
        "wall_seconds": 0.0, "simulated_ios": 30, "partial": false,
        "runs": [{
            "scheduler": "none", "front": "mq", "tunables": {}, "repeat": 0, "seed": 1, "simulated_seconds": 1.0,
            "simulated_ios": 30, "wall_seconds": 0.0, "cpu_us_per_io": null,
            "jobs": JobSummary::from_processes(&processes),
        }],
    }))
    .unwrap()
}

#[test]
fn a_figure_is_found_under_each_scheduler() {
    let document = document();
    let of = |name: &str| Analysis::of(&document).figure(&name.parse().unwrap());
    let iops = of("\"db:main\":read:iops").unwrap();
    assert_eq!(iops.iter().map(|(label, iops)| (label.as_str(), iops.mean)).collect::<Vec<_>>(), [("none", 20.0)]);
    assert!((of("log:write:mean").unwrap()[0].1.mean - 100_000.0).abs() < 1000.0);
}

#[test]
fn a_figure_absent_from_results_is_refused_with_the_available_ones() {
    let document = document();
    for name in ["log:read:p99", "logs:write:p99"] {
        let error = Analysis::of(&document).figure(&name.parse().unwrap()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{name}: no such I/O happened")), "{error}");
        assert!(error.contains("expected one of log:write, \"db:main\":read, each with one of iops,"), "{error}");
    }
    let nothing = ResultsDocument { runs: Vec::new(), ..document };
    let error = Analysis::of(&nothing).figure(&"log:write:p99".parse().unwrap()).unwrap_err().to_string();
    assert!(error.contains("expected results with I/O"), "{error}");
}

proptest! {
    #[test]
    fn every_name_reads_back_as_it_was_written(job in ".*", operation in 0usize..4, figure in 0usize..7) {
        let (operation, figure) = (Operation::ALL[operation], Figure::ALL[figure]);
        prop_assume!(figure.is_of(operation));
        let name = FigureName { job, operation, figure };
        let text = name.to_string();
        prop_assert_eq!(text.parse::<FigureName>().unwrap(), name.clone());
        let json = serde_json::to_string(&name).unwrap();
        prop_assert_eq!(serde_json::from_str::<FigureName>(&json).unwrap(), name);
    }

    #[test]
    fn a_parsed_figure_name_round_trips(text in r#"("[a-z:"\\ ]{0,6}"|[a-z" ]{1,6}):(read|write|trim|sync):(p99|p99\.9|iops|x)"#) {
        if let Ok(name) = text.parse::<FigureName>() {
            prop_assert_eq!(name.to_string().parse::<FigureName>().unwrap(), name);
        }
    }
}
