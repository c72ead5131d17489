//! The files of `queue/` of a device without requests: those that tell of requests or a scheduler do not exist.

use super::BioQueue;
use crate::attributes::{self, AttributeError};

impl BioQueue {
    /// The content of a file, its newline included.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn attribute(&self, file: &str) -> Result<String, AttributeError> {
        let text = match file {
            "scheduler" if self.generation.bio_based_scheduler_file => "none".into(),
            file if is_of_requests(file) => return Err(AttributeError::Unknown),
            file => attributes::show(&self.rules, &self.device, file).ok_or(AttributeError::Unknown)?,
        };
        Ok(text + "\n")
    }

    /// Writes `text` to a file.
    ///
    /// # Errors
    /// If the kernel would refuse the text; then nothing has changed.
    pub fn set_attribute(&mut self, file: &str, text: &str) -> Result<(), AttributeError> {
        match file {
            // Whatever it is, it is ignored.
            "scheduler" if self.generation.bio_based_scheduler_file => Ok(()),
            file if is_of_requests(file) => Err(AttributeError::Unknown),
            file => attributes::store(&mut self.rules, &self.device, &self.generation, file, text),
        }
    }
}

/// Files of the common part that mean nothing without requests.
fn is_of_requests(file: &str) -> bool {
    matches!(file, "nomerges" | "io_poll")
}
