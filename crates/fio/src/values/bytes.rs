//! Parses sizes in bytes.

use hoistway_load::Amount;

use super::number::leading_number;
use super::{Refusal, whole};
use crate::error::quoted;

/// The meaning of `k`: fio's option `kb_base`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum KbBase {
    /// `k` is 1024 and, for compatibility with old versions of fio, `kib` is 1000.
    #[default]
    Binary,
    /// `k` is 1000 and `ki`, `kib` are 1024.
    Decimal,
}

/// Bytes: a number and an optional unit k, m, g, t or p, alone or followed by b, i or ib.
pub(crate) fn bytes(text: &str, base: KbBase) -> Result<u64, Refusal> {
    let expected = "expected a number of bytes such as 4096, 4k or 1g";
    let (number, suffix) = leading_number(text).map_err(|e| e.with_hint(expected))?;
    let factor = multiplier(suffix, base).ok_or_else(|| {
        let hint = if suffix.starts_with('.') {
            "fractions are not possible; fio would drop everything after the point"
        } else if suffix.contains('-') {
            "expected a single size: fio would drop what follows it; bsrange takes a range of block sizes"
        } else {
            "the units are k, m, g, t and p"
        };
        Refusal::new(format!("{} has an unknown unit {}", quoted(text), quoted(suffix))).with_hint(hint)
    })?;
    number.checked_mul(factor).ok_or_else(|| Refusal::new(format!("{} is too large", quoted(text))))
}

fn multiplier(suffix: &str, base: KbBase) -> Option<u64> {
    let suffix = suffix.to_ascii_lowercase();
    if suffix.is_empty() || suffix == "b" {
        return Some(1);
    }
    let power = match suffix.as_bytes()[0] {
        b'k' => 1,
        b'm' => 2,
        b'g' => 3,
        b't' => 4,
        b'p' => 5,
        _ => return None,
    };
    let unit: u64 = match (&suffix[1..], base) {
        ("" | "b" | "i", KbBase::Binary) | ("i" | "ib", KbBase::Decimal) => 1024,
        ("ib", KbBase::Binary) | ("" | "b", KbBase::Decimal) => 1000,
        _ => return None,
    };
    Some(unit.pow(power))
}

/// Whether `text`, which is valid, uses a unit with a reversed meaning (`4KiB` is 4000).
pub(crate) fn has_reversed_unit(text: &str, base: KbBase) -> bool {
    let is_reversed = |w: &[u8]| {
        w[0].is_ascii_digit() && b"kmgtp".contains(&w[1].to_ascii_lowercase()) && w[2..].eq_ignore_ascii_case(b"ib")
    };
    base == KbBase::Binary && text.as_bytes().windows(4).any(is_reversed)
}

/// Bytes, or a percentage of the file: `10g`, `50%`.
pub(crate) fn amount(text: &str, base: KbBase) -> Result<Amount, Refusal> {
    match text.strip_suffix('%') {
        Some(percent) => Ok(Amount::Percent(whole(percent, 0, 100)? as u8)),
        None => Ok(Amount::Bytes(bytes(text, base)?)),
    }
}

/// A range of sizes `a-b` or `a:b`, swapped if the first is larger. A single value is a range of one size.
pub(crate) fn range_bytes(text: &str, base: KbBase) -> Result<(u64, u64), Refusal> {
    let (low, high) = match text.split_once(['-', ':']) {
        Some((low, high)) => (bytes(low.trim(), base)?, bytes(high.trim(), base)?),
        None => {
            let both = bytes(text, base)?;
            (both, both)
        }
    };
    Ok((low.min(high), low.max(high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_kb_base_with_kib_reversed_by_default() {
        for (text, binary, decimal) in [
            ("4k", 4096, 4000),
            ("4KB", 4096, 4000),
            ("4ki", 4096, 4096),
            ("4KiB", 4000, 4096),
            ("1m", 1 << 20, 1_000_000),
            ("0x10k", 16 << 10, 16_000),
            ("512", 512, 512),
            ("2t", 2 << 40, 2_000_000_000_000),
        ] {
            assert_eq!(bytes(text, KbBase::Binary), Ok(binary), "{text}");
            assert_eq!(bytes(text, KbBase::Decimal), Ok(decimal), "{text}");
        }
    }

    #[test]
    fn unknown_units_and_fractions_are_refused() {
        for text in ["4x", "1.5m", "4kk", "4 k", "k", "", "16384p", "4kbb", "é"] {
            assert!(bytes(text, KbBase::Binary).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_are_put_in_order_and_percentages_are_of_the_file() {
        assert_eq!(range_bytes("16k-4k", KbBase::Binary), Ok((4096, 16384)));
        assert_eq!(range_bytes("4k:16k", KbBase::Binary), Ok((4096, 16384)));
        assert_eq!(amount("50%", KbBase::Binary).unwrap().of(1000), 500);
        assert!(amount("101%", KbBase::Binary).is_err());
    }
}
