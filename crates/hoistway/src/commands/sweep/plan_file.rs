//! Reads the plan of a sweep from a file.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use hoistway_experiment::CallerEnvironment;
use hoistway_experiment::sweep::{Space, Sweep, SweepError};

use crate::input::CommandLine;

/// Reads and checks a plan of at most `limit` runs. Also returns notices about it.
pub(super) fn read(path: &Path, limit: u64) -> Result<(Sweep, Vec<String>)> {
    let name = path.display();
    let environment = CommandLine::default();
    let bytes = environment.read(path).with_context(|| format!("{name}: cannot be read (expected a plan in TOML)"))?;
    let text = String::from_utf8(bytes).map_err(|_| anyhow!("{name}: not text (expected a plan in TOML)"))?;
    let space: Space = toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
        anyhow!("{name}:{line}: {}", error.message().replace('\n', " "))
    })?;
    let plan_environment = PlanEnvironment { environment, folder: path.parent().unwrap_or(Path::new("")).to_owned() };
    Sweep::of(space, &plan_environment, limit).map_err(|error| match error {
        SweepError::TooMany { runs, limit } if runs < u64::MAX => {
            anyhow!(
                "{name}: the space has {runs} runs, more than {limit} (expected a smaller space, or --limit {runs})"
            )
        }
        error => anyhow!("{name}: {error}"),
    })
}

/// The environment of a plan: files are relative to its folder.
struct PlanEnvironment {
    environment: CommandLine,
    folder: PathBuf,
}

impl CallerEnvironment for PlanEnvironment {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.environment.read(&self.folder.join(path))
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.environment.variable(name)
    }
}
