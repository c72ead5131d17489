//! The control socket: one request and one reply, each a line of JSON. A process that can connect has full control, so by default
//! only the owner may connect.

use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::export::clients::ClientState;
use crate::export::disk::{Disk, active};
use crate::export::exports::LiveExport;
use crate::export::latency::Latencies;
use crate::export::spec::{ExportSpec, Placed, SETTINGS, apply, ioprio_text};
use crate::ground::stop::Stop;
use crate::nbd::listener::{OwnSocket, bind, connect, listens};
use crate::operation::request_threads;
use crate::server::ServerError;
use crate::server::guest_socket::SocketAccess;
use crate::server::server_state::ServerState;
use crate::stream::timed_stream::TimedStream;

/// Default mode of the socket.
const SOCKET_MODE: u32 = 0o600;
/// Longest request, in bytes.
const REQUEST_BYTES_MAX: u64 = 64 << 10;
/// Maximum reply in bytes: enough for a hundred thousand exports.
const ANSWER_BYTES_MAX: u64 = 256 << 20;
/// Timeout for receiving a request, and for sending the reply.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Pause before retrying to connect when the backlog is full.
const RETRY: Duration = Duration::from_millis(20);
/// The error if a server closes the connection without a reply.
const NO_REPLY: &str = "the server closed the connection without a reply";

/// A request to a running server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "do")]
pub enum ControlRequest {
    /// Returns the state of the server.
    Show,
    /// Writes a file below `queue/` (usually `scheduler` or `nr_requests`), or a tunable as `SCHEDULER.NAME`.
    Set {
        /// The file or tunable.
        key: String,
        /// The new value.
        value: String,
        /// The name of the disk; without it, all disks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        disk: Option<String>,
    },
    /// Reloads the configuration file.
    Reload,
    /// Adds an export.
    Add {
        /// In the syntax of `--export`.
        export: String,
    },
    /// Removes an export.
    Remove {
        /// The name that clients ask for.
        export: String,
    },
    /// Changes the size of an export.
    Resize {
        /// The name that clients ask for.
        export: String,
        /// Its new size, as `20G`.
        size: String,
    },
    /// Disconnects a client; its requests in flight complete.
    Disconnect {
        /// The number that the state of the server shows.
        client: u64,
    },
    /// Changes an export.
    Export {
        /// The name that clients ask for.
        name: String,
        /// Settings, as `weight=200`.
        settings: Vec<String>,
    },
}

/// The reply.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlReply {
    /// The state of the server.
    State(StateReport),
    /// The request was carried out.
    Done,
    /// The request was refused, and why.
    Refused(String),
}

/// The state of a server, for its operator.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StateReport {
    /// The disks, each with a queue of its own.
    pub disks: Vec<DiskState>,
    /// Time of the state, in ns since the server started.
    pub at_ns: u64,
    /// The exports, in their order.
    pub exports: Vec<ExportState>,
    /// The clients, by number.
    pub clients: Vec<ClientState>,
}

/// The state of a disk.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DiskState {
    /// Its name: that of the device, or the kind of the target.
    pub name: String,
    /// The available schedulers, with the active one in brackets.
    pub schedulers: String,
    /// Requests of a hardware queue.
    pub nr_requests: String,
    /// Whether the server itself divides a fast disk among the exports by weight, which the scheduler none does not.
    pub shares: bool,
    /// The tunables of the scheduler: name and value.
    pub tunables: Vec<(String, String)>,
    /// Commands at the disk. Requests in flight that are neither there nor throttled wait in the scheduler.
    pub at_target: usize,
}

/// The state of an export.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExportState {
    /// The name that clients ask for.
    pub name: String,
    /// The name of its disk.
    pub disk: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether it is read-only.
    pub read_only: bool,
    /// Its weight, 1 to 1000.
    pub weight: u16,
    /// Its priority.
    pub ioprio: String,
    /// Its limits, as `io.max` shows them.
    pub limits: String,
    /// Which clients may use it.
    pub clients: String,
    /// Connected clients.
    pub connections: u64,
    /// Reads that completed without an error.
    pub reads: u64,
    /// Bytes of those.
    pub read_bytes: u64,
    /// Writes that completed without an error.
    pub writes: u64,
    /// Bytes of those.
    pub written_bytes: u64,
    /// Other requests that completed without an error.
    pub others: u64,
    /// Requests that completed with an error.
    pub errors: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// Requests in flight that are throttled by the limits.
    pub held_back: u64,
    /// Latencies of reads.
    pub read_latency: Latencies,
    /// Latencies of writes.
    pub write_latency: Latencies,
    /// Latencies of other requests.
    pub other_latency: Latencies,
}

impl DiskState {
    /// The scheduler that is active: the one in brackets.
    #[must_use]
    pub fn scheduler(&self) -> &str {
        active(&self.schedulers)
    }
}

impl StateReport {
    /// The active scheduler, or `NAME on DISK` for each disk if they differ.
    #[must_use]
    pub fn scheduler(&self) -> String {
        let names: Vec<&str> = self.disks.iter().map(DiskState::scheduler).collect();
        match names.first() {
            Some(first) if names.iter().all(|name| name == first) => (*first).to_owned(),
            _ => {
                let each = self.disks.iter().map(|disk| format!("{} on {}", disk.scheduler(), disk.name));
                each.collect::<Vec<_>>().join(", ")
            }
        }
    }
}

impl ServerState {
    /// The state of the server.
    #[must_use]
    pub fn report(&self) -> StateReport {
        let disk_state = |disk: &Arc<Disk>| DiskState {
            name: disk.name.clone(),
            schedulers: disk.file("scheduler"),
            nr_requests: disk.file("nr_requests"),
            shares: disk.shares.is_on(),
            tunables: disk.tunables(),
            at_target: disk.at_target(),
        };
        StateReport {
            disks: self.disks().iter().map(disk_state).collect(),
            at_ns: self.now().0,
            exports: self.exports_state(),
            clients: self.clients_state(),
        }
    }

    pub(crate) fn exports_state(&self) -> Vec<ExportState> {
        let export_state = |export: &Arc<LiveExport>| {
            let (settings, counts) = (export.settings(), &export.counts);
            ExportState {
                name: export.name.clone(),
                disk: export.disk.name.clone(),
                bytes: export.size_bytes(),
                read_only: export.description().read_only,
                weight: settings.weight,
                ioprio: ioprio_text(settings.ioprio),
                limits: export.throttle.limits().to_string(),
                clients: export.access().to_string(),
                connections: counts.connections.load(Relaxed),
                reads: counts.reads.load(Relaxed),
                read_bytes: counts.read_bytes.load(Relaxed),
                writes: counts.writes.load(Relaxed),
                written_bytes: counts.written_bytes.load(Relaxed),
                others: counts.others.load(Relaxed),
                errors: counts.errors.load(Relaxed),
                in_flight: counts.in_flight.load(Relaxed),
                held_back: counts.held_back.load(Relaxed),
                read_latency: counts.read_latency.read(),
                write_latency: counts.write_latency.read(),
                other_latency: counts.other_latency.read(),
            }
        };
        self.exports().live.iter().map(export_state).collect()
    }

    /// Writes a file below `queue/` (usually `scheduler` or `nr_requests`), or a tunable as `SCHEDULER.NAME`, of the disk with this name, or
    /// of all disks. A tunable is set where its scheduler is.
    ///
    /// # Errors
    /// If it or the disk does not exist, or a value is rejected; as text. With several disks some may have been set.
    pub fn set(&self, key: &str, value: &str, disk: Option<&str>) -> Result<(), String> {
        let disks = self.disks();
        let mut chosen: Vec<_> = disks.iter().filter(|other| disk.is_none_or(|name| other.name == name)).collect();
        if chosen.is_empty() {
            let names: Vec<_> = disks.iter().map(|disk| disk.name.as_str()).collect();
            return Err(format!("unknown disk {:?} (expected one of {})", disk.unwrap_or_default(), names.join(", ")));
        }
        if let Some((owner, _)) = key.split_once('.')
            && chosen.len() > 1
        {
            chosen.retain(|disk| disk.scheduler() == owner);
            if chosen.is_empty() {
                return Err(format!("{key}: no disk has the scheduler {owner:?}"));
            }
        }
        chosen.into_iter().try_for_each(|disk| disk.set(key, value))
    }

    /// Changes settings of an export: all of them, or none if one is wrong.
    ///
    /// # Errors
    /// If the export or a setting does not exist, or a value is invalid; as text.
    pub fn change_export(&self, name: &str, settings: &[String]) -> Result<(), String> {
        let export = self.find(name).map_err(|error| error.to_string())?;
        let (mut changed, mut limits) = (export.settings(), export.throttle.limits());
        for setting in settings {
            let known = setting.split_once('=').map(|(key, value)| apply(key, value, &mut changed, &mut limits));
            match known {
                Some(Ok(true)) => {}
                Some(Err(error)) => return Err(error.to_string()),
                _ => return Err(format!("unknown setting {setting:?} (expected some of {SETTINGS})")),
            }
        }
        export.disk.engine.set_weight(export.group, changed.weight).map_err(|error| error.to_string())?;
        export.set(changed);
        export.throttle.set_limits(self.now(), limits);
        // Throttled requests may be allowed earlier, and priorities change.
        self.inboxes.notify_all();
        Ok(())
    }

    fn handle(self: &Arc<Self>, request: ControlRequest, operator: &dyn Operator) -> ControlReply {
        let error_as_text = |changed: Result<(), ServerError>| changed.map_err(|error| error.to_string());
        // A reload locks the changes itself. What a change may wait for must not hide the state.
        let is_change = !matches!(request, ControlRequest::Reload | ControlRequest::Show);
        let _changes = is_change.then(|| self.lock_changes());
        let (change, changed) = match request {
            ControlRequest::Show => return ControlReply::State(self.report()),
            ControlRequest::Reload => {
                return operator.reload().map_or_else(ControlReply::Refused, |()| ControlReply::Done);
            }
            ControlRequest::Add { export } => {
                let spec = ExportSpec::parse(&export).map_err(|error| error.to_string());
                let placed = spec.and_then(|spec| operator.place(spec));
                (format!("add {export}"), placed.and_then(|placed| error_as_text(self.add_export(placed))))
            }
            ControlRequest::Remove { export } => {
                (format!("remove {export:?}"), error_as_text(self.remove_export(&export)))
            }
            ControlRequest::Resize { export, size } => {
                let mut spec = ExportSpec::default();
                let read = spec.take("size", Some(&size)).map_err(|error| error.to_string());
                let bytes = spec.size.unwrap_or_default();
                let changed = read.and_then(|()| error_as_text(self.resize_export(&export, bytes)));
                (format!("resize {export:?} {size}"), changed)
            }
            ControlRequest::Disconnect { client } => {
                let disconnected = self.disconnect(|candidate| candidate.number == client);
                let why = format!("there is no client {client} (hoistway ctl show lists them)");
                (format!("disconnect {client}"), if disconnected > 0 { Ok(()) } else { Err(why) })
            }
            ControlRequest::Set { key, value, disk } => {
                let on = disk.as_ref().map_or_else(String::new, |disk| format!(" on {disk}"));
                (format!("{key}={value}{on}"), self.set(&key, &value, disk.as_deref()))
            }
            ControlRequest::Export { name, settings } => {
                (format!("export {name:?} {}", settings.join(" ")), self.change_export(&name, &settings))
            }
        };
        match changed {
            Ok(()) => {
                self.info(format_args!("control: {change}"));
                ControlReply::Done
            }
            Err(why) => ControlReply::Refused(why),
        }
    }
}

/// Operations that a control socket needs from the program around the server. Errors are one line.
pub trait Operator: Sync {
    /// Reloads the configuration. Locks the [changes](ServerState::lock_changes) itself, since a reload may also begin elsewhere.
    ///
    /// # Errors
    /// The reason why nothing was applied.
    fn reload(&self) -> Result<(), String>;

    /// Places an export that is being added: on the target, or on a file, which is opened if it is not open.
    ///
    /// # Errors
    /// If there is no such place.
    fn place(&self, export: ExportSpec) -> Result<Placed, String>;
}

/// A control socket.
#[derive(Debug)]
pub struct Control {
    listener: UnixListener,
    /// Its file, if this process has to remove it.
    _socket: Option<OwnSocket>,
}

impl Control {
    /// Listens at this path. Only the owner may connect unless `access` says otherwise.
    ///
    /// # Errors
    /// If the path is in use, or the system refuses.
    pub fn listen(path: &Path, access: SocketAccess) -> Result<Control, ServerError> {
        let access = SocketAccess { mode: access.mode.or(Some(SOCKET_MODE)), ..access };
        let (listener, socket) = bind(path, access)?;
        Ok(Control { listener, _socket: Some(socket) })
    }

    /// Uses a listening socket that another process has created and will remove.
    ///
    /// # Errors
    /// If it does not listen, or the system refuses.
    pub fn of(listener: UnixListener) -> io::Result<Control> {
        listens(listener.as_fd())?;
        listener.set_nonblocking(true)?;
        Ok(Control { listener, _socket: None })
    }

    /// Serves requests until `stop` is set.
    pub fn serve(&self, server: &Arc<ServerState>, stop: &Stop, operator: &dyn Operator) {
        let accept = |listener: &UnixListener| listener.accept().map(|(stream, _)| stream);
        request_threads::serve(&self.listener, server, stop, accept, |stream| {
            // A peer that is too slow or gone gets no reply.
            let _ = serve_control_connection(server, stream, stop, operator);
        });
    }
}

/// Reads one request and sends its reply.
fn serve_control_connection(
    server: &Arc<ServerState>,
    stream: &UnixStream,
    stop: &Stop,
    operator: &dyn Operator,
) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let mut line = Vec::new();
    let request_stream = TimedStream::new(stream, TIMEOUT, Some(stop));
    BufReader::new(request_stream.take(REQUEST_BYTES_MAX)).read_until(b'\n', &mut line)?;
    let answer = match serde_json::from_slice(&line) {
        Ok(request) => server.handle(request, operator),
        Err(error) => ControlReply::Refused(format!("invalid request: {error}")),
    };
    let mut text = serde_json::to_string(&answer)?;
    text.push('\n');
    TimedStream::new(stream, TIMEOUT, Some(stop)).write_all(text.as_bytes())
}

/// Sends a request to a server and waits for the complete reply. The timeout is that of all together, connecting included.
///
/// # Errors
/// If there is no server, or it does not reply in time.
pub fn send_request(path: &Path, request: &ControlRequest, timeout: Duration) -> io::Result<ControlReply> {
    let deadline = Instant::now() + timeout;
    let stream = loop {
        match connect(path) {
            // The backlog is full.
            Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < deadline => {
                std::thread::sleep(RETRY)
            }
            Err(error) => return Err(io::Error::other(format!("cannot connect to the server: {error}"))),
            Ok(stream) => break stream,
        }
    };
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    let mut text = String::new();
    let mut stream = TimedStream::until(&stream, deadline, None);
    let received = stream.write_all(line.as_bytes());
    let received = received.and_then(|()| stream.take(ANSWER_BYTES_MAX).read_to_string(&mut text));
    received.map_err(|error| match error.kind() {
        ErrorKind::TimedOut => io::Error::other(format!("no reply within {} s", timeout.as_secs())),
        // Do not return it unchanged: callers take a broken pipe for a closed standard output, which is not an error.
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => io::Error::other(NO_REPLY),
        _ => error,
    })?;
    if text.is_empty() {
        return Err(io::Error::other(NO_REPLY));
    }
    serde_json::from_str(&text).map_err(|error| io::Error::other(format!("invalid reply from the server: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connecting_and_waiting_for_the_reply_share_one_timeout() {
        let folder = std::env::temp_dir().join(format!("hoistway-ask-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let mut backlog = Vec::new();
        while let Ok(stream) = connect(&path) {
            backlog.push(stream);
        }
        let (timeout, room_after) = (Duration::from_secs(2), Duration::from_millis(1500));
        let began = Instant::now();
        std::thread::scope(|scope| {
            let accepting = scope.spawn(|| {
                std::thread::sleep(room_after);
                listener.accept().unwrap()
            });
            send_request(&path, &ControlRequest::Show, timeout).unwrap_err();
            accepting.join().unwrap();
        });
        assert!(began.elapsed() < room_after + timeout, "{:?}", began.elapsed());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
