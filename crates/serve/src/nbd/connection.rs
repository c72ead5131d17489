//! A connection of an NBD client: the handshake in the lobby, then requests in and replies out, on the thread of a worker of its disk.
//!
//! Nothing here blocks. [`Connection::run`] when the socket is ready, and the engine's handler when requests have
//! completed, [advance](NbdConnection::advance) the connection as far as possible: replies go out, requests come in, and
//! new requests are submitted together, so that neighbours can merge.
//!
//! **Back-pressure.** A connection stops receiving when it reaches its limit of requests in flight or of bytes held. Then the
//! client's socket fills up and the client has to wait: a client that never reads its replies costs at most these limits.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::{Arc, Mutex, Weak};

use hoistway_blk::ground::{Instant, Nanos};
use hoistway_engine::Completion;
use hoistway_nbd::{Agreed, Handshake, Progress, Requests, Tls};

use crate::event_loop::{Connection, ConnectionId, Next, Ready, SharedConnection, completion_handler};
use crate::export::exports::{Exports, LiveExport};
use crate::memory::Account;
use crate::nbd::input::{Input, ReceiveStatus};
use crate::nbd::outbox::Outbox;
use crate::nbd::session::{ACTIVITY_STEP, STALL_MAX, Session, Taken};
use crate::server::admission::Admission;
use crate::server::server_state::ServerState;
use crate::stream::socket::Socket;

/// How long a handshake may take.
pub const HANDSHAKE_MAX: Nanos = Nanos::from_secs(10);
/// How long a client that disconnects may take to receive its replies.
const DISCONNECT_TIMEOUT: Nanos = Nanos::from_secs(10);

/// How often data is received or handled before other connections run.
const STEPS_A_TURN: u32 = 8;

/// What receiving or sending costs, and a step of a TLS handshake: see [`Connection::take_cost`].
const SYSTEM_CALL_COST: u32 = 2;
const TLS_HANDSHAKE_COST: u32 = 500;

/// A connection.
pub struct NbdConnection {
    server: Arc<ServerState>,
    id: ConnectionId,
    admission: Admission,
    weak_self: Weak<Mutex<NbdConnection>>,
    socket: Socket,
    input: Input,
    outbox: Outbox,
    phase: Phase,
    /// TLS starts once the replies have been sent.
    tls_begins: bool,
    /// Whether there may be something to receive.
    is_readable: bool,
    /// Whether the client has closed its side: the end of the stream will not be reported again.
    has_hung_up: bool,
    has_announced_end: bool,
    /// When the client last read a waiting reply, to within [`ACTIVITY_STEP`]; never if no reply waits.
    unread_since: Instant,
    /// The cost of receiving and sending since its last turn.
    other_cost: u32,
    /// Its account in the shared memory, as long as there are replies to be sent.
    account: Option<Arc<Account>>,
}

enum Phase {
    /// Options, until this deadline.
    Handshake(Box<Handshake>, Arc<Exports>, Instant),
    /// It has chosen an export, and moves to a worker of its disk.
    Entering(Arc<LiveExport>, Agreed, Requests),
    /// Requests.
    Transmission(Box<Session>),
    /// Only replies are left, and the client has until this deadline to receive them.
    Disconnecting(Instant),
}

impl NbdConnection {
    /// A client at this socket; the greeting is sent first.
    pub fn begin(admission: Admission, id: ConnectionId, socket: Socket, tls: Tls) -> SharedConnection {
        let server = Arc::clone(admission.server());
        admission.client().set_connection(id);
        let mut outbox = Outbox::default();
        let mut handshake = None;
        outbox.header(|out| handshake = Some(Handshake::new(tls, out)));
        let deadline = server.now() + HANDSHAKE_MAX;
        let phase = handshake
            .map(|handshake| admission.refusal().map_or(handshake.clone(), |why| handshake.refusing_all_options(why)))
            .map_or(Phase::Disconnecting(deadline), |handshake| {
                Phase::Handshake(Box::new(handshake), server.exports().allowed(admission.client()), deadline)
            });
        Arc::new_cyclic(|weak_self| {
            Mutex::new(NbdConnection {
                server,
                id,
                admission,
                weak_self: weak_self.clone(),
                socket,
                input: Input::default(),
                outbox,
                phase,
                tls_begins: false,
                is_readable: true,
                has_hung_up: false,
                has_announced_end: false,
                unread_since: Instant::NEVER,
                other_cost: 0,
                account: None,
            })
        })
    }

    /// Advances the connection as far as possible within one turn. An error ends the connection.
    fn advance(&mut self, now: Instant) -> Result<(), CloseReason> {
        for _ in 0..STEPS_A_TURN {
            if self.send(now)? {
                // The rest is sent after other connections have had their turn.
                break;
            }
            if self.tls_begins && self.outbox.is_empty() {
                self.begin_tls()?;
                // The handshake takes long: other connections run before.
                break;
            }
            if self.phase.is_disconnecting() {
                return if self.is_closed() { Err(CloseReason::Done) } else { Ok(()) };
            }
            let may_receive = match &mut self.phase {
                Phase::Transmission(session) => {
                    session.client.submit(&self.server, now);
                    if session.is_disconnecting() && session.is_idle() {
                        self.begin_disconnecting(now);
                        continue;
                    }
                    if session.is_turn_over() {
                        break;
                    }
                    !session.is_disconnecting() && !session.is_full(&self.server.limits, self.outbox.bytes())
                }
                // A client that does not read its replies has to wait.
                Phase::Handshake(..) => self.outbox.is_empty(),
                Phase::Entering(..) => return Ok(()),
                Phase::Disconnecting(_) => false,
            };
            if self.server.is_draining() || self.admission.client().is_to_disconnect() || self.phase.is_withdrawn() {
                self.drain(now);
                if !self.phase.is_disconnecting() {
                    return Ok(());
                }
                continue;
            }
            // Data that has been received already may be enough.
            if !may_receive || !(self.handle_input(now)? || self.receive(now)?) {
                return Ok(());
            }
        }
        // A client that sends as fast as it is read must not keep the thread.
        self.server.inboxes.notify(self.id);
        Ok(())
    }

    /// The server drains or the export is withdrawn: in-flight requests complete, no new ones are accepted.
    fn drain(&mut self, now: Instant) {
        if let Phase::Transmission(session) = &mut self.phase {
            session.drain(now, &mut self.outbox);
            if !session.is_idle() {
                return;
            }
        }
        self.begin_disconnecting(now);
    }

    /// No request is in flight any more. The engine's client is dropped with the session: in-flight requests would
    /// end without a reply.
    fn begin_disconnecting(&mut self, now: Instant) {
        let disconnecting = Phase::Disconnecting(now + DISCONNECT_TIMEOUT);
        if let Phase::Transmission(session) = std::mem::replace(&mut self.phase, disconnecting) {
            self.server.info_of_client(format_args!(
                "{}: disconnected after {} requests",
                self.admission.client().name,
                session.completed
            ));
            let is_withdrawn = session.export.is_withdrawn();
            drop(session);
            if is_withdrawn {
                self.server.forget_withdrawn();
            }
        }
    }

    /// Sends replies. Returns whether the socket may take more of them.
    fn send(&mut self, now: Instant) -> Result<bool, CloseReason> {
        let before = self.outbox.bytes();
        let NbdConnection { outbox, socket, phase, .. } = self;
        let sent = outbox.send(socket, |buffer| {
            if let Phase::Transmission(session) = phase {
                session.pool.give_back(buffer);
            }
        });
        self.other_cost += if before > 0 { SYSTEM_CALL_COST } else { 0 };
        let may_take_more = sent.map_err(CloseReason::Broken)?;
        let replies = self.outbox.take_sent_replies();
        if let Phase::Transmission(session) = &mut self.phase {
            session.replies_sent(replies, &mut self.outbox);
        }
        if self.outbox.is_empty() {
            self.unread_since = Instant::NEVER;
        } else if self.unread_since == Instant::NEVER
            || (self.outbox.bytes() < before && self.unread_since + ACTIVITY_STEP <= now)
        {
            self.unread_since = now;
        }
        if self.phase.is_disconnecting() && self.outbox.is_empty() && !self.has_announced_end {
            self.has_announced_end = true;
            self.socket.announce_end_of_stream();
        }
        self.socket.push().map_err(CloseReason::Broken)?;
        Ok(may_take_more)
    }

    fn begin_tls(&mut self) -> Result<(), CloseReason> {
        self.tls_begins = false;
        // Data received before TLS is not authenticated.
        let config = self.server.tls().filter(|_| self.input.buffered().is_empty()).ok_or(CloseReason::BeforeTls)?;
        self.socket.begin_tls(config).map_err(CloseReason::Broken)?;
        // The client may have sent data already.
        self.is_readable = true;
        Ok(())
    }

    /// Receives once. Returns whether anything came.
    fn receive(&mut self, now: Instant) -> Result<bool, CloseReason> {
        if !self.is_readable {
            return Ok(false);
        }
        if matches!(&self.phase, Phase::Transmission(session) if session.is_blocked()) {
            return Ok(false);
        }
        let no_payload: &mut [u8] = &mut [];
        let payload =
            if let Phase::Transmission(session) = &mut self.phase { session.payload_buffer() } else { no_payload };
        self.other_cost += if self.socket.is_handshaking() { TLS_HANDSHAKE_COST } else { SYSTEM_CALL_COST };
        let (filled, status) = self.input.receive(&mut self.socket, payload).map_err(CloseReason::Broken)?;
        if let Phase::Transmission(session) = &mut self.phase {
            session.filled(now, filled);
        }
        self.is_readable = status == ReceiveStatus::More || (self.has_hung_up && status != ReceiveStatus::End);
        if status == ReceiveStatus::End {
            // The client may still read, so its requests are replied to.
            match &mut self.phase {
                Phase::Transmission(session) => session.stop_taking(),
                _ => return Err(CloseReason::Disconnected),
            }
        }
        Ok(filled > 0 || !self.input.buffered().is_empty() || status != ReceiveStatus::All)
    }

    /// Handles received data. Returns whether there was enough for anything.
    fn handle_input(&mut self, now: Instant) -> Result<bool, CloseReason> {
        match &mut self.phase {
            Phase::Handshake(handshake, exports, _) => {
                if let Some(names) = self.socket.peer_names() {
                    self.admission.client().presented(names);
                    *exports = self.server.exports().allowed(self.admission.client());
                }
                let (mut count, mut progress) = (0, Progress::Unfinished);
                let (input, exports) = (&self.input, Arc::clone(exports));
                self.outbox
                    .header(|out| (count, progress) = handshake.receive(input.buffered(), &exports.descriptions, out));
                self.input.consume(count);
                match progress {
                    Progress::Unfinished => return Ok(count > 0),
                    Progress::Transmission(agreed) => {
                        let export = Arc::clone(&exports.live[agreed.export]);
                        let description = &exports.descriptions[agreed.export];
                        let requests = Requests::new(agreed, description);
                        let client = self.admission.client();
                        // Later changes of the export disconnect the client; earlier ones are noticed here.
                        client.opened(&export.name);
                        if !self.server.exports().have(&export, description.size_bytes, client) {
                            return Err(CloseReason::ExportChanged);
                        }
                        self.server.info_of_client(format_args!("{}: opened export {:?}", client.name, export.name));
                        self.phase = Phase::Entering(export, agreed, requests);
                    }
                    Progress::StartTls => {
                        **handshake = handshake.clone().within_tls();
                        self.tls_begins = true;
                    }
                    Progress::Closed(departure) => {
                        self.server.info_of_client(format_args!("{}: {departure}", self.admission.client().name));
                        self.begin_disconnecting(now);
                    }
                }
                Ok(true)
            }
            Phase::Transmission(session) => {
                match session.take_requests(&self.server, now, &mut self.input, &mut self.outbox) {
                    Taken::Nothing => Ok(false),
                    Taken::Something => Ok(true),
                    Taken::Violation(violation) => Err(CloseReason::Violation(violation)),
                }
            }
            Phase::Entering(..) | Phase::Disconnecting(_) => Ok(false),
        }
    }

    /// Begins the session, on a worker of the export's disk.
    fn enter(&mut self, export: Arc<LiveExport>, agreed: Agreed, requests: Requests) -> Result<(), CloseReason> {
        let account = Account::new(Arc::clone(&self.server.memory), self.id);
        self.account = Some(Arc::clone(&account));
        let (connection, server, keeps): (Weak<Mutex<dyn Connection>>, _, _) =
            (self.weak_self.clone(), Arc::clone(&self.server), (Arc::clone(&account), export.file()));
        let inboxes = self.server.inboxes.clone();
        let handler = completion_handler(connection, self.id, inboxes, move || server.now(), keeps);
        let session = Session::begin(&self.admission, self.id, export, agreed, requests, account, handler);
        let session = session.map_err(|errno| CloseReason::Broken(errno.into()))?;
        self.phase = Phase::Transmission(Box::new(session));
        Ok(())
    }

    /// Whether a turn would do anything, now that requests have completed.
    fn has_more_to_do(&self) -> bool {
        let Phase::Transmission(session) = &self.phase else { return true };
        session.is_disconnecting() && session.is_idle() || !self.input.buffered().is_empty() || self.is_readable
    }

    /// Ends the connection without further replies.
    fn end(&mut self, now: Instant, end: CloseReason) {
        let name = &self.admission.client().name;
        match end {
            // It has been logged already, or there is nothing to log.
            CloseReason::Done | CloseReason::Panicked => {}
            // A session logs its end itself.
            CloseReason::Left if matches!(self.phase, Phase::Transmission(_)) => {}
            CloseReason::BeforeTls => {
                self.server.warn_of_client(format_args!("{}: sent data before TLS; closed", name))
            }
            CloseReason::Disconnected | CloseReason::Left => {
                self.server.info_of_client(format_args!("{}: disconnected during handshake", name))
            }
            CloseReason::TimedOut => self.server.warn_of_client(format_args!("{}: timed out after 10 s; closed", name)),
            CloseReason::NotReading => self.server.warn_of_client(format_args!(
                "{}: read no replies for 30 s while others waited for memory (see --memory); closed",
                name
            )),
            CloseReason::Stalled => {
                self.server.warn_of_client(format_args!("{}: sent no data of a write for 30 s; closed", name))
            }
            CloseReason::ExportChanged => {
                self.server.info_of_client(format_args!("{}: its export changed during the handshake; closed", name))
            }
            CloseReason::Violation(violation) => {
                self.server.warn_of_client(format_args!("{}: {violation}; closed", name))
            }
            CloseReason::Broken(error) => self.server.warn_of_client(format_args!("{}: {error}", name)),
        }
        self.begin_disconnecting(now);
        self.outbox = Outbox::default();
        self.is_readable = false;
        self.socket.shut_down();
    }

    fn is_closed(&self) -> bool {
        self.phase.is_disconnecting() && self.outbox.is_empty() && !self.socket.has_unsent()
    }

    /// When it has to be checked whether the client still reads.
    fn unread_deadline(&self) -> Instant {
        if self.unread_since == Instant::NEVER { Instant::NEVER } else { self.unread_since + STALL_MAX }
    }

    /// When it has to run even if nothing happens before.
    fn next_run_at(&self) -> Instant {
        match &self.phase {
            Phase::Handshake(_, _, deadline) | Phase::Disconnecting(deadline) => *deadline,
            Phase::Entering(..) => Instant::ZERO,
            Phase::Transmission(session) => {
                session.client.release_at().min(session.write_stall_deadline()).min(self.unread_deadline())
            }
        }
    }
}

/// Why a connection is over.
enum CloseReason {
    /// All replies have been sent.
    Done,
    /// The client disconnected during the handshake.
    Disconnected,
    /// The client has closed both sides of its socket.
    Left,
    /// It sent data between asking for TLS and the reply.
    BeforeTls,
    /// It took too long to choose an export, or to receive its replies.
    TimedOut,
    /// It did not read its replies, and others wait for the memory.
    NotReading,
    /// It stopped in the middle of a write.
    Stalled,
    /// Its export was removed or resized, or is no longer for it, since it connected.
    ExportChanged,
    /// It violated the protocol.
    Violation(hoistway_nbd::Violation),
    /// The socket failed.
    Broken(io::Error),
    /// A panic.
    Panicked,
}

impl Phase {
    fn is_disconnecting(&self) -> bool {
        matches!(self, Phase::Disconnecting(_))
    }

    /// Whether its export has been withdrawn.
    fn is_withdrawn(&self) -> bool {
        matches!(self, Phase::Transmission(session) if session.export.is_withdrawn())
    }
}

impl Connection for NbdConnection {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn run(&mut self, now: Instant, ready: Ready) -> Next {
        self.is_readable |= ready.to_receive;
        self.has_hung_up |= ready.has_hung_up;
        if matches!(&self.phase, Phase::Entering(export, ..) if export.disk.index_of_worker(self.id.worker).is_some())
            && let Phase::Entering(export, agreed, requests) =
                std::mem::replace(&mut self.phase, Phase::Disconnecting(now))
            && let Err(end) =
                if self.socket.has_left() { Err(CloseReason::Left) } else { self.enter(export, agreed, requests) }
        {
            self.end(now, end);
            return Next::Close;
        }
        if ready.has_left && !self.phase.is_disconnecting() {
            // What it has asked for is not done: nobody would get the replies.
            self.end(now, CloseReason::Left);
            return Next::Close;
        }
        let is_late =
            matches!(self.phase, Phase::Handshake(_, _, deadline) | Phase::Disconnecting(deadline) if deadline <= now);
        if let Phase::Transmission(session) = &mut self.phase {
            // Before the turn, which submits what the limits allow by now.
            session.client.release(&self.server, now);
        }
        let mut advanced = if is_late { Err(CloseReason::TimedOut) } else { self.advance(now) };
        // Checked only now: data that has arrived in time counts, even if this thread was busy.
        if matches!(&self.phase, Phase::Transmission(session) if session.write_stall_deadline() <= now) {
            advanced = advanced.and(Err(CloseReason::Stalled));
        }
        if matches!(self.phase, Phase::Transmission(_)) && self.unread_deadline() <= now {
            if self.server.memory.has_waiters() {
                advanced = advanced.and(Err(CloseReason::NotReading));
            }
            self.unread_since = now;
        }
        self.input.compact();
        if let Phase::Transmission(session) = &mut self.phase {
            session.charge_input(self.input.memory_bytes());
        }
        match advanced {
            Ok(()) => match &self.phase {
                Phase::Entering(export, ..) => Next::Move(export.disk.least_loaded_worker()),
                _ => Next::Wait(self.next_run_at()),
            },
            Err(end) => {
                self.end(now, end);
                Next::Close
            }
        }
    }

    fn take_cost(&mut self) -> u32 {
        let cost = match &mut self.phase {
            Phase::Transmission(session) => session.take_cost(),
            _ => 0,
        };
        cost + std::mem::replace(&mut self.other_cost, 0)
    }

    fn next(&self) -> Next {
        if self.is_closed() { Next::Close } else { Next::Wait(self.next_run_at()) }
    }

    fn completed(&mut self, now: Instant, batch: &mut Vec<Completion>) {
        if let Phase::Transmission(session) = &mut self.phase {
            for completion in batch.drain(..) {
                session.completed(now, completion, &mut self.outbox);
            }
            session.client.submit(&self.server, now);
            self.server.log_failure(&session.export);
        }
        match self.send(now) {
            // What it may do besides waits for its turn.
            Ok(may_send_more) => {
                if may_send_more || self.has_more_to_do() {
                    self.server.inboxes.notify(self.id);
                }
            }
            Err(end) => self.end(now, end),
        }
    }

    fn moved(&mut self, id: ConnectionId) {
        self.id = id;
        self.is_readable = true;
        self.admission.client().set_connection(id);
    }

    fn panicked(&mut self) {
        self.server.error(format_args!(
            "{}: internal error (panic); connection closed, others continue",
            self.admission.client().name
        ));
        self.end(self.server.now(), CloseReason::Panicked);
    }
}
