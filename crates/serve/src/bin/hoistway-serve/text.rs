//! Makes text with names from clients and files safe for terminals.

/// The text on one line, with characters that control a terminal escaped: it may contain names from clients and files.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        // Characters that reorder text or separate lines, which Unicode does not classify as control characters.
        let is_hidden_control = matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if is_hidden_control || character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn a_name_cannot_control_a_terminal_or_start_a_line() {
        assert_eq!(one_line("vm 1 \u{e9}"), "vm 1 \u{e9}");
        assert_eq!(one_line("a\nb\u{1b}[2J\u{202e}"), "a\\nb\\u{1b}[2J\\u{202e}");
    }
}
