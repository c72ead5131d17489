//! `docs/founding-texts.md`: its commands are accepted, its counts are those of its rows, and what it says of a table of
//! `reproduce` agrees with the stored cells of that table.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{hoistway, succeeded};

/// A row of the page.
struct Sentence {
    number: usize,
    /// The words of its command, without `hoistway`.
    command: Vec<String>,
    /// `yes`, `in part`, `no` or `not judged`.
    verdict: String,
    /// Whether there is a cause behind the verdict.
    has_cause: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    fs::read_to_string(root().join("docs/founding-texts.md")).unwrap()
}

fn sentences() -> Vec<Sentence> {
    let page = page();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let columns = rows.map(|row| row.split(" | ").collect::<Vec<_>>());
    let numbered = columns.filter_map(|columns| Some((columns[0].parse().ok()?, columns)));
    numbered
        .map(|(number, columns)| {
            let [_, _, command, _, _, verdict] = columns[..] else { panic!("row {number}: {columns:?}") };
            let command = command.trim_matches('`').strip_prefix("hoistway ").expect(command);
            let (verdict, cause) = verdict.split_once(": ").unwrap_or((verdict, ""));
            Sentence {
                number,
                command: shell_words::split(command).unwrap(),
                verdict: verdict.to_owned(),
                has_cause: !cause.is_empty(),
            }
        })
        .collect()
}

/// The same command for a few milliseconds, unless something happens during its run.
fn shortened(command: &[String]) -> Vec<String> {
    if command.iter().any(|word| word == "--at") {
        return command.to_vec();
    }
    let mut short = Vec::new();
    let mut words = command.iter();
    while let Some(word) = words.next() {
        if ["--runtime", "--ramp", "--repeat"].contains(&word.as_str()) {
            words.next();
        } else {
            short.push(word.clone());
        }
    }
    if ["compare", "fio"].contains(&short[0].as_str()) {
        if short[0] == "fio" && !short.iter().any(|word| word == "--") {
            short.push("--".to_owned());
        }
        short.extend(["--runtime", "10ms", "--ramp", "0", "--repeat", "1"].map(str::to_owned));
    }
    short
}

#[test]
fn every_command_of_the_page_is_accepted() {
    let sentences = sentences();
    assert!(sentences.len() > 78, "{}", sentences.len());
    for sentence in sentences.iter().filter(|sentence| sentence.command[0] != "reproduce") {
        let words = shortened(&sentence.command);
        let printed = succeeded(hoistway().current_dir(root()).args(&words));
        assert!(!printed.is_empty(), "row {}: {words:?}", sentence.number);
    }
}

#[test]
fn the_page_counts_its_rows_and_gives_a_cause_for_all_that_does_not_come_out() {
    let sentences = sentences();
    for (index, sentence) in sentences.iter().enumerate() {
        assert_eq!(sentence.number, index + 1);
        assert_eq!(sentence.has_cause, sentence.verdict != "yes", "row {}", sentence.number);
    }
    let [yes, part, no, unjudged] = ["yes", "in part", "no", "not judged"]
        .map(|verdict| sentences.iter().filter(|sentence| sentence.verdict == verdict).count());
    assert_eq!(yes + part + no + unjudged, sentences.len());
    let summary = format!(
        "Of {} sentences {yes} come out, {part} in part, {no} do not, and {unjudged} are not judged.",
        sentences.len()
    );
    assert!(page().contains(&summary), "expected {summary:?}");
}

#[test]
fn what_the_page_says_of_a_published_table_agrees_with_its_stored_cells() {
    let mut reader = csv::Reader::from_path(root().join("docs/internals/reproduction.csv")).unwrap();
    let cells: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    for sentence in sentences().iter().filter(|sentence| sentence.command[0] == "reproduce") {
        let Sentence { number, command, verdict, .. } = sentence;
        let row = match &command[2..] {
            [] => "",
            [option, row] if option == "--row" => row,
            other => panic!("row {number}: {other:?}"),
        };
        let of_row = || cells.iter().filter(|cell| cell[0] == command[1] && cell[1].contains(row));
        assert!(of_row().count() > 0, "row {number}: {command:?} names no stored cell");
        let [held, missed] =
            ["holds", "MISSED"].map(|start| of_row().filter(|cell| cell[6].starts_with(start)).count());
        let agrees = match verdict.as_str() {
            "yes" => held > 0 && missed == 0,
            "in part" => held > 0 && missed > 0,
            "no" => held == 0 || missed > 0,
            _ => held == 0 && missed == 0,
        };
        assert!(agrees, "row {number}: {verdict}, but of {command:?} {held} hold and {missed} are missed");
    }
}
