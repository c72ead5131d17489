//! Identifies the sources of one version by a fingerprint of all crates that a run's figures depend on, including their data files.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders of a crate that do not affect a run.
const BESIDE: [&str; 3] = ["benches", "examples", "tests"];

fn main() -> io::Result<()> {
    let mut names = BTreeSet::new();
    add_with_dependencies("experiment", &mut names)?;
    // A package outside the workspace came from a registry, where a version has one source.
    let fingerprint = if names.iter().all(|name| folder_of(name).join("src").is_dir()) {
        let mut print = Fingerprint(0xcbf2_9ce4_8422_2325);
        for name in &names {
            print.folder(&folder_of(name), &BESIDE)?;
        }
        format!("+{:016x}", print.0)
    } else {
        println!("cargo::rerun-if-changed=build.rs");
        String::new()
    };
    println!("cargo::rustc-env=HOISTWAY_SOURCES={fingerprint}");
    Ok(())
}

/// The folder of a crate of this workspace.
fn folder_of(name: &str) -> PathBuf {
    Path::new("..").join(name)
}

/// Adds a crate and, from their manifests, all crates of this workspace that it depends on.
fn add_with_dependencies(name: &str, names: &mut BTreeSet<String>) -> io::Result<()> {
    if !names.insert(name.to_owned()) {
        return Ok(());
    }
    let manifest = match fs::read_to_string(folder_of(name).join("Cargo.toml")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        manifest => manifest?,
    };
    let dependencies = manifest.split_once("\n[dependencies]\n").map_or("", |(_, dependencies)| dependencies);
    for line in dependencies.lines().take_while(|line| !line.starts_with('[')) {
        let dependency = line.strip_prefix("hoistway-").and_then(|line| line.split(['.', ' ', '=']).next());
        dependency.map_or(Ok(()), |dependency| add_with_dependencies(dependency, names))?;
    }
    Ok(())
}

/// FNV-1a: the hash must be the same everywhere; it need not resist attacks.
struct Fingerprint(u64);

impl Fingerprint {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Adds the contents of a folder, by name and content.
    fn folder(&mut self, folder: &Path, without: &[&str]) -> io::Result<()> {
        let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // Skip hidden files: editors and file managers leave them behind.
            if name.starts_with('.') || without.contains(&&*name) {
                continue;
            }
            println!("cargo::rerun-if-changed={}", path.display());
            if path.is_dir() {
                self.folder(&path, &[])?;
            } else {
                let content = fs::read(&path)?;
                self.bytes(name.as_bytes());
                // The length comes first, so that two different lists of files never give the same text.
                self.bytes(&(content.len() as u64).to_le_bytes());
                self.bytes(&content);
            }
        }
        Ok(())
    }
}
