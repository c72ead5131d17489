//! Settings of `queue/` by udev rules, for each device.
//!
//! Used by: `host`.
//! Tests: `crates/linux/src/host/udev/parse.rs`, `crates/linux/tests/host.rs`.
//!
//! Rules are read as described in udev(7). They are evaluated for the current state of the device, as for an event `add` or `change` of
//! a whole disk. A match that cannot be determined from files (a program's result, a property imported by another program) makes the
//! setting [`Certainty::Possible`].

mod matching;
mod parse;

use self::matching::{Subject, Verdict};
use self::parse::{Operator, Rule};
use super::Unreadable;
use super::device::Device;
use super::setting::{Certainty, Setting};
use crate::root::Root;

/// Folders of rules; the first file with a name hides the others.
const FOLDERS: [&str; 4] =
    ["etc/udev/rules.d", "run/udev/rules.d", "usr/local/lib/udev/rules.d", "usr/lib/udev/rules.d"];

/// Another folder, on systems whose `/lib` is not a link to `/usr/lib`.
const LAST_FOLDER: &str = "lib/udev/rules.d";

/// A file of rules.
struct RuleFile {
    path: String,
    rules: Vec<Rule>,
}

/// All settings, device by device, in the order of writing.
pub(super) fn settings(root: &Root, devices: &[Device], unreadable: &mut Unreadable) -> Vec<Setting> {
    let files = files(root, unreadable);
    if !files.iter().flat_map(|file| &file.rules).any(Rule::sets_queue) {
        return Vec::new();
    }
    devices.iter().flat_map(|device| device_settings(root, &files, device)).collect()
}

/// The rules in the order of their files' names.
fn files(root: &Root, unreadable: &mut Unreadable) -> Vec<RuleFile> {
    let mut files: std::collections::BTreeMap<String, RuleFile> = std::collections::BTreeMap::new();
    for folder in FOLDERS.into_iter().chain([LAST_FOLDER]) {
        for name in root.names(folder).unwrap_or_default() {
            if !name.ends_with(".rules") || files.contains_key(&name) {
                continue;
            }
            // A link to /dev/null hides the other files with its name, and has no rules.
            let text = unreadable.read(root, "", &format!("{folder}/{name}")).unwrap_or_default();
            files.insert(name.clone(), RuleFile { path: format!("/{folder}/{name}"), rules: parse::rules(&text) });
        }
    }
    files.into_values().collect()
}

fn device_settings(root: &Root, files: &[RuleFile], device: &Device) -> Vec<Setting> {
    let mut subject = Subject::new(root, device);
    let mut settings = Vec::new();
    for file in files {
        // After a GOTO that may or may not be taken, everything up to its label is only possible.
        let (mut skipped_to, mut possible_to): (Option<&str>, Option<&str>) = (None, None);
        for rule in &file.rules {
            let label = rule.label();
            if label.is_some() && label == skipped_to {
                skipped_to = None;
            }
            if label.is_some() && label == possible_to {
                possible_to = None;
            }
            let verdict = if skipped_to.is_some() { Verdict::No } else { subject.verdict(rule) };
            let verdict = if possible_to.is_some() { verdict.and(Verdict::Unknown) } else { verdict };
            let certainty = match verdict {
                Verdict::No => continue,
                Verdict::Yes => Certainty::Certain,
                Verdict::Unknown => Certainty::Possible,
            };
            for (attribute, value) in rule.assigned("ATTR") {
                let Some(queue_file) = attribute.strip_prefix("queue/") else { continue };
                settings.push(Setting {
                    device: device.name.clone(),
                    file: queue_file.to_owned(),
                    value: value.to_owned(),
                    by: "udev",
                    source: file.path.clone(),
                    line: rule.line,
                    certainty,
                });
            }
            for (property, value) in rule.assigned("ENV") {
                subject.set_property(property, value, verdict);
            }
            if let Some(target) = rule.goto() {
                if verdict == Verdict::Yes { skipped_to = Some(target) } else { possible_to = Some(target) }
            }
        }
    }
    settings
}

impl Rule {
    fn sets_queue(&self) -> bool {
        self.assigned("ATTR").any(|(attribute, _)| attribute.starts_with("queue/"))
    }

    /// Attributes and values assigned under this key.
    fn assigned<'a>(&'a self, key: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let assignments = self.tokens.iter().filter(move |token| {
            token.key == key && matches!(token.operator, Operator::Assign | Operator::AssignFinally)
        });
        assignments.map(|token| (token.attribute.as_str(), token.value.as_str()))
    }

    fn value_of_key(&self, key: &str) -> Option<&str> {
        let token = self.tokens.iter().find(|token| token.key == key && !token.operator.is_match());
        token.map(|token| token.value.as_str())
    }

    fn label(&self) -> Option<&str> {
        self.value_of_key("LABEL")
    }

    fn goto(&self) -> Option<&str> {
        self.value_of_key("GOTO")
    }
}
