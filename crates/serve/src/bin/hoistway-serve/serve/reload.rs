//! Applies a configuration at startup and on reload.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};
use hoistway_serve::{ExportSpec, Level, Operator, Placed, ServerError, ServerState, StartDisk, TlsTexts, Wanted};

use super::config::Configuration;
use super::log::{log, say};
use super::scheduler::FAST;
use super::systemd::{self, ServiceState};
use super::target::{Volumes, open_disk};
use super::{engine_config, tls_files};

/// The server state described by these options.
pub(super) fn desired_state(configuration: &Configuration, exports: Vec<Placed>) -> Result<Wanted> {
    let options = &configuration.options;
    let scheduler = options.scheduler.as_deref().unwrap_or(FAST);
    let mut settings = Vec::new();
    settings.extend(options.nr_requests.map(|requests| ("nr_requests".to_owned(), requests.to_string())));
    for setting in &options.set {
        let (key, value) = setting
            .split_once('=')
            .filter(|(key, _)| key.contains('.'))
            .with_context(|| format!("--set {setting}: expected SCHEDULER.TUNABLE=VALUE, as {scheduler}.NAME=VALUE"))?;
        settings.push((key.to_owned(), value.to_owned()));
    }
    Ok(Wanted { exports, scheduler: options.scheduler.clone(), settings })
}

/// Reloads the configuration.
pub(super) struct Reloader {
    /// The command line.
    pub(super) line: Vec<OsString>,
    pub(super) started: Configuration,
    volumes: Volumes,
    /// Contents of the TLS files when they were last applied.
    tls: Mutex<Option<TlsTexts>>,
}

impl Reloader {
    pub(super) fn new(
        line: Vec<OsString>,
        started: Configuration,
        volumes: Volumes,
        tls: Option<TlsTexts>,
    ) -> Reloader {
        Reloader { line, started, volumes, tls: Mutex::new(tls) }
    }

    /// Starts the disk of a file that is added while the server runs.
    pub(super) fn start_disk(&self) -> StartDisk {
        let (options, config) = (self.started.options.clone(), engine_config(&self.started.options));
        Box::new(move |server, file, id| {
            let disk = open_disk(&options, file, id).map_err(|why| ServerError::Refused(why.to_string()))?;
            server.start_disk(&config, disk)
        })
    }

    /// Whether there is a configuration file.
    pub(super) fn can_reload(&self) -> bool {
        self.started.options.config.is_some()
    }

    /// Applies all of the new configuration or none of it, and logs one line.
    ///
    /// # Errors
    /// The reason, if nothing was applied.
    pub(super) fn reload(&self, server: &Arc<ServerState>) -> Result<(), String> {
        let _changes = server.lock_changes();
        systemd::notify(&ServiceState::Reloading);
        let reloaded = self.reload_config(server).map_err(|error| format!("{error:#}"));
        match &reloaded {
            Ok(changes) if changes.is_empty() => say("configuration reloaded: nothing changed"),
            Ok(changes) => say(&format!("configuration reloaded: {}", changes.join("; "))),
            Err(error) => log(Level::Error, &format!("configuration reload refused: {error}")),
        }
        systemd::notify(&ServiceState::Ready);
        reloaded.map(drop)
    }

    fn reload_config(&self, server: &Arc<ServerState>) -> Result<Vec<String>> {
        if self.started.options.config.is_none() {
            bail!("there is no --config to reload");
        }
        check_regular_file("--config", self.started.options.config.as_deref())?;
        let configuration = Configuration::read(&self.line)?;
        if let Some(option) = configuration.differs_in(&self.started) {
            bail!("{option} cannot change while the server runs (restart to change it)");
        }
        let options = &configuration.options;
        for (option, file) in
            [("--tls-cert", &options.tls_cert), ("--tls-key", &options.tls_key), ("--tls-ca", &options.tls_ca)]
        {
            check_regular_file(option, file.as_deref())?;
        }
        let new_texts = tls_files(options)?.map(|files| files.read().context("TLS")).transpose()?;
        let mut current_texts = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = if *current_texts == new_texts { None } else { new_texts };
        let config = changed.as_ref().map(|texts| texts.config().context("TLS")).transpose()?;
        let exports = self
            .volumes
            .place(&configuration.exports, server)
            .map_err(|error| configuration.with_setting_location(error))?;
        let changes = server.change_to(&desired_state(&configuration, exports)?);
        let mut changes = changes.map_err(|error| configuration.with_setting_location(error.into()))?;
        if let Some(config) = config {
            server.set_tls(config);
            *current_texts = changed;
            changes.push("TLS files, for new connections".to_owned());
        }
        Ok(changes)
    }
}

/// Carries out requests to the control socket for a running server.
pub(super) struct ServerOperator<'a> {
    pub(super) reloader: &'a Reloader,
    pub(super) server: &'a Arc<ServerState>,
}

impl Operator for ServerOperator<'_> {
    fn reload(&self) -> Result<(), String> {
        self.reloader.reload(self.server)
    }

    fn place(&self, export: ExportSpec) -> Result<Placed, String> {
        let folders = &self.reloader.started.options.control_folder;
        for (setting, path) in [("path", &export.path), ("vhost-user", &export.vhost_user)] {
            path.as_deref().map_or(Ok(()), |path| check_folder(setting, path, folders))?;
        }
        let placed = self.reloader.volumes.place(&[export], self.server);
        placed.map(|mut placed| placed.swap_remove(0)).map_err(|error| format!("{error:#}"))
    }
}

/// Refuses a path beyond the folders of `--control-folder`, if there are any. Links are followed first.
fn check_folder(setting: &str, path: &Path, folders: &[PathBuf]) -> Result<(), String> {
    if folders.is_empty() {
        return Ok(());
    }
    // A socket does not exist yet, but its folder does.
    let real = path.canonicalize().or_else(|error| match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => folder.canonicalize().map(|folder| folder.join(name)),
        _ => Err(error),
    });
    let real = real.map_err(|error| format!("{setting}={}: {error}", path.display()))?;
    let is_below = |folder: &PathBuf| folder.canonicalize().is_ok_and(|folder| real.starts_with(folder));
    if folders.iter().any(is_below) {
        return Ok(());
    }
    let folders: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let expected = folders.join(", ");
    Err(format!("{setting}={}: is in none of the folders of --control-folder (expected {expected})", path.display()))
}

/// Only regular files are read again: reading a pipe could block forever.
fn check_regular_file(option: &str, file: Option<&Path>) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    match std::fs::metadata(file) {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(_) => {
            bail!("{option} {}: not a regular file, so it cannot be read again (restart to read it)", file.display())
        }
        Err(error) => bail!("{option} {}: cannot be read: {error}", file.display()),
    }
}
