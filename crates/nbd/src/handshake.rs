//! The handshake, fixed newstyle: the client sends options, the server replies to each, until one of them chooses an export.
//!
//! Used by: crate `serve`.
//! Tests: `crates/nbd/tests/handshake.rs`, `crates/nbd/tests/any_bytes.rs`.

use crate::agreed::{Agreed, Replies};
use crate::export::{Export, find_export};
use crate::fields::{Fields, Put as _};
use crate::options::{Queries, RequestedExport, export_name_of_data};
use crate::wire::{
    BASE_ALLOCATION, BASE_ALLOCATION_ID, GREETING_MAGIC, OPTION_MAGIC, OPTION_REPLY_MAGIC, handshake_flag, info,
    option, option_reply,
};

/// Maximum data of an option that is parsed, in bytes. The longest sensible option has a name and a few queries.
pub const OPTION_BYTES_MAX: u32 = 64 << 10;
/// Maximum data of an option that is read and discarded, in bytes; a client that announces more is disconnected.
pub const DROPPED_BYTES_MAX: u32 = 1 << 20;
/// Maximum bytes of replies at a time: further options wait until the client has received them. A single reply may be longer.
pub const ANSWERS_BYTES_MAX: usize = 16 << 10;
/// Magic, option, length.
const OPTION_HEADER_BYTES: usize = 16;
/// Zeroes after the reply to EXPORT_NAME, unless both sides agreed to omit them.
const ZEROES: [u8; 124] = [0; 124];

/// The server's handling of STARTTLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tls {
    /// TLS is not available.
    Off,
    /// TLS is optional.
    Offered,
    /// All other options are refused before TLS.
    Required,
    /// TLS is active.
    Started,
}

/// The state of a handshake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Progress {
    /// More bytes are needed. If some were consumed, the replies have to be sent before the rest is passed in again.
    Unfinished,
    /// Both sides agree. Requests follow.
    Transmission(Agreed),
    /// The replies are sent, then TLS begins, and a new [`Handshake`] continues inside it
    /// ([`Handshake::within_tls`]).
    StartTls,
    /// The replies are sent, then the connection is closed.
    Closed(Departure),
}

/// Why a handshake ended without an export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Departure {
    /// The client aborted it.
    Aborted,
    /// The client has set unknown flags.
    UnknownClientFlags(u32),
    /// The bytes received are not an option.
    NotAnOption(u64),
    /// An option has too much data to be discarded.
    OversizedOption(u32),
    /// EXPORT_NAME, which has no error reply, with an unknown name.
    UnknownExport,
    /// EXPORT_NAME before TLS, which the server requires.
    TlsRequired,
    /// The server has no room for the client.
    ServerFull,
}

impl std::fmt::Display for Departure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Departure::Aborted => f.write_str("the client aborted the handshake"),
            Departure::UnknownClientFlags(flags) => write!(f, "unknown client flags {flags:#x}"),
            Departure::NotAnOption(magic) => write!(f, "not an option: it begins with {magic:#018x}"),
            Departure::OversizedOption(bytes) => write!(f, "an option with too much data ({bytes} bytes)"),
            Departure::UnknownExport => f.write_str("unknown export"),
            Departure::TlsRequired => f.write_str("an export was requested without TLS"),
            Departure::ServerFull => f.write_str("turned away"),
        }
    }
}

/// The server's side of a handshake.
#[derive(Clone, Debug)]
pub struct Handshake {
    tls: Tls,
    /// The text with which all options are refused, if any.
    refusal: Option<&'static str>,
    /// Whether the client's flags have been received, and which of them are set.
    has_client_flags: bool,
    no_zeroes: bool,
    replies: Replies,
    /// The export for which `base:allocation` was chosen.
    allocation_export: Option<usize>,
    /// Remaining data of a refused option to discard, in bytes.
    bytes_to_discard: u32,
}

impl Handshake {
    /// Starts a handshake: writes the greeting to `out`.
    #[must_use]
    pub fn new(tls: Tls, out: &mut Vec<u8>) -> Handshake {
        out.put_u64(GREETING_MAGIC);
        out.put_u64(OPTION_MAGIC);
        out.put_u16(handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES);
        Handshake {
            tls,
            refusal: None,
            has_client_flags: false,
            no_zeroes: false,
            replies: Replies::Simple,
            allocation_export: None,
            bytes_to_discard: 0,
        }
    }

    /// Refuses all options with this text; the handshake ends when the client chooses or lists exports.
    #[must_use]
    pub fn refusing_all_options(self, why: &'static str) -> Handshake {
        Handshake { refusal: Some(why), ..self }
    }

    /// Continues inside TLS: everything agreed before is forgotten, except for the flags.
    #[must_use]
    pub fn within_tls(self) -> Handshake {
        Handshake { tls: Tls::Started, replies: Replies::Simple, allocation_export: None, bytes_to_discard: 0, ..self }
    }

    /// Parses received bytes and returns the number of bytes consumed; the caller keeps the rest and passes it in again
    /// with more data. It never needs more than [`OPTION_BYTES_MAX`] and a header at once. Replies are appended to
    /// `out`; once they exceed [`ANSWERS_BYTES_MAX`] no more options are consumed.
    pub fn receive(&mut self, input: &[u8], exports: &[Export], out: &mut Vec<u8>) -> (usize, Progress) {
        let (mut rest, answers_max) = (input, out.len() + ANSWERS_BYTES_MAX);
        let progress = loop {
            match self.step(&mut rest, exports, out) {
                Some(Progress::Unfinished) if out.len() < answers_max => {}
                Some(progress) => break progress,
                None => break Progress::Unfinished,
            }
        };
        (input.len() - rest.len(), progress)
    }

    /// Handles the next item if it is complete.
    fn step(&mut self, rest: &mut &[u8], exports: &[Export], out: &mut Vec<u8>) -> Option<Progress> {
        if self.bytes_to_discard > 0 {
            let discarded = rest.len().min(self.bytes_to_discard as usize);
            *rest = &rest[discarded..];
            self.bytes_to_discard -= discarded as u32;
            return (self.bytes_to_discard == 0).then_some(Progress::Unfinished);
        }
        let mut fields = Fields(rest);
        if !self.has_client_flags {
            let flags = fields.u32()?;
            *rest = fields.0;
            return Some(self.take_client_flags(flags));
        }
        let magic = fields.u64()?;
        if magic != OPTION_MAGIC {
            return Some(Progress::Closed(Departure::NotAnOption(magic)));
        }
        let (code, length) = (fields.u32()?, fields.u32()?);
        if length > DROPPED_BYTES_MAX {
            return Some(Progress::Closed(Departure::OversizedOption(length)));
        }
        if length > OPTION_BYTES_MAX {
            refuse(out, code, option_reply::ERR_TOO_BIG, "more than 65536 bytes of data");
            self.bytes_to_discard = length;
            *rest = &rest[OPTION_HEADER_BYTES..];
            return Some(Progress::Unfinished);
        }
        let data = fields.bytes(length as usize)?;
        *rest = fields.0;
        Some(self.reply_to(code, data, exports, out))
    }

    fn take_client_flags(&mut self, flags: u32) -> Progress {
        let known = u32::from(handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES);
        if flags & !known != 0 {
            return Progress::Closed(Departure::UnknownClientFlags(flags));
        }
        self.has_client_flags = true;
        self.no_zeroes = flags & u32::from(handshake_flag::NO_ZEROES) != 0;
        Progress::Unfinished
    }

    fn reply_to(&mut self, code: u32, data: &[u8], exports: &[Export], out: &mut Vec<u8>) -> Progress {
        if let Some(why) = self.refusal.filter(|_| code != option::ABORT) {
            if code != option::EXPORT_NAME {
                refuse(out, code, option_reply::ERR_POLICY, why);
            }
            let is_last = matches!(code, option::EXPORT_NAME | option::GO | option::INFO | option::LIST);
            return if is_last { Progress::Closed(Departure::ServerFull) } else { Progress::Unfinished };
        }
        if self.tls == Tls::Required {
            match code {
                option::EXPORT_NAME => return Progress::Closed(Departure::TlsRequired),
                option::ABORT | option::STARTTLS => {}
                _ => {
                    refuse(out, code, option_reply::ERR_TLS_REQD, "TLS first");
                    return Progress::Unfinished;
                }
            }
        }
        match code {
            option::EXPORT_NAME => return self.export_name(data, exports, out),
            option::ABORT => {
                acknowledge(out, code);
                return Progress::Closed(Departure::Aborted);
            }
            option::LIST => list(data, exports, out),
            option::STARTTLS => return self.start_tls(data, out),
            option::INFO | option::GO => {
                if let Some(agreement) = self.reply_to_info_or_go(code, data, exports, out)
                    && code == option::GO
                {
                    return Progress::Transmission(agreement);
                }
            }
            option::STRUCTURED_REPLY => self.negotiate_reply_format(code, data, Replies::Chunks, out),
            option::EXTENDED_HEADERS => self.negotiate_reply_format(code, data, Replies::ExtendedChunks, out),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.contexts(code, data, exports, out),
            _ => refuse(out, code, option_reply::ERR_UNSUP, "unknown option"),
        }
        Progress::Unfinished
    }

    /// EXPORT_NAME.
    fn export_name(&self, data: &[u8], exports: &[Export], out: &mut Vec<u8>) -> Progress {
        let Some((index, export)) = export_name_of_data(data).ok().and_then(|name| find_export(exports, name)) else {
            return Progress::Closed(Departure::UnknownExport);
        };
        out.put_u64(export.size_bytes);
        out.put_u16(export.flags(self.replies.are_chunks()));
        if !self.no_zeroes {
            out.extend_from_slice(&ZEROES);
        }
        Progress::Transmission(self.agreed(index))
    }

    fn start_tls(&self, data: &[u8], out: &mut Vec<u8>) -> Progress {
        let code = option::STARTTLS;
        match self.tls {
            _ if !data.is_empty() => refuse(out, code, option_reply::ERR_INVALID, "STARTTLS has no data"),
            Tls::Off => refuse(out, code, option_reply::ERR_POLICY, "TLS is not configured"),
            Tls::Started => refuse(out, code, option_reply::ERR_INVALID, "TLS has been started"),
            Tls::Offered | Tls::Required => {
                acknowledge(out, code);
                return Progress::StartTls;
            }
        }
        Progress::Unfinished
    }

    /// INFO and GO; returns the agreement if the export exists.
    fn reply_to_info_or_go(&self, code: u32, data: &[u8], exports: &[Export], out: &mut Vec<u8>) -> Option<Agreed> {
        let requested = match RequestedExport::read(data) {
            Ok(requested) => requested,
            Err(error) => {
                refuse(out, code, option_reply::ERR_INVALID, error);
                return None;
            }
        };
        let Some((index, export)) = find_export(exports, requested.name) else {
            refuse(out, code, option_reply::ERR_UNKNOWN, "no such export");
            return None;
        };
        reply(out, code, option_reply::INFO, |out| {
            out.put_u16(info::EXPORT);
            out.put_u64(export.size_bytes);
            out.put_u16(export.flags(self.replies.are_chunks()));
        });
        let texts = [(info::NAME, &export.name), (info::DESCRIPTION, &export.description)];
        for (kind, text) in texts {
            if requested.wants(kind) && (kind == info::NAME || !text.is_empty()) {
                reply(out, code, option_reply::INFO, |out| {
                    out.put_u16(kind);
                    out.extend_from_slice(text.as_bytes());
                });
            }
        }
        // Sent to every client: clients that do not support it ignore it, others can align their requests.
        reply(out, code, option_reply::INFO, |out| {
            out.put_u16(info::BLOCK_SIZE);
            out.put_u32(export.block_bytes_min);
            out.put_u32(export.block_bytes_preferred);
            out.put_u32(export.payload_bytes_max);
        });
        acknowledge(out, code);
        Some(self.agreed(index))
    }

    /// STRUCTURED_REPLY and EXTENDED_HEADERS.
    fn negotiate_reply_format(&mut self, code: u32, data: &[u8], format: Replies, out: &mut Vec<u8>) {
        if !data.is_empty() {
            refuse(out, code, option_reply::ERR_INVALID, "this option has no data");
            return;
        }
        // Extended headers include chunks; a later request for less is ignored.
        if self.replies == Replies::ExtendedChunks {
            refuse(out, code, option_reply::ERR_INVALID, "extended headers were agreed before");
            return;
        }
        self.replies = format;
        acknowledge(out, code);
    }

    /// LIST_META_CONTEXT and SET_META_CONTEXT.
    fn contexts(&mut self, code: u32, data: &[u8], exports: &[Export], out: &mut Vec<u8>) {
        let is_set = code == option::SET_META_CONTEXT;
        if is_set {
            // Even a failing request replaces the earlier choice.
            self.allocation_export = None;
        }
        if is_set && !self.replies.are_chunks() {
            refuse(out, code, option_reply::ERR_INVALID, "structured replies first");
            return;
        }
        let queries = match Queries::read(data) {
            Ok(queries) => queries,
            Err(error) => return refuse(out, code, option_reply::ERR_INVALID, error),
        };
        let Some((index, _)) = find_export(exports, queries.name) else {
            return refuse(out, code, option_reply::ERR_UNKNOWN, "no such export");
        };
        // Without a query, LIST returns all contexts and SET chooses none. "base:" is a query for a whole namespace,
        // which can be listed but not chosen.
        let lists_all = !is_set && queries.count == 0;
        if lists_all || queries.iter().any(|query| query == BASE_ALLOCATION || (!is_set && query == "base:")) {
            reply(out, code, option_reply::META_CONTEXT, |out| {
                out.put_u32(if is_set { BASE_ALLOCATION_ID } else { 0 });
                out.extend_from_slice(BASE_ALLOCATION.as_bytes());
            });
            if is_set {
                self.allocation_export = Some(index);
            }
        }
        acknowledge(out, code);
    }

    fn agreed(&self, export: usize) -> Agreed {
        Agreed { export, replies: self.replies, allocation: self.allocation_export == Some(export) }
    }
}

fn list(data: &[u8], exports: &[Export], out: &mut Vec<u8>) {
    if !data.is_empty() {
        return refuse(out, option::LIST, option_reply::ERR_INVALID, "LIST has no data");
    }
    for export in exports {
        reply(out, option::LIST, option_reply::SERVER, |out| {
            out.put_u32(export.name.len() as u32);
            out.extend_from_slice(export.name.as_bytes());
            out.extend_from_slice(export.description.as_bytes());
        });
    }
    acknowledge(out, option::LIST);
}

fn acknowledge(out: &mut Vec<u8>, code: u32) {
    reply(out, code, option_reply::ACK, |_| {});
}

fn refuse(out: &mut Vec<u8>, code: u32, error: u32, text: &str) {
    reply(out, code, error, |out| out.extend_from_slice(text.as_bytes()));
}

fn reply(out: &mut Vec<u8>, code: u32, kind: u32, data: impl FnOnce(&mut Vec<u8>)) {
    out.put_u64(OPTION_REPLY_MAGIC);
    out.put_u32(code);
    out.put_u32(kind);
    let length_at = out.len();
    out.put_u32(0);
    data(out);
    let length = (out.len() - length_at - 4) as u32;
    out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
}
