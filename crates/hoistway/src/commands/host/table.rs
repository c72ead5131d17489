//! Text output of `hoistway host`: block devices and findings.

use hoistway_linux::host::{CgroupSetting, Device, Finding, Hierarchy, Host, SchedulerFacts};
use hoistway_render::text::{aligned, wrap_hanging, wrapped};

/// The table of devices, their settings, and the findings with commands. Prose is wrapped at `width` characters; every tunable is listed if
/// `with_tunables`, otherwise only those that were changed.
pub(super) fn text(host: &Host, width: usize, with_tunables: bool) -> String {
    let mut text = format!("Linux {}\n\n", host.kernel.release);
    let (shown, empty): (Vec<&Device>, Vec<&Device>) =
        host.devices.iter().partition(|device| with_tunables || !device.is_empty());
    text += &table(&shown);
    if shown.iter().any(|device| non_default_mark(device.scheduler.as_ref()) == "*") {
        text += "* not the kernel's default scheduler for such a device\n";
    }
    if !empty.is_empty() {
        let names: Vec<&str> = empty.iter().map(|device| device.name.as_str()).collect();
        text += &wrap_hanging(&format!("Without a medium, not shown: {}.", names.join(", ")), width, 0, 2);
    }
    text += &tunables(&shown, with_tunables, width);
    text.push('\n');
    text += &cgroups(host, width);
    for line in &host.unreadable {
        text += &wrap_hanging(&format!("Not read: {line}. Run as root to see it."), width, 0, 2);
    }
    text.push('\n');
    if host.findings.is_empty() {
        return text + "Nothing found.\n";
    }
    let findings: Vec<String> =
        host.findings.iter().enumerate().map(|(index, found)| finding(index + 1, found, width)).collect();
    text + &findings.join("\n")
}

fn table(devices: &[&Device]) -> String {
    const HEADERS: [&str; 9] =
        ["device", "on", "class", "size", "queues", "scheduler", "write cache", "wbt", "nearest model"];
    let mut rows = vec![HEADERS.map(str::to_owned)];
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for device in devices {
        let name = match &device.mapped_name {
            Some(mapped) => format!("{} ({mapped})", device.name),
            None => device.name.clone(),
        };
        let queues = device.hardware.map(|hardware| format!("{} x {}", hardware.queues, hardware.depth));
        let scheduler = device.scheduler.as_ref().filter(|_| device.hardware.is_some());
        let scheduler = scheduler.map(|scheduler| format!("{}{}", scheduler.active, non_default_mark(Some(scheduler))));
        let cache = device.write_cache.as_ref().map(|cache| cache.trim_start_matches("write ").to_owned());
        let wbt = device.wbt_lat_us.map(|us| match us {
            0 => "off".to_owned(),
            us if us % 1000 == 0 => format!("{} ms", us / 1000),
            us => format!("{us} us"),
        });
        rows.push([
            name,
            lower_devices(device),
            device.class.name().to_owned(),
            size(device.size_bytes),
            or_dash(queues),
            or_dash(scheduler),
            or_dash(cache),
            or_dash(wbt),
            or_dash(device.preset.as_ref().map(|preset| preset.name.clone())),
        ]);
    }
    aligned(&rows)
}

/// The devices below a device, and its function in the stack.
fn lower_devices(device: &Device) -> String {
    let names = device.below.join(", ");
    match (&device.layer, names.is_empty()) {
        (Some(layer), true) => layer.clone(),
        (Some(layer), false) => format!("{layer}: {names}"),
        (None, true) => "-".to_owned(),
        (None, false) => names,
    }
}

/// `*` for a scheduler that is not the kernel's default.
fn non_default_mark(scheduler: Option<&SchedulerFacts>) -> &'static str {
    let is_not_default =
        |scheduler: &SchedulerFacts| scheduler.by_default.as_ref().is_some_and(|default| *default != scheduler.active);
    if scheduler.is_some_and(is_not_default) { "*" } else { "" }
}

/// A size in decimal units, as on the labels of disks.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1e3;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value < 9.95);
    format!("{value:.digits$} {}", UNITS[unit])
}

/// The changed tunables, or all of them: one line for all devices with the same values.
fn tunables(devices: &[&Device], all: bool, width: usize) -> String {
    let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
    for device in devices {
        let shown: Vec<String> = device
            .tunables
            .iter()
            .filter(|tunable| all || tunable.changed)
            .map(|tunable| match (&tunable.by_default, tunable.changed) {
                (Some(default), true) => format!("{} {} (default {default})", tunable.file, tunable.value),
                _ => format!("{} {}", tunable.file, tunable.value),
            })
            .collect();
        let shown = shown.join(", ");
        match lines.iter_mut().find(|(known, _)| *known == shown) {
            _ if shown.is_empty() => {}
            Some((_, names)) => names.push(&device.name),
            None => lines.push((shown, vec![&device.name])),
        }
    }
    let label = if all { "Tunables" } else { "Changed" };
    let line = |(shown, names): &(String, Vec<&str>)| {
        wrap_hanging(&format!("{label} of {}: {shown}.", names.join(", ")), width, 0, 2)
    };
    lines.iter().map(line).collect()
}

fn cgroups(host: &Host, width: usize) -> String {
    const SHOWN_MAX: usize = 8;
    let mount_point = host.cgroups.mounted_on.as_deref().unwrap_or_default();
    let begin = match host.cgroups.hierarchy {
        Hierarchy::V2 => format!("Cgroups: version 2 on {mount_point} controls block I/O"),
        Hierarchy::V1 => format!("Cgroups: version 1 on {mount_point} controls block I/O"),
        Hierarchy::Hybrid => {
            format!("Cgroups: version 1 on {mount_point} controls block I/O, version 2 is mounted without it")
        }
        Hierarchy::WithoutIo => format!("Cgroups: version 2 on {mount_point}, without the io controller"),
        Hierarchy::None => "Cgroups: none are mounted".to_owned(),
    };
    let name = |number: &str| {
        let device = host.devices.iter().find(|device| device.number == number);
        device.map_or_else(|| number.to_owned(), |device| device.name.clone())
    };
    let shown = |setting: &CgroupSetting| {
        let device = setting.device.as_ref().map(|number| format!(" for {}", name(number))).unwrap_or_default();
        format!("{} of {}{device}: {}", setting.file, setting.cgroup, setting.value)
    };
    let settings = &host.cgroups.settings;
    let mut lines: Vec<String> = settings.iter().take(SHOWN_MAX).map(shown).collect();
    if settings.len() > SHOWN_MAX {
        lines.push(format!("{} more", settings.len() - SHOWN_MAX));
    }
    let set =
        if lines.is_empty() { ", and nothing is set.".to_owned() } else { format!("; set: {}.", lines.join("; ")) };
    wrap_hanging(&(begin + &set), width, 0, 2)
}

fn finding(number: usize, finding: &Finding, width: usize) -> String {
    let severity = finding.severity.name();
    let mut text = wrap_hanging(&format!("{number}. {severity}: {}", finding.what), width, 0, 3);
    for line in &finding.evidence {
        text += &wrap_hanging(line, width, 3, 5);
    }
    text += &wrapped("Run:", width, 3);
    // Commands are never wrapped, so they can be copied.
    text + &finding.commands.iter().map(|command| format!("     {command}\n")).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_two_or_three_digits() {
        for (bytes, text) in [
            (0, "0 B"),
            (512, "512 B"),
            (4096, "4.1 kB"),
            (999_600_000, "1.0 GB"),
            (8_001_563_222_016, "8.0 TB"),
            (u64::MAX, "18447 PB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
