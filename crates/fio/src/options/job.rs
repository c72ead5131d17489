//! The job being built: its options with their positions, for errors and notices.

use std::cell::RefCell;

use hoistway_load::{LoadError, Origin};

use super::OptionIndex;
use super::{SUBJECTS, Settings};
use crate::JobFileError;
use crate::document::{Document, Position, Section};
use crate::error::printable;
use crate::notices::Notices;

/// A job's options with their positions, and a sink for notices.
pub(crate) struct Job<'a> {
    pub(crate) document: &'a Document,
    pub(crate) index: &'a OptionIndex,
    pub(crate) section: &'a Section,
    pub(crate) settings: &'a Settings,
    pub(crate) notices: &'a RefCell<Notices>,
}

/// Fields whose errors may appear only once the device is known; they must still point into the job file.
const LATE_FIELDS: [&str; 4] =
    ["plan.pattern.volume.size", "plan.pattern.volume.offset", "plan.pattern.offsets.distribution", "plan.replay"];

impl Job<'_> {
    /// The line that last set `option`, if any.
    fn position_of(&self, option: &str) -> Option<Position> {
        let (id, _) = self.index.find(option)?;
        let entry = (*self.settings.last_entry.get(id)? as usize).checked_sub(1)?;
        Some(self.document.entries.get(entry)?.position)
    }

    pub(crate) fn is_given(&self, option: &str) -> bool {
        self.position_of(option).is_some()
    }

    pub(crate) fn is_replay(&self) -> bool {
        !self.settings.replay.logs.is_empty()
    }

    /// An error in the value of `option`, at the line that set it, or else at the section's header.
    pub(crate) fn error(&self, option: &str, message: &str) -> JobFileError {
        let position = self.position_of(option).unwrap_or(self.section.position);
        self.document.error_at(position, Some(self.section), message).on_option(option)
    }

    /// Converts the load's error about a field to one about the option that set the field.
    pub(crate) fn load_error(&self, error: LoadError) -> JobFileError {
        let error_in = match self.option_of(error.field) {
            Some(option) => self.error(option, &error.message),
            None => self.document.error_at(self.section.position, Some(self.section), &error.message),
        };
        error_in.with_hint(error.hint)
    }

    fn option_of(&self, field: &str) -> Option<&'static str> {
        let mut fields = SUBJECTS.iter().flat_map(|subject| subject.fields);
        fields.find(|(known, _)| *known == field).map(|(_, option)| option(self.settings))
    }

    /// The positions in the job file of fields whose errors may appear late.
    pub(crate) fn origin(&self) -> Origin {
        let field_position = |field| Some((field, self.error(self.option_of(field)?, "").position()));
        Origin(LATE_FIELDS.into_iter().filter_map(field_position).collect())
    }

    /// Adds a notice about an option of this job.
    pub(crate) fn add_notice_of_job(&self, sentence: &str) {
        self.add_notice_for_all_jobs(&format!("[{}] {sentence}", printable(&self.section.name)));
    }

    /// Adds a notice about an option of this job, unless the job is a replay, where the option has no effect anyway.
    pub(crate) fn add_notice_unless_replay(&self, sentence: &str) {
        if !self.is_replay() {
            self.add_notice_of_job(sentence);
        }
    }

    /// Adds a notice for each of these options that is set: it has no effect, and `why`.
    pub(crate) fn add_notice_of_unused_options(&self, options: &[&str], why: &str) {
        for option in options.iter().filter(|option| self.is_given(option)) {
            self.add_notice_unless_replay(&format!("{option} has no effect {why}."));
        }
    }

    /// Adds a notice about all jobs.
    pub(crate) fn add_notice_for_all_jobs(&self, sentence: &str) {
        self.notices.borrow_mut().add(sentence.to_owned());
    }
}
