//! Roots whose files are the entries of an archive. Paths and links have the same meaning as in a folder.

use std::collections::BTreeMap;
use std::io;

use rustix::io::Errno;

use super::{BYTES_MAX, Found, LINKS_MAX, Root, components, reject_dot_dot};

/// The entries of an archive.
#[derive(Debug)]
pub(super) struct Archived {
    /// The entries by path, with all folders.
    entries: BTreeMap<String, Found>,
}

impl Archived {
    pub(super) fn new(mut entries: BTreeMap<String, Found>) -> Self {
        // An archive may leave out the folders of its files.
        let mut folders: Vec<String> = Vec::new();
        for path in entries.keys() {
            let mut below = path.as_str();
            while let Some((folder, _)) = below.rsplit_once('/') {
                if entries.contains_key(folder) || folders.last().is_some_and(|last| last == folder) {
                    break;
                }
                folders.push(folder.to_owned());
                below = folder;
            }
        }
        for folder in folders {
            entries.entry(folder).or_insert(Found::Folder);
        }
        entries.insert(String::new(), Found::Folder);
        Self { entries }
    }
}

impl Root {
    /// The path of an entry in the archive.
    fn archived_path(&self, names: &[String]) -> String {
        let path = format!("{}{}", self.prefix, names.join("/"));
        path.trim_end_matches('/').to_owned()
    }

    /// The names of the folders to a path and its last name, after following all links, the last one only if `follows_last`.
    pub(super) fn archived_walk(&self, archived: &Archived, path: &str, follows_last: bool) -> io::Result<Vec<String>> {
        reject_dot_dot(path)?;
        let mut names: Vec<String> = Vec::new();
        let mut links = 0;
        let mut rest: Vec<String> = components(path).rev().map(str::to_owned).collect();
        while let Some(name) = rest.pop() {
            if name == ".." {
                names.pop().ok_or(Errno::XDEV)?;
                continue;
            }
            names.push(name);
            match archived.entries.get(&self.archived_path(&names)).ok_or(Errno::NOENT)? {
                Found::Link(target) if follows_last || !rest.is_empty() => {
                    let last = names.pop().unwrap_or_default();
                    self.remember(&names, &last, || Found::Link(target.clone()));
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(Errno::LOOP.into());
                    }
                    if target.starts_with('/') {
                        names.clear();
                    }
                    rest.extend(components(target).rev().map(str::to_owned));
                }
                Found::File(_) if !rest.is_empty() => return Err(Errno::NOTDIR.into()),
                Found::Link(_) | Found::File(_) | Found::Folder => {}
            }
        }
        Ok(names)
    }

    /// The prefix of the folder at a path.
    pub(super) fn archived_folder(&self, archived: &Archived, path: &str) -> io::Result<String> {
        let names = self.archived_walk(archived, path, true)?;
        let path = self.archived_path(&names);
        if archived.entries.get(&path) != Some(&Found::Folder) {
            return Err(Errno::NOTDIR.into());
        }
        self.remember(&names, "", || Found::Folder);
        Ok(if path.is_empty() { path } else { path + "/" })
    }

    pub(super) fn archived_bytes(&self, archived: &Archived, path: &str) -> io::Result<Vec<u8>> {
        let names = self.archived_walk(archived, path, true)?;
        match archived.entries.get(&self.archived_path(&names)) {
            Some(Found::File(bytes)) if bytes.len() as u64 > BYTES_MAX => Err(Errno::FBIG.into()),
            Some(Found::File(bytes)) => {
                self.remember(&names, "", || Found::File(bytes.clone()));
                Ok(bytes.clone())
            }
            _ => Err(Errno::ISDIR.into()),
        }
    }

    pub(super) fn archived_names(&self, archived: &Archived, path: &str) -> io::Result<Vec<String>> {
        let prefix = self.archived_folder(archived, path)?;
        let folder = self.archived_walk(archived, path, true)?;
        let mut names = Vec::new();
        let below = archived.entries.range(prefix.clone()..).take_while(|(path, _)| path.starts_with(&prefix));
        for (path, found) in below {
            let name = &path[prefix.len()..];
            if name.is_empty() || name.contains('/') {
                continue;
            }
            names.push(name.to_owned());
            if !matches!(found, Found::File(_)) {
                self.remember(&folder, name, || found.clone());
            }
        }
        names.sort();
        Ok(names)
    }

    pub(super) fn archived_link(&self, archived: &Archived, path: &str) -> io::Result<String> {
        let names = self.archived_walk(archived, path, false)?;
        match archived.entries.get(&self.archived_path(&names)) {
            Some(Found::Link(target)) => {
                self.remember(&names, "", || Found::Link(target.clone()));
                Ok(target.clone())
            }
            _ => Err(Errno::INVAL.into()),
        }
    }
}
