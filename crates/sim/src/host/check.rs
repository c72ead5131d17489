//! Checks the text of a host profile, so that each error names its line and its key.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Host, IDLE_STATES_MAX};

/// The longest time: a second is far more than anything here takes, and finds slips of units.
const NS_MAX: u64 = 1_000_000_000;
/// Most CPUs.
const CPUS_MAX: u64 = 1024;

/// What the value of a key must be.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Cpus,
    Memory,
    Time,
    Span,
    Steps,
    Sources,
}

/// The keys, and whether they must be there.
const KEYS: [(&str, Kind, bool); 12] = [
    ("name", Kind::Text, true),
    ("description", Kind::Text, true),
    ("cpus", Kind::Cpus, false),
    ("cache_cpus", Kind::Cpus, false),
    ("memory_bytes", Kind::Memory, false),
    ("submit_ns", Kind::Time, true),
    ("complete_ns", Kind::Time, true),
    ("redirect_ns", Kind::Time, false),
    ("wake_ns", Kind::Span, true),
    ("worker_ns", Kind::Span, true),
    ("idle_ns", Kind::Steps, false),
    ("sources", Kind::Sources, false),
];

impl Kind {
    fn expected(self) -> String {
        match self {
            Kind::Text => "a text that is not empty, in quotes".to_owned(),
            Kind::Cpus => format!("a whole number from 1 to {CPUS_MAX}"),
            Kind::Memory => {
                format!("a whole number of bytes from {} to {}", Host::MEMORY_BYTES.start(), Host::MEMORY_BYTES.end())
            }
            Kind::Time => format!("a whole number of nanoseconds from 0 to {NS_MAX}"),
            Kind::Span => {
                format!("two whole numbers of nanoseconds from 0 to {NS_MAX}, [least, most], the least first")
            }
            Kind::Steps => format!(
                "at most {IDLE_STATES_MAX} times [idle for so long, wakes so much later] in a list, both growing, whole \
                 numbers of nanoseconds from 0 to {NS_MAX}"
            ),
            Kind::Sources => "a section with the keys of numbers, each with a text".to_owned(),
        }
    }

    fn is_number(self) -> bool {
        matches!(self, Kind::Cpus | Kind::Memory | Kind::Time | Kind::Span | Kind::Steps)
    }

    fn allows(self, value: &DeValue<'_>) -> bool {
        match (self, value) {
            (Kind::Text, DeValue::String(text)) => !text.trim().is_empty(),
            (Kind::Cpus, number) => whole(number).is_some_and(|n| (1..=CPUS_MAX).contains(&n)),
            (Kind::Memory, number) => whole(number).is_some_and(|n| Host::MEMORY_BYTES.contains(&n)),
            (Kind::Time, number) => whole(number).is_some_and(|n| n <= NS_MAX),
            (Kind::Span, ends) => pair(ends).is_some_and(|(least, most)| least <= most && most <= NS_MAX),
            (Kind::Steps, DeValue::Array(steps)) => {
                let steps: Option<Vec<_>> = steps.iter().map(|step| pair(step.get_ref())).collect();
                steps.is_some_and(|steps| {
                    steps.len() <= IDLE_STATES_MAX
                        && steps.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1)
                        && steps.iter().all(|&(_, exit)| exit <= NS_MAX)
                })
            }
            (Kind::Sources, DeValue::Table(_)) => true,
            _ => false,
        }
    }
}

/// What is wrong, and at which byte of the text.
pub(super) struct Problem {
    at: usize,
    pub(super) problem: String,
}

impl Problem {
    pub(super) fn from_toml(error: &toml::de::Error) -> Problem {
        Problem { at: error.span().map_or(0, |span| span.start), problem: error.message().replace('\n', ", ") }
    }

    fn of_key(span: &Range<usize>, key: &str, what: &str, expected: &str) -> Problem {
        let key: String = key.chars().take(60).flat_map(char::escape_debug).collect();
        Problem { at: span.start, problem: format!("`{key}` {what}; expected {expected}") }
    }

    pub(super) fn line(&self, text: &str) -> usize {
        1 + text.as_bytes()[..self.at.min(text.len())].iter().filter(|&&byte| byte == b'\n').count()
    }
}

/// Checks the whole text.
pub(super) fn document(text: &str) -> Result<(), Problem> {
    let document = DeTable::parse(text).map_err(|e| Problem::from_toml(&e))?;
    for (name, value) in document.get_ref() {
        let Some((key, kind, _)) = KEYS.iter().find(|(key, ..)| key == name.get_ref()) else {
            let known: Vec<_> = KEYS.iter().map(|(key, ..)| format!("`{key}`")).collect();
            let what = "is not a key of a host profile";
            return Err(Problem::of_key(&name.span(), name.get_ref(), what, &format!("one of {}", known.join(", "))));
        };
        check(key, *kind, value)?;
        if let DeValue::Table(sources) = value.get_ref() {
            for (name, value) in sources {
                let path = format!("sources.{}", name.get_ref());
                if !KEYS.iter().any(|(key, kind, _)| key == name.get_ref() && kind.is_number()) {
                    let expected = "one of those that this file gives";
                    return Err(Problem::of_key(&name.span(), &path, "is not the key of a number", expected));
                }
                check(&path, Kind::Text, value)?;
            }
        }
    }
    match KEYS.iter().find(|(key, _, is_required)| *is_required && !document.get_ref().contains_key(*key)) {
        Some((key, kind, _)) => Err(Problem::of_key(&(0..0), key, "is missing", &kind.expected())),
        None => Ok(()),
    }
}

fn check(path: &str, kind: Kind, value: &Spanned<DeValue<'_>>) -> Result<(), Problem> {
    if kind.allows(value.get_ref()) {
        return Ok(());
    }
    Err(Problem::of_key(&value.span(), path, &format!("is {}", shown(value.get_ref())), &kind.expected()))
}

/// A whole number that is not negative.
fn whole(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// A list of two whole numbers.
fn pair(value: &DeValue<'_>) -> Option<(u64, u64)> {
    match value {
        DeValue::Array(ends) if ends.len() == 2 => Some((whole(ends[0].get_ref())?, whole(ends[1].get_ref())?)),
        _ => None,
    }
}

/// The value for a message.
fn shown(value: &DeValue<'_>) -> String {
    let shown = match value {
        DeValue::String(text) => format!("the text \"{text}\""),
        DeValue::Integer(integer) => integer.to_string(),
        DeValue::Float(float) => float.as_str().to_owned(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(ends) if ends.iter().all(|end| end.get_ref().is_integer()) => {
            let ends: Vec<_> = ends.iter().map(|end| shown(end.get_ref())).collect();
            format!("[{}]", ends.join(", "))
        }
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a section".to_owned(),
    };
    shown.chars().take(60).flat_map(char::escape_debug).collect::<String>().replace("\\\"", "\"")
}
