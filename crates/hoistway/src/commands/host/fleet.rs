//! `hoistway host --fleet`: the findings of many hosts by class.

use anyhow::{Context as _, Result};
use hoistway_linux::fleet::{ClassFinding, Fleet, FleetChanges, SettingChange};
use hoistway_render::text::{aligned, wrap_hanging, wrapped};

/// Hosts named in a line.
const NAMED_MAX: usize = 5;

/// Lines of a list, of which the JSON document has all.
const LISTED_MAX: usize = 20;

/// Columns of the CSV document.
const COLUMNS: [&str; 11] = [
    "finding",
    "severity",
    "machine",
    "device",
    "kernel",
    "hosts",
    "hosts_of_class",
    "devices",
    "devices_of_class",
    "host_names",
    "commands",
];

/// The table of findings by class, the worst hosts, advice and changes. Prose is wrapped at `width` characters.
pub(super) fn text(fleet: &Fleet, width: usize) -> String {
    let with_findings = fleet.worst();
    let mut text = format!("{}, {} with findings", counted(fleet.hosts.len(), "host"), with_findings.len());
    if !fleet.damaged.is_empty() {
        text += &format!("; {} that cannot be read", counted(fleet.damaged.len(), "dump"));
    }
    text += "\n\n";
    text += &findings(&fleet.findings);
    if !with_findings.is_empty() {
        text += "\nWorst hosts\n";
        for host in with_findings.iter().take(LISTED_MAX / 2) {
            let rules: Vec<&str> = host.rules.iter().map(|rule| rule.name()).collect();
            let counts = format!("{} high, {} medium, {} low", host.high, host.medium, host.low);
            text += &wrap_hanging(&format!("{}: {counts}: {}", host.name, rules.join(", ")), width, 2, 4);
        }
        text += &rest(with_findings.len(), LISTED_MAX / 2, "host");
    }
    for (number, finding) in (1..).zip(&fleet.findings).take(LISTED_MAX) {
        text += &advice(number, finding, width);
    }
    text += &rest(fleet.findings.len(), LISTED_MAX, "row");
    if let Some(changes) = &fleet.changes {
        text += &changed(changes, width);
    }
    text
}

fn findings(findings: &[ClassFinding]) -> String {
    if findings.is_empty() {
        return "Nothing found.\n".to_owned();
    }
    const HEADERS: [&str; 8] = ["", "finding", "severity", "machine", "device", "kernel", "hosts", "devices"];
    let mut rows = vec![HEADERS.map(str::to_owned)];
    for (number, finding) in (1..).zip(findings) {
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let devices = match finding.devices {
            0 => "-".to_owned(),
            devices => format!("{devices} of {}", finding.devices_of_class),
        };
        rows.push([
            format!("{number}."),
            finding.rule.name().to_owned(),
            finding.severity.name().to_owned(),
            or_dash(&finding.machine),
            or_dash(&finding.device),
            finding.kernel.clone(),
            format!("{} of {}", finding.hosts.len(), finding.hosts_of_class),
            devices,
        ]);
    }
    aligned(&rows)
}

/// The commands of a row that fix most of its hosts.
fn advice(number: usize, finding: &ClassFinding, width: usize) -> String {
    let Some(first) = finding.advice.first() else { return String::new() };
    let whose = if finding.hosts.len() == 1 { String::new() } else { format!("{}: ", first.hosts[0]) };
    let mut text = format!("\n{}", wrap_hanging(&format!("{number}. {whose}{}", finding.what), width, 0, 3));
    text += &wrapped(&format!("Run on {}:", names(&first.hosts)), width, 3);
    // Commands are never wrapped, so they can be copied.
    text += &first.commands.iter().map(|command| format!("     {command}\n")).collect::<String>();
    let others: usize = finding.advice[1..].iter().map(|advice| advice.hosts.len()).sum();
    if others > 0 {
        let line = format!(
            "{} with other device names or settings: --format json has their commands.",
            counted(others, "host")
        );
        text += &wrapped(&line, width, 3);
    }
    text
}

fn changed(changes: &FleetChanges, width: usize) -> String {
    let mut lines = Vec::new();
    for (hosts, what) in [(&changes.hosts_added, "added"), (&changes.hosts_gone, "gone")] {
        if !hosts.is_empty() {
            lines.push(format!("{} {what}: {}", counted(hosts.len(), "host"), names(hosts)));
        }
    }
    for change in &changes.findings {
        let of = change.device.as_ref().map(|device| format!(" of {device}")).unwrap_or_default();
        for (hosts, what) in [(&change.appeared, "appeared"), (&change.gone, "gone")] {
            if !hosts.is_empty() {
                lines.push(format!("{}{of}: {what} on {}", change.rule.name(), names(hosts)));
            }
        }
    }
    lines.extend(changes.settings.iter().map(setting));
    let mut text = "\nSince the earlier dumps\n".to_owned();
    if lines.is_empty() {
        return text + "  Nothing has changed.\n";
    }
    for line in lines.iter().take(LISTED_MAX) {
        text += &wrap_hanging(line, width, 2, 4);
    }
    text + &rest(lines.len(), LISTED_MAX, "change")
}

fn setting(change: &SettingChange) -> String {
    let of = change.device.as_ref().map(|device| format!(" of {device}")).unwrap_or_default();
    let shown = |value: &Option<String>| match value.as_deref() {
        None => "absent".to_owned(),
        Some("") => "empty".to_owned(),
        Some(value) => value.to_owned(),
    };
    format!("{}{of}: {} -> {} on {}", change.what, shown(&change.from), shown(&change.to), names(&change.hosts))
}

/// One line for each finding of a class, after a header line.
pub(super) fn csv(fleet: &Fleet) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS)?;
    for finding in &fleet.findings {
        let commands = finding.advice.first().map(|advice| advice.commands.join("; ")).unwrap_or_default();
        writer.write_record([
            finding.rule.name(),
            finding.severity.name(),
            finding.machine.as_deref().unwrap_or_default(),
            finding.device.as_deref().unwrap_or_default(),
            &finding.kernel,
            &finding.hosts.len().to_string(),
            &finding.hosts_of_class.to_string(),
            &finding.devices.to_string(),
            &finding.devices_of_class.to_string(),
            &finding.hosts.join(" "),
            &commands,
        ])?;
    }
    String::from_utf8(writer.into_inner().context("the table")?).context("the table")
}

/// The first hosts and the number of the others.
pub(super) fn names(hosts: &[String]) -> String {
    let named = hosts[..hosts.len().min(NAMED_MAX)].join(", ");
    match hosts.len().saturating_sub(NAMED_MAX) {
        0 => named,
        others => format!("{named} and {}", counted(others, "other")),
    }
}

fn rest(all: usize, shown: usize, noun: &str) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        others => format!("  and {}, which --format json has\n", counted(others, &format!("more {noun}"))),
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
