//! Stacked devices: their kind, and the devices below them.

use super::class::Class;
use super::mounts::Mounts;
use crate::root::Root;

/// The mapped name of a device, and its kind of stacked device.
pub(super) fn layer(folder: &Root, class: Class) -> (Option<String>, Option<String>) {
    let text = |file: &str| folder.read(file).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    if class == Class::Loop {
        return (None, text("loop/backing_file").map(|_| "file".to_owned()));
    }
    if let Some(level) = text("md/level") {
        return (None, Some(level));
    }
    let mapped = text("dm/name");
    let kind = mapped.as_ref().map(|_| kind_of_mapped(&text("dm/uuid").unwrap_or_default()));
    (mapped, kind)
}

/// The type of a mapped device, from the prefix of its UUID: a convention of the tools that create such devices.
fn kind_of_mapped(uuid: &str) -> String {
    let (kind, rest) = uuid.split_once('-').unwrap_or((uuid, ""));
    match kind {
        "CRYPT" => "crypt",
        "LVM" => "lvm",
        "mpath" => "multipath",
        part if part.starts_with("part") && rest.starts_with("mpath") => "partition",
        "stratis" => "stratis",
        _ => "mapped",
    }
    .to_owned()
}

/// The devices below this one, as named in its folder; `order` later replaces partitions by their disks.
pub(super) fn below(root: &Root, folder: &Root, mounts: &Mounts) -> Vec<String> {
    let slaves = folder.names("slaves").unwrap_or_default();
    if !slaves.is_empty() {
        return slaves;
    }
    let backing = folder.read("loop/backing_file").ok();
    let number = backing.as_deref().and_then(|file| mounts.device_of(file.trim()));
    let path = number.and_then(|number| root.resolved(&format!("sys/dev/block/{number}")).ok());
    path.and_then(|path| path.rsplit('/').next().map(str::to_owned)).into_iter().collect()
}
