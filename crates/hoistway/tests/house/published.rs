//! What a crate needs that others find in a registry.

use std::fs;
use std::path::Path;

/// What is missing in a crate's folder: one that is not private has a page, and licences; one with a public interface also has keywords
/// and an example of ten lines or so, which is a test of its documentation.
fn missing(folder: &Path, is_public: bool) -> Vec<String> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let package = manifest["package"].as_table().unwrap();
    if package.get("publish").is_some_and(|publish| publish.as_bool() == Some(false)) {
        return if is_public {
            vec!["publish = false is wrong: its interface is public".to_owned()]
        } else {
            Vec::new()
        };
    }
    let page = read("README.md");
    let list = |name: &str| package.get(name).and_then(|list| list.as_array()).map_or(0, Vec::len);
    let mut rules = vec![
        ("publish = false, or readme = \"README.md\"", package.get("readme").is_some() && !page.is_empty()),
        ("LICENSE-MIT and LICENSE-APACHE", !read("LICENSE-MIT").is_empty() && !read("LICENSE-APACHE").is_empty()),
    ];
    if is_public {
        let includes_page = read("src/lib.rs").contains("#![doc = include_str!(\"../README.md\")]");
        rules.extend([
            ("three to five keywords", (3..=5).contains(&list("keywords"))),
            ("categories", list("categories") > 0),
            ("a page of 15 to 40 lines", (15..=40).contains(&page.lines().count())),
            (
                "an example in its page, and the page in its documentation",
                page.contains("\n```rust\n") && includes_page,
            ),
        ]);
    }
    rules.into_iter().filter(|(_, holds)| !holds).map(|(rule, _)| rule.to_owned()).collect()
}

#[test]
fn a_crate_is_private_or_has_what_others_look_for() {
    let root = super::crates().join("..");
    let manifest: toml::Table = fs::read_to_string(root.join("Cargo.toml")).unwrap().parse().unwrap();
    let public = manifest["workspace"]["metadata"]["public"].as_array().unwrap();
    let folders = fs::read_dir(super::crates()).unwrap().map(|entry| entry.unwrap().path());
    let others = ["benches", "checks", "checks/unit"].map(|name| root.join(name));
    let missing: Vec<String> = folders
        .chain(others)
        .flat_map(|folder| {
            let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
            let is_public = public.iter().any(|public| public.as_str() == Some(&name));
            missing(&folder, is_public).into_iter().map(move |rule| format!("{name}: {rule}"))
        })
        .collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn what_a_crate_lacks_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("Cargo.toml", "[package]\nname = \"x\"\npublish = false\n");
    assert_eq!(missing(folder.path(), false), [""; 0]);
    assert_eq!(missing(folder.path(), true).len(), 1);
    write("Cargo.toml", "[package]\nname = \"x\"\n");
    assert_eq!(missing(folder.path(), false).len(), 2);
    assert_eq!(missing(folder.path(), true).len(), 6);
    write("Cargo.toml", "[package]\nname = \"x\"\nreadme = \"README.md\"\n");
    for name in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        write(name, "x\n");
    }
    assert_eq!(missing(folder.path(), false), [""; 0]);
    assert_eq!(missing(folder.path(), true).len(), 4);
}
