//! Whether a type's name has one meaning: the public types of all crates, and those names that two crates have.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use syn::{Item, Visibility};

/// The crates that have a public type of each name.
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

/// The source files of a crate, without its tests.
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
