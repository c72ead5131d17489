//! Rules that the source of every crate must follow.

mod documents;
mod faults;
mod fields;
mod fronts;
mod levels;
mod modules;
mod names;
mod published;
mod rings;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use modules::Modules;

/// The folder of all crates.
fn crates() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The modules of each crate with this root file, by the name of the crate.
fn modules_below(file: &str) -> BTreeMap<String, Modules> {
    let folders = std::fs::read_dir(crates()).unwrap().map(|entry| entry.unwrap().path());
    let roots = folders.filter(|folder| folder.join("src").join(file).is_file());
    let name = |folder: &Path| folder.file_name().unwrap().to_string_lossy().into_owned();
    roots.map(|folder| (name(&folder), Modules::read(&folder.join("src").join(file)))).collect()
}

/// The modules of each library.
static LIBRARIES: LazyLock<BTreeMap<String, Modules>> = LazyLock::new(|| modules_below("lib.rs"));

/// The modules of a crate are in layers: no two modules of the same folder use each other, directly or indirectly.
#[test]
fn no_crate_has_a_ring_of_modules() {
    let programs = modules_below("main.rs");
    let found: Vec<String> = LIBRARIES
        .iter()
        .chain(&programs)
        .flat_map(|(name, modules)| rings::of(modules).into_iter().map(move |ring| format!("{name}: {ring}")))
        .collect();
    assert!(found.is_empty(), "rings of modules:\n{}", found.join("\n"));
}

/// The folders of the block layer and of the server, read in order, use nothing before it has been explained.
#[test]
fn the_folders_of_the_block_layer_and_of_the_server_stand_in_the_order_of_the_way() {
    for name in ["blk", "serve"] {
        assert_eq!(used_too_early(name), [], "{name}: (user, used): what is used stands further down");
    }
}

/// Uses of modules of this crate's root that are declared further down, except by tests.
fn used_too_early(name: &str) -> Vec<(String, String)> {
    let root = crates().join(name).join("src/lib.rs");
    let file = syn::parse_file(&std::fs::read_to_string(root).unwrap()).unwrap();
    let way: Vec<String> = file
        .items
        .iter()
        .filter_map(|item| if let syn::Item::Mod(module) = item { Some(module.ident.to_string()) } else { None })
        .collect();
    let place = |module: &str| way.iter().position(|name| name == module).expect("a module of the root");
    rings::by_folder(&LIBRARIES[name])[&Vec::new()]
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

/// A page is in the index of its folder, or in that of all documents.
#[test]
fn every_page_of_the_documents_is_in_an_index() {
    let root = crates().join("..").canonicalize().unwrap();
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let pages = documents::ending(&root, ".md").into_iter().filter(|page| page.starts_with("docs/"));
    let is_missing = |page: &String| {
        let (folder, name) = page.rsplit_once('/').unwrap();
        let own = format!("{folder}/README.md");
        let is_in_own = name != "README.md" && root.join(&own).is_file() && read(&own).contains(&format!("]({name})"));
        let path = page.strip_prefix("docs/").unwrap();
        path != "README.md" && !is_in_own && !read("docs/README.md").contains(&format!("]({path})"))
    };
    let missing: Vec<String> = pages.filter(is_missing).collect();
    assert_eq!(missing, [""; 0], "pages that no index names");
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
fn first_lines_of_modules_name_users_and_tests_that_exist() {
    let root = crates().join("..").canonicalize().unwrap();
    let mut sources = fronts::Sources::of(&root);
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (name, modules) in LIBRARIES.iter() {
        let library = fronts::Library::read(&root, name, modules);
        for module in library.fronts() {
            wrong.extend(library.errors(module, &mut sources));
            seen += 1;
        }
    }
    assert!(seen > 200, "only {seen} modules were found");
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn lines_of_a_front_that_are_missing_or_wrong_are_found() {
    use fronts::User::{Crate, Module, Program};

    let front = "//! A thing,\n//! with a rule.\n//!\n//! Used by: `a`, `b::c`; crates `d`; the program `e-f`.\n//! Tests: below.\n\nuse x;\n";
    let (used, tests) = fronts::lines(front).unwrap();
    assert_eq!(tests, "below.");
    assert_eq!(fronts::users(used), [Module("a"), Module("b::c"), Crate("d"), Program("e-f")]);
    for other in ["", "//! A thing.\n", "//! A thing.\n//!\n//! Why.\n//!\n//! Used by: `a`.\n//! Tests: below.\n"] {
        assert_eq!(fronts::lines(other), None, "{other}");
    }
    let source = "pub(crate) const fn a() {}\n    pub b: u8,\npub use x::y;\nfn c() {}\npublic d;\n";
    let names = fronts::public_names(source);
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn a_front_that_names_a_module_that_does_not_use_it_or_a_file_without_tests_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("crates/thing/src");
    std::fs::create_dir_all(&source).unwrap();
    let write = |file: &str, text: &str| std::fs::write(source.join(file), text).unwrap();
    write("lib.rs", "mod a; mod b; mod c; mod d;");
    write("b.rs", "use crate::a::A;");
    write("c.rs", "fn f(d: D) { d.new(1); }");
    write("d.rs", "fn f(d: D) { d.in_a(1); }");
    let errors_of = |front: &str| {
        write("a.rs", &format!("//! A.\n//!\n{front}\n\npub struct A;\nimpl D {{ pub fn in_a(&self, c: u8) {{}} }}\n"));
        let library = fronts::Library::read(folder.path(), "thing", &Modules::read(&source.join("lib.rs")));
        let errors = library.errors(&["a".to_owned()], &mut fronts::Sources::of(folder.path()));
        errors.into_iter().map(|error| error.replace("crates/thing/src/a.rs: ", "")).collect::<Vec<_>>()
    };
    let test = "//! Tests: below.\n\n#[test]\nfn t() {}";
    assert_eq!(errors_of(&format!("//! Used by: `b`, `d`.\n{test}")), [""; 0]);
    assert_eq!(errors_of(&format!("//! Used by: `c`; crate `d`.\n{test}")), ["Module(\"c\")", "Crate(\"d\")"]);
    assert_eq!(errors_of("//! Used by: `b`.\n//! Tests: `crates/thing/src/c.rs`."), ["crates/thing/src/c.rs"]);
    assert_eq!(errors_of("//! Used by: `b`.\n//! Tests: below."), ["no test below"]);
    assert_eq!(errors_of("//! Used by: all.\n//! Tests: some."), ["no user", "no test"]);
    assert_eq!(errors_of("//! Why.").len(), 1);
}

#[test]
fn a_module_ring_through_folders_and_reexports_is_found() {
    let modules = Modules::of(&[
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
    let modules = Modules::of(&[
        ("", "mod a; mod b; pub struct Root;"),
        ("a", "use super::Root; #[cfg(test)] mod tests { use crate::b::There; }"),
        ("b", "use crate::a; pub struct There;"),
    ]);
    assert!(rings::of(&modules).is_empty());
}
