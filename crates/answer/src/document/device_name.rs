//! The display name of a document's device.

use serde_json::Value;

/// The display name of a device, or of an array of devices.
pub fn device_name(device: &Value) -> String {
    match device {
        Value::String(name) => name.clone(),
        Value::Array(devices) => device_names(devices),
        _ => device["name"].as_str().unwrap_or("an unnamed device").to_owned(),
    }
}

/// Each name once, with its count if above 1.
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
