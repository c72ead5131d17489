//! Wraps prose to a width.

/// The text in lines of at most `width` characters, each after `indent` spaces. A longer word gets its own line; a
/// blank line in the text separates paragraphs, all other white space counts as one space.
#[must_use]
pub fn wrapped(text: &str, width: usize, indent: usize) -> String {
    wrap_hanging(text, width, indent, indent)
}

/// Like [`wrapped`], but the first line has a different indent: that of a list's bullet, or of a label.
#[must_use]
pub fn wrap_hanging(text: &str, width: usize, first: usize, indent: usize) -> String {
    let mut lines = String::new();
    let mut margin = first;
    for (number, paragraph) in text.split("\n\n").enumerate() {
        if number > 0 {
            lines.push('\n');
        }
        let mut used = 0;
        for word in paragraph.split_whitespace() {
            let length = word.chars().count();
            if used > 0 && used + 1 + length > width {
                lines.push('\n');
                used = 0;
            }
            if used == 0 {
                lines.extend(std::iter::repeat_n(' ', margin));
                used = margin + length;
                margin = indent;
            } else {
                lines.push(' ');
                used += 1 + length;
            }
            lines.push_str(word);
        }
        if used > 0 {
            lines.push('\n');
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_filled_and_not_longer_than_wanted() {
        assert_eq!(wrapped("one two\nthree  four", 9, 2), "  one two\n  three\n  four\n");
        assert_eq!(wrapped("one two three", 13, 0), "one two three\n");
        assert_eq!(wrapped("one two three", 12, 0), "one two\nthree\n");
        assert_eq!(wrapped("", 10, 2), "");
    }

    #[test]
    fn a_word_that_is_too_long_has_a_line_of_its_own() {
        assert_eq!(wrapped("a /sys/block/sda b", 6, 0), "a\n/sys/block/sda\nb\n");
        assert_eq!(wrapped("ab cd", 0, 1), " ab\n cd\n");
    }

    #[test]
    fn paragraphs_stay_apart_and_bullets_hang() {
        assert_eq!(wrapped("one\n\ntwo", 9, 0), "one\n\ntwo\n");
        assert_eq!(wrap_hanging("- one two", 7, 0, 2), "- one\n  two\n");
    }
}
