//! What is served.

use anyhow::{Result, anyhow, bail};
use hoistway_blk::SECTOR_BYTES;
use hoistway_engine::{Backend, Memory, Null};
use hoistway_serve::{ExportSpec, parse_size};

/// What `--target` may be.
const EXPECTED: &str = "expected mem:SIZE, file:PATH, blk:PATH, null:SIZE or sim:PRESET";

/// Opens the target, and answers for each export which of its volumes it is on.
pub(super) fn open(target: Option<&str>, exports: &[ExportSpec]) -> Result<(Box<dyn Backend>, Vec<usize>)> {
    let Some(target) = target else { bail!("--target is missing ({EXPECTED})") };
    if let Some(export) = exports.iter().find(|export| export.path.is_some()) {
        bail!("--export name={}: path= and --target exclude each other", export.name);
    }
    let (kind, value) = target.split_once(':').ok_or_else(|| anyhow!("--target {target}: {EXPECTED}"))?;
    let size = || parse_size(value).map_err(|why| anyhow!("--target {target}: {why}"));
    let backend: Box<dyn Backend> = match kind {
        "mem" => Box::new(Memory::new(size()?)),
        "null" => Box::new(Null::new(size()? / SECTOR_BYTES)),
        _ => bail!("--target {target}: {EXPECTED}"),
    };
    Ok((backend, vec![0; exports.len()]))
}
