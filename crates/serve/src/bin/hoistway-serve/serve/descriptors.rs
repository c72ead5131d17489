//! Open-file limit: each connection needs a descriptor.

use hoistway_serve::Level;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::log::log;

/// Descriptors reserved for files, listeners, the control socket and metrics, and per worker.
const RESERVED_DESCRIPTORS: usize = 64;
const RESERVED_PER_WORKER: usize = 8;

/// Raises the limit of open files as far as possible. Returns how many connections fit, at most `requested`.
pub(super) fn connections(requested: usize, workers: usize) -> usize {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Without the privilege to raise it, the limit stays unchanged.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let Some(limit) = getrlimit(Resource::Nofile).current else { return requested };
    let fit = connections_that_fit(limit, requested, workers);
    if fit < requested {
        log(
            Level::Warning,
            &format!(
                "at most {fit} connections instead of {requested}: the limit of open files is {limit} (ulimit -n)"
            ),
        );
    }
    fit
}

fn connections_that_fit(limit: u64, requested: usize, workers: usize) -> usize {
    let reserved = RESERVED_DESCRIPTORS + RESERVED_PER_WORKER * workers;
    let available = usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(reserved);
    available.clamp(1, requested)
}

#[cfg(test)]
mod tests {
    use super::connections_that_fit;

    #[test]
    fn some_descriptors_are_kept_for_control_and_metrics() {
        assert_eq!(connections_that_fit(1 << 20, 1024, 1), 1024);
        assert_eq!(connections_that_fit(1024, 1024, 2), 1024 - 64 - 16);
        assert_eq!(connections_that_fit(16, 1024, 1), 1);
    }
}
