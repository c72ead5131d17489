//! The logs that jobs replay, each read once.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::checks::JobContext;
use crate::error::quoted;
use crate::replay::{self, Log};
use crate::{Environment, JobFileError};

/// Logs by name.
#[derive(Default)]
pub(super) struct Replays {
    logs: HashMap<String, Arc<Log>>,
}

impl Replays {
    /// The log that a clone replays.
    pub(super) fn of(
        &mut self,
        context: &JobContext<'_>,
        environment: &Environment<'_>,
        clone: u32,
    ) -> Result<Option<Arc<Log>>, JobFileError> {
        let names = &context.settings.replay.logs;
        let Some(name) = names.get(clone as usize % names.len().max(1)) else { return Ok(None) };
        if let Some(log) = self.logs.get(name) {
            return Ok(Some(Arc::clone(log)));
        }
        let bytes = (environment.log)(Path::new(name)).map_err(|error| {
            let message = format!("cannot read the log {}: {error}", quoted(name));
            context.error("read_iolog", &message).hinting("expected an I/O log of fio, version 2 or 3")
        })?;
        let log = replay::read(&bytes).map_err(|error| {
            let file: Arc<str> = name.as_str().into();
            JobFileError::new(&file, error.message).at_line(error.line).hinting(error.hint)
        })?;
        if log.records.is_empty() {
            return Err(context.error("read_iolog", &format!("there is no I/O in the log {}", quoted(name))));
        }
        let log = Arc::new(log);
        self.logs.insert(name.clone(), Arc::clone(&log));
        Ok(Some(log))
    }
}
