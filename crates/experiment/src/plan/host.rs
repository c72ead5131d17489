//! Chooses the host of a setup, with its CPUs, memory and sysctl settings.

use hoistway_sim::Host;

use crate::comparison::Profile;
use crate::comparison::environment::Options;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::nearest;

/// Number of CPUs if the host profile gives none.
const CPUS: u16 = 8;

pub use hoistway_sim::CPUS_MAX;

/// Returns the host and its number of CPUs.
pub(crate) fn choose(options: &Options<'_>, profile: &Profile) -> Result<(Host, u16), Error> {
    let builtin = |name: &str| {
        let hint = nearest::hint(name, Host::builtin_names());
        Host::builtin(name)
            .map_err(|error| format!("{error}{}{}", if hint.is_empty() { "" } else { "; " }, hint.trim_end()))
    };
    let read = options.environment.profile(profile, "a host profile in TOML", Host::from_toml, builtin);
    let mut host = read.map_err(|fault| fault.of(Field::Hosts))?;
    if let Some(bytes) = options.comparison.memory_bytes {
        if !Host::MEMORY_BYTES.contains(&bytes) {
            let (least, most) = (Host::MEMORY_BYTES.start(), Host::MEMORY_BYTES.end());
            return Err(options.refuse(Field::MemoryBytes, bytes, format!("expected {least} to {most}")));
        }
        host.memory_bytes = bytes;
    }
    for setting in &options.comparison.sysctls {
        host.set_sysctl(&setting.name, &setting.text).map_err(|problem| {
            let hint = nearest::hint(&setting.name, Host::SYSCTLS);
            let hint = if problem.starts_with("no such") { hint } else { String::new() };
            options.refuse(
                Field::Sysctls,
                format_args!("{}={}", setting.name, setting.text),
                format!("{hint}{problem}"),
            )
        })?;
    }
    host.journal |= options.comparison.journal;
    host.submitter_dispatches |= options.comparison.submitter_dispatches;
    let cpus = options.comparison.cpus.or(host.cpus).unwrap_or(CPUS);
    if !(1..=CPUS_MAX).contains(&cpus) {
        return Err(options.refuse(Field::Cpus, cpus, format!("expected 1 to {CPUS_MAX}")));
    }
    Ok((host, cpus))
}
