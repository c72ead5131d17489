//! Detects files of a load whose names indicate stacked devices: the simulation has only one disk below them.

use hoistway_answer::advice::layer;
use hoistway_load::Load;

/// A clause about files that are not plain disks, of the first `disks`: later ones were simulated as what they are. In guests the names are those of virtual disks.
pub(crate) fn doubt(workload: &Load, disks: usize, in_guests: bool) -> Option<String> {
    if in_guests {
        return None;
    }
    let layers = workload.files.iter().take(disks).filter_map(|file| Some((file.as_str(), layer(file)?)));
    let named: Vec<String> = layers.map(|(file, layer)| format!("{file} ({layer})")).collect();
    (!named.is_empty()).then(|| {
        format!(
            "{} was simulated as a single disk with a scheduler of its own; in the kernel the schedulers of the disks below it apply, and \
             the work of the layer (splitting, parity, copies, caching, the network) is not modelled (--stack, docs/stacks.md)",
            named.join(", ")
        )
    })
}
