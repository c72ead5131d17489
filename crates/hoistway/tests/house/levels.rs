//! How much each crate is optimised where people wait for the build.

use std::collections::BTreeSet;
use std::path::Path;

/// The crates with a row in this table of the workspace's manifest, such as `[profile.dev.package]`.
fn rows(manifest: &str, table: &str) -> BTreeSet<String> {
    let rows = manifest.split_once(&format!("\n[{table}]\n")).map_or("", |(_, rows)| rows);
    let rows = rows.lines().take_while(|line| !line.starts_with('['));
    rows.filter_map(|row| Some(row.strip_prefix("hoistway-")?.split(['.', ' ']).next()?.to_owned())).collect()
}

/// The crates whose unit tests `checks/unit` compiles.
fn compiled_as_tests(manifest: &str) -> BTreeSet<String> {
    let paths = manifest.lines().filter_map(|line| line.strip_prefix("path = \"../../crates/"));
    paths.filter_map(|path| Some(path.split_once('/')?.0.to_owned())).collect()
}

#[test]
fn crates_that_are_optimised_for_tests_have_their_unit_tests_compiled_without_optimisation() {
    let root = super::crates().join("..");
    let read =
        |path: &Path| std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let manifest = read(&root.join("Cargo.toml"));
    let optimised = rows(&manifest, "profile.dev.package");
    assert_eq!(optimised, compiled_as_tests(&read(&root.join("checks/unit/Cargo.toml"))));
    let without_tests: BTreeSet<String> = std::fs::read_dir(super::crates())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| read(&entry.path().join("Cargo.toml")).contains("[lib]\ntest = false"))
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    assert_eq!(optimised, without_tests);
}

/// A crate without a row has the level of the profile, and a new crate falls there.
#[test]
fn a_crate_without_a_row_is_not_optimised_where_people_wait() {
    let root = super::crates().join("..");
    let manifest: toml::Table = std::fs::read_to_string(root.join("Cargo.toml")).unwrap().parse().unwrap();
    let profiles = manifest["profile"].as_table().unwrap();
    assert!(profiles["dev"].get("opt-level").is_none() && profiles["dev"]["package"].get("*").is_none());
    assert!(!profiles.contains_key("test"), "tests use what `cargo run` has built");
}

#[test]
fn a_row_that_is_missing_is_found() {
    let manifest = "[profile.dev]\ndebug = false\n\n[profile.dev.package]\nhoistway-a.opt-level = 2\n\
                    hoistway-b = { opt-level = 2 }\nlibm.opt-level = 1\n\n[profile.release]\nhoistway-c.opt-level = 1\n";
    assert_eq!(rows(manifest, "profile.dev.package"), ["a", "b"].map(str::to_owned).into());
    let unit = "[[test]]\nname = \"a\"\npath = \"../../crates/a/src/lib.rs\"\n";
    assert_eq!(compiled_as_tests(unit), ["a".to_owned()].into());
}
