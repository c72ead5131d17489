//! The options of `hoistway ctl`.
//!
//! Used by: crate `serve`.
//! Tests: `crates/serve/tests/control.rs`.

use std::path::PathBuf;

/// Show or change a running server (`hoistway serve --control PATH`): scheduler, tunables, weights, priorities, limits.
///
/// Examples:
///   hoistway ctl --control /tmp/ctl.sock show
///   hoistway ctl --control /tmp/ctl.sock set scheduler=bfq bfq.low_latency=0
///   hoistway ctl --control /tmp/ctl.sock export vm1 weight=400 max-iops=5000
///   hoistway ctl --control /tmp/ctl.sock export vm1 max-iops=max
///   hoistway ctl --control /tmp/ctl.sock add name=vm3,offset=40G,size=20G
///   hoistway ctl --control /tmp/ctl.sock disconnect 17
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct CtlOptions {
    /// Control socket of the server.
    #[arg(long, value_name = "PATH")]
    pub control: PathBuf,
    /// The action.
    #[command(subcommand)]
    pub change: Change,
}

/// An action of `ctl`.
#[derive(clap::Subcommand, Debug)]
pub enum Change {
    /// Show the scheduler with its tunables, and settings and statistics of each export.
    Show {
        /// Output format.
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Reload the configuration file, as SIGHUP does; fails if the reload is refused.
    Reload,
    /// Add an export, with the settings of `serve --export`: a part of the target or of an open file, with a socket for its guest
    /// if vhost-user= is set, and a block device if ublk is. A reload removes it unless the configuration file has it.
    Add {
        /// Settings, such as name=vm3,offset=40G,size=20G.
        #[arg(value_name = "KEY=VALUE,...")]
        export: String,
    },
    /// Remove an export: requests in flight complete, its clients are disconnected, and the socket for its guest is removed.
    Remove {
        /// Name of the export.
        name: String,
    },
    /// Change the size of an export. Clients see it when they connect again; if it shrinks they are disconnected.
    Resize {
        /// Name of the export.
        name: String,
        /// New size, such as 20G.
        size: String,
    },
    /// Disconnect a client; its requests in flight complete. `show` lists clients with their numbers.
    Disconnect {
        /// Number of the client.
        client: u64,
    },
    /// Set the scheduler, one of its tunables, or nr_requests, in the given order, of all disks or of one. A tunable is set where its
    /// scheduler is.
    Set {
        /// Name of the disk, as `show` lists them.
        #[arg(long, value_name = "NAME")]
        disk: Option<String>,
        /// scheduler=NAME, SCHEDULER.TUNABLE=VALUE, nr_requests=N.
        #[arg(required = true, value_name = "KEY=VALUE")]
        settings: Vec<String>,
    },
    /// Change an export: weight=, ioprio=, max-iops=, max-bps=, riops=, wiops=, rbps=, wbps=. The value max removes a limit.
    Export {
        /// Name of the export.
        name: String,
        /// Settings; either all of them are applied or none.
        #[arg(required = true, value_name = "KEY=VALUE")]
        settings: Vec<String>,
    },
}

/// How results are printed.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
}
