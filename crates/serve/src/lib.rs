//! A block server: many clients on one disk, under one scheduler.
//!
//! ```text
//! socket -> connection -> session -> quota -> engine's client -> scheduler -> target
//!                 answers <- outbox <- session <-
//! ```
//!
//! All of that happens on the thread of one worker, which waits for sockets where it waits for its commands ([`Lobby`]), so
//! that a request over memory costs a receive, a copy and a send. Each export is a group of the scheduler (its weight, and the
//! priority of its clients) and has limits of its own.

mod connection;
mod control;
mod front_end;
mod gate;
mod guest;
mod input;
mod lobby;
mod outbox;
mod pool;
mod quota;
mod served;
mod server;
mod session;
mod socket;
mod spec;
mod stop;

pub use control::{Answer, Ask, Control, ExportState, State, ask};
pub use front_end::FrontEnd;
pub use gate::Gate;
pub use guest::GuestListener;
pub use lobby::{Doors, Lobby, Ready, SharedVisitor, Stay, Visitor, VisitorId, Watch};
pub use quota::{Quota, Ticket, Turns};
pub use served::{Bounds, Counts, Log, Served, Settings, Site, TunableNames};
pub use server::{Listener, Placed, Server, ServerError};
pub use socket::Socket;
pub use spec::{ExportSpec, SETTINGS, SpecError, WEIGHTS, apply, check_names, ioprio_text, parse_size};
pub use stop::Stop;
