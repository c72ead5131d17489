//! Other formats of a comparison: CSV and Markdown.

use crate::support;

use hoistway_answer::document::{FailedProcesses, LatencySummary, Run, Statistics};
use hoistway_answer::{Analysis, ResultsDocument};
use hoistway_measure::{Direction, Operation};
use hoistway_render::text::{Style, csv, markdown};

use support::{direction, document, run, syncs};

fn two_repeats() -> ResultsDocument {
    let one = |name: &str, repeat, iops: f64| Run {
        repeat,
        ..run(name, vec![("a|b, \"c\"", 2, vec![direction(Direction::Read, iops, 1e9 / iops)])])
    };
    document(vec![one("none", 0, 1000.0), one("none", 1, 1010.0), one("kyber", 0, 2000.0), one("kyber", 1, 2012.0)])
}

#[test]
fn comma_separated_values_have_one_line_for_each_scheduler_job_and_direction() {
    let text = csv(&Analysis::of(&two_repeats()));
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let headers = reader.headers().unwrap().clone();
    let lines: Vec<_> = reader.records().map(Result::unwrap).collect();
    assert_eq!(lines.len(), 2);
    let cell =
        |line: usize, name: &str| lines[line][headers.iter().position(|header| header == name).unwrap()].to_owned();
    assert_eq!(cell(1, "scheduler"), "kyber");
    assert_eq!(cell(1, "job"), "a|b, \"c\"");
    assert_eq!((cell(1, "direction"), cell(1, "repeats")), ("read".to_owned(), "2".to_owned()));
    assert_eq!(cell(1, "iops"), "2006");
    assert!((cell(1, "iops_vs_baseline").parse::<f64>().unwrap() - 1001.0 / 1005.0).abs() < 1e-9);
    assert_eq!(cell(1, "iops_significant"), "true");
    assert_eq!((cell(0, "iops_vs_baseline"), cell(1, "lat_max_ns_half_width")), (String::new(), String::new()));
    // Differences of 1000 and 1002: t = 12.706, deviation 1.414, n = 2.
    assert!((cell(1, "iops_half_width").parse::<f64>().unwrap() - 12.706_205 * 6.0).abs() < 1e-3);
}

#[test]
fn csv_reports_failed_processes_even_before_any_io() {
    let failed = |errno, processes| FailedProcesses { errno, processes };
    let mut document = two_repeats();
    document.runs[2].jobs[0].failed = vec![failed(5, 1)];
    document.runs[3].jobs[0].failed = vec![failed(5, 1), failed(110, 1)];
    document.runs.push(run("bfq", vec![("a|b, \"c\"", 2, Vec::new())]));
    document.runs.push(run("mq-deadline", vec![("a|b, \"c\"", 2, Vec::new())]));
    document.runs[4].jobs[0].failed = vec![failed(95, 2)];
    let text = csv(&Analysis::of(&document));
    let ends: Vec<_> = text.lines().map(|line| line.rsplitn(3, ',').collect::<Vec<_>>()).collect();
    let ends: Vec<_> = ends.iter().map(|parts| (parts[1], parts[0])).collect();
    assert_eq!(ends, [("failed_processes", "errnos"), ("0", ""), ("2", "5 110"), ("2", "95")], "{text}");
    let idle = text.lines().nth(3).unwrap();
    assert!(idle.contains(",bfq,mq,,") && idle.contains(",2,,1,0,,"), "{idle}");
}

#[test]
fn an_empty_document_makes_only_the_header() {
    assert_eq!(csv(&Analysis::of(&document(Vec::new()))).lines().count(), 1);
}

#[test]
fn markdown_is_a_table_in_which_names_mean_nothing() {
    let text = markdown(&Analysis::of(&two_repeats()));
    assert!(text.contains("**a\\|b, \"c\", 2 processes**"), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 4, "{text}");
    let columns = |row: &str| row.matches('|').count();
    assert!(rows.iter().all(|row| columns(row) == columns(rows[0])), "{text}");
    assert!(rows[3].contains("| **2.01 k ±3.8%** |"), "{text}");
    assert!(rows[2].contains("| *1.00 k ±6.3%* |"), "{text}");
}

#[test]
fn the_document_marks_significant_differences() {
    let statistics = Statistics::of(&Analysis::of(&two_repeats()));
    assert_eq!((statistics.repeats, statistics.baseline.as_str()), (2, "none"));
    let iops = statistics.rows[1].figures.get("iops").unwrap();
    assert_eq!(iops.mean, 2006.0);
    assert_eq!(iops.from_baseline.as_ref().unwrap().significant, Some(true));
    assert!(iops.best && !iops.worst);
    let max = statistics.rows[1].figures.get("lat_max_ns").unwrap();
    assert_eq!((max.half_width, max.best), (None, false));
    assert!(statistics.rows[0].figures.get("iops").unwrap().from_baseline.is_none());
}

#[test]
fn syncs_are_rows_of_their_own_without_bandwidth() {
    let mut document = two_repeats();
    for run in &mut document.runs {
        let lat_ns = LatencySummary { mean: 2e6, p99: 5_000_000, max: 9_000_000, ..LatencySummary::default() };
        run.jobs[0].operations.push(syncs(2000.0, lat_ns));
    }
    let text = markdown(&Analysis::of(&document));
    let row = text.lines().find(|line| line.starts_with("| kyber | sync |")).unwrap();
    assert!(row.contains("| - | 2.00 ms") && row.contains("| 5.00 ms") && row.contains("| 9.00 ms"), "{row}");
    assert!(
        hoistway_render::text::table(&Analysis::of(&document), &Style::default()).contains("sync"),
        "also in the table"
    );
    let text = csv(&Analysis::of(&document));
    let [header, line] = [0, 3].map(|line| text.lines().nth(line).unwrap().split(',').collect::<Vec<_>>());
    let of = |column: &str| line[1 + header.iter().position(|name| *name == column).unwrap()];
    // A job's name with a comma is split into two fields here.
    assert_eq!([of("direction"), of("bytes_per_second"), of("lat_p99_ns")], ["sync", "", "5000000"]);
    let statistics = Statistics::of(&Analysis::of(&document));
    let row = statistics.rows.iter().find(|row| row.operation == Operation::Sync).unwrap();
    assert!(row.figures.get("lat_max_ns").is_some() && row.figures.get("bytes_per_second").is_none());
}

#[test]
fn a_run_is_one_line_as_soon_as_it_has_ended() {
    let reads = |name| (name, 1, vec![direction(Direction::Read, 1250.0, 1e6)]);
    let of = |jobs: &[&'static str]| {
        hoistway_render::text::run_line("kyber", &run("kyber", jobs.iter().map(|job| reads(*job)).collect()))
    };
    assert_eq!(of(&["a"]), "kyber: a read 1.25 k IOPS, p99 4.00 ms");
    assert!(of(&["a", "b", "c", "d", "e"]).ends_with("; 2 more"));
    assert_eq!(of(&[]), "kyber: no I/O");
}

#[test]
fn a_document_of_format_1_has_the_same_figures_as_when_it_was_written() {
    let document = ResultsDocument::from_json(include_str!("../../answer/tests/data/format1.json")).unwrap();
    assert_eq!(csv(&Analysis::of(&document)), include_str!("../../answer/tests/data/format1.csv"));
}
