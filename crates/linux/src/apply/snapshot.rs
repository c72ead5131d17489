//! A snapshot of the files of `queue/` that change with the scheduler.

use serde::{Deserialize, Serialize};

use crate::root::Root;

/// Files outside of `iosched/` that depend on the scheduler or that comparisons set.
const FILES: [&str; 7] =
    ["nr_requests", "async_depth", "wbt_lat_usec", "nomerges", "rq_affinity", "max_sectors_kb", "io_timeout"];

/// The scheduler and the values of files, in the order in which they are restored.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Snapshot {
    pub(crate) scheduler: Option<String>,
    pub(crate) files: Vec<(String, String)>,
}

impl Snapshot {
    pub(crate) fn read(system: &Root, device: &str) -> Self {
        let names = system.names(&format!("sys/block/{device}/queue/iosched")).unwrap_or_default();
        let tunables = names.into_iter().map(|name| format!("iosched/{name}"));
        let files = FILES.into_iter().map(str::to_owned).chain(tunables);
        Self {
            scheduler: shown(system, device, "scheduler"),
            files: files.filter_map(|file| Some((file.clone(), shown(system, device, &file)?))).collect(),
        }
    }

    pub(crate) fn value(&self, file: &str) -> Option<&str> {
        match file {
            "scheduler" => self.scheduler.as_deref(),
            file => self.files.iter().find(|(name, _)| name == file).map(|(_, value)| value.as_str()),
        }
    }
}

/// The value of a file of `queue/`; for `scheduler`, the name in brackets.
pub(crate) fn shown(system: &Root, device: &str, file: &str) -> Option<String> {
    let text = system.read(&format!("sys/block/{device}/queue/{file}")).ok()?;
    match file {
        "scheduler" => {
            text.split_whitespace().find_map(|name| Some(name.strip_prefix('[')?.strip_suffix(']')?.to_owned()))
        }
        _ => Some(text.trim().to_owned()),
    }
}
