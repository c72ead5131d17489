//! What the device of a document is called.

use serde_json::Value;

/// What a device, or several, are called.
pub fn device_name(device: &Value) -> String {
    match device {
        Value::String(name) => name.clone(),
        Value::Array(devices) => device_names(devices),
        _ => device["name"].as_str().unwrap_or("a device without a name").to_owned(),
    }
}

/// Each name once, with how many there are of it.
fn device_names(devices: &[Value]) -> String {
    let mut names: Vec<(String, usize)> = Vec::new();
    for name in devices.iter().map(device_name) {
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => names.push((name, 1)),
        }
    }
    let shown = |(name, count): &(String, usize)| if *count > 1 { format!("{count} x {name}") } else { name.clone() };
    names.iter().map(shown).collect::<Vec<_>>().join(" + ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn devices_of_one_name_are_counted() {
        assert_eq!(device_name(&json!("null")), "null");
        let many = json!([{"name": "hdd"}, {"name": "ssd"}, {"name": "hdd"}]);
        assert_eq!(device_name(&many), "2 x hdd + ssd");
    }
}
