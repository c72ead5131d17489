//! A block server: many clients on one disk, under one scheduler.
//!
//! ```text
//! socket -> connection -> session -> throttle -> engine's client -> scheduler -> target
//!                 replies <- outbox <- session <-
//! ```
//!
//! All of this happens on the thread of one worker, which waits for sockets and commands in the same place ([`EventLoop`]), so
//! a request over memory costs a receive, a copy and a send. Each export is a group of the scheduler (with its weight, and the
//! priority of its clients) and has its own limits.

mod access;
mod admission;
mod change;
mod clients;
mod connection;
mod control;
mod counts;
mod event_loop;
mod export_throttle;
mod exports;
#[cfg(test)]
mod faults;
mod files;
mod front_end;
mod guest;
mod guest_socket;
mod input;
mod latency;
mod listener;
mod log;
mod memory;
mod metrics;
mod outbox;
mod placing;
mod pool;
mod read_time;
mod request_threads;
mod served_device;
mod server;
mod server_state;
mod session;
mod shares;
mod socket;
mod spec;
mod stop;
mod stream;
mod throttled_client;
mod timed_stream;
mod tls;
mod ublk;

pub use access::Access;
pub use admission::Admission;
pub use change::Wanted;
pub use clients::{Client, ClientState, Origin, Peer};
pub use control::{Control, ControlReply, ControlRequest, ExportState, Operator, StateReport, send_request};
pub use counts::{Counts, Ended};
pub use event_loop::{Connection, ConnectionId, EventLoop, Inboxes, Next, Ready, SharedConnection, Watch};
pub use export_throttle::{ExportThrottle, Released};
pub use exports::{Exports, LiveExport};
pub use front_end::FrontEnd;
pub use guest::GuestListener;
pub use guest_socket::SocketAccess;
pub use hoistway_ublk::DeviceNumber;
pub use latency::{Latencies, Latency};
pub use listener::Listener;
pub use log::{Level, Log};
pub use memory::Memory;
pub use metrics::{Metrics, text as metrics_text};
pub use server::{Server, ServerError};
pub use server_state::{ServerLimits, ServerState};
pub use socket::Socket;
pub use spec::{
    ExportSpec, Placed, SETTINGS, Settings, SpecError, WEIGHTS, apply, check_names, check_overlaps, ioprio_text,
};
pub use stop::Stop;
pub use throttled_client::ThrottledClient;
pub use tls::{TlsError, TlsFiles, TlsTexts};
pub use ublk::UblkDevice;
