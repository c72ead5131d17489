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

    /// The command, or what to do, that takes a parameter from the command line: distributions differ, and their releases say which it is.
    pub(super) fn removal_of(&self, parameter: &str) -> String {
        let is = |marks: &[&str]| marks.iter().any(|mark| self.release.contains(mark));
        if is(&[".fc", ".el", ".amzn"]) {
            return format!("grubby --update-kernel=ALL --remove-args={parameter}");
        }
        let update = if is(&["-default"]) { "grub2-mkconfig -o /boot/grub2/grub.cfg" } else { "update-grub" };
        format!("# take {parameter}= out of GRUB_CMDLINE_LINUX of /etc/default/grub, then: {update}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_removed_as_the_distribution_does_it() {
        let how =
            |release: &str| KernelFacts { release: release.to_owned(), parameters: Vec::new() }.removal_of("elevator");
        for (release, word) in [
            ("6.12.9-200.fc41.x86_64", "grubby --"),
            ("5.14.0-570.el9.x86_64", "grubby --"),
            ("6.18.15+deb13-amd64", "update-grub"),
            ("6.8.0-40-generic", "update-grub"),
            ("6.4.0-150600.23-default", "grub2-mkconfig"),
        ] {
            assert!(how(release).contains(word), "{release}: {}", how(release));
        }
    }
}
