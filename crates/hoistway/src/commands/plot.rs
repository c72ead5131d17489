//! `--plot`: results as a picture.

use std::path::Path;

use anyhow::{Result, bail};
use hoistway_results::ResultsDocument;

use crate::output::Output;
use crate::printable;

/// The place for a plot, and what it will be.
pub(crate) struct Plot {
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
        Ok(Plot { output: Output::beside("--plot", file, results)?, is_svg })
    }

    /// Draws it.
    pub(crate) fn write(self, document: &ResultsDocument) -> Result<()> {
        let shown = printable::document(document)?;
        let document = shown.as_ref().unwrap_or(document);
        if self.is_svg {
            self.output.write(hoistway_page::svg(document)?)
        } else {
            self.output.write(hoistway_page::png(document)?)
        }
    }
}
