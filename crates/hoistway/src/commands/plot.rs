//! `--plot`: results as a picture.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hoistway_results::ResultsDocument;

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

    /// Draws it.
    pub(crate) fn write(self, document: &ResultsDocument) -> Result<()> {
        let shown = printable::document(document)?;
        let document = shown.as_ref().unwrap_or(document);
        let failed = || format!("--plot {}", self.name.display());
        if self.is_svg {
            self.output.write(hoistway_page::svg(document).with_context(failed)?)
        } else {
            self.output.write(hoistway_page::png(document).with_context(failed)?)
        }
    }
}
