//! What the programs of hoistway share: where [outputs](output) go, [text that a terminal cannot obey](printable), the
//! [files](mod@files) that a command reads, and [how it ends](Ending).

mod ending;
pub mod files;
pub mod output;
pub mod printable;

pub use ending::{Ending, exit_code};
