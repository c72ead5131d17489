//! The target of a load in real time: a file, a block device, memory, a null device or a simulated device.
//!
//! Used by: `real`.
//! Tests: `crates/hoistway/tests/cli/run.rs`, `crates/hoistway/tests/cli/overwriting.rs`.

use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use hoistway_device::Preset;
use hoistway_engine::{Backend, FileSpec, Files, Memory, Null, Simulated};
use hoistway_load::Load;

use super::{error, made};
use crate::{CallerEnvironment, Error, Field};

/// The target of a load.
pub(crate) enum Target {
    File(PathBuf),
    Block(PathBuf),
    Memory(u64),
    Null(u64),
    Simulated(Box<Preset>),
}

impl Target {
    /// Parses the text form of a target.
    pub(crate) fn parse(text: &str, environment: &dyn CallerEnvironment) -> Result<Target, Error> {
        use hoistway_engine::Target as EngineTarget;
        let refuse = |why: String| error(Field::Target, format!("{} {text}: {why}", environment.name(Field::Target)));
        Ok(match EngineTarget::parse(text).map_err(|why| refuse(why.to_string()))? {
            EngineTarget::File(path) => Target::File(path),
            EngineTarget::Block(path) => Target::Block(path),
            EngineTarget::Memory(bytes) => Target::Memory(bytes),
            EngineTarget::Null(bytes) => Target::Null(bytes),
            EngineTarget::Simulated(name) => {
                let preset = crate::preset(&name.as_str().into(), environment);
                Target::Simulated(Box::new(preset.map_err(|why| refuse(why.to_string()))?))
            }
        })
    }

    /// The path of a file or device; `None` for other targets.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Target::File(path) | Target::Block(path) => Some(path),
            Target::Memory(_) | Target::Null(_) | Target::Simulated(_) => None,
        }
    }

    /// The target's name in results.
    pub(crate) fn name(&self) -> String {
        match self {
            Target::File(path) | Target::Block(path) => path.display().to_string(),
            Target::Memory(bytes) => format!("memory of {} MiB", bytes >> 20),
            Target::Null(_) => "null".into(),
            Target::Simulated(preset) => format!("{} in real time", preset.name),
        }
    }

    /// The name of the disk in statistics: the target's path, or the name of the load's file that the target replaces.
    pub(crate) fn disk(&self, load: &Load) -> String {
        match self {
            Target::File(path) | Target::Block(path) => path.display().to_string(),
            Target::Memory(_) | Target::Null(_) | Target::Simulated(_) => {
                load.files.first().map_or_else(|| self.name(), ToString::to_string)
            }
        }
    }

    /// Checks that the load may run on the target, and creates a missing file. Returns `false` if that was interrupted. `option`
    /// names the option that allows overwriting.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(crate) fn prepare(
        &self,
        load: &Load,
        (force, option): (bool, &str),
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<bool, String> {
        let writes = load.processes.iter().any(|process| process.plan.modifies());
        match self {
            Target::File(path) if path.exists() => {
                if path.metadata().is_ok_and(|metadata| metadata.file_type().is_block_device()) {
                    return Err(format!("is a block device (expected blk:{})", path.display()));
                }
                if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
                    return Err("is neither a file nor a block device".into());
                }
                if writes && !force && !made::is_made(path) {
                    return Err(format!(
                        "the load would overwrite a file that no run created (expected {option}, or a file that does not exist)"
                    ));
                }
                Ok(true)
            }
            Target::File(path) => make(path, load, is_interrupted),
            Target::Block(path) => {
                let metadata = path.metadata().map_err(|why| why.to_string())?;
                if !metadata.file_type().is_block_device() {
                    return Err(format!("is not a block device (expected file:{})", path.display()));
                }
                if writes && !force {
                    return Err(format!("the load would overwrite it (expected {option})"));
                }
                Ok(true)
            }
            Target::Memory(_) | Target::Null(_) | Target::Simulated(_) => Ok(true),
        }
    }

    /// Opens the target for this many workers, with `fixed_bytes` of registered buffers. Also returns notices about it.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub(crate) fn open(
        &self,
        load: &Load,
        seed: u64,
        workers: usize,
        fixed_bytes: usize,
    ) -> Result<(Box<dyn Backend>, Vec<String>), String> {
        let writes = load.processes.iter().any(|process| process.plan.modifies());
        Ok(match self {
            Target::File(path) | Target::Block(path) => {
                let spec = FileSpec { read_only: !writes, ..FileSpec::new(path) };
                let files = Files::open(&[spec]).map_err(|why| why.to_string())?;
                let files = files.with_fixed_buffers(fixed_bytes, workers);
                let notes = files.notes().iter().map(|note| format!("{note}.")).collect();
                (Box::new(files), notes)
            }
            Target::Memory(bytes) => (Box::new(Memory::new(*bytes)), Vec::new()),
            Target::Null(bytes) => (Box::new(Null::new(bytes / 512)), Vec::new()),
            Target::Simulated(preset) => (Box::new(Simulated::new(preset.build(seed)).discarding_data()), Vec::new()),
        })
    }
}

/// Creates a file as large as the load needs, unless it is interrupted.
fn make(path: &Path, load: &Load, is_interrupted: &dyn Fn() -> bool) -> Result<bool, String> {
    made::make(path, made::bytes_of(load)?, is_interrupted)
}
