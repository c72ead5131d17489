//! The kernel, and the parameters of its command line that concern block I/O.

use hoistway_blk::ground::Kernel;
use serde::Serialize;

use crate::root::Root;

/// The kernel of a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct KernelFacts {
    /// The release, as printed by `uname -r`.
    pub release: String,
    /// The parameters of its command line that concern block I/O, unchanged. Others are dropped, since they may be secret.
    pub parameters: Vec<String>,
}

/// Prefixes of parameters that concern block I/O.
const PARAMETERS: [&str; 9] =
    ["elevator=", "scsi_mod.", "dm_mod.", "nvme.", "nvme_core.", "virtio_blk.", "loop.", "null_blk.", "cgroup_no_v1="];

impl KernelFacts {
    pub(super) fn read(root: &Root) -> Option<Self> {
        let release = root.read("proc/sys/kernel/osrelease").ok()?.trim().to_owned();
        let line = root.read("proc/cmdline").unwrap_or_default();
        Some(Self { release, parameters: parameters(&line).map(str::to_owned).collect() })
    }

    /// The simulated release with the same block layer; `None` if unknown.
    pub(super) fn block_layer(&self) -> Option<Kernel> {
        self.release.parse().ok()
    }

    /// The value of the last `elevator=` parameter.
    pub(super) fn elevator(&self) -> Option<&str> {
        self.parameters.iter().rev().find_map(|parameter| parameter.strip_prefix("elevator="))
    }
}

/// The parameters of a command line that concern block I/O.
pub(crate) fn parameters(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace().filter(|parameter| PARAMETERS.iter().any(|begin| parameter.starts_with(begin)))
}
