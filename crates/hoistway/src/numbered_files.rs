//! A set of files, `NAME.0`, `NAME.1` and so on: either all of them exist, or none.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use hoistway_terminal::output::cannot_be_written;

/// A temporary file, and its final path.
type Part = (PathBuf, PathBuf);

/// Files `NAME.0`, `NAME.1` and so on. Without [`finish`](Self::finish) nothing is left behind.
#[derive(Debug)]
pub(crate) struct NumberedFiles {
    name: PathBuf,
    parts: Vec<Part>,
    count: usize,
}

impl NumberedFiles {
    /// An empty set with this name.
    pub(crate) fn new(name: &Path) -> NumberedFiles {
        NumberedFiles { name: name.to_owned(), parts: Vec::new(), count: 0 }
    }

    /// Opens the file with the next number.
    pub(crate) fn next(&mut self) -> Result<BufWriter<File>> {
        let number = self.count;
        self.count += 1;
        self.open(&format!(".{number}"))
    }

    /// Opens a file with this suffix.
    pub(crate) fn open(&mut self, suffix: &str) -> Result<BufWriter<File>> {
        let path_with_suffix = |suffix: &str| {
            let mut name = self.name.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        let (part, final_path) = (path_with_suffix(&format!("{suffix}.part")), path_with_suffix(suffix));
        let file = File::create(&part).with_context(|| cannot_be_written(&self.name))?;
        self.parts.push((part, final_path));
        Ok(BufWriter::new(file))
    }

    /// The final path of the file with this number.
    pub(crate) fn final_path(&self, number: usize) -> &Path {
        &self.parts[number].1
    }

    /// Renames all files to their final names.
    pub(crate) fn finish(mut self) -> Result<()> {
        let parts = std::mem::take(&mut self.parts);
        for (number, (part, final_path)) in parts.iter().enumerate() {
            if let Err(error) = fs::rename(part, final_path) {
                self.parts = parts[number..].to_vec();
                return Err(error).with_context(|| cannot_be_written(final_path));
            }
        }
        Ok(())
    }
}

impl Drop for NumberedFiles {
    fn drop(&mut self) {
        self.parts.iter().for_each(|(part, _)| drop(fs::remove_file(part)));
    }
}

/// The label of a run as part of a file or folder name, with unsafe characters replaced: devices and hosts may have any name.
pub(crate) fn file_name_from_label(label: &str) -> String {
    label.chars().map(|c| if c.is_alphanumeric() || "._-+=".contains(c) { c } else { '_' }).collect()
}
