//! Tunables, declared once: each scheduler has a table of them, from which the sysfs-style files, the command line, help texts and
//! documentation are generated.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

use super::sharing::Word;

/// The unit of a tunable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
    /// Sectors of 512 bytes.
    Sectors,
    /// KiB.
    Kib,
    /// Requests.
    Requests,
    /// Batches of reads.
    Batches,
    /// 0 or 1.
    Switch,
    /// A plain number.
    Number,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Millis => "ms",
            Unit::Micros => "us",
            Unit::Nanos => "ns",
            Unit::Sectors => "sectors",
            Unit::Kib => "KiB",
            Unit::Requests => "requests",
            Unit::Batches => "read batches",
            Unit::Switch => "0 or 1",
            Unit::Number => "number",
        })
    }
}

/// How the text of a write is parsed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grammar {
    /// A whole integer in C notation (`0x` hex, leading `0` octal, sign), 32 bits signed.
    CInt32,
    /// The leading decimal number; what follows is ignored and no number counts as 0. 32 bits signed, wrapping.
    LeadingDecimal,
    /// Decimal digits only, 64 bits unsigned.
    Decimal64,
    /// As [`Decimal64`](Self::Decimal64), with a minus sign if the range includes negative numbers; numbers out of range are rejected instead of clamped.
    InRange,
}

/// One tunable of a scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tunable {
    /// File name under `queue/iosched/`.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Its default, as shown; see `default_note` when it depends on the queue.
    pub default: i128,
    /// How the default is determined, if it is not a constant.
    pub default_note: Option<&'static str>,
    /// Smallest value; smaller ones are raised to it, or rejected by [`Grammar::InRange`].
    pub min: i128,
    /// Largest value; larger ones are lowered to it, or rejected by [`Grammar::InRange`].
    pub max: i128,
    /// Its effect, in a sentence or two.
    pub doc: &'static str,
}

/// Why a write was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreError {
    /// There is no such file (ENOENT).
    Unknown,
    /// The text is not a number of the expected form (EINVAL).
    Invalid,
    /// The number cannot be represented, or must not be (ERANGE).
    Range,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StoreError::Unknown => "no such tunable (ENOENT)",
            StoreError::Invalid => "not a number (EINVAL)",
            StoreError::Range => "number out of range (ERANGE)",
        })
    }
}

impl std::error::Error for StoreError {}

impl Tunable {
    /// Parses the text of a write and clamps the value to the tunable's range, as the kernel does, unless the grammar
    /// [rejects](Grammar::InRange) values out of range.
    ///
    /// # Errors
    /// If the kernel rejects the text.
    pub fn parse(&self, grammar: Grammar, text: &str) -> Result<i128, StoreError> {
        let value = match grammar {
            Grammar::CInt32 => c_integer(text.strip_suffix('\n').unwrap_or(text))
                .and_then(|value| i32::try_from(value).map(i128::from).map_err(|_| StoreError::Range))?,
            Grammar::LeadingDecimal => leading_decimal(text),
            Grammar::Decimal64 | Grammar::InRange => {
                let text = text.strip_suffix('\n').unwrap_or(text);
                let is_signed = grammar == Grammar::InRange && self.min < 0;
                let negative = text.strip_prefix('-').filter(|_| is_signed);
                let digits = negative.unwrap_or(text);
                if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(StoreError::Invalid);
                }
                let number = digits.parse::<u64>().map(i128::from).map_err(|_| StoreError::Range)?;
                if negative.is_some() { -number } else { number }
            }
        };
        if grammar == Grammar::InRange && !(self.min..=self.max).contains(&value) {
            return Err(StoreError::Range);
        }
        Ok(value.clamp(self.min, self.max))
    }
}

/// One tunable of a policy, with its accessors.
pub struct TunableRow<P> {
    /// Its declaration.
    pub tunable: Tunable,
    /// Returns the value that its file shows.
    pub get: fn(&P) -> i128,
    /// Sets a value within the range.
    pub set: fn(&mut P, i128),
}

impl<P> Clone for TunableRow<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for TunableRow<P> {}

impl<P> TunableRow<P> {
    /// A tunable whose default is a constant.
    #[must_use]
    pub const fn new(
        name: &'static str,
        (unit, default, min, max): (Unit, i128, i128, i128),
        doc: &'static str,
        get: fn(&P) -> i128,
        set: fn(&mut P, i128),
    ) -> Self {
        TunableRow { tunable: Tunable { name, unit, default, default_note: None, min, max, doc }, get, set }
    }

    /// Adds a note on how the default is determined.
    #[must_use]
    pub const fn with_default_note(mut self, note: &'static str) -> Self {
        self.tunable.default_note = Some(note);
        self
    }
}

/// The tunables of a policy: a table, and the grammar of writes.
pub struct Tunables<P: 'static> {
    /// How writes are parsed.
    pub grammar: Grammar,
    /// In the order in which their files are listed.
    pub rows: &'static [TunableRow<P>],
}

impl<P> Tunables<P> {
    /// All tunables with their current values.
    #[must_use]
    pub fn shown(&self, policy: &P) -> Vec<(&'static Tunable, i128)> {
        self.rows.iter().map(|row| (&row.tunable, (row.get)(policy))).collect()
    }

    /// Writes a tunable, with the kernel's parsing, clamping and errors.
    ///
    /// # Errors
    /// If there is no such tunable or the kernel would refuse the text.
    pub fn store(&self, policy: &mut P, name: &str, text: &str) -> Result<(), StoreError> {
        let row = self.rows.iter().find(|row| row.tunable.name == name).ok_or(StoreError::Unknown)?;
        (row.set)(policy, row.tunable.parse(self.grammar, text)?);
        Ok(())
    }
}

impl<const N: usize> Tunables<[u64; N]> {
    /// Writes a tunable of values that CPUs share as words; `adjust` sees all values before they are stored.
    ///
    /// # Errors
    /// If there is no such tunable or the text is refused.
    pub fn store_shared<W: Word>(
        &self,
        words: [&W; N],
        name: &str,
        text: &str,
        adjust: impl FnOnce(&mut [u64; N]),
    ) -> Result<(), StoreError> {
        let old_values = values_of(words);
        let mut values = old_values;
        self.store(&mut values, name, text)?;
        adjust(&mut values);
        for (word, (value, old_value)) in words.into_iter().zip(values.into_iter().zip(old_values)) {
            // Another CPU may write the other tunables meanwhile.
            if value != old_value {
                word.store(value, Relaxed);
            }
        }
        Ok(())
    }

    /// All tunables with the current values of words that CPUs share.
    #[must_use]
    pub fn shown_shared<W: Word>(&self, words: [&W; N]) -> Vec<(&'static Tunable, i128)> {
        self.shown(&values_of(words))
    }
}

fn values_of<W: Word, const N: usize>(words: [&W; N]) -> [u64; N] {
    words.map(|word| word.load(Relaxed))
}

/// The value of one tunable in a list of current values.
///
/// # Errors
/// If there is no tunable of this name.
pub fn value_of(shown: &[(&'static Tunable, i128)], name: &str) -> Result<i128, StoreError> {
    shown.iter().find(|(tunable, _)| tunable.name == name).map(|&(_, value)| value).ok_or(StoreError::Unknown)
}

fn c_integer(text: &str) -> Result<i128, StoreError> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(StoreError::Invalid);
    }
    let value = i128::from_str_radix(digits, radix).map_err(|_| StoreError::Range)?;
    Ok(if negative { -value } else { value })
}

fn leading_decimal(text: &str) -> i128 {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let mut value: i64 = 0;
    for digit in digits.bytes().take_while(u8::is_ascii_digit) {
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
    }
    i128::from(if negative { value.wrapping_neg() as i32 } else { value as i32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPIRE: Tunable = Tunable {
        name: "x",
        unit: Unit::Millis,
        default: 500,
        default_note: None,
        min: 0,
        max: i32::MAX as i128,
        doc: "",
    };

    #[test]
    fn c_integers_are_read_clamped_and_refused_as_on_6_18() {
        let parse = |text| EXPIRE.parse(Grammar::CInt32, text);
        assert_eq!(parse("0x10"), Ok(16));
        assert_eq!(parse("010"), Ok(8));
        assert_eq!(parse("+5\n"), Ok(5));
        assert_eq!(parse("-7"), Ok(0), "clamped");
        assert_eq!(parse("12abc"), Err(StoreError::Invalid));
        assert_eq!(parse(""), Err(StoreError::Invalid));
        assert_eq!(parse("2147483647"), Ok(2_147_483_647));
        assert_eq!(parse("2147483648"), Err(StoreError::Range));
    }

    #[test]
    fn before_5_14_the_leading_number_counts_and_garbage_is_0() {
        let parse = |text| EXPIRE.parse(Grammar::LeadingDecimal, text).unwrap();
        assert_eq!(["12abc", "abc", "-3", "7\n"].map(parse), [12, 0, 0, 7]);
    }

    #[test]
    fn sixty_four_bit_decimals_take_digits_only() {
        let wide = Tunable { max: u64::MAX as i128, ..EXPIRE };
        let parse = |text| wide.parse(Grammar::Decimal64, text);
        assert_eq!(parse("18446744073709551615\n"), Ok(u64::MAX as i128));
        assert_eq!(parse("18446744073709551616"), Err(StoreError::Range));
        for text in ["0x10", " 1", "-1", ""] {
            assert_eq!(parse(text), Err(StoreError::Invalid));
        }
    }

    #[test]
    fn a_range_grammar_refuses_out_of_range_values() {
        let bound = Tunable { min: 1, max: 9, ..EXPIRE };
        let parse = |text| bound.parse(Grammar::InRange, text);
        assert_eq!((parse("1"), parse("9\n")), (Ok(1), Ok(9)));
        assert_eq!(["0", "10", "18446744073709551616"].map(parse), [Err(StoreError::Range); 3]);
        assert_eq!(["-1", "x", "", "0x1"].map(parse), [Err(StoreError::Invalid); 4]);
        let signed = Tunable { min: -9, ..bound };
        let parse = |text| signed.parse(Grammar::InRange, text);
        assert_eq!((parse("-9"), parse("9\n"), parse("-10")), (Ok(-9), Ok(9), Err(StoreError::Range)));
        assert_eq!(["-", "--1", "- 1"].map(parse), [Err(StoreError::Invalid); 3]);
    }
}
