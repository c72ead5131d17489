//! Ways to make a change persistent: files of udev, tuned and systemd, and text for NixOS.

use super::write::{PlanError, Write};
use crate::host::Device;
use crate::root::Root;

/// How a change is made persistent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Persist {
    /// Not at all: it lasts until the next boot, or until the device is removed.
    No,
    /// A udev rule.
    Udev(Match),
    /// A tuned profile that includes the active one and replaces it as the active one. It matches the device by its kernel
    /// name.
    Tuned,
    /// A systemd unit that is started with the device. It matches the device by its kernel name.
    Systemd,
    /// A udev rule as text for the configuration of NixOS; no file is written.
    NixOs(Match),
}

/// How a udev rule finds the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Match {
    /// By its serial number or World Wide Name.
    Serial,
    /// By its kernel name, which can change across reboots.
    Name,
}

/// A file that makes a change persistent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PersistedFile {
    /// Its path, without a leading slash.
    pub path: String,
    /// Its content.
    pub content: String,
}

/// Priority of our tuned instance. tuned applies instances by ascending priority; the default is 0, so ours comes last.
const TUNED_LAST: u32 = 10;

const HEADER: &str = "# Made by hoistway apply; hoistway apply --undo removes it.\n";

impl Persist {
    /// The files that repeat these writes to a device after a boot.
    pub(super) fn files(
        self,
        system: &Root,
        device: &Device,
        writes: &[Write],
    ) -> Result<Vec<PersistedFile>, PlanError> {
        let name = device.name.as_str();
        Ok(match self {
            Persist::No | Persist::NixOs(_) => Vec::new(),
            Persist::Udev(matching) => {
                let content = HEADER.to_owned() + &rules(&matching.keys(system, device)?, writes);
                vec![PersistedFile { path: format!("etc/udev/rules.d/90-hoistway-{name}.rules"), content }]
            }
            Persist::Tuned => tuned(system, name, writes)?,
            Persist::Systemd => systemd(name, writes),
        })
    }

    /// The text to paste into a configuration; `None` if files are written instead.
    pub(super) fn text(self, system: &Root, device: &Device, writes: &[Write]) -> Result<Option<String>, PlanError> {
        let Persist::NixOs(matching) = self else { return Ok(None) };
        let rules = rules(&matching.keys(system, device)?, writes);
        let lines: String = rules.lines().map(|line| format!("  {line}\n")).collect();
        Ok(Some(format!("services.udev.extraRules = ''\n{lines}'';\n")))
    }
}

impl Match {
    /// The match keys of a rule for this device only.
    fn keys(self, system: &Root, device: &Device) -> Result<String, PlanError> {
        match self {
            Match::Serial => by_serial(system, device),
            Match::Name => Ok(format!("KERNEL==\"{}\"", device.name)),
        }
    }
}

fn rules(matches: &str, writes: &[Write]) -> String {
    let rule = |write: &Write| {
        format!(
            "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", {matches}, ATTR{{queue/{}}}=\"{}\"\n",
            write.file, write.value
        )
    };
    writes.iter().map(rule).collect()
}

fn by_serial(system: &Root, device: &Device) -> Result<String, PlanError> {
    let record = system.read(&format!("run/udev/data/b{}", device.number)).unwrap_or_default();
    let property = |name: &str| {
        let value_in = |line: &str| line.strip_prefix("E:")?.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
        record.lines().find_map(value_in).filter(|value| !value.is_empty())
    };
    let found = ["ID_WWN", "ID_SERIAL"].into_iter().find_map(|name| Some((name, property(name)?)));
    let (name, value) = found.ok_or_else(|| PlanError::NoSerial(device.name.clone()))?;
    // Characters that are special in patterns, or that would end the value, are replaced by a wildcard.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:+/=, ".contains(c);
    let value: String = value.chars().map(|c| if is_plain(c) { c } else { '?' }).collect();
    Ok(format!("ENV{{{name}}}==\"{value}\""))
}

/// A profile that includes the active one. tuned loads it at startup if it is the active one and was chosen manually
/// (tuned-adm(8)).
fn tuned(system: &Root, name: &str, writes: &[Write]) -> Result<Vec<PersistedFile>, PlanError> {
    let active = system.read("etc/tuned/active_profile").unwrap_or_default();
    let own = format!("hoistway-{name}");
    let others: Vec<&str> = active.split_whitespace().filter(|profile| *profile != own).collect();
    if others.is_empty() {
        return Err(PlanError::NoTuned(name.to_owned()));
    }
    // The second profile would include the first, which could then not be undone alone.
    if let Some(other) = others.iter().find(|profile| profile.starts_with("hoistway-")) {
        return Err(PlanError::OtherTuned { device: name.to_owned(), profile: (*other).to_owned() });
    }
    let mut content = format!("{HEADER}[main]\nsummary=hoistway apply: {name}\ninclude={}\n", others.join(","));
    // A separate instance, applied last. A [sysfs] section would be merged into that of the included profile, and might be
    // applied before the [disk] section there sets a scheduler for all disks. A second instance of the disk plug-in would
    // get no devices, because the included one has claimed them all.
    content += &format!("\n[hoistway_{name}]\ntype=sysfs\npriority={TUNED_LAST}\n");
    content += &writes
        .iter()
        .map(|write| format!("/sys/block/{name}/queue/{}={}\n", write.file, write.value))
        .collect::<String>();
    // Since tuned 2.23 profiles have a separate folder.
    let folder = if system.has_folder("etc/tuned/profiles") { "etc/tuned/profiles" } else { "etc/tuned" };
    let file = |path: String, content: String| PersistedFile { path, content };
    Ok(vec![
        file(format!("{folder}/{own}/tuned.conf"), content),
        file("etc/tuned/profile_mode".to_owned(), "manual\n".to_owned()),
        file("etc/tuned/active_profile".to_owned(), format!("{own}\n")),
    ])
}

/// A unit that is started with the device's unit, and writes the files with systemd-tmpfiles(8), without a shell.
fn systemd(name: &str, writes: &[Write]) -> Vec<PersistedFile> {
    let lines =
        writes.iter().map(|write| format!("w /sys/block/{name}/queue/{} - - - - {}\n", write.file, write.value));
    let device = format!("dev-{}.device", escaped(name));
    let unit = format!("hoistway-{}.service", escaped(name));
    let service = format!(
        "{HEADER}[Unit]\nDescription=I/O scheduler of {name}\nBindsTo={device}\nAfter={device}\nDefaultDependencies=no\n\n\
         [Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=systemd-tmpfiles --create /etc/tmpfiles.d/hoistway-{name}.conf\n"
    );
    let file = |path: String, content: String| PersistedFile { path, content };
    vec![
        file(format!("etc/tmpfiles.d/hoistway-{name}.conf"), HEADER.to_owned() + &lines.collect::<String>()),
        file(format!("etc/systemd/system/{unit}"), service),
        file(format!("etc/systemd/system/{device}.d/hoistway.conf"), format!("{HEADER}[Unit]\nWants={unit}\n")),
    ]
}

/// Escapes a part of a unit's name as systemd-escape(1) does.
fn escaped(name: &str) -> String {
    let escape = |byte: u8| match byte {
        b'!' | b'/' => "-".to_owned(),
        plain if plain.is_ascii_alphanumeric() || b":_.".contains(&plain) => char::from(plain).to_string(),
        other => format!("\\x{other:02x}"),
    };
    name.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes() -> Vec<Write> {
        let write =
            |file: &str, value: &str| Write { file: file.to_owned(), before: "-".to_owned(), value: value.to_owned() };
        vec![write("scheduler", "kyber"), write("iosched/read_lat_nsec", "1000000")]
    }

    #[test]
    fn a_profile_of_tuned_includes_the_active_one_once_and_is_active_then() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        assert!(matches!(tuned(&root, "sda", &writes()), Err(PlanError::NoTuned(_))));
        std::fs::create_dir_all(folder.path().join("etc/tuned")).unwrap();
        std::fs::write(folder.path().join("etc/tuned/active_profile"), "hoistway-sdb\n").unwrap();
        assert!(matches!(tuned(&root, "sda", &writes()), Err(PlanError::OtherTuned { .. })));
        for (active, profile_folder) in
            [("throughput-performance powersave\n", "etc/tuned"), ("hoistway-sda balanced", "etc/tuned/profiles")]
        {
            std::fs::create_dir_all(folder.path().join(profile_folder)).unwrap();
            std::fs::write(folder.path().join("etc/tuned/active_profile"), active).unwrap();
            let files = tuned(&root, "sda", &writes()).unwrap();
            assert_eq!(files[0].path, format!("{profile_folder}/hoistway-sda/tuned.conf"));
            let included = if profile_folder == "etc/tuned" {
                "include=throughput-performance,powersave\n"
            } else {
                "include=balanced\n"
            };
            assert!(files[0].content.contains(included), "{}", files[0].content);
            let own = "\n[hoistway_sda]\ntype=sysfs\npriority=10\n/sys/block/sda/queue/scheduler=kyber\n\
                       /sys/block/sda/queue/iosched/read_lat_nsec=1000000\n";
            assert!(files[0].content.ends_with(own), "{}", files[0].content);
            assert_eq!((files[1].content.as_str(), files[2].content.as_str()), ("manual\n", "hoistway-sda\n"));
        }
    }

    #[test]
    fn a_unit_starts_with_its_device_under_any_device_name() {
        let files = systemd("dm-0", &writes());
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let unit = "etc/systemd/system/hoistway-dm\\x2d0.service";
        assert_eq!(
            paths,
            ["etc/tmpfiles.d/hoistway-dm-0.conf", unit, "etc/systemd/system/dev-dm\\x2d0.device.d/hoistway.conf"]
        );
        assert!(files[0].content.ends_with("w /sys/block/dm-0/queue/iosched/read_lat_nsec - - - - 1000000\n"));
        assert!(files[1].content.contains("BindsTo=dev-dm\\x2d0.device\n") && !files[1].content.contains("/bin/sh"));
    }
}
