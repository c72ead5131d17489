//! The host of a comparison: `--host`, `--cpus` and `--memory`.

use anyhow::Result;
use hoistway_sim::Host;

use crate::input;

/// CPUs of a host profile that does not say how many.
const CPUS: u16 = 8;

/// A built-in profile by name or a profile from a file, and how many CPUs the host has.
pub(super) fn choose(name: &str, cpus: Option<u16>, memory_bytes: Option<u64>) -> Result<(Host, u16)> {
    let mut host = match input::toml_named(name, "a host profile in TOML")? {
        Some(text) => Host::from_toml(&text, name)?,
        None => Host::builtin(name)?,
    };
    host.memory_bytes = memory_bytes.unwrap_or(host.memory_bytes);
    let cpus = cpus.or(host.cpus).unwrap_or(CPUS);
    Ok((host, cpus))
}
