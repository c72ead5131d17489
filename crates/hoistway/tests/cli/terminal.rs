//! Output that differs on a terminal.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use crate::pty::{Session, terminal};
use crate::support::{hoistway, succeeded};

/// The output of the binary on a terminal with this many columns.
fn on_a_terminal(columns: u16, environment: &[(&str, &str)]) -> String {
    let (ours, theirs) = terminal(columns);
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoistway"));
    command.args(["compare", "--runtime", "50ms"]).env_remove("NO_COLOR").env_remove("COLUMNS").env("TERM", "xterm");
    command.envs(environment.iter().copied());
    let mut child = command.stdin(Stdio::null()).stdout(theirs).stderr(Stdio::null()).spawn().unwrap();
    // The command holds a copy of the program's end.
    drop(command);
    let mut printed = Vec::new();
    // Reading the end of a terminal's output fails with EIO.
    let _ = File::from(ours).read_to_end(&mut printed);
    assert!(child.wait().unwrap().success());
    String::from_utf8(printed).unwrap()
}

#[test]
fn tables_are_coloured_on_a_terminal_unless_no_color_is_set() {
    let coloured = on_a_terminal(160, &[]);
    assert!(coloured.contains("\x1b[32m") && coloured.contains("\x1b[0m"), "{coloured:?}");
    // https://no-color.org: an empty value does not count.
    assert_eq!(on_a_terminal(160, &[("NO_COLOR", "")]), coloured);
    let plain = on_a_terminal(160, &[("NO_COLOR", "1")]);
    assert!(!plain.contains('\x1b'), "{plain:?}");
    let mut without = coloured;
    for escape in ["\x1b[32m", "\x1b[31m", "\x1b[0m"] {
        without = without.replace(escape, "");
    }
    assert_eq!(without, plain);
}

#[test]
fn a_terminal_of_any_width_will_do() {
    for columns in [0, 1, 20, 80, u16::MAX] {
        assert!(on_a_terminal(columns, &[("NO_COLOR", "1")]).contains("mq-deadline"), "{columns} columns");
    }
}

/// The longest line of the tables.
fn table_width(text: &str) -> usize {
    let (tables, _) = text.split_once("IOPS and bandwidth:").unwrap();
    tables.lines().map(|line| line.trim_end().chars().count()).max().unwrap()
}

#[test]
fn without_a_terminal_the_columns_variable_sets_the_width() {
    // The tables are compared, and without --repeat the number of repeats would depend on the machine.
    const COMPARE: [&str; 5] = ["compare", "--runtime", "50ms", "--repeat", "2"];
    let with = |columns: &str, more: &[&str]| {
        let mut command = hoistway();
        let command = command.args(COMPARE).args(more).env("COLUMNS", columns);
        succeeded(command)
    };
    let usual = succeeded(hoistway().args(COMPARE));
    assert!(!usual.contains("no room for"), "{usual}");
    for columns in ["", "0", "-1", "wide", "99999"] {
        assert_eq!(with(columns, &[]), usual, "COLUMNS={columns:?} says nothing");
    }
    for columns in [60, 70] {
        let narrow = with(&columns.to_string(), &[]);
        assert!(table_width(&narrow) <= columns && narrow.contains("no room for"), "{narrow}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("table.txt");
    assert_eq!(with("60", &["-o", file.to_str().unwrap()]), "");
    assert_eq!(std::fs::read_to_string(file).unwrap(), with("60", &[]));
}

#[test]
fn on_a_terminal_columns_does_not_count() {
    let plain = [("NO_COLOR", "1")];
    assert_eq!(on_a_terminal(90, &[plain[0], ("COLUMNS", "60")]), on_a_terminal(90, &plain));
}

#[test]
fn tables_of_guests_fit_into_sixty_columns() {
    let arguments = ["compare", "guests", "--runtime", "50ms", "--guest-schedulers", "mq-deadline,bfq"];
    for repeat in ["1", "2"] {
        let more = ["--schedulers", "mq-deadline,none", "--repeat", repeat];
        let text = succeeded(hoistway().args(arguments).args(more).env("COLUMNS", "60"));
        assert!(table_width(&text) <= 60 && text.contains("\nover mq-deadline"), "{text}");
    }
}

#[test]
fn rows_appear_as_runs_end_and_not_only_with_the_table() {
    let (ours, theirs) = terminal(120);
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoistway"));
    // More repeats than the test would wait for.
    command.args(["compare", "--runtime", "1s", "--repeat", "1000"]).env("TERM", "xterm");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(theirs);
    let mut session = Session::new(ours, command);
    let has_rows = |printed: &str| {
        let begins = |name: &str| {
            printed.split(['\n', '\r']).any(|line| line.trim_start_matches("\x1b[2K").trim_start().starts_with(name))
        };
        ["none", "mq-deadline", "kyber", "bfq"].into_iter().all(begins)
    };
    session.wait_until("a row for each scheduler", has_rows);
    assert_eq!(session.child.try_wait().unwrap(), None, "all runs have ended: {}", session.printed);
}

#[test]
fn without_a_terminal_progress_rows_are_lines_with_a_timestamp() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoistway"));
    command.args(["compare", "--runtime", "1s", "--repeat", "1000"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let row = lines.map(Result::unwrap).find_map(|line| {
        let (seconds, row) = line.split_once(" s: ").expect("only progress");
        assert!(seconds.parse::<f64>().is_ok(), "{line}");
        ["none: ", "mq-deadline: ", "kyber: ", "bfq: "].iter().any(|name| row.starts_with(name)).then(|| row.to_owned())
    });
    assert_eq!(child.try_wait().unwrap(), None, "all runs have ended");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(row.unwrap().contains(" IOPS, p99 "));
}
