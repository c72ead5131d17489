//! Mounted file systems, from `/proc/self/mountinfo`.

use crate::root::Root;

/// A mount.
#[derive(Debug)]
struct Mount {
    /// Number of its device, such as `8:1`.
    device: String,
    /// The mount point.
    point: String,
    /// Type of file system.
    kind: String,
    /// Options of the file system itself.
    options: String,
}

/// All mounts, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Mounts(Vec<Mount>);

impl Mounts {
    pub(crate) fn read(root: &Root) -> Self {
        let text = root.read("proc/self/mountinfo").unwrap_or_default();
        Mounts(text.lines().filter_map(mount).collect())
    }

    /// The mount point of the last file system of this type with this option.
    pub(crate) fn point_of(&self, kind: &str, option: Option<&str>) -> Option<&str> {
        let has_option =
            |mount: &&Mount| option.is_none_or(|option| mount.options.split(',').any(|present| present == option));
        let newest = self.0.iter().rev().filter(|mount| mount.kind == kind).find(has_option);
        newest.map(|mount| mount.point.as_str())
    }

    /// The number of the device that contains the file at this path.
    pub(crate) fn device_of(&self, path: &str) -> Option<&str> {
        let contains_path = |point: &str| {
            point == "/" || path.strip_prefix(point).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // Of several mounts on one mount point, the last one hides the others.
        let containing = self.0.iter().filter(|mount| contains_path(&mount.point));
        containing.max_by_key(|mount| mount.point.len()).map(|mount| mount.device.as_str())
    }
}

fn mount(line: &str) -> Option<Mount> {
    let (first, last) = line.split_once(" - ")?;
    let mut first = first.split(' ').skip(2);
    let (device, point) = (first.next()?, first.nth(1)?);
    let mut last = last.split(' ');
    let (kind, options) = (last.next()?, last.nth(1).unwrap_or_default());
    Some(Mount {
        device: device.to_owned(),
        point: decode_escapes(point),
        kind: kind.to_owned(),
        options: options.to_owned(),
    })
}

/// Decodes the octal escapes of blanks and backslashes in a path.
fn decode_escapes(path: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(path.to_owned(), |path, (octal, character)| path.replace(octal, character))
}
