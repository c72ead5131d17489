//! Names of a load's files in options: `sda` means `/dev/sda`.
//!
//! Used by: the options of a comparison that name a device.
//! Tests: below.

/// Whether a name means this file.
pub(crate) fn means(name: &str, file: &str) -> bool {
    file == name || file.strip_prefix("/dev/") == Some(name)
}

/// The name in full of a device that need not be among the files.
pub(crate) fn in_full(name: String, files: &[String]) -> String {
    if name.contains('/') || files.contains(&name) { name } else { format!("/dev/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_means_a_device_unless_a_file_is_called_so() {
        let files = ["/dev/sda", "mapper"].map(str::to_owned);
        let full = |name: &str| in_full(name.to_owned(), &files);
        assert_eq!(["sda", "/dev/sdb", "mapper", "md0"].map(full), ["/dev/sda", "/dev/sdb", "mapper", "/dev/md0"]);
        assert!(means("sda", "/dev/sda") && means("/dev/sda", "/dev/sda") && means("a/b", "a/b"));
        assert!(!means("sda", "/dev/sdb") && !means("dev/sda", "/dev/sda") && !means("", "/dev/sda"));
    }
}
