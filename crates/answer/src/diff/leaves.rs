//! Differences between two JSON values, leaf by leaf.

use serde_json::Value;

/// A path, such as `device.flash.read_us` or `runs[3].seed`, and the value there in each document; null if missing.
pub(super) type Leaf = (String, Value, Value);

/// All leaves that differ.
pub(super) fn differences(path: &str, before: &Value, after: &Value) -> Vec<Leaf> {
    let mut found = Vec::new();
    walk(path, before, after, &mut found);
    found
}

/// The first leaf that differs.
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
            for index in 0..old.len().max(new.len()) {
                let element = |values: &[Value]| values.get(index).cloned().unwrap_or(Value::Null);
                walk(&format!("{path}[{index}]"), &element(old), &element(new), found);
            }
        }
        (before, after) if before == after || is_same_number(before, after) => {}
        (before, after) => found.push((path.to_owned(), before.clone(), after.clone())),
    }
}

/// Whether both are the same number in different notations, such as 38 and 38.0.
fn is_same_number(before: &Value, after: &Value) -> bool {
    let is_any_float = before.is_f64() || after.is_f64();
    is_any_float && before.as_f64().is_some_and(|number| after.as_f64() == Some(number))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_is_the_same_however_it_is_written() {
        assert_eq!(differences("x", &json!({"a": 38}), &json!({"a": 38.0})), []);
        assert_eq!(differences("x", &json!(38), &json!(38.5)).len(), 1);
        // As floats both would be 2^53.
        assert_eq!(differences("x", &json!(9_007_199_254_740_992_u64), &json!(9_007_199_254_740_993_u64)).len(), 1);
        assert_eq!(differences("x", &json!(null), &json!(0.0)).len(), 1);
    }

    #[test]
    fn every_difference_is_reported_with_its_path() {
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
