//! What is served.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use hoistway_blk::SECTOR_BYTES;
use hoistway_engine::{Backend, FileSpec, Files, Memory, Null, Simulated};
use hoistway_serve::ExportSpec;

use super::{Arguments, say};
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

/// Opens the target, or the files of the exports' own: each of them once, however many exports are on it.
pub(super) fn open(arguments: &Arguments, exports: &[ExportSpec]) -> Result<(Box<dyn Backend>, Volumes)> {
    let target = arguments.target.as_deref();
    let parsed = target.map(|target| Target::parse(target, &CommandLine::default())).transpose()?;
    if let Some(data) = &arguments.data
        && !matches!(parsed, Some(Target::Simulated(_)))
    {
        bail!(
            "--data {}: only a simulated device keeps its data elsewhere (expected --target sim:PRESET)",
            data.display()
        );
    }
    let (Some(target), Some(parsed)) = (target, parsed) else { return open_own(arguments, exports) };
    Volumes::Target.of(exports)?;
    let backend: Box<dyn Backend> = match &parsed {
        Target::Memory(bytes) => Box::new(Memory::new(*bytes)),
        Target::Null(bytes) => Box::new(Null::new(bytes / SECTOR_BYTES)),
        Target::Simulated(preset) => {
            let device = Simulated::new(preset.build(DEVICE_SEED));
            match &arguments.data {
                Some(path) => Box::new(device.in_file(path).context("--data")?),
                None => Box::new(device),
            }
        }
        Target::File(path) | Target::Block(path) => {
            check_kind(&parsed, path)?;
            let spec = FileSpec { read_only: arguments.read_only, ..FileSpec::new(path) };
            Box::new(open_files(arguments, &[spec]).with_context(|| format!("--target {target}"))?)
        }
    };
    Ok((backend, Volumes::Target))
}

fn open_own(arguments: &Arguments, exports: &[ExportSpec]) -> Result<(Box<dyn Backend>, Volumes)> {
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
    Ok((Box::new(open_files(arguments, &specs).context("--export path=")?), volumes))
}

fn open_files(arguments: &Arguments, specs: &[FileSpec]) -> Result<Files> {
    let files = Files::open(specs)?.with_fixed_buffers(arguments.fixed_buffers, usize::from(arguments.workers));
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
