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
pub(crate) struct FileSet {
    /// The files, sorted by CPU.
    pub(crate) files: Vec<PathBuf>,
    /// CPUs below the last one that have no file.
    pub(crate) missing: Vec<u32>,
}

impl FileSet {
    /// The set that contains a file, or the only set in a folder; the file alone if its name is not that of a member.
    ///
    /// # Errors
    /// If the folder cannot be read, or does not contain exactly one set.
    pub(crate) fn find(path: &Path) -> Result<FileSet, ReadError> {
        let path_text = path.display().to_string();
        if path.is_dir() {
            return FileSet::find_in_folder(path, &path_text);
        }
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let single_file = || FileSet { files: vec![path.to_owned()], missing: Vec::new() };
        let Some(requested) = member(&name) else { return Ok(single_file()) };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let Ok(members) = members(folder) else { return Ok(single_file()) };
        let same_name: Vec<_> = members.into_iter().filter(|(member, _)| member.name == requested.name).collect();
        if same_name.is_empty() { Ok(single_file()) } else { FileSet::from_members(same_name, &path_text) }
    }

    fn find_in_folder(folder: &Path, path_text: &str) -> Result<FileSet, ReadError> {
        let expected = "a folder with one recording, NAME.blktrace.0 and so on";
        let members = members(folder)
            .map_err(|error| ReadError::file(path_text, format!("the folder cannot be read: {error}"), expected))?;
        let mut names: Vec<&str> = members.iter().map(|(member, _)| &*member.name).collect();
        names.sort_unstable();
        names.dedup();
        match &names[..] {
            [] => Err(ReadError::file(path_text, "there is no recording in this folder", expected)),
            [_] => FileSet::from_members(members, path_text),
            several => {
                let message = format!("there are several recordings: {}", several.join(", "));
                Err(ReadError::file(path_text, message, "one of them: name one of its files"))
            }
        }
    }

    fn from_members(mut members: Vec<(Member, PathBuf)>, path_text: &str) -> Result<FileSet, ReadError> {
        members.sort_by(|(left, left_path), (right, right_path)| (left.cpu, left_path).cmp(&(right.cpu, right_path)));
        if let Some(pair) = members.windows(2).find(|pair| pair[0].0.cpu == pair[1].0.cpu) {
            let message = format!("{} and {} are for the same CPU", pair[0].1.display(), pair[1].1.display());
            return Err(ReadError::file(path_text, message, "one file for each CPU"));
        }
        let last = members.last().map_or(0, |(member, _)| member.cpu);
        let has = |cpu: &u32| members.iter().any(|(member, _)| member.cpu == *cpu);
        let missing = (0..last).filter(|cpu| !has(cpu)).collect();
        Ok(FileSet { files: members.into_iter().map(|(_, path)| path).collect(), missing })
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
