//! Matches udev rules against a device.

use std::collections::HashMap;

use super::parse::{Operator, Rule, Token};
use crate::host::device::Device;
use crate::host::glob;
use crate::root::Root;
use crate::secrets::REMOVED;

/// Whether a rule matches, as far as files show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Yes,
    No,
    /// Cannot be determined from files.
    Unknown,
}

impl Verdict {
    pub(super) fn and(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::No, _) | (_, Verdict::No) => Verdict::No,
            (Verdict::Yes, Verdict::Yes) => Verdict::Yes,
            _ => Verdict::Unknown,
        }
    }

    fn inverted(self) -> Verdict {
        match self {
            Verdict::Yes => Verdict::No,
            Verdict::No => Verdict::Yes,
            Verdict::Unknown => Verdict::Unknown,
        }
    }

    fn from_bool(holds: bool) -> Verdict {
        if holds { Verdict::Yes } else { Verdict::No }
    }
}

/// A device to match rules with.
pub(super) struct Subject<'a> {
    device: &'a Device,
    folder: Option<Root>,
    /// Properties of the device; `None` if a rule may have set an unknown value.
    properties: HashMap<String, Option<String>>,
    /// Whether udev's database contains the device: then a property missing there is not set.
    is_in_database: bool,
    /// Attributes read so far; `None` if they do not exist.
    attributes: HashMap<String, Option<String>>,
}

impl<'a> Subject<'a> {
    pub(super) fn new(root: &Root, device: &'a Device) -> Self {
        let folder = root.below(&device.path).ok();
        let mut properties = HashMap::new();
        let database = root.read(&format!("run/udev/data/b{}", device.number)).ok();
        let is_in_database = database.is_some();
        let database_text = database.unwrap_or_default();
        let uevent_text = folder.as_ref().and_then(|folder| folder.read("uevent").ok()).unwrap_or_default();
        let lines = uevent_text.lines().chain(database_text.lines().filter_map(|line| line.strip_prefix("E:")));
        for (key, value) in lines.filter_map(|line| line.split_once('=')) {
            properties.insert(key.to_owned(), Some(value.to_owned()));
        }
        for (key, value) in [("SUBSYSTEM", "block"), ("DEVTYPE", "disk")] {
            properties.insert(key.to_owned(), Some(value.to_owned()));
        }
        Self { device, folder, properties, is_in_database, attributes: HashMap::new() }
    }

    /// Notes that a rule sets a property, or may set it.
    pub(super) fn set_property(&mut self, property: &str, value: &str, verdict: Verdict) {
        let is_known = verdict == Verdict::Yes && !value.contains(['$', '%']);
        self.properties.insert(property.to_owned(), is_known.then(|| value.to_owned()));
    }

    pub(super) fn verdict(&mut self, rule: &Rule) -> Verdict {
        let mut verdict = Verdict::Yes;
        for token in &rule.tokens {
            // PROGRAM and IMPORT may look like assignments, but the rule continues only if they succeed.
            if token.operator.is_match() || matches!(token.key.as_str(), "PROGRAM" | "IMPORT") {
                verdict = verdict.and(self.match_token(token));
            }
            if verdict == Verdict::No {
                break;
            }
        }
        verdict
    }

    fn match_token(&mut self, token: &Token) -> Verdict {
        if token.value == REMOVED {
            return Verdict::Unknown;
        }
        let verdict = match token.key.as_str() {
            // Rules run for both actions; for existing disks only for `change`.
            "ACTION" => Verdict::from_bool(["add", "change"].iter().any(|action| matches_token(token, action))),
            "KERNEL" => Verdict::from_bool(matches_token(token, &self.device.name)),
            "SUBSYSTEM" => Verdict::from_bool(matches_token(token, "block")),
            "KERNELS" => Verdict::from_bool(self.device.path.split('/').any(|part| matches_token(token, part))),
            "SUBSYSTEMS" if matches_token(token, "block") => Verdict::Yes,
            "DEVPATH" => {
                Verdict::from_bool(matches_token(token, &format!("/{}", self.device.path.trim_start_matches("sys/"))))
            }
            "ENV" => self.match_property(token),
            // A missing attribute neither matches nor differs.
            "ATTR" if self.has_no_attribute(token) => return Verdict::No,
            "ATTR" => self.match_attribute(token),
            // ATTRS also searches parents: the device's own attribute may match, a parent's is unknown.
            "ATTRS" => match self.match_attribute(token) {
                Verdict::Yes => Verdict::Yes,
                _ => Verdict::Unknown,
            },
            "TEST" if !token.value.contains(['$', '%', '*', '?', '[']) && !token.value.starts_with('/') => {
                Verdict::from_bool(self.read(&token.value).is_some() || self.has_folder(&token.value))
            }
            _ => Verdict::Unknown,
        };
        if token.operator == Operator::NotEqual { verdict.inverted() } else { verdict }
    }

    fn match_property(&self, token: &Token) -> Verdict {
        match self.properties.get(&token.attribute) {
            Some(Some(value)) => Verdict::from_bool(matches_token(token, value)),
            Some(None) => Verdict::Unknown,
            None if self.is_in_database => Verdict::from_bool(matches_token(token, "")),
            None => Verdict::Unknown,
        }
    }

    fn match_attribute(&mut self, token: &Token) -> Verdict {
        if has_substitutions(&token.attribute) {
            return Verdict::Unknown;
        }
        match self.read(&token.attribute) {
            Some(value) => Verdict::from_bool(matches_token(token, value.trim_end())),
            None => Verdict::No,
        }
    }

    fn has_no_attribute(&mut self, token: &Token) -> bool {
        !has_substitutions(&token.attribute) && self.read(&token.attribute).is_none()
    }

    fn read(&mut self, file: &str) -> Option<String> {
        if let Some(known) = self.attributes.get(file) {
            return known.clone();
        }
        let value = self.folder.as_ref().and_then(|folder| folder.read(file).ok());
        self.attributes.insert(file.to_owned(), value.clone());
        value
    }

    fn has_folder(&self, path: &str) -> bool {
        self.folder.as_ref().is_some_and(|folder| folder.has_folder(path))
    }
}

/// Whether the name of an attribute contains substitutions that files do not resolve.
fn has_substitutions(attribute: &str) -> bool {
    attribute.contains(['$', '%', '['])
}

/// Whether a text matches one of the alternatives.
fn matches_token(token: &Token, text: &str) -> bool {
    let (value, text) = match token.ignores_case {
        true => (token.value.to_lowercase(), text.to_lowercase()),
        false => (token.value.clone(), text.to_owned()),
    };
    value.split('|').any(|alternative| glob::matches(alternative, &text))
}
