//! The schedulers of a comparison: `--schedulers`, and what must be said of some of them.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use hoistway_blk::{ALL_SCHEDULERS, Kernel, is_legacy, kernel_of_front};

pub(super) fn choose(wanted: &[String]) -> Result<Vec<String>> {
    let mut chosen: Vec<String> = Vec::new();
    for name in wanted {
        if name == "all" {
            chosen.extend(ALL_SCHEDULERS.map(str::to_owned));
        } else if ALL_SCHEDULERS.contains(&name.as_str()) {
            chosen.push(name.clone());
        } else {
            bail!("--schedulers {name}: unknown scheduler (expected all, or some of {})", ALL_SCHEDULERS.join(", "));
        }
    }
    let mut seen = BTreeSet::new();
    chosen.retain(|name| seen.insert(name.clone()));
    Ok(chosen)
}

/// The scheduler of `--baseline`.
pub(super) fn baseline(wanted: Option<&str>, schedulers: &[String]) -> Result<Option<String>> {
    match wanted {
        Some(name) if !schedulers.iter().any(|known| known == name) => bail!(
            "--baseline {name}: not among the schedulers that are compared (expected one of {})",
            schedulers.join(", ")
        ),
        wanted => Ok(wanted.map(str::to_owned)),
    }
}

/// What must be said of schedulers that run on a block layer which the kernel no longer has.
pub(super) fn legacy_notice(schedulers: &[String], kernel: Kernel) -> Option<String> {
    let legacy: Vec<&str> = schedulers.iter().map(String::as_str).filter(|name| is_legacy(name)).collect();
    let runs_as = kernel_of_front(kernel, legacy.first()?);
    (runs_as != kernel).then(|| {
        format!(
            "{}: the legacy single queue, which Linux {kernel} no longer has; run as in 4.20, the last release with it.",
            legacy.join(", ")
        )
    })
}
