//! Formatting of names and lists, for several outputs.

pub(crate) use hoistway_answer::document::device_name;

/// `a, b and c`.
pub(crate) fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [names @ .., last] => format!("{} and {last}", names.join(", ")),
    }
}
