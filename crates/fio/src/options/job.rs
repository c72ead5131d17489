//! A job: its options, and where they come from.

use std::cell::RefCell;

use hoistway_load::{LoadError, Origin};

use super::OptionIndex;
use super::{SUBJECTS, Settings};
use crate::JobFileError;
use crate::document::{Document, Place, Section};
use crate::error::printable;
use crate::notices::Notices;

/// A job's options, where they come from, and whom to tell about them.
pub(crate) struct Job<'a> {
    pub(crate) document: &'a Document,
    pub(crate) index: &'a OptionIndex,
    pub(crate) section: &'a Section,
    pub(crate) settings: &'a Settings,
    pub(crate) notices: &'a RefCell<Notices>,
}

/// What a device may turn out not to be made for: of these messages are to point into the job file, too.
const LATE_FIELDS: [&str; 4] =
    ["plan.pattern.volume.size", "plan.pattern.volume.offset", "plan.pattern.offsets.distribution", "plan.replay"];

impl Job<'_> {
    /// The line that gave `option` its value, if one did.
    fn given(&self, option: &str) -> Option<Place> {
        let (id, _) = self.index.find(option)?;
        let entry = (*self.settings.given.get(id)? as usize).checked_sub(1)?;
        Some(self.document.entries.get(entry)?.place)
    }

    pub(crate) fn is_given(&self, option: &str) -> bool {
        self.given(option).is_some()
    }

    pub(crate) fn is_replay(&self) -> bool {
        !self.settings.replay.logs.is_empty()
    }

    /// An error in the value of `option`, at the line that gave it, or else at the head of the section.
    pub(crate) fn error(&self, option: &str, message: &str) -> JobFileError {
        let place = self.given(option).unwrap_or(self.section.place);
        self.document.error_at(place, Some(self.section), message).on_option(option)
    }

    /// What the load says of a field, said of the option that it comes from.
    pub(crate) fn refused(&self, error: LoadError) -> JobFileError {
        let error_in = match self.option_of(error.field) {
            Some(option) => self.error(option, &error.message),
            None => self.document.error_at(self.section.place, Some(self.section), &error.message),
        };
        error_in.hinting(error.hint)
    }

    fn option_of(&self, field: &str) -> Option<&'static str> {
        let mut fields = SUBJECTS.iter().flat_map(|subject| subject.fields);
        fields.find(|(known, _)| *known == field).map(|(_, option)| option(self.settings))
    }

    /// Where the fields of its processes come from.
    pub(crate) fn origin(&self) -> Origin {
        let place = |field| Some((field, self.error(self.option_of(field)?, "").place()));
        Origin(LATE_FIELDS.into_iter().filter_map(place).collect())
    }

    /// Tells of an option of this job.
    pub(crate) fn tell(&self, sentence: &str) {
        self.tell_all(&format!("[{}] {sentence}", printable(&self.section.name)));
    }

    /// The same of one that has no effect on a replay anyway.
    pub(crate) fn tell_unless_replay(&self, sentence: &str) {
        if !self.is_replay() {
            self.tell(sentence);
        }
    }

    /// Tells of those of the options that are given that they have no effect, and why.
    pub(crate) fn tell_idle(&self, options: &[&str], why: &str) {
        for option in options.iter().filter(|option| self.is_given(option)) {
            self.tell_unless_replay(&format!("{option} has no effect {why}."));
        }
    }

    /// Tells what holds for all jobs.
    pub(crate) fn tell_all(&self, sentence: &str) {
        self.notices.borrow_mut().add(sentence.to_owned());
    }
}
