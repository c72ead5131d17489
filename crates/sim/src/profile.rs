//! Profiles: TOML files that describe a host or a virtual disk. They are validated key by key before deserialization, so
//! that an error names its line, and its key if it has one. A missing key is reported at line 1.
//!
//! Used by: `virtual_disk`, `host`; crate `experiment`.
//! Tests: `crates/sim/tests/hosts.rs`.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Longest valid time: far more than any cost or latency in a profile, so a longer one is probably in the wrong unit.
const NS_MAX: u64 = 1_000_000_000;

/// What values a key allows.
#[derive(Clone, Copy)]
pub(crate) enum ValueKind {
    Text,
    Flag,
    /// A whole number with its minimum and maximum.
    Count(u64, u64),
    /// Bytes with their minimum and maximum.
    Bytes(u64, u64),
    Time,
    /// `[least, most]`, in ns.
    Span,
    /// Times by name.
    Times,
    /// Idle states of a CPU, at most this many: `[target residency, longest exit latency]`, in ns.
    IdleStates(usize),
    /// Texts by key: where each figure comes from.
    Sources,
}

/// A kind of profile.
pub(crate) struct Format {
    /// Its name in messages.
    pub(crate) what: &'static str,
    /// The keys, their values, and whether they are required.
    pub(crate) keys: &'static [(&'static str, ValueKind, bool)],
    /// Built-in profiles: name (also the file name) and text.
    pub(crate) builtin: &'static [(&'static str, &'static str)],
}

/// Why a profile cannot be loaded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProfileError {
    /// The text is not TOML, or a key is missing, unknown, or has an invalid value.
    #[error("{file}:{line}: {problem}")]
    Text {
        /// Name of the file as the caller gave it.
        file: String,
        /// Line, counted from 1.
        line: usize,
        /// The key at fault, if any.
        key: Option<String>,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// No built-in profile has this name.
    #[error("there is no built-in {what} `{name}`; expected one of {}, or a {what} profile in TOML", known.join(", "))]
    NotBuiltIn {
        /// The kind of profile: "host" or "virtual disk".
        what: &'static str,
        /// The requested name.
        name: String,
        /// The names that exist.
        known: Vec<&'static str>,
    },
}

impl Format {
    /// Reads a profile. `file_name` is only for the error.
    pub(crate) fn read<T: DeserializeOwned>(&self, text: &str, file_name: &str) -> Result<T, ProfileError> {
        let read = self.check(text).and_then(|()| toml::from_str(text).map_err(|e| ProfileProblem::from_toml(&e)));
        read.map_err(|problem| ProfileError::Text {
            file: file_name.to_owned(),
            line: problem.line(text),
            key: problem.key,
            problem: problem.problem,
        })
    }

    /// The built-in profile of this name.
    pub(crate) fn builtin<T: DeserializeOwned>(&self, name: &str) -> Result<T, ProfileError> {
        self.read(self.builtin_text(name)?, &format!("{name}.toml (built in)"))
    }

    /// The text of a built-in profile.
    pub(crate) fn builtin_text(&self, name: &str) -> Result<&'static str, ProfileError> {
        let found = self.builtin.iter().find(|(builtin, _)| *builtin == name);
        found.map(|(_, text)| *text).ok_or_else(|| ProfileError::NotBuiltIn {
            what: self.what,
            name: name.to_owned(),
            known: self.builtin.iter().map(|(name, _)| *name).collect(),
        })
    }

    /// Checks the whole text.
    fn check(&self, text: &str) -> Result<(), ProfileProblem> {
        let document = DeTable::parse(text).map_err(|e| ProfileProblem::from_toml(&e))?;
        for (name, value) in document.get_ref() {
            let Some((key, kind, _)) = self.keys.iter().find(|(key, ..)| key == name.get_ref()) else {
                let known: Vec<_> = self.keys.iter().map(|(key, ..)| format!("`{key}`")).collect();
                let what = format!("is not a key of a {} profile", self.what);
                let expected = format!("one of {}", known.join(", "));
                return Err(ProfileProblem::of_key(&name.span(), name.get_ref(), &what, &expected));
            };
            check(key, *kind, value)?;
            if let (ValueKind::Sources, DeValue::Table(sources)) = (*kind, value.get_ref()) {
                for (name, value) in sources {
                    let path = format!("sources.{}", name.get_ref());
                    if !self.keys.iter().any(|(key, kind, _)| key == name.get_ref() && kind.has_source()) {
                        let expected = format!("the key of a figure of a {} profile", self.what);
                        return Err(ProfileProblem::of_key(
                            &name.span(),
                            &path,
                            "is not the key of a figure",
                            &expected,
                        ));
                    }
                    check(&path, ValueKind::Text, value)?;
                }
            }
        }
        match self.keys.iter().find(|(key, _, is_required)| *is_required && !document.get_ref().contains_key(*key)) {
            Some((key, kind, _)) => Err(ProfileProblem::of_key(&(0..0), key, "is missing", &kind.expected())),
            None => Ok(()),
        }
    }
}

impl ValueKind {
    fn expected(self) -> String {
        match self {
            ValueKind::Text => "a text that is not empty, in quotes".to_owned(),
            ValueKind::Flag => "true or false".to_owned(),
            ValueKind::Count(least, most) => format!("a whole number from {least} to {most}"),
            ValueKind::Bytes(least, most) => format!("a whole number of bytes from {least} to {most}"),
            ValueKind::Time => format!("a whole number of nanoseconds from 0 to {NS_MAX}"),
            ValueKind::Span => {
                format!("two whole numbers of nanoseconds from 0 to {NS_MAX}, [least, most], the least first")
            }
            ValueKind::Times => {
                format!("a section of names, each with a whole number of nanoseconds from 0 to {NS_MAX}")
            }
            ValueKind::IdleStates(most) => format!(
                "at most {most} pairs [target residency, longest exit latency] in a list, residencies growing, latencies \
                 not falling, whole numbers of nanoseconds from 0 to {NS_MAX}"
            ),
            ValueKind::Sources => "a section with the keys of figures, each with a text".to_owned(),
        }
    }

    /// Whether a source can be named for it.
    fn has_source(self) -> bool {
        !matches!(self, ValueKind::Text | ValueKind::Sources)
    }

    fn allows(self, value: &DeValue<'_>) -> bool {
        match (self, value) {
            (ValueKind::Text, DeValue::String(text)) => !text.trim().is_empty(),
            (ValueKind::Flag, DeValue::Boolean(_)) => true,
            (ValueKind::Count(least, most) | ValueKind::Bytes(least, most), number) => {
                whole(number).is_some_and(|n| (least..=most).contains(&n))
            }
            (ValueKind::Time, number) => whole(number).is_some_and(|n| n <= NS_MAX),
            (ValueKind::Span, ends) => pair(ends).is_some_and(|(least, most)| least <= most && most <= NS_MAX),
            (ValueKind::IdleStates(most), DeValue::Array(steps)) => {
                let steps: Option<Vec<_>> = steps.iter().map(|step| pair(step.get_ref())).collect();
                steps.is_some_and(|steps| {
                    steps.len() <= most
                        && steps.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1)
                        && steps.iter().all(|&(residency, exit)| residency.max(exit) <= NS_MAX)
                })
            }
            (ValueKind::Times, DeValue::Table(times)) => {
                times.values().all(|time| whole(time.get_ref()).is_some_and(|ns| ns <= NS_MAX))
            }
            (ValueKind::Sources, DeValue::Table(_)) => true,
            _ => false,
        }
    }
}

/// An error, the byte offset in the text that it is about, and its key.
struct ProfileProblem {
    offset: usize,
    key: Option<String>,
    problem: String,
}

impl ProfileProblem {
    fn from_toml(error: &toml::de::Error) -> ProfileProblem {
        let problem = error.message().replace('\n', ", ");
        ProfileProblem { offset: error.span().map_or(0, |span| span.start), key: None, problem }
    }

    fn of_key(span: &Range<usize>, key: &str, what: &str, expected: &str) -> ProfileProblem {
        let key: String = key.chars().take(60).flat_map(char::escape_debug).collect();
        let problem = format!("`{key}` {what}; expected {expected}");
        ProfileProblem { offset: span.start, key: Some(key), problem }
    }

    fn line(&self, text: &str) -> usize {
        1 + text.as_bytes()[..self.offset.min(text.len())].iter().filter(|&&byte| byte == b'\n').count()
    }
}

fn check(path: &str, kind: ValueKind, value: &Spanned<DeValue<'_>>) -> Result<(), ProfileProblem> {
    if kind.allows(value.get_ref()) {
        return Ok(());
    }
    Err(ProfileProblem::of_key(&value.span(), path, &format!("is {}", shown(value.get_ref())), &kind.expected()))
}

/// A non-negative whole number.
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

/// The value as shown in messages.
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
