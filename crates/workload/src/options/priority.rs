//! Priorities, cgroups and CPUs.

use super::setter::Setter;
use super::spec::OptionSpec;
use crate::error::quoted;
use crate::settings::Settings;
use crate::values::{Refusal, whole};

/// CPUs are numbered below this.
const CPUS_MAX: i64 = 65_535;

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "prio",
        "",
        Setter::Int { min: 0, max: 7, set: |s, v| s.prio = Some(v as u8) },
        "Level of the I/O priority, 0 is the highest; without prioclass it is best-effort",
    ),
    OptionSpec::new(
        "prioclass",
        "",
        Setter::Int { min: 0, max: 3, set: |s, v| s.prio_class = Some(v as u8) },
        "Class of the I/O priority: 1 real time, 2 best-effort, 3 idle",
    ),
    OptionSpec::new(
        "nice",
        "0",
        Setter::Int { min: -20, max: 19, set: |s, v| s.nice = v as i8 },
        "Nice level of the process; without an I/O priority it decides the best-effort level",
    ),
    OptionSpec::new(
        "cgroup",
        "",
        Setter::Text {
            form: "a name",
            set: |s, v| {
                s.cgroup = Some(v.to_owned());
                Ok(())
            },
        },
        "The cgroup that the job's I/O is charged to",
    ),
    OptionSpec::new(
        "cgroup_weight",
        "",
        Setter::Int { min: 10, max: 1000, set: |s, v| s.cgroup_weight = Some(v as u32) },
        "I/O weight of that cgroup for bfq and cfq (fio itself takes 100 to 1000)",
    ),
    OptionSpec::new(
        "cpus_allowed",
        "",
        Setter::Form { form: "a list such as 0-3,5", set: cpus },
        "The CPUs that the job may run on",
    ),
    OptionSpec::new(
        "cpus_allowed_policy",
        "shared",
        Setter::Choice { of: &["shared", "split"], set: |s, i| s.cpus_split = i == 1 },
        "Whether all clones share the allowed CPUs, or each gets one of them",
    ),
];

fn cpus(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let mut cpus = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (whole(first.trim(), 0, CPUS_MAX)?, whole(last.trim(), 0, CPUS_MAX)?),
            None => {
                let both = whole(part, 0, CPUS_MAX)?;
                (both, both)
            }
        };
        if first > last {
            return Err(Refusal::new(format!("the range {} is empty", quoted(part))));
        }
        cpus.extend((first..=last).map(|cpu| cpu as u32));
        if cpus.len() > CPUS_MAX as usize + 1 {
            return Err(Refusal::new("too many CPUs"));
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    s.cpus_allowed = Some(cpus.into());
    Ok(())
}
