//! Creates trees of files from a compact text.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

/// Creates the files of `text` in a new folder.
///
/// A line is `path = value` (`\n` stands for a new line), `path -> target` for a link, or `path/` for a folder. `disk PATH` makes a block
/// device of sysfs with its link in `/sys/block`, and the paths after it are relative to it, until `root` or the next disk.
pub fn tree(text: &str) -> TempDir {
    let folder = folder();
    let mut prefix = String::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if line == "root" {
            prefix.clear();
        } else if let Some(path) = line.strip_prefix("disk ") {
            let name = path.rsplit('/').next().unwrap();
            prefix = format!("sys/devices/{path}/");
            fs::create_dir_all(folder.path().join(&prefix)).unwrap();
            link(folder.path(), &format!("sys/block/{name}"), &format!("../devices/{path}"));
        } else if let Some((path, target)) = line.split_once(" -> ") {
            link(folder.path(), &format!("{prefix}{path}"), target);
        } else if let Some((path, value)) = line.split_once(" = ") {
            let file = folder.path().join(format!("{prefix}{path}"));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, value.replace("\\n", "\n") + "\n").unwrap();
        } else {
            fs::create_dir_all(folder.path().join(format!("{prefix}{line}"))).unwrap();
        }
    }
    folder
}

/// A temporary folder, in memory if possible: some file systems take half a millisecond for each new file.
pub fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let in_memory = memory.is_dir().then(|| tempfile::tempdir_in(memory).ok()).flatten();
    in_memory.unwrap_or_else(|| tempfile::tempdir().unwrap())
}

fn link(root: &Path, path: &str, target: &str) {
    let link = root.join(path);
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink(target, link).unwrap();
}
