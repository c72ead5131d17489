//! An NBD client that never waits: each call advances it a little.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use hoistway_engine::faults::Random;
use hoistway_nbd::Replies;
use hoistway_nbd::wire::{self, chunk, command, command_flag, option, option_reply};
use rustls::ClientConfig;

use super::streams::ClientEnd;
use super::wire::Wire;

pub const BLOCK: u64 = 512;

/// A request; in blocks from the start of the export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientRequest {
    Read {
        place: (u64, u64),
        unfragmented: bool,
    },
    Write {
        place: (u64, u64),
        fill: u8,
        fua: bool,
    },
    Flush,
    Trim {
        place: (u64, u64),
        fua: bool,
    },
    Zeroes {
        place: (u64, u64),
        fua: bool,
        fast: bool,
    },
    Cache {
        place: (u64, u64),
    },
    /// Which blocks are holes; `one`: as a single extent. Only with structured replies.
    Status {
        place: (u64, u64),
        one: bool,
    },
}

impl ClientRequest {
    /// The blocks that it concerns.
    pub fn place(self) -> (u64, u64) {
        match self {
            ClientRequest::Read { place, .. }
            | ClientRequest::Write { place, .. }
            | ClientRequest::Trim { place, .. } => place,
            ClientRequest::Zeroes { place, .. }
            | ClientRequest::Cache { place }
            | ClientRequest::Status { place, .. } => place,
            ClientRequest::Flush => (0, 0),
        }
    }

    /// The content of the blocks after success, and whether it is durable.
    pub fn change(self) -> Option<(u8, bool)> {
        match self {
            ClientRequest::Write { fill, fua, .. } => Some((fill, fua)),
            ClientRequest::Trim { fua, .. } | ClientRequest::Zeroes { fua, .. } => Some((0, fua)),
            ClientRequest::Read { .. }
            | ClientRequest::Flush
            | ClientRequest::Cache { .. }
            | ClientRequest::Status { .. } => None,
        }
    }

    fn header(self) -> (u16, u16) {
        let fua = |fua| if fua { command_flag::FUA } else { 0 };
        match self {
            ClientRequest::Read { unfragmented, .. } => {
                (command::READ, if unfragmented { command_flag::DF } else { 0 })
            }
            ClientRequest::Write { fua: durable, .. } => (command::WRITE, fua(durable)),
            ClientRequest::Flush => (command::FLUSH, 0),
            ClientRequest::Trim { fua: durable, .. } => (command::TRIM, fua(durable)),
            ClientRequest::Zeroes { fua: durable, fast, .. } => {
                (command::WRITE_ZEROES, fua(durable) | if fast { command_flag::FAST_ZERO } else { 0 })
            }
            ClientRequest::Cache { .. } => (command::CACHE, 0),
            ClientRequest::Status { one, .. } => (command::BLOCK_STATUS, if one { command_flag::REQ_ONE } else { 0 }),
        }
    }
}

/// An in-flight request.
#[derive(Debug)]
pub struct InFlightRequest {
    pub request: ClientRequest,
    pub at: u64,
    /// Its end in the stream of all bytes sent.
    end: u64,
    data: Vec<u8>,
    filled: u64,
    error: u32,
    /// For a block status: blocks, and whether they read as zeroes.
    status: Vec<(Range<u64>, bool)>,
}

/// How a request ended.
#[derive(Debug)]
pub struct ClientReply {
    pub request: ClientRequest,
    pub submitted_at: u64,
    pub result: Result<Vec<u8>, u32>,
    /// For a block status: blocks, and whether they read as zeroes.
    pub status: Vec<(Range<u64>, bool)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Greeting,
    StartTls,
    Options,
    /// The server has refused all options.
    ServerFull,
    Transmission,
}

/// A connection.
#[derive(Debug)]
pub struct Client {
    pub far: Wire,
    export: String,
    /// The TLS configuration to connect with, if it uses TLS.
    tls: Option<Arc<ClientConfig>>,
    replies: Replies,
    phase: Phase,
    to_send: Vec<u8>,
    sent: u64,
    received: Vec<u8>,
    pub in_flight: BTreeMap<u64, InFlightRequest>,
    last_cookie: u64,
    /// Whether it has sent its disconnect request.
    pub is_disconnecting: bool,
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

impl InFlightRequest {
    /// Takes the extents of a block status: lengths and flags of this size each. They must be whole blocks without gaps, must cover the
    /// whole request unless a single extent was requested, and a hole must read as zeroes.
    fn take_status(&mut self, pieces: &[u8], size: usize) {
        let ClientRequest::Status { place: (first, count), one } = self.request else {
            panic!("not asked for: {:?}", self.request)
        };
        assert!(self.status.is_empty() && !pieces.is_empty() && pieces.len().is_multiple_of(2 * size));
        let mut at = first;
        for piece in pieces.chunks(2 * size) {
            let (bytes, flags) = (number(&piece[..size]), number(&piece[size..]));
            assert!(bytes > 0 && bytes.is_multiple_of(BLOCK) && [0, 3].contains(&flags), "{bytes} bytes are {flags}");
            self.status.push((at..at + bytes / BLOCK, flags == 3));
            at += bytes / BLOCK;
        }
        assert!(if one { self.status.len() == 1 && at <= first + count } else { at == first + count });
    }
}

impl Client {
    pub fn new(far: ClientEnd, export: &str, replies: Replies, tls: Option<Arc<ClientConfig>>) -> Self {
        Client {
            far: Wire::new(far),
            export: export.into(),
            tls,
            replies,
            phase: Phase::Greeting,
            to_send: Vec::new(),
            sent: 0,
            received: Vec::new(),
            in_flight: BTreeMap::new(),
            last_cookie: 0,
            is_disconnecting: false,
        }
    }

    /// Whether requests can be made.
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Transmission && !self.is_disconnecting
    }

    pub fn is_in_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether everything has been sent.
    pub fn has_sent_all(&self) -> bool {
        self.to_send.is_empty() && self.far.has_sent_all()
    }

    /// Sends these bytes unchecked.
    pub fn queue_bytes(&mut self, bytes: &[u8]) {
        self.to_send.extend(bytes);
    }

    pub fn leave(&mut self) {
        self.is_disconnecting = true;
        self.header(command::DISCONNECT, 0, 0, (0, 0));
    }

    fn header(&mut self, kind: u16, mut flags: u16, cookie: u64, (offset, length): (u64, u64)) {
        let is_extended = self.replies == Replies::ExtendedChunks;
        if is_extended && kind == command::WRITE {
            flags |= command_flag::PAYLOAD_LEN;
        }
        let magic = if is_extended { wire::EXTENDED_REQUEST_MAGIC } else { wire::REQUEST_MAGIC };
        self.queue_bytes(&magic.to_be_bytes());
        self.queue_bytes(&flags.to_be_bytes());
        self.queue_bytes(&kind.to_be_bytes());
        self.queue_bytes(&cookie.to_be_bytes());
        self.queue_bytes(&offset.to_be_bytes());
        if is_extended {
            self.queue_bytes(&length.to_be_bytes());
        } else {
            self.queue_bytes(&(length as u32).to_be_bytes());
        }
    }

    pub fn send_request(&mut self, request: ClientRequest, at: u64) {
        // A client without structured replies cannot request a block status.
        let request = match request {
            ClientRequest::Status { place, .. } if !self.replies.are_chunks() => ClientRequest::Cache { place },
            request => request,
        };
        let ((first, count), (kind, mut flags)) = (request.place(), request.header());
        if !self.replies.are_chunks() {
            flags &= !command_flag::DF;
        }
        self.last_cookie += 1;
        self.header(kind, flags, self.last_cookie, (first * BLOCK, count * BLOCK));
        if let ClientRequest::Write { fill, .. } = request {
            self.to_send.resize(self.to_send.len() + (count * BLOCK) as usize, fill);
        }
        let bytes = if kind == command::READ { count * BLOCK } else { 0 };
        let end = self.sent + self.to_send.len() as u64;
        let request = InFlightRequest {
            request,
            at,
            end,
            data: vec![0; bytes as usize],
            filled: 0,
            error: 0,
            status: Vec::new(),
        };
        self.in_flight.insert(self.last_cookie, request);
    }

    /// Requests that the server may have received, whose outcome this client will not see.
    pub fn abandoned(&self) -> impl Iterator<Item = ClientRequest> {
        self.in_flight.values().filter(|request| request.end <= self.sent).map(|request| request.request)
    }

    /// Sends some bytes.
    pub fn send(&mut self, random: &mut Random) {
        let some = if random.one_in(4) { 1 + random.below(40) as usize } else { usize::MAX };
        let sent = self.far.send(&self.to_send[..self.to_send.len().min(some)]);
        self.to_send.drain(..sent);
        self.sent += sent as u64;
    }

    /// Receives some bytes, and parses the replies.
    pub fn receive(&mut self, random: &mut Random, replies: &mut Vec<ClientReply>) {
        let some = if random.one_in(4) { 1 + random.below(40) as usize } else { usize::MAX };
        self.far.receive(some, &mut self.received);
        let mut used = 0;
        while let Some(count) = self.parse_next(used, replies) {
            used += count;
        }
        self.received.drain(..used);
    }

    /// Parses the next item if it is complete, and returns its length in bytes.
    fn parse_next(&mut self, from: usize, replies: &mut Vec<ClientReply>) -> Option<usize> {
        match self.phase {
            Phase::Greeting => {
                let greeting = self.received.get(from..from + 18)?;
                assert_eq!(number(&greeting[..8]), wire::GREETING_MAGIC);
                assert_eq!(number(&greeting[8..16]), wire::OPTION_MAGIC);
                self.queue_bytes(&3_u32.to_be_bytes());
                if self.tls.is_some() {
                    self.option(option::STARTTLS, &[]);
                    self.phase = Phase::StartTls;
                } else {
                    self.ask_for_export();
                }
                Some(18)
            }
            Phase::StartTls => {
                let header = self.received.get(from..from + 20)?;
                assert_eq!(number(&header[..8]), wire::OPTION_REPLY_MAGIC);
                let [which, kind, len] = [8, 12, 16].map(|at| number(&header[at..at + 4]) as u32);
                if kind == option_reply::ERR_POLICY {
                    let taken = self.check_refusal(from, len)?;
                    self.option(option::ABORT, &[]);
                    return Some(taken);
                }
                assert_eq!((which, kind, len), (option::STARTTLS, option_reply::ACK, 0));
                // A server that ends may have sent its end of stream already.
                let rest = self.received.split_off(from + 20);
                if let Some(config) = &self.tls {
                    self.far.begin_tls(config, &rest);
                }
                self.ask_for_export();
                Some(20)
            }
            Phase::Options => {
                let header = self.received.get(from..from + 20)?;
                assert_eq!(number(&header[..8]), wire::OPTION_REPLY_MAGIC);
                let [which, kind, len] = [8, 12, 16].map(|at| number(&header[at..at + 4]) as u32);
                self.received.get(from + 20..from + 20 + len as usize)?;
                if kind == option_reply::ERR_POLICY {
                    return self.check_refusal(from, len);
                }
                let is_right = match which {
                    option::GO => kind == option_reply::ACK || kind == option_reply::INFO,
                    option::SET_META_CONTEXT => kind == option_reply::ACK || kind == option_reply::META_CONTEXT,
                    _ => kind == option_reply::ACK,
                };
                assert!(is_right, "{which} has a reply of kind {kind:#x}");
                if which == option::GO && kind == option_reply::ACK {
                    self.phase = Phase::Transmission;
                }
                Some(20 + len as usize)
            }
            Phase::ServerFull => {
                let header = self.received.get(from..from + 20)?;
                let [which, kind, len] = [8, 12, 16].map(|at| number(&header[at..at + 4]) as u32);
                assert!(
                    kind == option_reply::ERR_POLICY || which == option::ABORT,
                    "{which} has a reply of kind {kind:#x}"
                );
                self.received.get(from + 20..from + 20 + len as usize).map(|_| 20 + len as usize)
            }
            Phase::Transmission => self.take_reply(from, replies),
        }
    }

    /// There are too many clients, which the refusal must say.
    fn check_refusal(&mut self, from: usize, len: u32) -> Option<usize> {
        let why = self.received.get(from + 20..from + 20 + len as usize)?;
        assert_eq!(why, b"too many clients are connected");
        self.phase = Phase::ServerFull;
        Some(20 + len as usize)
    }

    fn ask_for_export(&mut self) {
        match self.replies {
            Replies::Simple => {}
            Replies::Chunks => self.option(option::STRUCTURED_REPLY, &[]),
            Replies::ExtendedChunks => self.option(option::EXTENDED_HEADERS, &[]),
        }
        let name = self.export.clone();
        let name = [&(name.len() as u32).to_be_bytes()[..], name.as_bytes()].concat();
        if self.replies.are_chunks() {
            let query = wire::BASE_ALLOCATION;
            let count_and_len = [1_u32, query.len() as u32].map(u32::to_be_bytes).concat();
            self.option(option::SET_META_CONTEXT, &[&name, &count_and_len[..], query.as_bytes()].concat());
        }
        let go = [&name[..], &[0, 0]].concat();
        self.option(option::GO, &go);
        self.phase = Phase::Options;
    }

    fn option(&mut self, which: u32, data: &[u8]) {
        self.queue_bytes(&wire::OPTION_MAGIC.to_be_bytes());
        self.queue_bytes(&which.to_be_bytes());
        self.queue_bytes(&(data.len() as u32).to_be_bytes());
        self.queue_bytes(data);
    }

    fn take_reply(&mut self, from: usize, replies: &mut Vec<ClientReply>) -> Option<usize> {
        let bytes = &self.received[from..];
        let magic = number(bytes.get(..4)?) as u32;
        if magic == wire::SIMPLE_REPLY_MAGIC {
            let header = bytes.get(..16)?;
            let (error, cookie) = (number(&header[4..8]) as u32, number(&header[8..16]));
            let request = self.in_flight.get_mut(&cookie).expect("a request has one reply");
            let len = if error == 0 { request.data.len() } else { 0 };
            assert!(len == 0 || !self.replies.are_chunks(), "data comes in chunks");
            let data = bytes.get(16..16 + len)?;
            if len > 0 {
                request.data.copy_from_slice(data);
            }
            (request.error, request.filled) = (error, len as u64);
            self.end(cookie, replies);
            return Some(16 + len);
        }
        let is_extended = self.replies == Replies::ExtendedChunks;
        assert_eq!(magic, if is_extended { wire::EXTENDED_CHUNK_MAGIC } else { wire::CHUNK_MAGIC });
        let size = if is_extended { 32 } else { 20 };
        let header = bytes.get(..size)?;
        let (flags, kind) = (number(&header[4..6]) as u16, number(&header[6..8]) as u16);
        let cookie = number(&header[8..16]);
        let len = number(if is_extended { &header[24..32] } else { &header[16..20] }) as usize;
        let payload = bytes.get(size..size + len)?;
        let request = self.in_flight.get_mut(&cookie).expect("a request has one reply");
        let within = |payload: &[u8], first: u64| (number(&payload[..8]) - first * BLOCK) as usize;
        match kind {
            chunk::NONE => assert!(request.data.is_empty()),
            chunk::OFFSET_DATA => {
                let at = within(payload, request.request.place().0);
                request.data[at..at + len - 8].copy_from_slice(&payload[8..]);
                request.filled += len as u64 - 8;
            }
            chunk::OFFSET_HOLE => {
                let (at, len) = (within(payload, request.request.place().0), number(&payload[8..12]) as usize);
                request.data[at..at + len].fill(0);
                request.filled += len as u64;
            }
            chunk::BLOCK_STATUS if !is_extended => request.take_status(payload.get(4..).unwrap_or_default(), 4),
            chunk::BLOCK_STATUS_EXT if is_extended => request.take_status(payload.get(8..).unwrap_or_default(), 8),
            chunk::ERROR => request.error = number(&payload[..4]) as u32,
            kind => panic!("a chunk of type {kind}"),
        }
        if flags & wire::CHUNK_DONE != 0 {
            self.end(cookie, replies);
        }
        Some(size + len)
    }

    fn end(&mut self, cookie: u64, replies: &mut Vec<ClientReply>) {
        let InFlightRequest { request, at, data, filled, error, status, .. } = self.in_flight.remove(&cookie).unwrap();
        assert!(error != 0 || filled == data.len() as u64, "{filled} of {} bytes have come", data.len());
        let result = if error == 0 { Ok(data) } else { Err(error) };
        replies.push(ClientReply { request, submitted_at: at, result, status });
    }
}
