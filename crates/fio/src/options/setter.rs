//! Types of option values: how the text of an option is parsed and stored.

use std::fmt;

use hoistway_blk::ground::Nanos;
use hoistway_load::Amount;

use super::Settings;
use crate::error::quoted;
use crate::values::{self, Refusal, TimeUnit};

/// The largest number that fits 32 bits.
pub(crate) const U32_MAX: i64 = u32::MAX as i64;

/// The type of an option's values, and the setter.
#[derive(Clone, Copy)]
pub(crate) enum Setter {
    /// On without a value; `=0` turns it off.
    Flag(fn(&mut Settings, bool)),
    /// 0 or 1.
    Bool(fn(&mut Settings, bool)),
    /// A whole number.
    Int { min: i64, max: i64, set: fn(&mut Settings, i64) },
    /// Whole numbers for reads, writes and trims.
    IntList { min: i64, max: i64, set: fn(&mut Settings, [Option<i64>; 3]) },
    /// Bytes for reads, writes and trims.
    BytesList { set: fn(&mut Settings, [Option<u64>; 3]) },
    /// Bytes or a percentage of the file.
    Amount(fn(&mut Settings, Amount)),
    /// A time; without unit it is in `unit`.
    Time { unit: TimeUnit, set: fn(&mut Settings, Nanos) },
    /// One of several words. The setter gets its index.
    Choice { words: &'static [&'static str], set: fn(&mut Settings, usize) },
    /// Any text.
    Text { form: &'static str, set: fn(&mut Settings, &str) -> Result<(), Refusal> },
    /// Text of the given form.
    Form { form: &'static str, set: fn(&mut Settings, &str) -> Result<(), Refusal> },
}

impl Setter {
    /// Parses and sets `value`; `None` for an option without `=`.
    pub(crate) fn apply(self, settings: &mut Settings, value: Option<&str>) -> Result<(), Refusal> {
        if let Setter::Flag(set) = self {
            set(settings, value.map_or(Ok(1), |v| values::whole(v, 0, i64::from(u32::MAX)))? != 0);
            return Ok(());
        }
        let Some(value) = value else {
            return Err(Refusal::new("needs a value").with_hint(format!("expected {}", self.values())));
        };
        if value.is_empty() {
            return Err(Refusal::new("the value is empty").with_hint(format!("expected {}", self.values())));
        }
        let base = settings.files.kb_base;
        match self {
            Setter::Flag(_) => {}
            Setter::Bool(set) => {
                let on = values::whole(value, 0, 1).map_err(|e| e.with_hint("expected 0 or 1"))?;
                set(settings, on == 1);
            }
            Setter::Int { min, max, set } => set(settings, values::whole(value, min, max)?),
            Setter::IntList { min, max, set } => {
                set(settings, values::per_direction(value, |v| values::whole(v, min, max))?);
            }
            Setter::BytesList { set } => set(settings, values::per_direction(value, |v| values::bytes(v, base))?),
            Setter::Amount(set) => set(settings, values::amount(value, base)?),
            Setter::Time { unit, set } => set(settings, values::time(value, unit)?),
            Setter::Choice { words, set } => match words.iter().position(|word| *word == value) {
                Some(index) => set(settings, index),
                None => {
                    let refusal = Refusal::new(format!("{} is not one of its values", quoted(value)));
                    return Err(refusal.with_hint(format!("expected {}", self.values())));
                }
            },
            Setter::Text { set, .. } | Setter::Form { set, .. } => set(settings, value)?,
        }
        Ok(())
    }

    /// Whether any text is valid, so that units in it have no meaning.
    pub(crate) fn is_free_text(self) -> bool {
        matches!(self, Setter::Text { .. })
    }

    /// A description of the valid values.
    pub(crate) fn values(self) -> String {
        match self {
            Setter::Flag(_) => "nothing, or 0 or 1".to_owned(),
            Setter::Bool(_) => "0 or 1".to_owned(),
            Setter::Int { min, max: i64::MAX, .. } => format!("a whole number of at least {min}"),
            Setter::Int { min, max, .. } => format!("{min} to {max}"),
            Setter::IntList { min, max: i64::MAX, .. } => format!("read,write,trim: whole numbers of at least {min}"),
            Setter::IntList { min, max, .. } => format!("read,write,trim: {min} to {max}"),
            Setter::BytesList { .. } => "read,write,trim: bytes such as 4k".to_owned(),
            Setter::Amount(_) => "bytes such as 10g, or a percentage such as 50%".to_owned(),
            Setter::Time { unit: TimeUnit::Seconds, .. } => "a time in s, or with a unit d, h, m, s, ms, us".to_owned(),
            Setter::Time { unit: TimeUnit::Microseconds, .. } => {
                "a time in us, or with a unit d, h, m, s, ms, us".to_owned()
            }
            Setter::Time { unit: TimeUnit::Milliseconds, .. } => {
                "a time in ms, or with a unit d, h, m, s, ms, us".to_owned()
            }
            Setter::Choice { words, .. } => words.join(" | "),
            Setter::Text { form, .. } | Setter::Form { form, .. } => form.to_owned(),
        }
    }
}

impl fmt::Debug for Setter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.values())
    }
}
