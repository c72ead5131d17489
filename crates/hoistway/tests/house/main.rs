//! Rules that the source of every crate must follow.

mod documents;
mod faults;
mod fields;
mod levels;
mod modules;
mod names;
mod rings;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The folder of all crates.
fn crates() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The modules of a crate are in layers: no two modules of the same folder use each other, directly or indirectly.
#[test]
fn no_crate_has_a_ring_of_modules() {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(crates()).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        for file in ["lib.rs", "main.rs"].map(|file| folder.join("src").join(file)) {
            if file.is_file() {
                let modules = modules::Modules::read(&file);
                found.extend(rings::of(&modules).into_iter().map(|ring| format!("{name}: {ring}")));
            }
        }
    }
    assert!(found.is_empty(), "rings of modules:\n{}", found.join("\n"));
}

/// The folders of the block layer and of the server, read in order, use nothing before it has been explained.
#[test]
fn the_folders_of_the_block_layer_and_of_the_server_stand_in_the_order_of_the_way() {
    for root in ["blk/src/lib.rs", "serve/src/lib.rs"] {
        assert_eq!(used_too_early(&crates().join(root)), [], "{root}: (user, used): what is used stands further down");
    }
}

/// Uses of modules of this root that are declared further down, except by tests.
fn used_too_early(root: &Path) -> Vec<(String, String)> {
    let file = syn::parse_file(&std::fs::read_to_string(root).unwrap()).unwrap();
    let way: Vec<String> = file
        .items
        .iter()
        .filter_map(|item| if let syn::Item::Mod(module) = item { Some(module.ident.to_string()) } else { None })
        .collect();
    let place = |module: &str| way.iter().position(|name| name == module).expect("a module of the root");
    rings::by_folder(&modules::Modules::read(root))[&Vec::new()]
        .iter()
        .filter(|(user, used)| place(user) < place(used))
        .cloned()
        .collect()
}

/// Documents name only existing files.
#[test]
fn everything_named_in_documents_exists() {
    let root = crates().join("..").canonicalize().unwrap();
    let of_the_house = ["ARCHITECTURE.md", "docs/internals/decisions.md"];
    let lost: Vec<String> = documents::ending(&root, ".md")
        .iter()
        .flat_map(|document| documents::lost(&root, document, of_the_house.contains(&document.as_str())))
        .collect();
    assert_eq!(lost, [""; 0], "named in a document and not there");
}

/// The crates of the table in ARCHITECTURE.md, in its order.
fn table_of_crates() -> Vec<String> {
    let page = std::fs::read_to_string(crates().join("../ARCHITECTURE.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split_once('`')).map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn a_crate_uses_only_those_above_it_in_the_table() {
    let table = table_of_crates();
    let mut folders: Vec<String> =
        std::fs::read_dir(crates()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    folders.sort();
    let mut named = table.clone();
    named.sort();
    assert_eq!(named, folders, "the table of ARCHITECTURE.md has a row for each crate");
    for (row, name) in table.iter().enumerate() {
        let manifest = std::fs::read_to_string(crates().join(name).join("Cargo.toml")).unwrap();
        let own = manifest.split("[dev-dependencies]").next().unwrap();
        let used = own.lines().filter_map(|line| line.strip_prefix("hoistway-")?.split(['.', ' ']).next());
        for used in used {
            assert!(table[..row].iter().any(|above| above == used), "{name} uses {used}, which is not above it");
        }
    }
}

#[test]
fn every_documented_fault_names_tests_that_exist() {
    let root = crates().join("..").canonicalize().unwrap();
    let document = std::fs::read_to_string(root.join("docs/internals/testing.md")).unwrap();
    let sources: Vec<String> =
        documents::ending(&root, ".rs").iter().map(|path| std::fs::read_to_string(root.join(path)).unwrap()).collect();
    let names: HashSet<&str> = sources.iter().flat_map(|source| faults::tests(source)).collect();
    assert!(faults::rows(&document).len() >= 45, "a row is missing: {}", faults::rows(&document).len());
    assert_eq!(faults::missing(&document, |name| names.contains(name)), [""; 0]);
}

#[test]
fn a_test_that_is_named_and_does_not_exist_is_found() {
    let source = "#[test]\nfn is_there() {}\nproptest! {\n    #[test]\n    #[cfg(unix)]\n    fn so_is_this(n in 0..2) {}\n}\nfn is_no_test() {}";
    assert_eq!(faults::tests(source), ["is_there", "so_is_this"]);
    let table = "## Faults and their tests\n\n| fault | required | tests |\n| --- | --- | --- |\n| a | b | `is_there`, `is_no_test` |\n| c | d | - |\n";
    let exists = |name: &str| faults::tests(source).contains(&name);
    assert_eq!(faults::missing(table, exists), ["a: is_no_test", "c: no test"]);
}

#[test]
fn a_module_ring_through_folders_and_reexports_is_found() {
    let modules = modules::Modules::of(&[
        ("", "mod a; mod b; mod c; pub use b::Thing;"),
        ("a", "use crate::Thing; pub struct Here;"),
        ("b", "mod inner; pub use inner::Thing;"),
        ("b::inner", "use crate::c::There; pub struct Thing;"),
        ("c", "pub struct There; fn f() { let _ = crate::a::Here; }"),
    ]);
    let found = rings::of(&modules);
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["in the root: a -> b, b -> c, c -> a"]);
}

#[test]
fn module_tests_and_uses_of_a_parent_make_no_module_ring() {
    let modules = modules::Modules::of(&[
        ("", "mod a; mod b; pub struct Root;"),
        ("a", "use super::Root; #[cfg(test)] mod tests { use crate::b::There; }"),
        ("b", "use crate::a; pub struct There;"),
    ]);
    assert!(rings::of(&modules).is_empty());
}
