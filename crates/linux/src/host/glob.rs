//! Glob patterns of shells, udev and tuned: `*`, `?`, `[a-z]`, `[!0-9]`; alternatives (`a|b`) are left to the caller.

/// Whether the whole text matches the pattern.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    // The last star, and the text that it has matched: backtracking only needs this one.
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
                continue;
            }
            Some(_) => {
                if let Some(length) = match_one(&pattern[p..], text[t]) {
                    (p, t) = (p + length, t + 1);
                    continue;
                }
            }
            None => {}
        }
        let Some((star_index, taken)) = star else { return false };
        star = Some((star_index, taken + 1));
        (p, t) = (star_index + 1, taken + 1);
    }
    pattern[p..].iter().all(|&rest| rest == '*')
}

/// The number of pattern characters that match this character.
fn match_one(pattern: &[char], character: char) -> Option<usize> {
    match pattern {
        ['?', ..] => Some(1),
        ['[', set @ ..] => {
            let is_inverted = matches!(set.first(), Some('!' | '^'));
            let set = &set[usize::from(is_inverted)..];
            // A closing bracket in the first position is a member of the set.
            let Some(end) = set.iter().skip(1).position(|&c| c == ']').map(|end| end + 1) else {
                return (character == '[').then_some(1);
            };
            let is_in = is_in_set(&set[..end], character);
            (is_in != is_inverted).then_some(end + 2 + usize::from(is_inverted))
        }
        ['\\', escaped, ..] => (*escaped == character).then_some(2),
        [same, ..] => (*same == character).then_some(1),
        [] => None,
    }
}

fn is_in_set(mut set: &[char], character: char) -> bool {
    while let [first, rest @ ..] = set {
        match rest {
            ['-', last, rest @ ..] => {
                if (*first..=*last).contains(&character) {
                    return true;
                }
                set = rest;
            }
            _ => {
                if *first == character {
                    return true;
                }
                set = rest;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::matches;

    #[test]
    fn patterns_fit_as_in_a_shell() {
        for (pattern, text) in [
            ("sd[a-z]", "sdb"),
            ("sd*[!0-9]", "sda"),
            ("nvme[0-9]*n[0-9]*", "nvme10n1"),
            ("*", ""),
            ("a*b*c", "aXbYbZc"),
            ("?", "x"),
            ("[]x]", "]"),
            ("[^a]", "b"),
            ("\\*", "*"),
            ("[a-cx]", "x"),
            ("[", "["),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("sd[a-z]", "sdaa"),
            ("sd*[!0-9]", "sda1"),
            ("", "a"),
            ("?", ""),
            ("[a-c]", "d"),
            ("\\*", "a"),
            ("[!a]", "a"),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    proptest! {
        #[test]
        fn any_pattern_is_decided_and_every_plain_text_fits_itself(
            pattern in "[ab*?\\[\\]!^\\\\-]{0,12}", text in "[ab\\]-]{0,24}", plain in "[a-z0-9._-]{0,12}",
        ) {
            matches(&pattern, &text);
            prop_assert!(matches(&plain, &plain));
            let with_star = format!("{plain}*");
            let longer = format!("{}{}", plain, text);
            prop_assert!(matches(&with_star, &longer));
        }
    }
}
