//! Conditions that a configuration must not meet, such as `high`, `damaged>3` or `nvme:scheduler!=none`.

use std::fmt;
use std::str::FromStr;

use hoistway_blk::sysfs::WRITABLE_ATTRIBUTES;
use serde::Serialize;

use super::Fleet;
use crate::host::{Class, Device, Host, Rule, Severity};

/// A condition.
#[derive(Clone, PartialEq, Debug)]
pub struct HostCondition {
    text: String,
    what: What,
}

#[derive(Clone, PartialEq, Debug)]
enum What {
    /// More hosts than this have a finding of the rule.
    Rule(Rule, usize),
    /// More hosts than this have a finding of the severity.
    Severity(Severity, usize),
    /// More dumps than this are damaged.
    Damaged(usize),
    /// A host's kernel.
    Kernel(Operator, Vec<u64>),
    /// A file of `queue/` of a device of this class, or of any.
    File { class: Option<Class>, file: String, operator: Operator, value: String },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Operators, the longer first.
const OPERATORS: [(&str, Operator); 6] = [
    ("!=", Operator::Unequal),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

impl Operator {
    fn holds<T: PartialOrd>(self, left: &T, right: &T) -> bool {
        match self {
            Operator::Equal => left == right,
            Operator::Unequal => left != right,
            Operator::Less => left < right,
            Operator::LessOrEqual => left <= right,
            Operator::Greater => left > right,
            Operator::GreaterOrEqual => left >= right,
        }
    }
}

/// A condition that a fleet meets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Met {
    /// The condition.
    pub condition: String,
    /// The hosts that meet it, each with the reason.
    pub hosts: Vec<String>,
}

impl FromStr for HostCondition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            let rules: Vec<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
            format!(
                "expected high, medium, low, damaged or a finding ({}), each with >COUNT for more hosts than that; kernel<RELEASE; or \
                 [CLASS:]FILE and one of = != < <= > >= and a value, such as nvme:scheduler!=none",
                rules.join(", ")
            )
        };
        let split = text.char_indices().find_map(|(at, _)| {
            let (sign, operator) = OPERATORS.iter().find(|(sign, _)| text[at..].starts_with(sign))?;
            Some((text[..at].trim(), *operator, text[at + sign.len()..].trim()))
        });
        let name = split.map_or(text.trim(), |(name, ..)| name);
        let count = || match split {
            None => Ok(0),
            Some((_, Operator::Greater, count)) => {
                count.parse().map_err(|_| format!("{count:?} is no number of hosts"))
            }
            Some(_) => Err(format!("a count is compared by > (expected {name}>COUNT)")),
        };
        let what = if let Some(rule) = Rule::ALL.into_iter().find(|rule| rule.name() == name) {
            What::Rule(rule, count()?)
        } else if let Some(severity) = Severity::ALL.into_iter().find(|severity| severity.name() == name) {
            What::Severity(severity, count()?)
        } else if name == "damaged" {
            What::Damaged(count()?)
        } else {
            let (_, operator, value) = split.filter(|(.., value)| !value.is_empty()).ok_or_else(expected)?;
            if name == "kernel" {
                let release =
                    release(value).ok_or_else(|| format!("{value:?} is no release (expected one such as 6.12)"))?;
                What::Kernel(operator, release)
            } else {
                file_condition(name, operator, value)?
            }
        };
        Ok(HostCondition { text: text.to_owned(), what })
    }
}

fn file_condition(name: &str, operator: Operator, value: &str) -> Result<What, String> {
    let (class, file) = match name.split_once(':') {
        None => (None, name),
        Some((class, file)) => {
            let known = Class::ALL.into_iter().find(|known| known.name() == class).ok_or_else(|| {
                let names = Class::ALL.map(Class::name).join(", ");
                format!("{class}: no such class (expected one of {names})")
            })?;
            (Some(known), file)
        }
    };
    let is_known =
        WRITABLE_ATTRIBUTES.contains(&file) || file.strip_prefix("iosched/").is_some_and(|file| !file.is_empty());
    if !is_known {
        let names = WRITABLE_ATTRIBUTES.join(", ");
        return Err(format!("{file}: no such file of queue/ (expected one of {names}, or iosched/NAME)"));
    }
    let is_by_size = !matches!(operator, Operator::Equal | Operator::Unequal);
    if is_by_size && value.parse::<i64>().is_err() {
        return Err(format!("{value:?} has no size (expected a number, or = or !=)"));
    }
    Ok(What::File { class, file: file.to_owned(), operator, value: value.to_owned() })
}

impl fmt::Display for HostCondition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl HostCondition {
    /// Why this host alone meets the condition; empty if it does not, or if the condition is about counts.
    pub(super) fn reasons(&self, host: &Host) -> Vec<String> {
        match &self.what {
            What::Kernel(operator, limit) => {
                let release = release(&host.kernel.release);
                // Parts that the condition does not name are not compared: 6.12.3 is 6.12.
                let is_met = release.is_some_and(|parts| {
                    let parts: Vec<u64> =
                        limit.iter().enumerate().map(|(index, _)| parts.get(index).copied().unwrap_or(0)).collect();
                    operator.holds(&parts, limit)
                });
                is_met.then(|| host.kernel.release.clone()).into_iter().collect()
            }
            What::File { class, file, operator, value } => host
                .devices
                .iter()
                .filter(|device| !device.is_empty() && class.is_none_or(|class| class == device.class))
                .filter_map(|device| {
                    let found = value_of(device, file)?;
                    let is_met = match (found.parse::<i64>(), value.parse::<i64>()) {
                        (Ok(found), Ok(value)) => operator.holds(&found, &value),
                        _ if matches!(operator, Operator::Equal | Operator::Unequal) => {
                            operator.holds(&found, &value.as_str())
                        }
                        _ => false,
                    };
                    is_met.then(|| format!("{} {found}", device.name))
                })
                .collect(),
            What::Rule(..) | What::Severity(..) | What::Damaged(_) => Vec::new(),
        }
    }

    /// The hosts of a fleet that meet the condition. `reasons` are those of all hosts.
    pub(super) fn met(&self, fleet: &Fleet, reasons: Vec<String>) -> Option<Met> {
        let with = |has: &dyn Fn(&super::FleetHost) -> bool| -> Vec<String> {
            fleet.hosts.iter().filter(|host| has(host)).map(|host| host.name.clone()).collect()
        };
        let (hosts, limit) = match &self.what {
            What::Rule(rule, limit) => (with(&|host| host.rules.contains(rule)), *limit),
            What::Severity(severity, limit) => (with(&|host| host.count(*severity) > 0), *limit),
            What::Damaged(limit) => (fleet.damaged.iter().map(|dump| dump.name.clone()).collect(), *limit),
            What::Kernel(..) | What::File { .. } => (reasons, 0),
        };
        (hosts.len() > limit).then(|| Met { condition: self.text.clone(), hosts })
    }
}

/// The content of a file of `queue/`, for devices where it has an effect.
fn value_of<'a>(device: &'a Device, file: &str) -> Option<&'a str> {
    match file {
        "scheduler" if device.hardware.is_none() && device.class == Class::Stacked => None,
        "scheduler" => device.active_scheduler(),
        _ => device.tunables.iter().find(|tunable| tunable.file == file).map(|tunable| tunable.value.as_str()),
    }
}

/// The numbers that begin a release: 5, 14 and 0 of `5.14.0-427.el9`.
fn release(text: &str) -> Option<Vec<u64>> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let parts: Option<Vec<u64>> = text[..end].trim_end_matches('.').split('.').map(|part| part.parse().ok()).collect();
    parts.filter(|parts| !parts.is_empty())
}

#[cfg(test)]
mod tests {
    use super::HostCondition;

    #[test]
    fn what_no_host_can_answer_is_refused() {
        for (text, part) in [
            ("", "expected high"),
            ("hgih", "expected high"),
            ("high<3", "expected high>COUNT"),
            ("high>x", "is no number of hosts"),
            ("kernel<six", "is no release"),
            ("kernel", "expected high"),
            ("nvem:scheduler=none", "no such class"),
            ("schedular=none", "no such file of queue/"),
            ("scheduler", "expected high"),
            ("scheduler=", "expected high"),
            ("scheduler>none", "has no size"),
            ("iosched/=3", "no such file"),
        ] {
            let error = text.parse::<HostCondition>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        for text in
            ["high", "damaged>3", "setting-not-active > 10", "nvme:scheduler!=none", "nr_requests<64", "kernel<=5.14"]
        {
            assert_eq!(text.parse::<HostCondition>().unwrap().to_string(), text);
        }
    }
}
