//! The model of a machine.

use crate::root::Root;

/// Names that firmware has if nobody has filled them in.
const PLACEHOLDERS: [&str; 6] = [
    "to be filled by o.e.m.",
    "system manufacturer",
    "system product name",
    "default string",
    "not specified",
    "o.e.m.",
];

/// The vendor and product of DMI, or the model of the device tree.
pub(super) fn read(root: &Root) -> Option<String> {
    let text = |path: &str| {
        let text = root.read(path).ok()?;
        // The device tree ends its texts with a zero byte.
        let text = text.trim_end_matches('\0').split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty() && !PLACEHOLDERS.contains(&text.to_lowercase().as_str())).then_some(text)
    };
    let vendor = text("sys/class/dmi/id/sys_vendor");
    match (vendor, text("sys/class/dmi/id/product_name")) {
        (Some(vendor), Some(product)) if !product.starts_with(&vendor) => Some(format!("{vendor} {product}")),
        (_, Some(product)) => Some(product),
        (Some(vendor), None) => Some(vendor),
        (None, None) => text("proc/device-tree/model"),
    }
}
