//! Finds the modules of a crate, and which of them each module names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use syn::visit::Visit;

/// A module's path from the crate's root, whose own path is empty.
pub type ModulePath = Vec<String>;

/// The relevant content of a module's source.
#[derive(Default)]
struct Source {
    /// Names that it re-exports: the name, and the path that it stands for.
    handed_on: BTreeMap<String, Vec<String>>,
    /// The paths that it names, as written.
    named: Vec<Vec<String>>,
}

/// The modules of a crate.
#[derive(Default)]
pub struct Modules {
    sources: BTreeMap<ModulePath, Source>,
}

impl Modules {
    /// The modules of the crate with this root file.
    pub fn read(root: &Path) -> Self {
        let mut modules = Modules::default();
        modules.read_file(Vec::new(), root, root.parent().expect("a file is in a folder"));
        modules
    }

    /// The modules of a crate given as text: paths joined by `::`, and their sources.
    pub fn of(sources: &[(&str, &str)]) -> Self {
        let mut modules = Modules::default();
        for (path, text) in sources {
            let path = path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
            modules.add(path, &syn::parse_file(text).expect("the text is Rust"));
        }
        modules
    }

    /// The paths of all modules, the root's among them.
    pub fn paths(&self) -> impl Iterator<Item = &ModulePath> {
        self.sources.keys()
    }

    /// Which modules each module names.
    pub fn uses(&self) -> BTreeSet<(ModulePath, ModulePath)> {
        let mut uses = BTreeSet::new();
        for (from, source) in &self.sources {
            let named = source.named.iter().filter_map(|path| self.resolve(from, path, 0));
            uses.extend(named.map(|to| (from.clone(), to)));
        }
        uses
    }

    fn read_file(&mut self, path: ModulePath, file: &Path, folder: &Path) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for child in self.add(path.clone(), &parsed) {
            let below = folder.join(&child);
            let candidates = [folder.join(format!("{child}.rs")), below.join("mod.rs")];
            if let Some(file) = candidates.iter().find(|file| file.is_file()) {
                let path = path.iter().cloned().chain([child]).collect();
                self.read_file(path, file, &below);
            }
        }
    }

    /// Adds a module. Returns the modules below it that have their own files.
    fn add(&mut self, path: ModulePath, file: &syn::File) -> Vec<String> {
        let mut reader = Reader::default();
        reader.visit_file(file);
        self.sources.insert(path, reader.source);
        reader.children
    }

    /// The module that a path names or that contains what it names; `None` if that is outside the crate.
    fn resolve(&self, from: &[String], path: &[String], depth: u32) -> Option<ModulePath> {
        let mut at = from.to_vec();
        let mut parts = path.iter().map(String::as_str).peekable();
        match *parts.peek()? {
            "crate" => {
                at.clear();
                parts.next();
            }
            "self" => {
                parts.next();
            }
            "super" => {}
            first => {
                let child = [from, &[first.to_owned()]].concat();
                if !self.sources.contains_key(&child) {
                    return None;
                }
            }
        }
        while let Some(part) = parts.next() {
            if part == "super" {
                at.pop()?;
                continue;
            }
            at.push(part.to_owned());
            if self.sources.contains_key(&at) {
                continue;
            }
            at.pop();
            let Some(target) = self.sources[&at].handed_on.get(part) else { return Some(at) };
            // Limits the search, since two modules may re-export from each other.
            let rest = target.iter().cloned().chain(parts.map(str::to_owned)).collect::<Vec<_>>();
            return if depth < 8 { self.resolve(&at, &rest, depth + 1) } else { None };
        }
        Some(at)
    }
}

#[derive(Default)]
struct Reader {
    source: Source,
    children: Vec<String>,
}

impl Reader {
    fn uses(&mut self, prefix: &[String], tree: &syn::UseTree, hands_on: bool) {
        let joined = |part: &syn::Ident| [prefix, &[part.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.uses(&joined(&path.ident), &path.tree, hands_on),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.uses(prefix, tree, hands_on)),
            syn::UseTree::Name(name) if name.ident == "self" => self.source.named.push(prefix.to_vec()),
            syn::UseTree::Name(name) => self.names(joined(&name.ident), name.ident.to_string(), hands_on),
            syn::UseTree::Rename(rename) => {
                self.names(joined(&rename.ident), rename.rename.to_string(), hands_on);
            }
            syn::UseTree::Glob(_) => self.source.named.push(prefix.to_vec()),
        }
    }

    fn names(&mut self, path: Vec<String>, name: String, hands_on: bool) {
        if hands_on {
            self.source.handed_on.insert(name, path.clone());
        }
        self.source.named.push(path);
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let mut tests = false;
        if attribute.path().is_ident("cfg") {
            let _ = attribute.parse_nested_meta(|meta| {
                tests |= meta.path.is_ident("test");
                Ok(())
            });
        }
        tests
    })
}

impl Visit<'_> for Reader {
    fn visit_item(&mut self, item: &syn::Item) {
        match item {
            syn::Item::Mod(module) if is_for_tests(&module.attrs) => {}
            syn::Item::Mod(module) if module.content.is_none() => self.children.push(module.ident.to_string()),
            syn::Item::Use(item) if is_for_tests(&item.attrs) => {}
            syn::Item::Use(item) => {
                let hands_on = !matches!(item.vis, syn::Visibility::Inherited);
                self.uses(&[], &item.tree, hands_on);
            }
            item => syn::visit::visit_item(self, item),
        }
    }

    /// Paths in the arguments of attributes, such as `#[error("...", crate::x::Y)]`.
    fn visit_attribute(&mut self, attribute: &syn::Attribute) {
        if let syn::Meta::List(list) = &attribute.meta {
            let text = list.tokens.to_string().replace(" :: ", "::");
            let is_of_a_path = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
            for word in text.split(|letter| !is_of_a_path(letter)).filter(|word| word.contains("::")) {
                self.source.named.push(word.split("::").map(str::to_owned).collect());
            }
        }
        syn::visit::visit_attribute(self, attribute);
    }

    fn visit_path(&mut self, path: &syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if parts.len() > 1 {
            self.source.named.push(parts);
        }
        syn::visit::visit_path(self, path);
    }
}
