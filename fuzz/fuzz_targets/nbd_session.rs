//! No bytes of a client break a server: a whole session, from the first option to the last request.

#![no_main]

use hoistway_nbd::{Command, Export, Handshake, OPTION_BYTES_MAX, Progress, Received, ReplyWriter, Requests, Tls};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| {
    let (kind, mut rest) = input;
    let tls = [Tls::Off, Tls::Offered, Tls::Required][usize::from(kind % 3)];
    let exports = [Export::new("a", 1 << 20), Export { read_only: true, ..Export::new("b", u64::MAX) }];
    let mut out = Vec::new();
    let mut handshake = Handshake::new(tls, &mut out);
    let agreed = loop {
        let (taken, progress) = handshake.receive(rest, &exports, &mut out);
        rest = &rest[taken..];
        match progress {
            Progress::Transmission(agreed) => break agreed,
            Progress::StartTls => handshake = handshake.within_tls(),
            Progress::Unfinished if taken > 0 => {}
            Progress::Unfinished => {
                // Either everything was taken, or what is missing is a piece of one option.
                assert!(rest.len() < OPTION_BYTES_MAX as usize + 16);
                return;
            }
            Progress::Closed(_) => return,
        }
    };
    let export = &exports[agreed.export];
    let (requests, writer) = (Requests::new(agreed, export), ReplyWriter::new(agreed.replies));
    while let Some(received) = requests.read(rest) {
        let payload = match received {
            Received::Request(request) => {
                let end = request.offset.checked_add(request.length);
                assert!(request.length == 0 || end.is_some_and(|end| end <= export.size_bytes));
                writer.done(request.origin(), &mut out);
                if matches!(request.command, Command::Write { .. }) { request.length } else { 0 }
            }
            Received::Refused { origin, refusal, payload_bytes } => {
                writer.refused(origin, refusal, &mut out);
                payload_bytes
            }
            Received::Disconnect | Received::Violation(_) => return,
        };
        let Some(next) = rest.get(requests.header_bytes() + payload as usize..) else { return };
        rest = next;
    }
});
