//! Text that is safe for terminals: control characters, which names from outside may contain, are replaced by visible pictures.
//!
//! Used by: `ending`; crate `hoistway`.
//! Tests: below.

use std::cell::Cell;
use std::io;

use anyhow::Result;
use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, Serializer};

/// Replaces each control character by its Unicode picture, which no terminal or format interprets.
pub fn text(text: &str) -> String {
    text.chars().map(|character| if is_terminal_control(character) { picture(character) } else { character }).collect()
}

fn is_terminal_control(character: char) -> bool {
    // Characters that reorder text or separate lines, which Unicode does not classify as control characters.
    let is_hidden_control =
        matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    is_hidden_control || character.is_control() && character != '\n' && character != '\t'
}

fn picture(control: char) -> char {
    const PICTURES: u32 = 0x2400;
    match u32::from(control) {
        code @ 0..0x20 => char::from_u32(PICTURES + code).unwrap_or(char::REPLACEMENT_CHARACTER),
        0x7f => '\u{2421}',
        _ => char::REPLACEMENT_CHARACTER,
    }
}

/// A safe copy of a document for display, if it contains such characters. `read` parses the document.
pub fn document<D, E>(document: &D, read: impl Fn(&str) -> Result<D, E>) -> Result<Option<D>>
where
    D: Serialize,
    E: std::error::Error + Send + Sync + 'static,
{
    // Checked while serializing: as a value, a document of a thousand processes takes more memory than the runs did.
    let has_control = Cell::new(false);
    document.serialize(&mut Serializer::with_formatter(io::sink(), Pictures { has_control: &has_control }))?;
    if !has_control.get() {
        return Ok(None);
    }
    let mut printable = Vec::new();
    document.serialize(&mut Serializer::with_formatter(&mut printable, Pictures { has_control: &has_control }))?;
    Ok(Some(read(str::from_utf8(&printable)?)?))
}

/// A JSON formatter that replaces control characters by their pictures, also in keys.
struct Pictures<'a> {
    /// Whether there were any.
    has_control: &'a Cell<bool>,
}

impl Formatter for Pictures<'_> {
    fn write_string_fragment<W: io::Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if !fragment.contains(is_terminal_control) {
            return writer.write_all(fragment.as_bytes());
        }
        self.has_control.set(true);
        writer.write_all(text(fragment).as_bytes())
    }

    fn write_char_escape<W: io::Write + ?Sized>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        let control = match escape {
            CharEscape::Backspace => 0x8,
            CharEscape::FormFeed => 0xc,
            CharEscape::CarriageReturn => b'\r',
            CharEscape::AsciiControl(code) => code,
            _ => return CompactFormatter.write_char_escape(writer, escape),
        };
        self.write_string_fragment(writer, &char::from(control).to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    fn shown(key: &str, value: &str) -> Option<(String, String)> {
        let document = BTreeMap::from([(key.to_owned(), vec![value.to_owned()])]);
        let shown = super::document(&document, |text| serde_json::from_str::<BTreeMap<String, Vec<String>>>(text));
        let (key, values) = shown.expect("it is JSON")?.pop_first()?;
        Some((key, values.concat()))
    }

    #[test]
    fn control_characters_are_made_visible_and_other_text_is_unchanged() {
        for unchanged in ["plain", "two\nlines\tand a tab", "\"quoted\" \\u001b", "\u{e9}\u{a0}\u{4e00}\u{1f600}", ""] {
            assert_eq!(shown("name", unchanged), None, "{unchanged:?}");
            assert_eq!(shown(unchanged, "text"), None, "{unchanged:?}");
        }
        for (control, picture) in [
            ('\u{1b}', '\u{241b}'),
            ('\r', '\u{240d}'),
            ('\u{8}', '\u{2408}'),
            ('\u{c}', '\u{240c}'),
            ('\0', '\u{2400}'),
            ('\u{7f}', '\u{2421}'),
            ('\u{9b}', '\u{fffd}'),
            ('\u{202e}', '\u{fffd}'),
            ('\u{2066}', '\u{fffd}'),
        ] {
            let (before, after) = (format!("a{control}\n"), format!("a{picture}\n"));
            assert_eq!(shown("name", &before), Some(("name".to_owned(), after.clone())), "{control:?}");
            assert_eq!(shown(&before, "text"), Some((after, "text".to_owned())), "{control:?}");
        }
    }
}
