//! The first lines of modules: what each is, who uses it, and where its tests are.
//!
//! A *front* is the file of a library's root, of a module that is a folder, or of a module directly below the root. Its second
//! paragraph is two lines, `Used by: ...` and `Tests: ...`. This checks that the modules, crates and programs named there mention the
//! module, and that the files and folders named there have tests.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::modules::{ModulePath, Modules};

/// What stands for the root of a crate in the list of users.
const ROOT: &str = "lib.rs";

/// The two lines of a front, without their first words.
pub(crate) fn lines(source: &str) -> Option<(&str, &str)> {
    let front = source.lines().take_while(|line| line.starts_with("//!"));
    let mut second = front.skip_while(|line| *line != "//!").skip(1);
    Some((second.next()?.strip_prefix("//! Used by: ")?, second.next()?.strip_prefix("//! Tests: ")?))
}

/// Texts in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// What stands in a list of users.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum User<'a> {
    Module(&'a str),
    Crate(&'a str),
    Program(&'a str),
}

/// Parses a list of users, such as "`queue`, `tags`; crates `sim`, `serve`; the program `hoistway-serve`.".
pub(crate) fn users(list: &str) -> Vec<User<'_>> {
    let mut users = Vec::new();
    for part in list.split("; ") {
        users.extend(quoted(part).map(|name| {
            if part.starts_with("crate") {
                User::Crate(name)
            } else if part.contains("program ") {
                User::Program(name)
            } else {
                User::Module(name)
            }
        }));
    }
    users
}

/// Whether a file, or a file below a folder, has a test.
fn has_tests(path: &Path) -> bool {
    if path.is_dir() {
        fs::read_dir(path).unwrap().any(|entry| has_tests(&entry.unwrap().path()))
    } else {
        fs::read_to_string(path).is_ok_and(|source| source.contains("#[test]"))
    }
}

/// The words of a source text.
fn words(source: &str) -> impl Iterator<Item = &str> {
    source.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
}

/// Names that a source text makes public: of items, functions and fields.
pub(crate) fn public_names(source: &str) -> BTreeSet<&str> {
    const BEFORE_A_NAME: [&str; 10] =
        ["async", "const", "enum", "fn", "mod", "static", "struct", "trait", "type", "unsafe"];
    let lines = source.lines().filter_map(|line| line.trim_start().strip_prefix("pub"));
    let lines = lines.map(|line| line.strip_prefix("(crate)").unwrap_or(line)).filter(|line| line.starts_with(' '));
    lines
        .filter(|line| !line.starts_with(" use "))
        .filter_map(|line| words(line).find(|word| !BEFORE_A_NAME.contains(word)))
        .collect()
}

/// Names of the functions that a source text defines.
fn functions(source: &str) -> impl Iterator<Item = &str> {
    source.split("fn ").skip(1).filter_map(|rest| words(rest).next())
}

/// All source texts below a folder, joined.
fn text_below(folder: &Path) -> String {
    let Ok(entries) = fs::read_dir(folder) else { return String::new() };
    let mut text = String::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&text_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
    text
}

/// A library whose fronts are checked.
pub(crate) struct Library<'a> {
    /// The folder of the repository.
    root: &'a Path,
    name: String,
    uses: BTreeSet<(ModulePath, ModulePath)>,
    /// The file of each module, relative to the repository, and its text.
    files: BTreeMap<ModulePath, (String, String)>,
}

impl<'a> Library<'a> {
    /// Reads the texts of the modules of a crate.
    pub(crate) fn read(root: &'a Path, name: &str, modules: &Modules) -> Self {
        let source = root.join("crates").join(name).join("src");
        let file = |path: &ModulePath| -> (String, String) {
            let folder: PathBuf = path.iter().collect();
            let choices = [folder.with_extension("rs"), folder.join("mod.rs"), PathBuf::from(ROOT)];
            let file = choices.iter().find(|file| source.join(file).is_file()).expect("a module has a file");
            let text = fs::read_to_string(source.join(file)).unwrap();
            (format!("crates/{name}/src/{}", file.display()), text)
        };
        let files = modules.paths().map(|path| (path.clone(), file(path))).collect();
        Library { root, name: name.to_owned(), uses: modules.uses(), files }
    }

    /// The modules of this library that are fronts.
    pub(crate) fn fronts(&self) -> impl Iterator<Item = &ModulePath> {
        let is_front = |path: &ModulePath, file: &str| path.len() < 2 || file.ends_with("/mod.rs");
        self.files.iter().filter(move |(path, (file, _))| is_front(path, file)).map(|(path, _)| path)
    }

    /// The texts of a module and of those inside it.
    fn texts(&self, module: &[String]) -> impl Iterator<Item = &str> {
        self.files.iter().filter(move |(path, _)| path.starts_with(module)).map(|(_, (_, text))| &**text)
    }

    fn names(&self, module: &[String]) -> BTreeSet<&str> {
        self.texts(module).flat_map(public_names).collect()
    }

    /// Whether another module names this one in a path, or calls a function that only this one has, such as one that it adds to a type
    /// of a third.
    fn is_used_by_module(&self, module: &[String], user: &str) -> bool {
        let user: ModulePath = user.split("::").filter(|part| *part != ROOT).map(str::to_owned).collect();
        let is_user = |path: &ModulePath| {
            !path.starts_with(module) && if user.is_empty() { path.is_empty() } else { path.starts_with(&user) }
        };
        let is_in_paths = || self.uses.iter().any(|(from, to)| is_user(from) && to.starts_with(module));
        let is_called = || {
            let others = self.files.iter().filter(|(path, _)| !path.starts_with(module));
            let other_functions: HashSet<&str> = others.flat_map(|(_, (_, text))| functions(text)).collect();
            let own: HashSet<&str> =
                self.texts(module).flat_map(functions).filter(|name| !other_functions.contains(name)).collect();
            let mut users = self.files.iter().filter(|(path, _)| is_user(path));
            users.any(|(_, (_, text))| words(text).any(|word| own.contains(word)))
        };
        is_in_paths() || is_called()
    }

    /// Errors in the front of a module.
    pub(crate) fn errors(&self, module: &[String], sources: &mut Sources<'_>) -> Vec<String> {
        let (file, text) = &self.files[module];
        let Some((used, tests)) = lines(text) else {
            return vec![format!("{file}: the second paragraph is not `Used by:` and `Tests:`, a line each")];
        };
        let mut wrong = Vec::new();
        let users = users(used);
        let names = self.names(module);
        for user in &users {
            let is_used = match user {
                User::Module(name) => self.is_used_by_module(module, name),
                User::Crate(name) => sources.mention(&format!("crates/{name}/src"), &names),
                User::Program(name) => sources.mention(&format!("crates/{}/src/bin/{name}", self.name), &names),
            };
            if !is_used {
                wrong.push(format!("{user:?}"));
            }
        }
        if users.is_empty() {
            wrong.push("no user".to_owned());
        }
        if tests.starts_with("below") && !text.contains("#[test]") {
            wrong.push("no test below".to_owned());
        }
        if !tests.starts_with("below") && quoted(tests).next().is_none() {
            wrong.push("no test".to_owned());
        }
        wrong.extend(quoted(tests).filter(|path| !has_tests(&self.root.join(path))).map(str::to_owned));
        wrong.into_iter().map(|what| format!("{file}: {what}")).collect()
    }
}

/// The words of all source texts of folders that have been looked at.
pub(crate) struct Sources<'a> {
    /// The folder of the repository.
    root: &'a Path,
    words: HashMap<String, HashSet<String>>,
}

impl<'a> Sources<'a> {
    pub(crate) fn of(root: &'a Path) -> Self {
        Sources { root, words: HashMap::new() }
    }

    /// Whether a source text below this folder has one of these names.
    fn mention(&mut self, folder: &str, names: &BTreeSet<&str>) -> bool {
        let read = || words(&text_below(&self.root.join(folder))).map(str::to_owned).collect();
        let words: &HashSet<String> = self.words.entry(folder.to_owned()).or_insert_with(read);
        names.iter().any(|name| words.contains(*name))
    }
}
