//! Where two JSON values differ.

use serde_json::Value;

/// A place, as `device.flash.read_us` or `runs[3].seed`, and what is there; null where there is nothing.
pub(super) type Leaf = (String, Value, Value);

/// All places where they differ.
pub(super) fn differences(path: &str, before: &Value, after: &Value) -> Vec<Leaf> {
    let mut found = Vec::new();
    walk(path, before, after, &mut found);
    found
}

/// The first of them.
pub(crate) fn first(path: &str, before: &Value, after: &Value) -> Option<Leaf> {
    differences(path, before, after).into_iter().next()
}

fn walk(path: &str, before: &Value, after: &Value, found: &mut Vec<Leaf>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                walk(&path, old.get(key).unwrap_or(&Value::Null), new.get(key).unwrap_or(&Value::Null), found);
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for place in 0..old.len().max(new.len()) {
                let at = |values: &[Value]| values.get(place).cloned().unwrap_or(Value::Null);
                walk(&format!("{path}[{place}]"), &at(old), &at(new), found);
            }
        }
        (before, after) if before == after => {}
        (before, after) => found.push((path.to_owned(), before.clone(), after.clone())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_place_is_told_with_its_path() {
        let before = json!({"a": 1, "b": {"c": [1, 2]}, "d": {"e": 1}, "same": [{}]});
        let after = json!({"a": 1, "b": {"c": [1, 3, 4]}, "d": 5, "new": true, "same": [{}]});
        let found = differences("x", &before, &after);
        let expected = [
            ("x.b.c[1]", json!(2), json!(3)),
            ("x.b.c[2]", json!(null), json!(4)),
            ("x.d", json!({"e": 1}), json!(5)),
            ("x.new", json!(null), json!(true)),
        ];
        assert_eq!(found, expected.map(|(path, before, after)| (path.to_owned(), before, after)));
        assert_eq!(first("", &before, &after).unwrap().0, "b.c[1]");
        assert_eq!(first("", &before, &before), None);
    }
}
