//! The table of faults in `docs/internals/testing.md`: every test that it names exists.

/// The heading above the table.
const HEADING: &str = "## Faults and their tests";

/// Names of the functions marked `#[test]` in a source text, those inside `proptest!` included.
pub(crate) fn tests(source: &str) -> Vec<&str> {
    let mut is_test = false;
    let mut names = Vec::new();
    for line in source.lines().map(str::trim) {
        if line == "#[test]" {
            is_test = true;
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            let name = line.strip_prefix("fn ").and_then(|rest| rest.split(['(', '<']).next());
            names.extend(name.filter(|_| is_test));
            is_test = false;
        }
    }
    names
}

/// The faults of the table, each with the tests that its last column names.
pub(crate) fn rows(document: &str) -> Vec<(&str, Vec<&str>)> {
    let (_, section) = document.split_once(HEADING).expect("the section with the table");
    section
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .skip(2)
        .map(|row| {
            let cells: Vec<&str> = row.split(" | ").collect();
            (cells[0], cells[cells.len() - 1].split('`').skip(1).step_by(2).collect())
        })
        .collect()
}

/// Errors in the table: rows without a test, and tests that do not exist.
pub(crate) fn missing(document: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for (fault, tests) in rows(document) {
        if tests.is_empty() {
            wrong.push(format!("{fault}: no test"));
        }
        wrong.extend(tests.iter().filter(|name| !exists(name)).map(|name| format!("{fault}: {name}")));
    }
    wrong
}
