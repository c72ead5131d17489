//! The file set of a recording: blktrace writes one file per CPU, `NAME.blktrace.N`.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::ReadError;

/// Highest CPU number of a member: a larger number in a name has another meaning.
const CPUS_MAX: u32 = 1 << 14;

/// A file's position in a set.
struct Member {
    /// `NAME`.
    name: String,
    cpu: u32,
}

/// Parses `NAME.blktrace.N`, optionally with a compressor's extension.
fn member(file: &str) -> Option<Member> {
    let file = file.strip_suffix(".gz").or_else(|| file.strip_suffix(".zst")).unwrap_or(file);
    let (name, cpu) = file.rsplit_once(".blktrace.")?;
    let is_number = !cpu.is_empty() && cpu.bytes().all(|digit| digit.is_ascii_digit());
    let cpu = if is_number { cpu.parse().ok().filter(|cpu| *cpu < CPUS_MAX)? } else { return None };
    Some(Member { name: name.to_owned(), cpu })
}

/// Files of a recording.
#[derive(Debug)]
pub(crate) struct Set {
    /// The files, sorted by CPU.
    pub(crate) files: Vec<PathBuf>,
    /// CPUs below the last one that have no file.
    pub(crate) missing: Vec<u32>,
}

impl Set {
    /// The set that contains a file, or the only set in a folder; the file alone if its name is not that of a member.
    ///
    /// # Errors
    /// If the folder cannot be read, or does not contain exactly one set.
    pub(crate) fn of(path: &Path) -> Result<Set, ReadError> {
        let shown = path.display().to_string();
        if path.is_dir() {
            return Set::of_folder(path, &shown);
        }
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let alone = || Set { files: vec![path.to_owned()], missing: Vec::new() };
        let Some(wanted) = member(&name) else { return Ok(alone()) };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let Ok(members) = members(folder) else { return Ok(alone()) };
        let of_it: Vec<_> = members.into_iter().filter(|(member, _)| member.name == wanted.name).collect();
        if of_it.is_empty() { Ok(alone()) } else { Set::ordered(of_it, &shown) }
    }

    fn of_folder(folder: &Path, shown: &str) -> Result<Set, ReadError> {
        let expected = "a folder with one recording, NAME.blktrace.0 and so on";
        let members = members(folder)
            .map_err(|error| ReadError::file(shown, format!("the folder cannot be read: {error}"), expected))?;
        let mut names: Vec<&str> = members.iter().map(|(member, _)| &*member.name).collect();
        names.sort_unstable();
        names.dedup();
        match &names[..] {
            [] => Err(ReadError::file(shown, "there is no recording in this folder", expected)),
            [_] => Set::ordered(members, shown),
            several => {
                let message = format!("there are several recordings: {}", several.join(", "));
                Err(ReadError::file(shown, message, "one of them: name one of its files"))
            }
        }
    }

    fn ordered(mut members: Vec<(Member, PathBuf)>, shown: &str) -> Result<Set, ReadError> {
        members.sort_by(|(one, path), (other, path_of_other)| (one.cpu, path).cmp(&(other.cpu, path_of_other)));
        if let Some(pair) = members.windows(2).find(|pair| pair[0].0.cpu == pair[1].0.cpu) {
            let message = format!("{} and {} are for the same CPU", pair[0].1.display(), pair[1].1.display());
            return Err(ReadError::file(shown, message, "one file for each CPU"));
        }
        let last = members.last().map_or(0, |(member, _)| member.cpu);
        let has = |cpu: &u32| members.iter().any(|(member, _)| member.cpu == *cpu);
        let missing = (0..last).filter(|cpu| !has(cpu)).collect();
        Ok(Set { files: members.into_iter().map(|(_, path)| path).collect(), missing })
    }
}

fn members(folder: &Path) -> std::io::Result<Vec<(Member, PathBuf)>> {
    let mut members = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if let Some(member) = member(&name) {
            members.push((member, path));
        }
    }
    Ok(members)
}
