//! The options of the commands of `hoistway-serve`: serve, ctl and top.
//!
//! Used by: crates `serve`, `hoistway`.
//! Tests: `crates/serve/tests/config.rs`, `crates/serve/tests/refusals.rs`.
//!
//! A separate crate, so that `hoistway` can list these options in its help, completions and manual pages without building the
//! server.

mod ctl;
mod serve;
mod top;

pub use ctl::{Change, CtlOptions, Format};
pub use serve::{LogFormat, LogLevel, ServeOptions, TlsUse};
pub use top::TopOptions;

/// The commands of `hoistway-serve`.
#[derive(clap::Subcommand, Debug)]
#[expect(missing_docs, reason = "clap takes the documentation of a command from its options")]
pub enum ServeCommand {
    Serve(Box<ServeOptions>),
    Ctl(CtlOptions),
    Top(TopOptions),
}
