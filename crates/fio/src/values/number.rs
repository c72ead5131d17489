//! Parses plain numbers.

use super::Refusal;
use crate::error::quoted;

/// Splits `text` into a leading number, decimal or hexadecimal after `0x`, and the rest. There is no octal: `010` is
/// ten.
pub(super) fn leading_number(text: &str) -> Result<(u64, &str), Refusal> {
    let (digits, radix) = match text.get(..2) {
        Some("0x" | "0X") => (&text[2..], 16),
        _ => (text, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    if end == 0 {
        return Err(Refusal::new(format!("{} is not a number", quoted(text))));
    }
    match u64::from_str_radix(&digits[..end], radix) {
        Ok(number) => Ok((number, &digits[end..])),
        Err(_) => Err(Refusal::new(format!("{} is too large", quoted(text)))),
    }
}

/// A whole number from `min` to `max`, possibly with one of fio's multipliers (`iodepth=1k` is 1024).
pub(crate) fn whole(text: &str, min: i64, max: i64) -> Result<i64, Refusal> {
    let expected = || {
        if max == i64::MAX {
            format!("expected a whole number of at least {min}")
        } else {
            format!("expected a whole number from {min} to {max}")
        }
    };
    let (negative, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let not_a_number = || Refusal::new(format!("{} is not a number", quoted(text))).with_hint(expected());
    if magnitude.is_empty() {
        return Err(not_a_number());
    }
    let (number, suffix) = leading_number(magnitude).map_err(|e| e.with_hint(expected()))?;
    let factor: u64 = match suffix.to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return Err(not_a_number()),
    };
    let value = i128::from(number) * i128::from(factor) * if negative { -1 } else { 1 };
    match i64::try_from(value) {
        Ok(value) if (min..=max).contains(&value) => Ok(value),
        _ => Err(Refusal::new(format!("{} is out of range", quoted(text))).with_hint(expected())),
    }
}

/// A decimal number such as `1.2`.
pub(crate) fn decimal(text: &str) -> Result<f64, Refusal> {
    let plain = !text.is_empty() && text.len() <= 24 && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    match text.parse::<f64>() {
        Ok(number) if plain && number.is_finite() => Ok(number),
        _ => Err(Refusal::new(format!("{} is not a decimal number", quoted(text)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_or_hexadecimal_but_never_octal() {
        assert_eq!(whole("010", 0, 100), Ok(10));
        assert_eq!(whole("0x10", 0, 100), Ok(16));
        assert_eq!(whole("-20", -20, 19), Ok(-20));
        assert_eq!(whole("4k", 1, i64::MAX), Ok(4096));
    }

    #[test]
    fn numbers_that_fio_would_truncate_are_refused() {
        for text in ["", "x", "1x", "1.5", "1,2", "0x", "-", "--1", "1 2", "99999999999999999999", "٣"] {
            assert!(whole(text, i64::MIN, i64::MAX).is_err(), "{text}");
        }
        let refusal = whole("x", 1, i64::MAX).unwrap_err();
        assert_eq!(refusal.message, "\"x\" is not a number");
        assert_eq!(refusal.hint.as_deref(), Some("expected a whole number of at least 1"));
        assert_eq!(whole("-", 1, i64::MAX).unwrap_err().message, "\"-\" is not a number");
    }
}
