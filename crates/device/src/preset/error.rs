//! Errors in presets, with the expected values.

use std::ops::Range;

/// Why a preset cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PresetError {
    /// The text is not TOML.
    #[error("{file}:{line}: {problem}")]
    Text {
        /// Name of the file as the caller gave it.
        file: String,
        /// Line, counted from 1.
        line: usize,
        /// The parser's message.
        problem: String,
    },
    /// A key is missing, unknown, or has an invalid value.
    #[error("{file}:{line}: `{key}` {problem}; expected {expected}")]
    Key {
        /// Name of the file as the caller gave it.
        file: String,
        /// Line, counted from 1: that of the key, or if it is missing, that of its section.
        line: usize,
        /// The key with its section, such as `ssd.flash_read_us`.
        key: String,
        /// What is wrong, as the rest of a sentence that begins with the key: "is missing", "is -1".
        problem: String,
        /// The expected value.
        expected: String,
    },
    /// No built-in preset has this name.
    #[error(
        "there is no built-in device `{name}`{}; expected one of {}, one of {coarse} SSDs by model (see `hoistway devices`), \
         a class of devices ({}), or a preset file",
        nearest.as_ref().map(|nearest| format!("; the nearest is {nearest}")).unwrap_or_default(),
        known.join(", "),
        super::names::classes().map(|(class, _)| class).collect::<Vec<_>>().join(", ")
    )]
    NoSuchPreset {
        /// The name given.
        name: String,
        /// The existing names, without those of coarse presets.
        known: Vec<&'static str>,
        /// How many coarse presets there are.
        coarse: usize,
        /// The closest preset, and what differs.
        nearest: Option<String>,
    },
}

/// An error and its byte offset in the text.
#[derive(Debug)]
pub(super) struct PresetProblem {
    /// Byte offset in the text.
    pub(super) offset: usize,
    /// The key with its section, if the error is about one.
    pub(super) key: Option<String>,
    pub(super) problem: String,
    pub(super) expected: String,
}

impl PresetProblem {
    /// An error about a key: an invalid value, an unknown key, or a missing key (then `span` is its section's).
    pub(super) fn with_key(
        span: &Range<usize>,
        key: String,
        problem: String,
        expected: impl Into<String>,
    ) -> PresetProblem {
        PresetProblem { offset: span.start, key: Some(key), problem, expected: expected.into() }
    }

    /// An error of the TOML parser or serde.
    pub(super) fn from_toml(error: &toml::de::Error) -> PresetProblem {
        let offset = error.span().map_or(0, |span| span.start);
        PresetProblem { offset, key: None, problem: error.message().to_owned(), expected: String::new() }
    }

    /// The section of the model is missing, which the check excludes.
    pub(super) fn without_section() -> PresetProblem {
        PresetProblem {
            offset: 0,
            key: None,
            problem: "the section of its model is missing".to_owned(),
            expected: String::new(),
        }
    }

    /// The error with the line in place of the offset.
    pub(super) fn in_text(self, text: &str, file_name: &str) -> PresetError {
        let before = &text.as_bytes()[..self.offset.min(text.len())];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        let (file, problem) = (file_name.to_owned(), self.problem);
        match self.key {
            Some(key) => PresetError::Key { file, line, key, problem, expected: self.expected },
            None => PresetError::Text { file, line, problem },
        }
    }
}
