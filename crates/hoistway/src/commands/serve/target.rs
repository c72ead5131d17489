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

/// What volumes a target has, for people who write exports.
pub(super) enum Volumes {
    /// One, which all exports are parts of.
    Target,
    /// One for each of these files.
    Own(Vec<PathBuf>),
}

impl Volumes {
    /// Which of them each export is on.
    pub(super) fn of(&self, exports: &[ExportSpec]) -> Result<Vec<usize>> {
        let volume = |export: &ExportSpec| match (self, &export.path) {
            (Volumes::Target, None) => Ok(0),
            (Volumes::Target, Some(_)) => bail!("--export name={}: path= and --target exclude each other", export.name),
            (Volumes::Own(_), None) => bail!("--target is missing ({EXPECTED}), or path= of each --export"),
            (Volumes::Own(paths), Some(path)) => {
                let known = paths.iter().position(|other| other == path);
                known.with_context(|| {
                    format!(
                        "export {:?}: {} is not open, and files are opened only at the start",
                        export.name,
                        path.display()
                    )
                })
            }
        };
        exports.iter().map(volume).collect()
    }
}

/// Memory for requests that rings know beforehand.
#[derive(Clone, Copy)]
pub(super) struct Fixed {
    pub bytes: usize,
    /// Whose rings know it.
    pub workers: usize,
}

/// Opens the target, or the files of the exports' own: each of them once, however many exports are on it.
pub(super) fn open(
    target: Option<&str>,
    exports: &[ExportSpec],
    is_read_only: bool,
    fixed: Fixed,
) -> Result<(Box<dyn Backend>, Volumes)> {
    let Some(target) = target else { return open_own(exports, fixed) };
    Volumes::Target.of(exports)?;
    let parsed = Target::parse(target, &CommandLine::default())?;
    let backend: Box<dyn Backend> = match &parsed {
        Target::Memory(bytes) => Box::new(Memory::new(*bytes)),
        Target::Null(bytes) => Box::new(Null::new(bytes / SECTOR_BYTES)),
        Target::Simulated(preset) => Box::new(Simulated::new(preset.build(DEVICE_SEED))),
        Target::File(path) | Target::Block(path) => {
            check_kind(&parsed, path)?;
            let spec = FileSpec { read_only: is_read_only, ..FileSpec::new(path) };
            Box::new(open_files(&[spec], fixed).with_context(|| format!("--target {target}"))?)
        }
    };
    Ok((backend, Volumes::Target))
}

fn open_own(exports: &[ExportSpec], fixed: Fixed) -> Result<(Box<dyn Backend>, Volumes)> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for path in exports.iter().filter_map(|export| export.path.as_ref()) {
        if !paths.contains(path) {
            paths.push(path.clone());
        }
    }
    let volumes = Volumes::Own(paths.clone());
    volumes.of(exports)?;
    let only_read =
        |path: &PathBuf| exports.iter().all(|export| export.read_only || export.path.as_ref() != Some(path));
    let specs: Vec<_> =
        paths.iter().map(|path| FileSpec { read_only: only_read(path), ..FileSpec::new(path) }).collect();
    Ok((Box::new(open_files(&specs, fixed).context("--export path=")?), volumes))
}

fn open_files(specs: &[FileSpec], fixed: Fixed) -> Result<Files> {
    let files = Files::open(specs)?.with_fixed_buffers(fixed.bytes, fixed.workers);
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
