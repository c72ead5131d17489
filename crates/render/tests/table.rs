//! Tables of a small hand-made document, compared with the expected text.

use crate::support;
use crate::support::place;

use hoistway_answer::document::{FailedProcesses, Front, Run, RunLabel};
use hoistway_answer::{Analysis, ResultsDocument};
use hoistway_measure::Direction;
use hoistway_render::text::{Style, conclusion, csv, json, markdown, table};
use serde_json::{Map, Value, json};

use support::{direction, document, run};

const PLAIN: Style = Style { colour: false, width: None, wide: true, ascii: false };

fn two_jobs() -> ResultsDocument {
    use Direction::{Read, Write};
    let scheduler = |name, factor: f64| {
        let oltp = vec![direction(Read, 38_400.0 * factor, 416_000.0 / factor), direction(Write, 16_500.0, 83_000.0)];
        run(name, vec![("oltp", 16, oltp), ("log", 1, vec![direction(Write, 812.0 / factor, 1_231_000.0 * factor)])])
    };
    let mut legacy = scheduler("deadline", 0.8);
    legacy.front = Front::Legacy;
    let runs = vec![scheduler("none", 1.0), scheduler("mq-deadline", 0.97), scheduler("bfq", 0.55), legacy];
    let mut document = document(runs);
    document.notices = vec!["deadline runs in its last form (Linux 4.20).".to_owned()];
    document
}

#[track_caller]
fn assert_text(found: &str, expected: &str) {
    assert!(found == expected, "found:\n{found}\nexpected:\n{expected}");
}

#[test]
fn a_table_for_each_job() {
    assert_text(&table(&Analysis::of(&two_jobs()), &PLAIN), include_str!("golden/two-jobs.txt"));
}

#[test]
fn several_places_are_listed_and_their_rows_separated() {
    let reads = |iops| vec![("a", 1, vec![direction(Direction::Read, iops, 1e9 / iops)])];
    let place = |kernel: &str, setup, iops| Run {
        variant: RunLabel::new("none", Map::from_iter([("kernel".to_owned(), json!(kernel))])),
        setup,
        ..run("none", reads(iops))
    };
    let mut document = document(vec![place("4.19", 0, 1000.0), place("6.18", 1, 2000.0)]);
    let at = |kernel: &str| place::place("nvme-datacenter", kernel, None);
    document.setups = vec![at("4.19"), at("6.18")];
    let text = table(&Analysis::of(&document), &PLAIN);
    assert!(text.contains("on nvme-datacenter, 8 CPUs, 1 hardware queue (Linux 4.19; Linux 6.18), seed"), "{text}");
    assert!(text.contains("none kernel=4.19 ") && text.contains("none kernel=6.18 "), "{text}");
    let csv = csv(&Analysis::of(&document));
    assert!(
        csv.lines().nth(1).is_some_and(|line| line.starts_with("mixed.fio,nvme-datacenter,4.19,none,mq,")),
        "{csv}"
    );
    assert!(
        csv.lines().nth(2).is_some_and(|line| line.starts_with("mixed.fio,nvme-datacenter,6.18,none,mq,")),
        "{csv}"
    );
}

#[test]
fn ascii_style_adds_nothing_but_ascii() {
    let text = table(&Analysis::of(&two_jobs()), &Style { ascii: true, ..PLAIN });
    assert!(text.is_ascii());
    assert_text(&text, include_str!("golden/two-jobs-ascii.txt"));
}

#[test]
fn a_usual_terminal_is_wide_enough() {
    for line in table(&Analysis::of(&two_jobs()), &PLAIN).lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let text = table(&Analysis::of(&two_jobs()), &Style { width: Some(100), ..PLAIN });
    assert!(!text.contains("no room"));
}

#[test]
fn the_default_table_omits_columns_that_most_readers_do_not_need() {
    let text = table(&Analysis::of(&two_jobs()), &Style { wide: false, ..PLAIN });
    assert!(!text.contains("p50") && !text.contains("p99.9"), "{text}");
    assert!(text.contains("p99") && text.contains("max") && !text.contains("no room"), "{text}");
}

#[test]
fn columns_give_way_in_a_narrow_terminal() {
    for width in [80, 60] {
        let text = table(&Analysis::of(&two_jobs()), &Style { width: Some(width), ..PLAIN });
        let (tables, _) = text.split_once("IOPS and bandwidth:").unwrap();
        // All lines except the one about the setup, which may wrap.
        for line in tables.lines().skip(1) {
            assert!(line.chars().count() <= usize::from(width), "{line}");
        }
    }
    assert_text(
        &table(&Analysis::of(&two_jobs()), &Style { width: Some(70), ..PLAIN }),
        include_str!("golden/two-jobs-70.txt"),
    );
}

#[test]
fn colours_change_nothing_but_the_colour() {
    let coloured = table(&Analysis::of(&two_jobs()), &Style { colour: true, ..PLAIN });
    assert!(coloured.contains("\x1b[32m38.4 k\x1b[0m"), "{coloured}");
    assert!(coloured.contains("\x1b[31m21.1 k\x1b[0m"), "{coloured}");
    // Writes of oltp are the same under all schedulers.
    assert!(!coloured.contains("m16.5 k"), "{coloured}");
    let stripped = coloured.replace("\x1b[32m", "").replace("\x1b[31m", "").replace("\x1b[0m", "");
    assert_text(&stripped, &table(&Analysis::of(&two_jobs()), &PLAIN));
}

#[test]
fn others_are_compared_with_the_first_scheduler_or_the_one_that_was_named() {
    let mut document = two_jobs();
    document.runs.remove(0);
    let lines = |document: &ResultsDocument| -> Vec<String> {
        table(&Analysis::of(document), &PLAIN)
            .lines()
            .filter(|line| line.contains(" read "))
            .map(str::to_owned)
            .collect()
    };
    let from_first = lines(&document);
    assert!(!from_first[0].contains('%') && from_first[1].contains("-43.3%"), "{from_first:?}");
    document.baseline = Some("bfq".to_owned());
    let from_bfq = lines(&document);
    assert!(from_bfq[0].contains("+76.4%") && !from_bfq[1].contains('%'), "{from_bfq:?}");
    assert!(table(&Analysis::of(&document), &PLAIN).contains(" bfq "));
}

#[test]
fn repeats_are_averaged_and_variants_numbered() {
    let repeat = |number: u32, scheduler: &str, slice_idle: Option<u32>, iops: f64| {
        let mut run = run(scheduler, vec![("a", 1, vec![direction(Direction::Read, iops, 1e9 / iops)])]);
        run.repeat = number;
        run.tunables.extend(slice_idle.map(|us| ("slice_idle_us".to_owned(), Value::from(us))));
        run.simulated_seconds = 2.0 + f64::from(number) / 2.0;
        run
    };
    let mut document = document(vec![
        repeat(0, "none", None, 1000.0),
        repeat(1, "none", None, 1100.0),
        repeat(0, "bfq", None, 500.0),
        repeat(1, "bfq", None, 590.0),
        repeat(0, "bfq", Some(0), 900.0),
    ]);
    document.partial = true;
    document.device = json!([{"name": "hdd"}, {"name": "ssd"}]);
    assert_text(&table(&Analysis::of(&document), &PLAIN), include_str!("golden/repeats.txt"));
}

#[test]
fn documents_without_io_make_a_text_all_the_same() {
    let empty = table(&Analysis::of(&document(Vec::new())), &PLAIN);
    assert_text(
        &empty,
        "mixed.fio on nvme-datacenter, Linux 6.18, 8 CPUs, 1 hardware queue, seed 42, 0 s simulated\n\n\
         There was no I/O.\n",
    );
    let mut idle = document(vec![run("none", vec![("a", 1, Vec::new())])]);
    let in_ramp = table(&Analysis::of(&idle), &PLAIN).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(in_ramp.contains("No I/O was measured: every run ended before its ramp was over. --ramp 0"), "{in_ramp}");
    idle.runs[0].simulated_ios = 0;
    assert!(table(&Analysis::of(&idle), &PLAIN).contains("There was no I/O."));
}

#[test]
fn processes_that_failed_are_named_under_the_table_and_make_the_conclusion_uncertain() {
    let failed = |errno, processes| FailedProcesses { errno, processes };
    let mut document = two_jobs();
    let say = |document: &ResultsDocument| {
        let markdown = markdown(&Analysis::of(document));
        let remark = markdown.lines().find(|line| line.starts_with("- FAILED"))?[2..].to_owned();
        // Labels may wrap to the next line there.
        let table = table(&Analysis::of(document), &PLAIN).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(table.contains(&format!("{remark} IOPS and bandwidth: ")), "{table}");
        Some(remark)
    };
    let doubts = |document: &ResultsDocument| conclusion(&Analysis::of(document)).join("\n");
    assert_eq!(say(&document), None);
    assert!(!doubts(&document).contains("failed"));

    document.runs[1].jobs[0].failed = vec![failed(110, 3)];
    document.runs[2].jobs[0].failed = vec![failed(5, 15), failed(110, 1)];
    for run in &mut document.runs {
        run.jobs[1].failed = vec![failed(7, 1)];
    }
    let expected = "FAILED, and their figures end at the error: oltp under mq-deadline and bfq (3 to 16 of 16 processes, EIO and \
                    ETIMEDOUT); log under all schedulers (1 of 1 process, errno 7).";
    assert_eq!(say(&document).as_deref(), Some(expected));
    assert!(doubts(&document).contains("processes failed"), "{}", doubts(&document));
}

#[test]
fn processes_that_failed_before_any_io_are_named_all_the_same() {
    let mut document = document(vec![run("none", vec![("a", 2, Vec::new())])]);
    document.runs[0].jobs[0].failed = vec![FailedProcesses { errno: 95, processes: 2 }];
    let text = table(&Analysis::of(&document), &PLAIN);
    assert!(text.contains(": a under none (2 of 2 processes, EOPNOTSUPP).\nThere was no I/O.\n"), "{text}");
}

#[test]
fn json_reads_back() {
    let document = two_jobs();
    let text = json(&document);
    assert!(text.starts_with("{\n  \"format\": \"hoistway-results/2\",\n") && text.ends_with("}\n"));
    assert_eq!(ResultsDocument::from_json(&text).unwrap(), document);
}

#[test]
fn twenty_drives_of_one_kind_are_counted_in_the_header_and_not_listed() {
    let mut document = two_jobs();
    document.device = serde_json::Value::from(vec![serde_json::json!({"name": "nvme-datacenter"}); 20]);
    let text = table(&Analysis::of(&document), &Style::default());
    let header = text.lines().next().unwrap();
    assert!(
        header.contains("on 20 x nvme-datacenter (one for each file name), Linux 6.18") && header.len() < 130,
        "{header}"
    );
}

#[test]
fn every_ended_run_is_a_line_even_without_io() {
    let document = two_jobs();
    let run = &document.runs[0];
    let line = hoistway_render::text::run_line("bfq", run);
    assert!(line.starts_with(&format!("bfq: {} ", run.jobs[0].name)) && line.contains(" IOPS, p99 "), "{line}");
    let idle = hoistway_answer::document::Run { jobs: Vec::new(), ..run.clone() };
    assert_eq!(hoistway_render::text::run_line("bfq", &idle), "bfq: no I/O");
    let many = hoistway_answer::document::Run { jobs: vec![run.jobs[0].clone(); 20], ..run.clone() };
    assert!(hoistway_render::text::run_line("bfq", &many).ends_with("; 17 more"));
}
