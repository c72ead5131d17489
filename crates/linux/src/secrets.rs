//! Removes serial numbers and other unique values from dumps.
//!
//! Used by: `host`, `dump`.
//! Tests: below.

/// Placeholder for a removed value.
pub(crate) const REMOVED: &str = "(removed)";

/// Substrings of the names of properties and attributes that hold serial numbers or other unique values.
const NAMES: [&str; 7] = ["SERIAL", "WWN", "WWID", "UUID", "UNIQUE", "EUI", "IDENT"];

/// Whether a property with this name is a serial number, or otherwise unique to a device.
pub(crate) fn is_serial(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    NAMES.iter().any(|part| name.contains(part))
}

/// A device's record in udev's database without properties that are serial numbers, and without links in `/dev`, whose names
/// contain them.
pub(crate) fn udev_record(text: &str) -> String {
    let is_shareable = |line: &&str| match line.split_once(':') {
        Some(("E", property)) => {
            let (name, value) = property.split_once('=').unwrap_or((property, ""));
            !is_serial(name) && name != "DEVLINKS" && !value.contains("/dev/disk/by-id/")
        }
        Some(("S", _)) => false,
        _ => true,
    };
    text.lines().filter(is_shareable).map(|line| line.to_owned() + "\n").collect()
}

/// udev rules with [`REMOVED`] in place of each value that is compared with or assigned to a serial number.
pub(crate) fn udev_rules(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        kept += before;
        kept.push('{');
        rest = after;
        // The name, followed by a value before the end of the line.
        let Some((name, after)) = rest.split_once('}') else { continue };
        let value = after.split_once('"').filter(|(operator, _)| operator.len() < 8 && !operator.contains('\n'));
        if let (true, Some((operator, value))) = (is_serial(name), value) {
            let end = value.find(['"', '\n']).unwrap_or(value.len());
            kept += &format!("{name}}}{operator}\"{REMOVED}");
            rest = &value[end..];
        }
    }
    kept + rest
}

/// The UUID of a mapped device without its unique part: `CRYPT-`, `part1-mpath-`.
pub(crate) fn mapped_uuid(text: &str) -> String {
    let mut kept = String::new();
    for part in text.trim().split_inclusive('-') {
        let is_type_prefix = part.starts_with("part") || ["CRYPT-", "LVM-", "mpath-", "stratis-"].contains(&part);
        if !is_type_prefix {
            break;
        }
        kept += part;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_are_removed_and_nothing_else() {
        let record = "S:disk/by-id/ata-X_S3RIAL\nE:ID_MODEL=X\nE:ID_SERIAL_SHORT=S3RIAL\nE:ID_WWN=0x5\nE:DEVLINKS=/dev/a\nG:systemd\n";
        assert_eq!(udev_record(record), "E:ID_MODEL=X\nG:systemd\n");
        let rule = "KERNEL==\"sda\", ENV{ID_SERIAL}==\"S3RIAL\", ATTR{wwid}!=\"x\", ATTR{queue/scheduler}=\"bfq\"\n";
        let kept = "KERNEL==\"sda\", ENV{ID_SERIAL}==\"(removed)\", ATTR{wwid}!=\"(removed)\", ATTR{queue/scheduler}=\"bfq\"\n";
        assert_eq!(udev_rules(rule), kept);
        assert_eq!(udev_rules("a { b } \"c\" {"), "a { b } \"c\" {");
        assert_eq!(mapped_uuid("CRYPT-LUKS2-deadbeef-root\n"), "CRYPT-");
        assert_eq!(mapped_uuid("part1-mpath-3600508b4"), "part1-mpath-");
        assert_eq!(mapped_uuid("mpath-3600508b4"), "mpath-");
        assert_eq!(mapped_uuid("deadbeef"), "");
    }
}
