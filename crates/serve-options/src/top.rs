//! The options of `hoistway top`.
//!
//! Used by: crate `serve`.
//! Tests: `crates/serve/tests/top.rs`.

use std::path::PathBuf;

/// Show a running server (`hoistway serve --control PATH`): throughput, latency, queueing and share of each export.
///
/// Keys: s sorts exports, c shows clients below them; q, Escape or Ctrl-C quits. `hoistway ctl show` prints the same figures once.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct TopOptions {
    /// Control socket of the server.
    #[arg(long, value_name = "PATH")]
    pub control: PathBuf,
    /// Refresh interval in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub every: u64,
}
