//! The dumps of a fleet: folders and archives, each of one host.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use super::FleetError;
use crate::host::matches_glob;

/// Endings of archives in a folder.
const ENDINGS: [&str; 5] = [".tar.zst", ".tar.gz", ".tgz", ".tar.zstd", ".tar"];

/// The dump of one host.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FleetMember {
    /// The host's name: that of the file without its ending, or the path if several files have that name.
    pub name: String,
    /// The folder or archive.
    pub path: PathBuf,
}

/// The dumps of a fleet, sorted by name, and what was left out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FleetMembers {
    /// The dumps.
    pub members: Vec<FleetMember>,
    /// Files of listed folders whose names are not those of archives.
    pub others: Vec<PathBuf>,
}

impl FleetMembers {
    /// The dumps that `places` name: a folder of dumps, a dump, a glob pattern of dumps, or `-` for a list of paths in `list`, one a line.
    ///
    /// # Errors
    /// If a place does not exist, or there is no dump at all.
    pub fn find(places: &[String], list: impl BufRead) -> Result<FleetMembers, FleetError> {
        let mut list = Some(list);
        let mut found = FleetMembers::default();
        let mut paths = Vec::new();
        for place in places {
            if place == "-" {
                for line in list.take().into_iter().flat_map(BufRead::lines) {
                    let line = line.map_err(|error| FleetError::Unlisted { place: place.clone(), error })?;
                    paths.extend(Some(line.trim()).filter(|line| !line.is_empty()).map(PathBuf::from));
                }
            } else if Path::new(place).is_dir() && !is_tree(Path::new(place)) {
                found.list(place, &mut paths)?;
            } else if Path::new(place).exists() {
                paths.push(place.into());
            } else {
                let matched = glob(place);
                if matched.is_empty() {
                    return Err(FleetError::NoPlace { place: place.clone() });
                }
                paths.extend(matched);
            }
        }
        if paths.is_empty() {
            return Err(FleetError::Empty { places: places.join(" ") });
        }
        paths.sort();
        paths.dedup();
        let mut named: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for path in paths {
            named.entry(host_name(&path)).or_default().push(path);
        }
        for (name, paths) in named {
            let is_unique = paths.len() == 1;
            let member = |path: PathBuf| {
                let name = if is_unique { name.clone() } else { path.display().to_string() };
                FleetMember { name, path }
            };
            found.members.extend(paths.into_iter().map(member));
        }
        found.members.sort();
        Ok(found)
    }

    /// Lists a folder of dumps. Hidden entries are skipped.
    fn list(&mut self, place: &str, paths: &mut Vec<PathBuf>) -> Result<(), FleetError> {
        let unlisted = |error| FleetError::Unlisted { place: place.to_owned(), error };
        for entry in std::fs::read_dir(place).map_err(unlisted)? {
            let path = entry.map_err(unlisted)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            if path.is_dir() || ENDINGS.iter().any(|ending| name.ends_with(ending)) {
                paths.push(path);
            } else {
                self.others.push(path);
            }
        }
        self.others.sort();
        Ok(())
    }
}

/// Whether a folder is itself the tree of one host.
fn is_tree(folder: &Path) -> bool {
    folder.join("sys/block").is_dir()
}

/// The name of a dump without its ending.
fn host_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let ending = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).filter(|name| !name.is_empty());
    ending.unwrap_or(&name).to_owned()
}

/// The paths that match a pattern, part by part.
fn glob(pattern: &str) -> Vec<PathBuf> {
    let is_absolute = pattern.starts_with('/');
    let mut found = vec![PathBuf::from(if is_absolute { "/" } else { "" })];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        if !part.contains(['*', '?', '[']) {
            found = found.into_iter().map(|path| path.join(part)).filter(|path| path.exists()).collect();
            continue;
        }
        let names_in = |path: PathBuf| {
            let folder = if path.as_os_str().is_empty() { Path::new(".") } else { &path };
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
            let matching =
                names.filter(|name| matches_glob(part, name) && (part.starts_with('.') || !name.starts_with('.')));
            matching.map(|name| path.join(name)).collect::<Vec<_>>()
        };
        found = found.into_iter().flat_map(names_in).collect();
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{FleetMembers, glob};

    #[test]
    fn folders_patterns_and_lists_name_the_same_dumps() {
        let folder = tempfile::tempdir().unwrap();
        let day = folder.path().join("day");
        fs::create_dir_all(day.join("web-1/sys/block")).unwrap();
        for file in ["web-2.tar.zst", "web-3.tgz", "notes.txt", ".hidden.tar"] {
            fs::write(day.join(file), "").unwrap();
        }
        let place = day.display().to_string();
        let found = |place: &str, list: &str| {
            let members = FleetMembers::find(&[place.to_owned()], list.as_bytes()).unwrap();
            let names: Vec<String> = members.members.into_iter().map(|member| member.name).collect();
            (names.join(" "), members.others.len())
        };
        assert_eq!(found(&place, ""), ("web-1 web-2 web-3".to_owned(), 1));
        assert_eq!(found(&format!("{}/*/web-*", folder.path().display()), "").0, "web-1 web-2 web-3");
        assert_eq!(found("-", &format!("{place}/web-1\n\n{place}/web-3.tgz\n")).0, "web-1 web-3");
        assert_eq!(found(&format!("{place}/web-1"), "").0, "web-1", "one host is a fleet of one");
        assert!(glob(&format!("{place}/x*")).is_empty());
        for place in ["/no/such/place", "/no/such/*"] {
            assert!(FleetMembers::find(&[place.to_owned()], &b""[..]).is_err());
        }
    }

    #[test]
    fn dumps_with_the_same_name_are_called_by_their_paths() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a/web.tar", "b/web.tar"].map(|path| folder.path().join(path).display().to_string());
        let members = FleetMembers::find(&["-".to_owned()], paths.join("\n").as_bytes()).unwrap().members;
        assert_eq!(members.iter().map(|member| member.name.clone()).collect::<Vec<_>>(), paths);
    }
}
