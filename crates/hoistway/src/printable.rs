//! What others have named may hold characters that a terminal obeys: moving its cursor, its colours, its title. They are shown, not
//! done.

use anyhow::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A text for people. A character is shown as its picture, which no grammar has another meaning for.
pub(crate) fn text(text: &str) -> String {
    text.chars().map(|character| if is_obeyed(character) { picture(character) } else { character }).collect()
}

fn is_obeyed(character: char) -> bool {
    character.is_control() && character != '\n' && character != '\t'
}

fn picture(control: char) -> char {
    const PICTURES: u32 = 0x2400;
    match u32::from(control) {
        code @ 0..0x20 => char::from_u32(PICTURES + code).unwrap_or(char::REPLACEMENT_CHARACTER),
        0x7f => '\u{2421}',
        _ => char::REPLACEMENT_CHARACTER,
    }
}

/// A document to be shown, if it is not fit for that as it is.
pub(crate) fn document<D: Serialize + DeserializeOwned>(document: &D) -> Result<Option<D>> {
    let mut value = serde_json::to_value(document)?;
    Ok(if has_replaced(&mut value) { Some(serde_json::from_value(value)?) } else { None })
}

/// Replaces such characters in all strings of a value, names of keys as well. Answers whether there were any.
fn has_replaced(value: &mut Value) -> bool {
    match value {
        Value::String(string) if string.contains(is_obeyed) => {
            *string = text(string);
            true
        }
        Value::Array(values) => values.iter_mut().fold(false, |any, value| has_replaced(value) | any),
        Value::Object(map) => {
            let is_any_key = map.keys().any(|key| key.contains(is_obeyed));
            if is_any_key {
                *map = std::mem::take(map).into_iter().map(|(key, value)| (text(&key), value)).collect();
            }
            map.values_mut().fold(is_any_key, |any, value| has_replaced(value) | any)
        }
        _ => false,
    }
}
