//! The pages of `docs/roles`: each command in them prints the text below it. `UPDATE=1 cargo test -p hoistway --test
//! roles` rewrites them.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::{TempDir, tempdir};

const PAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/roles");

/// The lines before and after a block of commands and their output.
const FENCE: [&str; 2] = ["```console", "```"];

fn files_that_end_with(extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(PAGES).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|of| of == extension)).collect();
    files.sort();
    files
}

/// A folder with the loads, to which commands may also write.
fn workshop() -> TempDir {
    let folder = tempdir().unwrap();
    for load in files_that_end_with("fio") {
        fs::copy(&load, folder.path().join(load.file_name().unwrap())).unwrap();
    }
    folder
}

/// The output of a command line, and its exit status if it failed.
fn printed(line: &str, folder: &Path) -> String {
    let words = shell_words::split(line).unwrap();
    assert_eq!(words[0], "hoistway", "{line}");
    let mut command = assert_cmd::cargo::cargo_bin_cmd!("hoistway");
    for variable in ["COLUMNS", "NO_COLOR"] {
        command.env_remove(variable);
    }
    let output = command.current_dir(folder).args(&words[1..]).output().unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    // The number of progress lines, which begin with a time, depends on the machine.
    let said = String::from_utf8(output.stderr).unwrap();
    let is_progress = |line: &&str| line.split_once(" s: ").is_some_and(|(seconds, _)| seconds.parse::<f64>().is_ok());
    text.extend(said.split_inclusive('\n').filter(|line| !is_progress(line)));
    match output.status.code() {
        Some(0) => text,
        code => text + &format!("(exit status {})\n", code.unwrap()),
    }
}

/// The page with the present output of its commands, and the number of commands.
fn anew(page: &str) -> (String, usize) {
    let (folder, mut text, mut commands, mut is_output) = (workshop(), String::new(), 0, false);
    for line in page.lines() {
        let command = line.strip_prefix("$ ").filter(|_| is_output);
        if let Some(command) = command {
            // A blank line separates a command from the previous output.
            if !text.ends_with("console\n") {
                text.push('\n');
            }
            text += &format!("{line}\n{}", printed(command, folder.path()));
            commands += 1;
        } else if !is_output || line == FENCE[1] {
            text += &format!("{line}\n");
        }
        is_output = if is_output { line != FENCE[1] } else { line == FENCE[0] };
    }
    (text, commands)
}

#[test]
fn every_command_on_the_role_pages_prints_the_documented_output() {
    let pages = files_that_end_with("md");
    assert_eq!(pages.len(), 8, "seven roles and a list of them");
    for page in pages {
        let was = fs::read_to_string(&page).unwrap();
        let (is, commands) = anew(&was);
        assert_eq!(commands == 0, page.ends_with("README.md"), "{}", page.display());
        if std::env::var_os("UPDATE").is_some_and(|update| update == "1") {
            fs::write(&page, is).unwrap();
        } else {
            let name = page.display();
            assert!(
                was == is,
                "{name}: UPDATE=1 cargo test -p hoistway --test roles writes it anew. It would be\n{is}"
            );
        }
    }
}
