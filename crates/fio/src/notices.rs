//! Collects notices for the user about a job file.
//!
//! Used by: `options`, `build`.
//! Tests: `crates/fio/tests/job_files.rs`.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::printable;

/// The notices so far, without repetitions.
#[derive(Default)]
pub(crate) struct Notices {
    ignored: BTreeSet<&'static str>,
    schedulers: BTreeSet<String>,
    /// Files of jobs without `filename`.
    pub(crate) own_files: u64,
    /// By the sentence that says what is simulated instead: the options concerned.
    not_simulated: BTreeMap<&'static str, BTreeSet<&'static str>>,
    sentences: Vec<String>,
}

impl Notices {
    pub(crate) fn ignored(&mut self, name: &'static str) {
        self.ignored.insert(name);
    }

    pub(crate) fn not_simulated(&mut self, name: &'static str, sentence: &'static str) {
        self.not_simulated.entry(sentence).or_default().insert(name);
    }

    pub(crate) fn scheduler(&mut self, name: &str) {
        self.schedulers.insert(printable(name).into_owned());
    }

    pub(crate) fn add(&mut self, sentence: String) {
        const SENTENCES_MAX: usize = 50;
        if self.sentences.len() < SENTENCES_MAX && !self.sentences.contains(&sentence) {
            self.sentences.push(sentence);
        }
    }

    pub(crate) fn into_sentences(mut self) -> Vec<String> {
        match self.own_files {
            0 => {}
            1 => self.sentences.push("The job without filename: its file is at the start of the device.".to_owned()),
            files => self.sentences.push(format!(
                "Jobs without filename: the {files} files of their processes are placed one after the other on the device."
            )),
        }
        if !self.schedulers.is_empty() {
            let names: Vec<_> = self.schedulers.iter().map(String::as_str).collect();
            self.sentences.push(format!(
                "ioscheduler={} of the job file is ignored; the command chooses the schedulers.",
                names.join(", ")
            ));
        }
        for (sentence, names) in self.not_simulated {
            let names: Vec<_> = names.into_iter().collect();
            self.sentences.push(format!("Not simulated: {}; {sentence}.", names.join(", ")));
        }
        if !self.ignored.is_empty() {
            let names: Vec<_> = self.ignored.iter().copied().collect();
            self.sentences.push(format!("Ignored, without effect on a simulation: {}.", names.join(", ")));
        }
        self.sentences
    }
}
