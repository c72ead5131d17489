//! Common parts of Hoistway's programs: [outputs](output), [text that is safe for terminals](printable), [input
//! files](mod@files), [help texts](help), [Ctrl-C](interrupt), and [exit status](Ending).
//!
//! Used by: crates `hoistway`, `evidence`.
//! Tests: `crates/terminal/src/` (in its files), `crates/hoistway/tests/cli/`.
//!
//! ```
//! use hoistway_terminal::printable;
//!
//! assert_eq!(printable::text("disk\u{1b}[2J"), "disk\u{241b}[2J");
//! ```

mod closed;
mod ending;
pub mod files;
pub mod help;
pub mod interrupt;
pub mod output;
pub mod printable;

pub use ending::{Ending, exit_code};
