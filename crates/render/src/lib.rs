//! Rendering: converts a result document to [`text`] for terminals and files, or to a page of [`html`]. It does not measure, decide or
//! print anything, and a page says the same as the terminal output.
//!
//! Used by: crates `hoistway`, `evidence`, `terminal`.
//! Tests: `crates/render/src/` (in its files), `crates/render/tests/`.
//!
//! ```no_run
//! use hoistway_answer::{Analysis, ResultsDocument};
//! use hoistway_render::text::{Style, conclusion, table};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let document = ResultsDocument::from_json(&std::fs::read_to_string("results.json")?)?;
//! let analysis = Analysis::of(&document);
//! let style = Style { colour: false, width: Some(100), wide: false, ascii: false };
//! println!("{}\n{}", table(&analysis, &style), conclusion(&analysis).join("\n"));
//! # Ok(())
//! # }
//! ```

pub mod html;
pub mod text;
