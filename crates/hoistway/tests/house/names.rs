//! Checks that each type name has one meaning: no two crates have public types with the same name, except those listed
//! here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use syn::{Item, Visibility};

/// Names that several crates may have: what these have in common, and the names.
const SHARED: &[(&str, &str)] = &[
    (
        "the same thing at another stage: asked for, parsed, run, stored or analysed",
        "Candidate Change Completion Device Direction Disk Engine Event Extent Figure Guests Io \
      Issue Load Merge Operation Origin Plug Process QueueSettings Replay Request Row \
      Scenario Setting Statistics SteadyState Submitted Summary Tunable Write",
    ),
    (
        "words of the field that each crate means of its own subject, and exports under its own path",
        "Action Cell Checked Class Client Clock Command Completions Control Counts Ended \
      Flights Format Grammar Host HostError Input Interval Job Kind Latency Limits Mark \
      Memory Next Null Options Output Place Plan Problem Progress Random Range ReadError Record \
      RecordError Recording Refusal Refused Requests Ring Schedule Shape Spread \
      Status Step Stream Table Taken Target Throttle Volume",
    ),
];

/// For each name, the crates with a public type of this name.
pub(crate) fn of_types(crates: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path();
        let owner = folder.file_name().unwrap().to_string_lossy().into_owned();
        for file in files(&folder.join("src")) {
            let text = fs::read_to_string(&file).unwrap();
            let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            for name in parsed.items.iter().filter_map(public_type) {
                names.entry(name).or_default().insert(owner.clone());
            }
        }
    }
    names
}

fn public_type(item: &Item) -> Option<String> {
    let (visibility, name) = match item {
        Item::Struct(of) => (&of.vis, &of.ident),
        Item::Enum(of) => (&of.vis, &of.ident),
        Item::Trait(of) => (&of.vis, &of.ident),
        Item::Type(of) => (&of.vis, &of.ident),
        _ => return None,
    };
    matches!(visibility, Visibility::Public(_)).then(|| name.to_string())
}

/// The source files of a crate, except tests.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests" {
            found.push(path);
        }
    }
    found
}

#[test]
fn public_type_names_are_unique_or_listed() {
    let listed: BTreeSet<&str> = SHARED.iter().flat_map(|(_, names)| names.split_whitespace()).collect();
    let shared = of_types(&super::crates());
    let shared: BTreeMap<&str, &BTreeSet<String>> =
        shared.iter().filter(|(_, crates)| crates.len() > 1).map(|(name, crates)| (name.as_str(), crates)).collect();
    let new: Vec<_> = shared.iter().filter(|(name, _)| !listed.contains(*name)).collect();
    assert!(new.is_empty(), "names with a second meaning (give one another name): {new:?}");
    let gone: Vec<_> = listed.iter().filter(|name| !shared.contains_key(*name)).collect();
    assert!(gone.is_empty(), "listed, and no longer shared (take them from the list): {gone:?}");
}
