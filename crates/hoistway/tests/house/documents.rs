//! Checks that documents only name existing files and pages.

use std::path::{Path, PathBuf};

/// All files and folders below a folder, relative to `root`, except build results.
fn paths(root: &Path, folder: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(root.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if entry.file_type().unwrap().is_dir() && !["target", ".git", "node_modules"].contains(&name.as_str()) {
            paths(root, &path, found);
        }
        found.push(path);
    }
}

/// All texts between pairs of these marks.
fn between<'a>(text: &'a str, open: &'static str, close: char) -> impl Iterator<Item = &'a str> {
    text.split(open).skip(1).filter_map(move |rest| rest.split_once(close).map(|(inside, _)| inside))
}

fn is_path(name: &str) -> bool {
    (name.contains('/') || name.ends_with(".rs"))
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_/.".contains(letter))
}

/// Missing files that a document names in backticks, and its broken links.
pub(crate) fn lost(root: &Path, document: &str, names_files: bool) -> Vec<String> {
    let mut all = Vec::new();
    paths(root, "", &mut all);
    let text = std::fs::read_to_string(root.join(document)).unwrap();
    let is_there = |name: &str| {
        let name = name.trim_end_matches('/');
        all.iter().any(|path| path == name || path.strip_suffix(name).is_some_and(|before| before.ends_with('/')))
    };
    let code = text.split('`').skip(1).step_by(2).filter(|name| names_files && is_path(name) && !is_there(name));
    let folder = PathBuf::from(document).parent().map(Path::to_path_buf).unwrap_or_default();
    let links =
        between(&text, "](", ')').filter(|link| !link.contains("://") && !link.starts_with('#')).filter(|link| {
            let file = link.split('#').next().unwrap_or_default();
            !root.join(&folder).join(file).exists()
        });
    code.chain(links).map(|name| format!("{document}: {name}")).collect()
}

/// All files with this extension, except build results.
pub(crate) fn ending(root: &Path, ending: &str) -> Vec<String> {
    let mut all = Vec::new();
    paths(root, "", &mut all);
    all.retain(|path| path.ends_with(ending));
    all
}
