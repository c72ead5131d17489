//! Comments cite the rules of `docs/rules` by number (`BL-56`). Every cited number exists, and every document that is
//! named, and every recording on which a rule is based, is in this repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A line of a file, by path and number.
struct Line<'a> {
    path: &'a Path,
    number: usize,
    text: &'a str,
}

/// The files of the repository that may cite rules: its sources and its pages.
struct Repository {
    root: PathBuf,
    files: Vec<(PathBuf, String)>,
}

impl Repository {
    fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut paths = Vec::new();
        for below in ["crates", "docs", "fuzz"] {
            collect(&root.join(below), &mut paths);
        }
        paths.extend(fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()));
        let is_read = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs" || extension == "md");
        let files = paths.into_iter().filter(is_read).map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            (path.strip_prefix(&root).unwrap().to_owned(), text)
        });
        let files = files.collect();
        Repository { root, files }
    }

    fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.files.iter().flat_map(|(path, text)| {
            text.lines().enumerate().map(move |(at, text)| Line { path, number: at + 1, text })
        })
    }

    fn pages(&self) -> impl Iterator<Item = &(PathBuf, String)> {
        self.files.iter().filter(|(path, _)| path.parent() == Some(Path::new("docs/rules")))
    }

    /// The place of each rule, and the errors in their numbering.
    fn rules(&self) -> (BTreeMap<&str, String>, Vec<String>) {
        let (mut rules, mut faults) = (BTreeMap::new(), Vec::new());
        for (path, text) in self.pages() {
            for (at, line) in text.lines().enumerate() {
                let Some(rule) = line.strip_prefix("- **").and_then(|rest| rest.split_once("**")) else { continue };
                let place = format!("{}:{}", path.display(), at + 1);
                if let Some(other) = rules.insert(rule.0, place.clone()) {
                    faults.push(format!("{place}: {} is taken: {other}. Give it the page's next free number.", rule.0));
                }
            }
        }
        (rules, faults)
    }
}

/// All files below a folder, except those of a build.
fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            collect(&path, into);
        } else if path.is_file() {
            into.push(path);
        }
    }
}

/// The words of a line: the runs of characters for which `belongs` is true.
fn words(line: &str, belongs: impl Fn(char) -> bool + Copy) -> impl Iterator<Item = &str> {
    line.split(move |letter| !belongs(letter)).filter(|word| !word.is_empty())
}

/// The prefix and the number of a rule.
fn parts(word: &str) -> Option<(&str, u32)> {
    let (prefix, number) = word.split_once('-')?;
    let is_of_prefix = |letter: u8| letter.is_ascii_uppercase() || letter.is_ascii_digit();
    let is_prefix = prefix.starts_with(|first: char| first.is_ascii_uppercase()) && prefix.bytes().all(is_of_prefix);
    if is_prefix { Some((prefix, number.parse().ok()?)) } else { None }
}

/// The text of this line of a comment or page; empty for code.
fn prose<'a>(line: &Line<'a>) -> &'a str {
    if line.path.extension().is_some_and(|extension| extension == "md") {
        return line.text;
    }
    line.text.find("//").map_or("", |at| &line.text[at..])
}

#[track_caller]
fn assert_none(faults: &[String], what: &str) {
    assert!(faults.is_empty(), "{what}:\n{}\n", faults.join("\n"));
}

#[test]
fn every_cited_rule_exists_once_in_docs_rules() {
    let repository = Repository::read();
    let (rules, mut faults) = repository.rules();
    let prefixes: BTreeSet<&str> = rules.keys().filter_map(|rule| parts(rule)).map(|(prefix, _)| prefix).collect();
    assert!(rules.len() > 400 && prefixes.len() >= 10, "only {} rules were found in docs/rules", rules.len());
    let mut citations = 0;
    for line in repository.lines() {
        for word in words(prose(&line), |letter| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_') {
            let Some((prefix, _)) = parts(word).filter(|(prefix, _)| prefixes.contains(prefix)) else { continue };
            citations += 1;
            if !rules.contains_key(word) {
                let (path, number) = (line.path.display(), line.number);
                faults.push(format!("{path}:{number}: there is no rule {word} in docs/rules (prefix {prefix})"));
            }
        }
    }
    assert_none(&faults, "rules are missing or numbered twice");
    assert!(
        citations > rules.len() + 200,
        "only {citations} citations were found: does the code still cite its rules?"
    );
}

#[test]
fn no_comment_and_no_page_names_a_document_that_is_not_in_the_repository() {
    let repository = Repository::read();
    let mut faults = Vec::new();
    for line in repository.lines() {
        for word in words(prose(&line), |letter| letter.is_ascii_alphanumeric() || "-_./".contains(letter)) {
            let Some(end) = word.find(".md").map(|at| at + ".md".len()) else { continue };
            let is_page = word[end..].chars().all(|letter| letter == '.') && !word.contains("//");
            if !is_page || word == ".md" {
                continue;
            }
            // The path of a page may be relative to the root, or to any folder above the citing file.
            let named = &word[..end];
            let mut from = line.path.ancestors().skip(1);
            if !from.any(|folder| repository.root.join(folder).join(named).is_file()) {
                let (path, number) = (line.path.display(), line.number);
                faults.push(format!(
                    "{path}:{number}: {named} is not in this repository. Cite a rule of docs/rules instead."
                ));
            }
        }
    }
    assert_none(&faults, "documents that cannot be read are cited");
}

#[test]
fn every_recording_that_a_rule_rests_on_is_replayed_here() {
    let repository = Repository::read();
    let mut traces = Vec::new();
    collect(&repository.root.join("crates/evidence/traces"), &mut traces);
    let recordings: BTreeSet<&str> =
        traces.iter().filter_map(|path| path.file_name()?.to_str()?.strip_suffix(".jsonl.gz")).collect();
    let folders: BTreeSet<&str> = traces.iter().filter_map(|path| path.parent()?.file_name()?.to_str()).collect();
    assert!(recordings.len() > 100, "only {} recordings were found", recordings.len());
    let (mut faults, mut named) = (Vec::new(), 0);
    for (path, text) in repository.pages() {
        for paragraph in text.split("\n\n").filter(|paragraph| paragraph.starts_with("Evidence:")) {
            for name in paragraph.split('`').skip(1).step_by(2) {
                let is_name =
                    |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-*".contains(letter);
                if !name.chars().all(is_name) || folders.contains(name) {
                    continue;
                }
                named += 1;
                let begins = name.strip_suffix('*');
                let exists = match begins {
                    Some(begins) => recordings.iter().any(|recording| recording.starts_with(begins)),
                    None => recordings.contains(name),
                };
                if !exists {
                    faults.push(format!("{}: there is no recording {name} in crates/evidence/traces", path.display()));
                }
            }
        }
    }
    assert_none(&faults, "recordings are missing");
    assert!(named > 100, "only {named} recordings are named: do the pages still say what their rules rest on?");
}
