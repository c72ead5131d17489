//! What a configuration makes of a server, at its start and when it is read again.

use std::ffi::OsString;

use anyhow::{Context as _, Result, bail};
use hoistway_serve::{Placed, Site, Wanted};

use super::config::Asked;
use super::say;
use super::systemd::{self, News};
use super::target::Volumes;

/// How a server should work, over these volumes.
pub(super) fn wanted(asked: &Asked, volumes: &Volumes) -> Result<Wanted> {
    let Asked { arguments, exports, .. } = asked;
    let on = volumes.of(exports)?;
    let exports = exports.iter().cloned().zip(on).map(|(spec, volume)| Placed { spec, volume }).collect();
    let mut settings = Vec::new();
    settings.extend(arguments.nr_requests.map(|requests| ("nr_requests".to_owned(), requests.to_string())));
    for setting in &arguments.set {
        let (key, value) = setting.split_once('=').filter(|(key, _)| key.contains('.')).with_context(|| {
            format!("--set {setting}: expected SCHEDULER.TUNABLE=VALUE, as {}.NAME=VALUE", arguments.scheduler)
        })?;
        settings.push((key.to_owned(), value.to_owned()));
    }
    Ok(Wanted { exports, scheduler: arguments.scheduler.clone(), settings })
}

/// Reads the configuration again, as it was read at the start.
pub(super) struct Reloader {
    /// The command line.
    pub(super) line: Vec<OsString>,
    pub(super) started: Asked,
    pub(super) volumes: Volumes,
}

impl Reloader {
    /// Whether there is anything to read.
    pub(super) fn can_reload(&self) -> bool {
        self.started.arguments.config.is_some()
    }

    /// All of the new configuration holds, or none of it; either way there is one line in the log.
    pub(super) fn reload(&self, site: &Site) {
        systemd::tell(&News::Reloading);
        match self.try_to(site) {
            Ok(changes) if changes.is_empty() => say("configuration read again: nothing has changed"),
            Ok(changes) => say(&format!("configuration read again: {}", changes.join("; "))),
            Err(error) => say(&format!("configuration read again, but nothing changes: {error:#}")),
        }
        systemd::tell(&News::Ready);
    }

    fn try_to(&self, site: &Site) -> Result<Vec<String>> {
        if let Some(config) = &self.started.arguments.config
            && !std::fs::metadata(config).is_ok_and(|it| it.is_file())
        {
            // A pipe is read once; whoever waited for it would not hear that the server is to end.
            bail!("--config {}: not a file that can be read again (a restart reads it)", config.display());
        }
        let asked = Asked::read(&self.line)?;
        if let Some(option) = asked.differs_in(&self.started) {
            bail!("{option} stays as it is while the server runs (a restart changes it)");
        }
        let tls = asked.arguments.tls_files()?.map(|files| files.read().context("TLS")).transpose()?;
        let changes = site.change_to(&wanted(&asked, &self.volumes)?)?;
        if let Some(tls) = tls {
            site.set_tls(tls);
        }
        Ok(changes)
    }
}
