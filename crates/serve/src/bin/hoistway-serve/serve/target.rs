//! Opens the storage that is served, `--target` or the file of each export, as disks of the engine.
//!
//! Used by: `serve`, `serve::reload`.
//! Tests: `crates/serve/tests/refusals.rs`, `crates/serve/tests/disks.rs`, `crates/serve/tests/config.rs`.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use hoistway_blk::ground::SECTOR_BYTES;
use hoistway_device::Preset;
use hoistway_engine::{Backend, DiskId, FileSpec, Files, Memory, Null, OpenError, Simulated, Target};
use hoistway_serve::{ExportSpec, NewDisk, Placed, ServerState};
use hoistway_serve_options::ServeOptions;

use super::say;

/// A fixed seed: a custom device file with random parts gives the same device each time.
const DEVICE_SEED: u64 = 1;
/// Maximum size of a configuration file or device preset, in bytes.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Bytes that a client may read or write in its turn.
pub(super) fn turn_bytes(options: &ServeOptions) -> u32 {
    // Memory targets copy data on the worker's thread. Devices do the work elsewhere, so long commands are better for
    // them.
    let is_memory =
        options.target.as_deref().is_some_and(|target| matches!(Target::parse(target), Ok(Target::Memory(_))));
    if is_memory { 256 << 10 } else { 1 << 20 }
}

/// The volumes that exports are on.
#[derive(Clone, Copy)]
pub(super) enum Volumes {
    /// One volume that all exports are parts of.
    Target,
    /// One volume for each file.
    Own,
}

/// The disks of a server at its start.
pub(super) struct OpenedDisks {
    pub(super) disks: Vec<NewDisk>,
    pub(super) volumes: Volumes,
    /// For each file of exports its disk, and its volume there.
    places: Vec<(PathBuf, usize, usize)>,
}

impl OpenedDisks {
    fn of_target(name: String, id: Option<DiskId>, backend: Box<dyn Backend>) -> OpenedDisks {
        OpenedDisks { disks: vec![NewDisk { name, id, backend }], volumes: Volumes::Target, places: Vec::new() }
    }

    /// Places exports at the start.
    pub(super) fn place(&self, exports: &[ExportSpec]) -> Vec<Placed> {
        let place = |spec: &ExportSpec| {
            let found = self.places.iter().find(|(path, ..)| Some(path) == spec.path.as_ref());
            let (disk, volume) = found.map_or((0, 0), |&(_, disk, volume)| (disk, volume));
            Placed { spec: spec.clone(), disk, volume, file: None }
        };
        exports.iter().map(place).collect()
    }
}

impl Volumes {
    /// Checks that exports have files of their own, or a target.
    pub(super) fn check(self, exports: &[ExportSpec]) -> Result<()> {
        for export in exports {
            match (self, &export.path) {
                (Volumes::Target, Some(_)) => {
                    bail!("--export name={}: path= and --target exclude each other", export.name)
                }
                (Volumes::Own, None) => bail!("--target is missing ({}), or path= of each --export", Target::EXPECTED),
                _ => {}
            }
        }
        Ok(())
    }

    /// Places exports while the server runs; their files are opened.
    pub(super) fn place(self, exports: &[ExportSpec], server: &ServerState) -> Result<Vec<Placed>> {
        self.check(exports)?;
        let is_read_only_everywhere =
            |spec: &ExportSpec| spec.path.as_ref().is_some_and(|path| is_read_only_everywhere(exports, path));
        exports.iter().map(|spec| Ok(server.place(spec.clone(), is_read_only_everywhere(spec))?)).collect()
    }
}

/// The target, if there is one for all exports.
fn parse_target(options: &ServeOptions) -> Result<Option<Target>> {
    let target = options.target.as_deref();
    let parse = |target| Target::parse(target).map_err(|why| anyhow!("--target {target}: {why}"));
    let parsed = target.map(parse).transpose()?;
    if let Some(data) = &options.data
        && !matches!(parsed, Some(Target::Simulated(_)))
    {
        bail!(
            "--data {}: only a simulated device keeps its data elsewhere (expected --target sim:PRESET)",
            data.display()
        );
    }
    Ok(parsed)
}

/// A memory target of the same size as the target, for `--check`: nothing is locked or written.
pub(super) fn memory_copy_of_target(options: &ServeOptions, exports: &[ExportSpec]) -> Result<OpenedDisks> {
    let length = |path: &Path, is_written: bool| -> Result<u64> {
        let opened = OpenOptions::new().read(true).write(is_written).open(path);
        // The metadata of a block device has no length.
        let bytes = opened.and_then(|mut file| file.seek(SeekFrom::End(0)));
        match bytes.with_context(|| path.display().to_string())? {
            0 => bail!("{}: is empty", path.display()),
            bytes => Ok(bytes),
        }
    };
    let Some(parsed) = parse_target(options)? else {
        let paths = distinct_export_paths(exports);
        Volumes::Own.check(exports)?;
        let bytes =
            paths.iter().map(|path| length(path, !is_read_only_everywhere(exports, path))).collect::<Result<Vec<_>>>();
        let backend = Box::new(Null::with_volumes(&bytes.context("--export path=")?));
        let places = paths.into_iter().enumerate().map(|(volume, path)| (path, 0, volume)).collect();
        return Ok(OpenedDisks {
            volumes: Volumes::Own,
            places,
            ..OpenedDisks::of_target("check".into(), None, backend)
        });
    };
    Volumes::Target.check(exports)?;
    let target = options.target.as_deref().unwrap_or_default();
    let bytes = match &parsed {
        Target::Memory(bytes) | Target::Null(bytes) => *bytes,
        Target::Simulated(name) => {
            let preset = preset(name).with_context(|| format!("--target {target}"))?;
            let backend = Box::new(Simulated::new(preset.build(DEVICE_SEED)));
            return Ok(OpenedDisks::of_target("sim".into(), None, backend));
        }
        Target::File(path) | Target::Block(path) => {
            check_kind(&parsed, path)?;
            length(path, !options.read_only).with_context(|| format!("--target {target}"))?
        }
    };
    Ok(OpenedDisks::of_target("check".into(), None, Box::new(Null::with_volumes(&[bytes]))))
}

/// The files that exports name, each once.
fn distinct_export_paths(exports: &[ExportSpec]) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for path in exports.iter().filter_map(|export| export.path.as_ref()) {
        if !paths.contains(path) {
            paths.push(path.clone());
        }
    }
    paths
}

/// Whether all exports on a file are read-only.
fn is_read_only_everywhere(exports: &[ExportSpec], path: &PathBuf) -> bool {
    exports.iter().all(|export| export.read_only || export.path.as_ref() != Some(path))
}

/// Opens the target, or the files that exports name, each of them once.
pub(super) fn open(options: &ServeOptions, exports: &[ExportSpec]) -> Result<OpenedDisks> {
    let parsed = parse_target(options)?;
    let (Some(target), Some(parsed)) = (options.target.as_deref(), parsed) else {
        return open_export_files(options, exports);
    };
    Volumes::Target.check(exports)?;
    let (mut name, mut id) = (target.split(':').next().unwrap_or_default().to_owned(), None);
    let backend: Box<dyn Backend> = match &parsed {
        Target::Memory(bytes) => Box::new(Memory::new(*bytes)),
        Target::Null(bytes) => Box::new(Null::new(bytes / SECTOR_BYTES)),
        Target::Simulated(name) => {
            let preset = preset(name).with_context(|| format!("--target {target}"))?;
            let device = Simulated::new(preset.build(DEVICE_SEED));
            match &options.data {
                Some(path) => Box::new(device.in_file(path).context("--data")?),
                None => Box::new(device),
            }
        }
        Target::File(path) | Target::Block(path) => {
            check_kind(&parsed, path)?;
            let spec = FileSpec { read_only: options.read_only, ..FileSpec::new(path) };
            let files = open_files(options, &[spec]).with_context(|| format!("--target {target}"))?;
            let disk = DiskId::of(path).with_context(|| format!("--target {target}"))?;
            (name, id) = (disk.name.clone(), Some(disk));
            Box::new(files)
        }
    };
    Ok(OpenedDisks::of_target(name, id, backend))
}

/// A built-in preset, or one from a TOML file.
fn preset(name: &str) -> Result<Preset> {
    if !name.ends_with(".toml") && !name.contains('/') {
        return Ok(Preset::builtin(name)?);
    }
    Ok(Preset::from_toml(&read_text(Path::new(name))?, name)?.without_borrowed_claims())
}

/// Reads a text file, or a pipe.
pub(super) fn read_text(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes));
    read.map_err(|error| anyhow!("cannot be read: {error}"))?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        bail!("is longer than 1 MiB");
    }
    String::from_utf8(bytes).map_err(|_| anyhow!("is not UTF-8 text"))
}

/// Opens the files of exports, those of each disk together.
fn open_export_files(options: &ServeOptions, exports: &[ExportSpec]) -> Result<OpenedDisks> {
    Volumes::Own.check(exports)?;
    let (mut disks, mut places): (Vec<(DiskId, Vec<FileSpec>)>, Vec<_>) = (Vec::new(), Vec::new());
    for path in distinct_export_paths(exports) {
        let id = DiskId::of(&path).with_context(|| format!("--export path=: {}", path.display()))?;
        let spec = FileSpec { read_only: is_read_only_everywhere(exports, &path), ..FileSpec::new(&path) };
        let disk = disks.iter().position(|(other, _)| *other == id).unwrap_or(disks.len());
        if disk == disks.len() {
            disks.push((id, Vec::new()));
        }
        places.push((path, disk, disks[disk].1.len()));
        disks[disk].1.push(spec);
    }
    let open = |(id, specs): (DiskId, Vec<FileSpec>)| {
        let files = open_files(options, &specs).context("--export path=")?;
        Ok(NewDisk { name: id.name.clone(), id: Some(id), backend: Box::new(files) })
    };
    let disks = disks.into_iter().map(open).collect::<Result<_>>()?;
    Ok(OpenedDisks { disks, volumes: Volumes::Own, places })
}

/// Opens a file on a disk of which no file is open yet.
pub(super) fn open_disk(options: &ServeOptions, file: &FileSpec, id: DiskId) -> Result<NewDisk, OpenError> {
    let files = open_files(options, std::slice::from_ref(file))?;
    Ok(NewDisk { name: id.name.clone(), id: Some(id), backend: Box::new(files) })
}

fn open_files(options: &ServeOptions, specs: &[FileSpec]) -> Result<Files, OpenError> {
    let specs: Vec<_> = specs.iter().map(|spec| FileSpec { buffered: options.page_cache, ..spec.clone() }).collect();
    let files = Files::open(&specs)?.growing().with_fixed_buffers(options.fixed_buffers, usize::from(options.workers));
    files.notes().iter().for_each(|note| say(note));
    Ok(files)
}

/// `file:` with a block device, or the reverse, is refused: otherwise a mistyped device name would create a file.
fn check_kind(target: &Target, path: &Path) -> Result<()> {
    use std::os::unix::fs::FileTypeExt as _;
    let is_disk = std::fs::metadata(path).is_ok_and(|it| it.file_type().is_block_device());
    match target {
        Target::File(_) if is_disk => bail!("--target file:{0}: is a block device (expected blk:{0})", path.display()),
        Target::Block(_) if path.exists() && !is_disk => {
            bail!("--target blk:{0}: is not a block device (expected file:{0})", path.display())
        }
        _ => Ok(()),
    }
}
