//! `--plot`: results as a picture.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hoistway_answer::ResultsDocument;
use hoistway_answer::tuning::Tuning;
use hoistway_page::PlotError;

use crate::output::Output;
use crate::printable;

/// The place for a plot, and what it will be.
pub(crate) struct Plot {
    /// As the user named it.
    name: PathBuf,
    output: Output,
    is_svg: bool,
}

impl Plot {
    /// Checks that `file` can be written, is named after what it can be, and is not where the `results` go.
    pub(crate) fn open(file: &Path, results: &Output) -> Result<Plot> {
        let is_svg = match file.extension().map(|extension| extension.to_ascii_lowercase()) {
            Some(extension) if extension == "svg" => true,
            Some(extension) if extension == "png" => false,
            _ => bail!("--plot {}: expected a name that ends in .svg or .png", file.display()),
        };
        Ok(Plot { name: file.to_owned(), output: Output::beside("--plot", file, results)?, is_svg })
    }

    /// Draws a comparison.
    pub(crate) fn write(self, document: &ResultsDocument) -> Result<()> {
        let shown = printable::document(document, ResultsDocument::from_json)?;
        self.drawn(shown.as_ref().unwrap_or(document), hoistway_page::svg, hoistway_page::png)
    }

    /// Draws a search.
    pub(crate) fn write_search(self, tuning: &Tuning) -> Result<()> {
        let shown = printable::document(tuning, Tuning::from_json)?;
        self.drawn(shown.as_ref().unwrap_or(tuning), hoistway_page::tuned_svg, hoistway_page::tuned_png)
    }

    fn drawn<D>(
        self,
        document: &D,
        svg: fn(&D) -> Result<String, PlotError>,
        png: fn(&D) -> Result<Vec<u8>, PlotError>,
    ) -> Result<()> {
        let failed = || format!("--plot {}", self.name.display());
        if self.is_svg {
            self.output.write_there(svg(document).with_context(failed)?)
        } else {
            self.output.write_there(png(document).with_context(failed)?)
        }
    }
}
