//! What is served.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use hoistway_blk::SECTOR_BYTES;
use hoistway_engine::{Backend, FileSpec, Files, Memory, Null, Simulated};
use hoistway_serve::ExportSpec;

use super::say;
use crate::commands::run::target::{EXPECTED, Target};
use crate::input::CommandLine;

/// So that one's own device file with random parts is the same each time.
const DEVICE_SEED: u64 = 1;

/// Opens the target, and answers for each export which of its volumes it is on.
pub(super) fn open(
    target: Option<&str>,
    exports: &[ExportSpec],
    is_read_only: bool,
) -> Result<(Box<dyn Backend>, Vec<usize>)> {
    let Some(target) = target else { return open_own(exports) };
    if let Some(export) = exports.iter().find(|export| export.path.is_some()) {
        bail!("--export name={}: path= and --target exclude each other", export.name);
    }
    let parsed = Target::parse(target, &CommandLine::default())?;
    let backend: Box<dyn Backend> = match &parsed {
        Target::Memory(bytes) => Box::new(Memory::new(*bytes)),
        Target::Null(bytes) => Box::new(Null::new(bytes / SECTOR_BYTES)),
        Target::Simulated(preset) => Box::new(Simulated::new(preset.build(DEVICE_SEED))),
        Target::File(path) | Target::Block(path) => {
            check_kind(&parsed, path)?;
            let spec = FileSpec { read_only: is_read_only, ..FileSpec::new(path) };
            Box::new(open_files(&[spec]).with_context(|| format!("--target {target}"))?)
        }
    };
    Ok((backend, vec![0; exports.len()]))
}

/// Files and disks of the exports' own: each of them once, however many exports are on it.
fn open_own(exports: &[ExportSpec]) -> Result<(Box<dyn Backend>, Vec<usize>)> {
    let (mut paths, mut volumes): (Vec<PathBuf>, Vec<usize>) = (Vec::new(), Vec::new());
    for export in exports {
        let Some(path) = &export.path else { bail!("--target is missing ({EXPECTED}), or path= of each --export") };
        let same = paths.iter().position(|other| other == path);
        volumes.push(same.unwrap_or_else(|| {
            paths.push(path.clone());
            paths.len() - 1
        }));
    }
    let only_read = |at: usize| exports.iter().zip(&volumes).all(|(export, &volume)| volume != at || export.read_only);
    let specs: Vec<_> = paths
        .iter()
        .enumerate()
        .map(|(at, path)| FileSpec { read_only: only_read(at), ..FileSpec::new(path) })
        .collect();
    Ok((Box::new(open_files(&specs).context("--export path=")?), volumes))
}

fn open_files(specs: &[FileSpec]) -> Result<Files> {
    let files = Files::open(specs)?;
    files.notes().iter().for_each(|note| say(note));
    Ok(files)
}

/// Whoever says which of both it is means it: a mistyped name of a disk would else be taken for that of a file.
fn check_kind(target: &Target, path: &Path) -> Result<()> {
    use std::os::unix::fs::FileTypeExt as _;
    let is_disk = std::fs::metadata(path).is_ok_and(|it| it.file_type().is_block_device());
    match target {
        Target::File(_) if is_disk => bail!("--target file:{0}: is a block device (expected blk:{0})", path.display()),
        Target::Block(_) if path.exists() && !is_disk => {
            bail!("--target blk:{0}: is no block device (expected file:{0})", path.display())
        }
        _ => Ok(()),
    }
}
