//! Kinds of devices: those of one class and model, whatever their names.

use std::collections::BTreeSet;

use crate::host::{Class, Device, Finding, Host};

/// The kinds of the devices of a finding; empty if it concerns the host.
pub(super) type Kinds = BTreeSet<String>;

/// The kind of a device: its class with its model, or with its function in the stack.
pub(super) fn of_device(device: &Device) -> String {
    let class = device.class.name();
    let detail = if device.class == Class::Stacked { device.layer.as_ref() } else { device.model.as_ref() };
    detail.map_or_else(|| class.to_owned(), |detail| format!("{class} {detail}"))
}

/// The kinds of the devices that a finding names.
pub(super) fn of_finding(host: &Host, finding: &Finding) -> Kinds {
    finding.devices.iter().filter_map(|name| host.device(name)).map(of_device).collect()
}

/// Kinds as one text; `None` for none.
pub(super) fn name(kinds: &Kinds) -> Option<String> {
    (!kinds.is_empty()).then(|| kinds.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
}

/// The release without patch level and suffix: 5.14 of `5.14.0-427.el9`.
pub(super) fn kernel(release: &str) -> String {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    match (parts.next(), parts.next()) {
        (Some(major), Some(minor)) if !major.is_empty() && !minor.is_empty() => format!("{major}.{minor}"),
        _ => release.to_owned(),
    }
}
