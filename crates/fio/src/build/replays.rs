//! The I/O logs of replay jobs.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use hoistway_load::{RecordError, Replay};

use crate::environment::LogSource;
use crate::error::quoted;
use crate::iolog::{self, LogScan};
use crate::options::Job;
use crate::options::ReplaySettings;
use crate::{Environment, JobFileError};

/// The logs read so far, each once per settings.
#[derive(Default)]
pub(super) struct Replays {
    logs: HashMap<(String, ReplaySettings), CachedLog>,
}

#[derive(Clone)]
pub(super) struct CachedLog {
    source: Arc<dyn LogSource>,
    scan: Arc<LogScan>,
}

impl Replays {
    /// The log that a clone replays; `None` if the job is not a replay.
    pub(super) fn log_for(
        &mut self,
        job: &Job<'_>,
        environment: &Environment<'_>,
        clone: u32,
    ) -> Result<Option<CachedLog>, JobFileError> {
        let settings = &job.settings.replay;
        let Some(name) = settings.logs.get(clone as usize % settings.logs.len().max(1)) else { return Ok(None) };
        let key = (name.clone(), settings.clone());
        if let Some(cached) = self.logs.get(&key) {
            return Ok(Some(cached.clone()));
        }
        let source = (environment.log)(Path::new(name)).map_err(|error| {
            let message = format!("cannot read the log {}: {error}", quoted(name));
            job.error("read_iolog", &message).with_hint("expected an I/O log of fio, version 2 or 3")
        })?;
        let scan = iolog::scan(&*source, settings).map_err(|RecordError { line, message, hint }| {
            JobFileError::new(&name.as_str().into(), message).at_line(line).with_hint(hint)
        })?;
        if scan.summary.ios == 0 {
            return Err(job.error("read_iolog", &format!("the log {} has no I/O", quoted(name))));
        }
        let cached = CachedLog { source, scan: Arc::new(scan) };
        self.logs.insert(key, cached.clone());
        Ok(Some(cached))
    }
}

impl CachedLog {
    /// The files of the log.
    pub(super) fn files(&self) -> &[String] {
        &self.scan.files
    }

    /// The replay with its files mapped to these devices of the process, by index.
    pub(super) fn on_devices(&self, devices: Vec<u8>, settings: &ReplaySettings) -> Replay {
        let summary = self.scan.summary.clone().on_devices(&devices);
        Replay { records: Arc::new(iolog::Log::new(&self.source, settings, devices)), summary, waits_on: None }
    }
}
