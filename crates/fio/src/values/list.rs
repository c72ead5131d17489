//! Parses lists per direction: `read[,write[,trim]]`.

use super::Refusal;

/// Replaces the values that are given.
pub(crate) fn merge<T>(into: &mut [T; 3], given: [Option<T>; 3]) {
    for (old, new) in into.iter_mut().zip(given) {
        if let Some(new) = new {
            *old = new;
        }
    }
}

/// Parses a list of up to three values: `4k` applies to all, `4k,8k` gives trims 8k as well, `,8k` leaves reads
/// unchanged (`None`). A trailing comma has no effect.
pub(crate) fn per_direction<T: Clone>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, Refusal>,
) -> Result<[Option<T>; 3], Refusal> {
    let mut values = [const { None }; 3];
    let mut last: Option<T> = None;
    let mut given = 0;
    for (i, part) in text.split(',').map(str::trim).enumerate() {
        if i == 3 {
            return Err(Refusal::new("more than three values").with_hint("the order is read,write,trim"));
        }
        given = i + 1;
        if !part.is_empty() {
            last = Some(parse(part)?);
            values[i] = last.clone();
        } else if i > 0 && values[i - 1].is_some() {
            values[i] = last.clone();
        }
    }
    if last.is_none() {
        return Err(Refusal::new("no value"));
    }
    for value in values.iter_mut().skip(given) {
        *value = last.clone();
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::whole;

    fn list(text: &str) -> Result<[Option<i64>; 3], Refusal> {
        per_direction(text, |t| whole(t, 0, 100))
    }

    #[test]
    fn a_missing_later_value_repeats_the_former_and_a_missing_first_one_stays_open() {
        assert_eq!(list("4"), Ok([Some(4), Some(4), Some(4)]));
        assert_eq!(list("4,8"), Ok([Some(4), Some(8), Some(8)]));
        assert_eq!(list(",8"), Ok([None, Some(8), Some(8)]));
        assert_eq!(list("4,,16"), Ok([Some(4), Some(4), Some(16)]));
        assert_eq!(list("4,"), Ok([Some(4), Some(4), Some(4)]));
        assert_eq!(list(",,6"), Ok([None, None, Some(6)]));
    }

    #[test]
    fn lists_without_or_with_too_many_values_are_refused() {
        for text in ["", ",", "1,2,3,4", "1,x"] {
            assert!(list(text).is_err(), "{text}");
        }
    }
}
