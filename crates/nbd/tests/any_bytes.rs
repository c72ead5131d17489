//! Whatever a client sends: no panic, no more kept than promised, and the same however the bytes are cut into pieces.

use hoistway_nbd::{
    ANSWERS_BYTES_MAX, Agreed, Export, Handshake, OPTION_BYTES_MAX, Progress, Received, Replies, ReplyWriter, Requests,
    Tls,
};
use proptest::prelude::*;

fn exports() -> Vec<Export> {
    vec![Export::new("a", 1 << 20), Export { read_only: true, ..Export::new("b", u64::MAX) }]
}

/// A whole session over bytes that come in these pieces: all answers, and how it stands in the end.
fn session(bytes: &[u8], pieces: &[usize], tls: Tls) -> (Vec<u8>, String) {
    let exports = exports();
    let (mut out, mut held) = (Vec::new(), Vec::new());
    let mut handshake = Handshake::new(tls, &mut out);
    let mut agreed: Option<Agreed> = None;
    let mut to_drop = 0_u64;
    let mut rest = bytes;
    let mut sizes = pieces.iter().cycle();
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
        rest = later;
        held.extend_from_slice(piece);
        if agreed.is_none() {
            let progress = loop {
                let before = out.len();
                let (taken, progress) = handshake.receive(&held, &exports, &mut out);
                held.drain(..taken);
                // An answer of these exports is short.
                assert!(out.len() - before < ANSWERS_BYTES_MAX + 1000);
                if progress != Progress::Unfinished || taken == 0 {
                    break progress;
                }
            };
            match progress {
                Progress::Unfinished => assert!(held.len() <= OPTION_BYTES_MAX as usize + 16),
                Progress::Transmission(with) => agreed = Some(with),
                other => return (out, format!("{other:?}")),
            }
        }
        let Some(agreed) = agreed else { continue };
        let requests = Requests::new(agreed, &exports[agreed.export]);
        let writer = ReplyWriter::new(agreed.replies);
        loop {
            let now = (held.len() as u64).min(to_drop);
            held.drain(..now as usize);
            to_drop -= now;
            if to_drop > 0 {
                break;
            }
            match requests.read(&held) {
                None => break,
                Some(Received::Request(request)) => {
                    let end = request.offset.checked_add(request.length);
                    let size_bytes = exports[agreed.export].size_bytes;
                    assert!(request.length == 0 || end.is_some_and(|end| end <= size_bytes), "{request:?}");
                    writer.done(request.origin(), &mut out);
                    if matches!(request.command, hoistway_nbd::Command::Write { .. }) {
                        to_drop = request.length;
                    }
                }
                Some(Received::Refused { origin, refusal, payload_bytes }) => {
                    writer.refused(origin, refusal, &mut out);
                    to_drop = payload_bytes;
                }
                Some(end) => return (out, format!("{end:?}")),
            }
            held.drain(..requests.header_bytes());
        }
    }
    (out, format!("{agreed:?} {} {to_drop}", held.len()))
}

fn an_option() -> impl Strategy<Value = Vec<u8>> {
    let data = prop_oneof![
        Just(b"\0\0\0\x01a\0\0".to_vec()),
        Just(b"\0\0\0\x01b\0\x01\0\x03".to_vec()),
        Just(b"\0\0\0\x01a\0\0\0\x01\0\0\0\x0fbase:allocation".to_vec()),
        Just(Vec::new()),
        prop::collection::vec(any::<u8>(), 0..40),
        (65530_usize..65560).prop_map(|length| vec![0; length]),
    ];
    (0_u32..14, data).prop_map(|(code, data)| {
        [b"IHAVEOPT", &code.to_be_bytes()[..], &(data.len() as u32).to_be_bytes(), &data].concat()
    })
}

fn a_request() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![Just(0_u64), Just(512), Just(4096), Just((1 << 20) - 512), any::<u64>()];
    (any::<bool>(), any::<u16>(), 0_u16..10, number.clone(), number, any::<bool>()).prop_map(
        |(extended, flags, kind, offset, length, plain)| {
            let magic = if extended { 0x21e4_1c71_u32 } else { 0x2560_9513 };
            let flags = if plain { 0 } else { flags & 0x3f };
            let mut bytes = [&magic.to_be_bytes()[..], &flags.to_be_bytes(), &kind.to_be_bytes(), b"12345678"].concat();
            bytes.extend(offset.to_be_bytes());
            if extended {
                bytes.extend(length.to_be_bytes())
            } else {
                bytes.extend((length as u32).to_be_bytes())
            }
            if kind == 1 && length <= 4096 {
                bytes.extend(vec![7; length as usize]);
            }
            bytes
        },
    )
}

/// Sessions that are valid for a while.
fn likely() -> impl Strategy<Value = Vec<u8>> {
    let options = prop::collection::vec(an_option(), 0..6);
    let requests = prop::collection::vec(a_request(), 0..12);
    (options, any::<bool>(), requests, prop::collection::vec(any::<u8>(), 0..64)).prop_map(
        |(options, goes, requests, noise)| {
            let mut bytes = vec![0, 0, 0, 3];
            bytes.extend(options.concat());
            if goes {
                bytes.extend(b"IHAVEOPT\0\0\0\x07\0\0\0\x07\0\0\0\x01a\0\0");
            }
            bytes.extend(requests.concat());
            bytes.extend(noise);
            bytes
        },
    )
}

proptest! {
    #[test]
    fn a_session_is_the_same_in_any_pieces(
        bytes in prop_oneof![likely(), prop::collection::vec(any::<u8>(), 0..300)],
        pieces in prop::collection::vec(1_usize..200, 1..8),
        tls in prop_oneof![Just(Tls::Off), Just(Tls::Offered), Just(Tls::Required)],
    ) {
        let whole = session(&bytes, &[usize::MAX], tls);
        prop_assert_eq!(session(&bytes, &pieces, tls), whole);
    }

    #[test]
    fn any_request_header_is_refused_or_stays_within_the_export(
        header in prop::collection::vec(any::<u8>(), 32),
        read_only: bool,
        size_bytes in prop_oneof![0_u64..1 << 20, any::<u64>()],
        replies in prop_oneof![Just(Replies::Simple), Just(Replies::Chunks), Just(Replies::ExtendedChunks)],
        kind in 0_u16..9,
    ) {
        let mut header = header;
        let magic = if replies == Replies::ExtendedChunks { 0x21e4_1c71_u32 } else { 0x2560_9513 };
        header[..4].copy_from_slice(&magic.to_be_bytes());
        header[6..8].copy_from_slice(&kind.to_be_bytes());
        let export = Export { read_only, block_bytes_min: 1, ..Export::new("", size_bytes) };
        let agreed = Agreed { export: 0, replies, allocation: true };
        if let Some(Received::Request(request)) = Requests::new(agreed, &export).read(&header) {
            prop_assert!(request.length == 0 || request.offset.checked_add(request.length).is_some_and(|end| end <= size_bytes));
        }
    }
}
