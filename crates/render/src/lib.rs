//! Rendering: converts a result document to [`text`] for terminals and files, or to a page of [`html`]. It does not measure, decide or
//! print anything, and a page says the same as the terminal output.
//!
//! Used by: crates `hoistway`, `evidence`, `terminal`.
//! Tests: `crates/render/src/` (in its files), `crates/render/tests/`.

pub mod html;
pub mod text;
