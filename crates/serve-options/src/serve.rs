//! The options of `hoistway serve`.
//!
//! Used by: crate `serve`.
//! Tests: `crates/serve/tests/config.rs`, `crates/serve/tests/refusals.rs`.

use std::net::SocketAddr;
use std::path::PathBuf;

use hoistway_blk::policy::ContentionOptions;

/// Serve disks to NBD clients and virtual machines, under one I/O scheduler that shares the target fairly between them.
///
/// SIGTERM and SIGINT drain in-flight requests and exit; a second one exits at once. SIGHUP reloads --config.
///
/// Examples:
///   hoistway serve --target mem:512M --scheduler none --socket /tmp/disk.sock
///   hoistway serve --target file:disk.img --scheduler mq-deadline --tcp 127.0.0.1:10809 --read-only
///   hoistway serve --target mem:512M --vhost-user /tmp/vm.sock
///   hoistway serve --target blk:/dev/sdb --scheduler bfq --ublk
///   hoistway serve --target mem:2G --scheduler bfq --set bfq.low_latency=0 --socket /tmp/disk.sock \
///     --export name=vm1,size=1G,weight=400 --export name=vm2,offset=1G,max-iops=5000
///   hoistway serve --target sim:hgst-he10-8tb --data disk.img --scheduler bfq --tcp 127.0.0.1:10809
///   hoistway serve --config /etc/hoistway/serve.toml --user nobody --metrics 127.0.0.1:9809
#[derive(clap::Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct ServeOptions {
    /// What to serve: memory, a file, a block device, a device that stores nothing (null:), or a simulated device in real time
    /// (see `hoistway devices`) with its data in memory. Without it each --export needs a path=.
    #[arg(long, value_name = "mem:SIZE|file:PATH|blk:PATH|null:|null:SIZE|sim:PRESET")]
    pub target: Option<String>,
    /// Keep the data of a simulated device in this sparse file instead of memory. The file is created if missing and never synced:
    /// the data survives the server but not a crash of the machine.
    #[arg(long, value_name = "PATH")]
    pub data: Option<PathBuf>,
    /// Serve a part of the target, or a file of its own, under a name: name=, path=, offset=, size=, description=, read-only, shared
    /// (overlapping other exports that clients may write to);
    /// over vhost-user: vhost-user=PATH; as a block device of this machine: ublk or ublk=N; for some clients only: clients=user:NAME+cert:DNS-NAME (default all); bfq weight: weight= (1 to 1000, default 100); I/O priority: ioprio= (rt/0 to rt/7,
    /// be/0 to be/7, idle); limits per second for reads and writes each: max-iops=, max-bps= (or riops=, wiops=, rbps=, wbps=).
    /// Repeatable; the empty name also selects the first export. [default: the whole target under the empty name]
    #[arg(long, value_name = "KEY=VALUE,...")]
    pub export: Vec<String>,
    /// Listen on a Unix socket. Repeatable.
    #[arg(long, value_name = "PATH")]
    pub socket: Vec<PathBuf>,
    /// Mode of the sockets of --socket and vhost-user, in octal, such as 660: users with write permission may connect. [default:
    /// by umask]
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    pub socket_mode: Option<u32>,
    /// Owner of these sockets, and optionally their group.
    #[arg(long, value_name = "USER[:GROUP]")]
    pub socket_owner: Option<String>,
    /// Listen for a virtual machine that uses the first export over vhost-user: same as vhost-user=PATH of that export.
    #[arg(long, value_name = "PATH")]
    pub vhost_user: Option<PathBuf>,
    /// Make the first export a block device of this machine, /dev/ublkbN: same as ublk or ublk=N of that export. Without N the kernel
    /// chooses. Needs root and the kernel's ublk driver (Linux 6.5 or newer).
    #[arg(long, value_name = "N", num_args = 0..=1, value_parser = clap::value_parser!(u32).range(0..1 << 20))]
    pub ublk: Option<Option<u32>>,
    /// Listen on TCP; without --tls-cert only for trusted networks. Repeatable.
    #[arg(long, value_name = "HOST:PORT")]
    pub tcp: Vec<String>,
    /// I/O scheduler between the clients and the target: none, mq-deadline, kyber or bfq. [default: bfq for several exports if
    /// reads of the target take more than 0.5 ms at the start, or it holds no data and is rotational; else none]
    #[arg(long, value_name = "NAME")]
    pub scheduler: Option<String>,
    /// Set a tunable of the scheduler. Repeatable.
    #[arg(long, value_name = "SCHED.TUNABLE=VALUE")]
    pub set: Vec<String>,
    /// Number of requests per hardware queue that the scheduler can choose from.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10240))]
    pub nr_requests: Option<u32>,
    /// Maximum number of commands at the target. A scheduler reorders only requests queued above this limit. [default: what the
    /// target accepts]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10240))]
    pub queue_depth: Option<u32>,
    /// Number of worker threads, each with its own hardware queue if the target has enough.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: u16,
    /// Busy-poll up to this long before sleeping; shortened automatically when polling does not pay. It saves wake-ups and costs
    /// CPU time.
    #[arg(long, value_name = "US", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub spin: u64,
    /// Ways to reduce contention on the lock of mq-deadline or bfq: all, none, or some of single-dispatcher, try-merge,
    /// batch-dispatch, and insertion-buckets or pending-lists. No Linux release has these.
    #[arg(long, value_name = "LIST", default_value = "single-dispatcher,try-merge,batch-dispatch")]
    pub techniques: ContentionOptions,
    /// Memory for I/O buffers that is registered with io_uring, for files and block devices; 0 registers none. It is locked: see
    /// `ulimit -l`.
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = hoistway_engine::parse_fixed_buffers)]
    pub fixed_buffers: usize,
    /// Use the page cache for files and block devices instead of direct I/O. Reads of cached data do not wait for the disk, and writes
    /// complete before they reach it (a flush waits for them); Linux then decides when they do, not the scheduler.
    #[arg(long)]
    pub page_cache: bool,
    /// Make all exports read-only.
    #[arg(long)]
    pub read_only: bool,
    /// Maximum number of connections; further ones are refused.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_connections: u32,
    /// Maximum number of connections from one address, or from one user on Unix sockets; further ones are refused. [default: no
    /// limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_connections_per_peer: Option<u32>,
    /// Maximum number of in-flight requests per connection; further ones wait in its socket.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub max_in_flight: u32,
    /// Memory for the data of requests and replies of all clients; a client that needs more waits. At least 64M. [default: a
    /// quarter of the machine's memory, at most 1G]
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    pub memory: Option<usize>,
    /// Read options from a TOML file: the same names, and an `[[export]]` for each export. The command line overrides the file;
    /// repeatable options add to it. SIGHUP reloads the file: exports, their weights, priorities and limits, the scheduler, its
    /// tunables and nr-requests change while clients stay connected. If anything else differs, the reload is refused.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Certificate chain for TLS, as PEM. TCP clients then have to use TLS.
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of that certificate, as PEM.
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Require clients that use TLS to present a certificate signed by one of these authorities, as PEM.
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
    /// Whether TCP clients must or may use TLS. Clients on Unix sockets always may. [default: required, with --tls-cert]
    #[arg(long, value_name = "WHEN", value_enum)]
    pub tls: Option<TlsUse>,
    /// Serve Prometheus metrics over HTTP at /metrics on this loopback address: 127.0.0.1:PORT or `[::1]:PORT`.
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Drop privileges to this user once files and sockets are open. Files that SIGHUP reloads must be readable by that user.
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Seconds to drain in-flight requests after SIGTERM before exiting with status 1.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub grace: u64,
    /// Lowest severity that is logged.
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "info")]
    pub log_level: LogLevel,
    /// Format of log lines: text, or a JSON object with time_ms (since 1970), level and message.
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,
    /// Control socket for `hoistway ctl` and `hoistway top`. Anyone who can connect controls the server, and can have it serve any file
    /// that it can open (see --control-folder).
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,
    /// Confine what `ctl add` may open or create, by path= and vhost-user=, to this folder. Repeatable. [default: any file that the
    /// server can open]
    #[arg(long, value_name = "FOLDER", requires = "control")]
    pub control_folder: Vec<PathBuf>,
    /// Mode of that socket, in octal.
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = parse_mode)]
    pub control_mode: u32,
    /// Owner of that socket, and optionally its group.
    #[arg(long, value_name = "USER[:GROUP]")]
    pub control_owner: Option<String>,
    /// Check the options, the configuration file, the certificates and the sizes of targets, print what is wrong, and exit. Nothing is
    /// opened for writing, locked or listened on.
    #[arg(long)]
    pub check: bool,
}

/// Minimum of --memory: the longest request, and the same again for all others.
const MEMORY_BYTES_MIN: u64 = 64 << 20;

fn parse_memory(text: &str) -> Result<usize, String> {
    let bytes = hoistway_engine::parse_size(text)?;
    let in_range = (MEMORY_BYTES_MIN..=1 << 50).contains(&bytes);
    if in_range { Ok(bytes as usize) } else { Err("expected a size from 64M to 1024T, such as 512M".into()) }
}

/// Maximum mode: all permission bits.
const MODE_MAX: u32 = 0o777;

fn parse_mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= MODE_MAX);
    mode.ok_or_else(|| "expected an octal number up to 777, such as 660".into())
}

/// Which lines are logged.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogLevel {
    /// Errors of the server and refused reloads.
    Error,
    /// Also errors of clients and of the system.
    Warning,
    /// Also connections, changes, start and exit.
    Info,
}

/// How lines are logged.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// When TLS is used.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum TlsUse {
    /// All TCP clients must use TLS.
    Required,
    /// TCP clients may use TLS.
    Allowed,
}
