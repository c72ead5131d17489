//! A block server: many clients on each disk, under a scheduler for it.
//!
//! Used by: its program `hoistway-serve`.
//! Tests: `crates/serve/src/` (in its files), `crates/serve/tests/`.
//!
//! ```text
//! socket -> connection -> session -> throttle -> engine's client -> scheduler -> target
//!                 replies <- outbox <- session <-
//! ```
//!
//! A connection begins in the lobby, a thread for handshakes. Once it has chosen an export it moves to a worker of that export's disk: each
//! disk has a queue, a scheduler and workers of its own, so that one that hangs delays no other.
//!
//! All else happens on the thread of that worker, which waits for sockets and commands in the same place ([`EventLoop`]), so
//! a request over memory costs a receive, a copy and a send. Each export is a group of the scheduler (with its weight, and the
//! priority of its clients) and has its own limits.
//!
//! The folders below are in the order of a request's path, each using only those above it; `faults` tests them together.

mod ground;

mod event_loop;

mod stream;

mod memory;

mod export;

mod server;

mod nbd;

mod guest;

mod ublk;

mod operation;

#[cfg(test)]
mod faults;

pub use event_loop::{Connection, ConnectionId, EventLoop, Inboxes, Next, Ready, SharedConnection, Watch};
pub use export::access::Access;
pub use export::clients::{Client, ClientState, Origin, Peer};
pub use export::counts::{Counts, Ended};
pub use export::disk::{DefaultScheduler, Disk};
pub use export::export_throttle::{ExportThrottle, Released};
pub use export::exports::{Exports, LiveExport};
pub use export::latency::{Latencies, Latency};
pub use export::spec::{
    ExportSpec, Placed, SETTINGS, Settings, SpecError, WEIGHTS, apply, check_names, check_overlaps, ioprio_text,
};
pub use ground::log::{Level, Log};
pub use ground::stop::Stop;
pub use guest::GuestListener;
pub use hoistway_ublk::DeviceNumber;
pub use memory::Memory;
pub use nbd::listener::Listener;
pub use operation::change::Wanted;
pub use operation::control::{
    Control, ControlReply, ControlRequest, DiskState, ExportState, Operator, StateReport, send_request,
};
pub use operation::metrics::{Metrics, text as metrics_text};
pub use server::admission::Admission;
pub use server::disks::NewDisk;
pub use server::front_end::FrontEnd;
pub use server::guest_socket::SocketAccess;
pub use server::server_state::{ServerLimits, ServerState, StartDisk};
pub use server::throttled_client::ThrottledClient;
pub use server::{Server, ServerError};
pub use stream::socket::Socket;
pub use stream::tls::{TlsError, TlsFiles, TlsTexts};
pub use ublk::UblkDevice;
