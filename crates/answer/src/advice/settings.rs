//! The shell commands and udev rules that write a setting to a device.

use hoistway_measure::Setting;

/// The shell commands that write the files of a setting, except the scheduler.
pub(super) fn write_files(setting: &Setting, device: &str) -> impl Iterator<Item = String> {
    setting.writes.iter().map(move |(file, text)| write(device, file, text))
}

/// The shell command that writes the scheduler of a setting.
pub(super) fn write_scheduler(setting: &Setting, device: &str) -> String {
    write(device, "scheduler", &setting.scheduler)
}

/// The lines of a udev rule, one for each file: udev applies them in this order.
pub(super) fn rule(setting: &Setting, device: &str) -> Vec<String> {
    let scheduler = ("scheduler".to_owned(), setting.scheduler.clone());
    let line = |(file, text): &(String, String)| {
        format!(r#"ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="{device}", ATTR{{queue/{file}}}="{text}""#)
    };
    std::iter::once(&scheduler).chain(&setting.writes).map(line).collect()
}

/// The path of a file of `queue/`.
pub(super) fn path(device: &str, file: &str) -> String {
    format!("/sys/block/{device}/queue/{file}")
}

/// The shell command that writes a file of `queue/`.
pub(super) fn write(device: &str, file: &str, text: &str) -> String {
    format!("echo {text} > {}", path(device, file))
}
