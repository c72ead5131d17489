//! `--format`: the output format of a comparison.

use anyhow::{Result, bail};
use clap::ValueEnum;
use hoistway_answer::{Analysis, ResultsDocument};
use hoistway_measure::fio;
use hoistway_render::text::Style;

use hoistway_terminal::output::Output;
use hoistway_terminal::printable;

/// How results are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Table,
    /// All results, for programs.
    Json,
    /// One line per scheduler, job and direction, for spreadsheets.
    Csv,
    /// The table, for web pages and issues.
    Markdown,
    /// fio's own JSON, for a single run: one scheduler, no repeats.
    FioJson,
    /// fio's json+: the same with all latency bins.
    #[value(name = "fio-json+")]
    FioJsonPlus,
}

impl Format {
    /// Rejects several runs if the format only holds one.
    pub(crate) fn check(self, runs: usize) -> Result<()> {
        if matches!(self, Self::FioJson | Self::FioJsonPlus) && runs != 1 {
            let name = if self == Self::FioJson { "fio-json" } else { "fio-json+" };
            bail!(
                "--format {name}: fio's document holds one run, but this makes {runs} runs (expected one scheduler, \
                 without --repeat; --fio-logs DIR writes a document for each run)"
            );
        }
        Ok(())
    }

    /// Rejects advice if the format cannot hold sentences.
    pub(crate) fn check_advice(self) -> Result<()> {
        let name = match self {
            Self::Table | Self::Json | Self::Markdown => return Ok(()),
            Self::Csv => "csv",
            Self::FioJson => "fio-json",
            Self::FioJsonPlus => "fio-json+",
        };
        bail!("--advice: --format {name} has no place for it (expected table, json or markdown)")
    }

    /// Whether names are written unescaped. JSON escapes control characters.
    fn is_text(self) -> bool {
        matches!(self, Self::Table | Self::Csv | Self::Markdown)
    }

    /// Whether fio's document includes all latency bins; `None` for other formats.
    pub(super) fn fio_bins(self) -> Option<bool> {
        match self {
            Self::FioJson => Some(false),
            Self::FioJsonPlus => Some(true),
            Self::Table | Self::Json | Self::Csv | Self::Markdown => None,
        }
    }

    /// The document in this format. `fio` is fio's document of its only run.
    pub(crate) fn render(
        self,
        document: &ResultsDocument,
        fio: Option<&fio::Output>,
        wide: bool,
        output: &Output,
    ) -> Result<String> {
        let escaped = self.is_text().then(|| printable::document(document, ResultsDocument::from_json)).transpose()?;
        let document = escaped.as_ref().and_then(Option::as_ref).unwrap_or(document);
        let analysis = || Analysis::of(document);
        Ok(match self {
            Self::Table => hoistway_render::text::table(&analysis(), &Style { wide, ..output.style() }),
            Self::Json => hoistway_render::text::json(document),
            Self::Csv => hoistway_render::text::csv(&analysis()),
            Self::Markdown => hoistway_render::text::markdown(&analysis()),
            Self::FioJson | Self::FioJsonPlus => fio_text(fio)?,
        })
    }
}

/// A document of fio as text; empty for a run that never began.
pub(super) fn fio_text(output: Option<&fio::Output>) -> Result<String> {
    let empty = fio::Output::default();
    Ok(serde_json::to_string_pretty(output.unwrap_or(&empty))? + "\n")
}
