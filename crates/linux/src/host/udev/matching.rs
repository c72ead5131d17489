//! Whether a rule matches a device.

use std::collections::HashMap;

use super::parse::{Operator, Rule, Token};
use crate::host::device::Device;
use crate::host::glob;
use crate::root::Root;
use crate::secrets::REMOVED;

/// What is known about a match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Yes,
    No,
    /// It cannot be determined from files.
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

    fn of(is_so: bool) -> Verdict {
        if is_so { Verdict::Yes } else { Verdict::No }
    }
}

/// A device to match rules with.
pub(super) struct Subject<'a> {
    device: &'a Device,
    folder: Option<Root>,
    /// Known properties; `None` for those that a rule may have set.
    properties: HashMap<String, Option<String>>,
    /// Whether udev's database contains the device: then a property that is not there is not set.
    is_in_database: bool,
    /// Attributes that have been read.
    attributes: HashMap<String, Option<String>>,
}

impl<'a> Subject<'a> {
    pub(super) fn new(root: &Root, device: &'a Device) -> Self {
        let folder = root.below(&device.path).ok();
        let mut properties = HashMap::new();
        let database = root.read(&format!("run/udev/data/b{}", device.number)).ok();
        let is_in_database = database.is_some();
        let of_database = database.unwrap_or_default();
        let of_kernel = folder.as_ref().and_then(|folder| folder.read("uevent").ok()).unwrap_or_default();
        let lines = of_kernel.lines().chain(of_database.lines().filter_map(|line| line.strip_prefix("E:")));
        for (key, value) in lines.filter_map(|line| line.split_once('=')) {
            properties.insert(key.to_owned(), Some(value.to_owned()));
        }
        for (key, value) in [("SUBSYSTEM", "block"), ("DEVTYPE", "disk")] {
            properties.insert(key.to_owned(), Some(value.to_owned()));
        }
        Self { device, folder, properties, is_in_database, attributes: HashMap::new() }
    }

    /// A rule sets a property, or may set it.
    pub(super) fn set_property(&mut self, property: &str, value: &str, verdict: Verdict) {
        let is_plain = verdict == Verdict::Yes && !value.contains(['$', '%']);
        self.properties.insert(property.to_owned(), is_plain.then(|| value.to_owned()));
    }

    pub(super) fn verdict(&mut self, rule: &Rule) -> Verdict {
        let mut verdict = Verdict::Yes;
        for token in &rule.tokens {
            // PROGRAM and IMPORT may look like assignments, but the rule only continues if they succeed.
            if token.operator.is_match() || matches!(token.key.as_str(), "PROGRAM" | "IMPORT") {
                verdict = verdict.and(self.token(token));
            }
            if verdict == Verdict::No {
                break;
            }
        }
        verdict
    }

    fn token(&mut self, token: &Token) -> Verdict {
        if token.value == REMOVED {
            return Verdict::Unknown;
        }
        let plain = match token.key.as_str() {
            // Rules run for both actions; for existing disks only for `change`.
            "ACTION" => Verdict::of(["add", "change"].iter().any(|action| fits(token, action))),
            "KERNEL" => Verdict::of(fits(token, &self.device.name)),
            "SUBSYSTEM" => Verdict::of(fits(token, "block")),
            "KERNELS" => Verdict::of(self.device.path.split('/').any(|part| fits(token, part))),
            "SUBSYSTEMS" if fits(token, "block") => Verdict::Yes,
            "DEVPATH" => Verdict::of(fits(token, &format!("/{}", self.device.path.trim_start_matches("sys/")))),
            "ENV" => self.property(token),
            // A missing attribute neither matches nor differs.
            "ATTR" if self.has_no_attribute(token) => return Verdict::No,
            "ATTR" => self.attribute(token),
            // Parents have attributes with the same names: the device's own one is found first.
            "ATTRS" => match self.attribute(token) {
                Verdict::Yes => Verdict::Yes,
                _ => Verdict::Unknown,
            },
            "TEST" if !token.value.contains(['$', '%', '*', '?', '[']) && !token.value.starts_with('/') => {
                Verdict::of(self.read(&token.value).is_some() || self.has_folder(&token.value))
            }
            _ => Verdict::Unknown,
        };
        if token.operator == Operator::NotEqual { plain.inverted() } else { plain }
    }

    fn property(&self, token: &Token) -> Verdict {
        match self.properties.get(&token.attribute) {
            Some(Some(value)) => Verdict::of(fits(token, value)),
            Some(None) => Verdict::Unknown,
            None if self.is_in_database => Verdict::of(fits(token, "")),
            None => Verdict::Unknown,
        }
    }

    fn attribute(&mut self, token: &Token) -> Verdict {
        if is_unclear(&token.attribute) {
            return Verdict::Unknown;
        }
        match self.read(&token.attribute) {
            Some(value) => Verdict::of(fits(token, value.trim_end())),
            None => Verdict::No,
        }
    }

    fn has_no_attribute(&mut self, token: &Token) -> bool {
        !is_unclear(&token.attribute) && self.read(&token.attribute).is_none()
    }

    fn read(&mut self, file: &str) -> Option<String> {
        if let Some(known) = self.attributes.get(file) {
            return known.clone();
        }
        let read = self.folder.as_ref().and_then(|folder| folder.read(file).ok());
        self.attributes.insert(file.to_owned(), read.clone());
        read
    }

    fn has_folder(&self, path: &str) -> bool {
        self.folder.as_ref().is_some_and(|folder| folder.has_folder(path))
    }
}

/// Whether the name of an attribute depends on more than the device.
fn is_unclear(attribute: &str) -> bool {
    attribute.contains(['$', '%', '['])
}

/// Whether a text matches one of the alternatives.
fn fits(token: &Token, text: &str) -> bool {
    let (value, text) = match token.ignores_case {
        true => (token.value.to_lowercase(), text.to_lowercase()),
        false => (token.value.clone(), text.to_owned()),
    };
    value.split('|').any(|alternative| glob::fits(alternative, &text))
}
