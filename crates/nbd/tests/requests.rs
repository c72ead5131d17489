//! What a server makes of requests, and how it answers them.

use hoistway_nbd::wire::{command, command_flag as flag};
use hoistway_nbd::{
    Agreed, Command, Export, Extent, Origin, Received, Refusal, Replies, ReplyWriter, Requests, Violation,
};

const SIZE: u64 = 1 << 20;

fn agreed(replies: Replies) -> Agreed {
    Agreed { export: 0, replies, allocation: replies.are_chunks() }
}

fn header(replies: Replies, flags: u16, kind: u16, offset: u64, length: u64) -> Vec<u8> {
    let extended = replies == Replies::ExtendedChunks;
    let mut bytes = if extended { 0x21e4_1c71_u32 } else { 0x2560_9513 }.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(0x0123_4567_89ab_cdef_u64.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    if extended {
        bytes.extend(length.to_be_bytes())
    } else {
        bytes.extend((length as u32).to_be_bytes())
    }
    bytes
}

fn received_by(export: &Export, replies: Replies, flags: u16, kind: u16, offset: u64, length: u64) -> Received {
    let bytes = header(replies, flags, kind, offset, length);
    let requests = Requests::new(agreed(replies), export);
    assert_eq!(requests.header_bytes(), bytes.len());
    for short in 4..bytes.len() {
        assert_eq!(requests.read(&bytes[..short]), None);
    }
    requests.read(&bytes).unwrap()
}

/// The command, or why not.
fn asked(replies: Replies, flags: u16, kind: u16, offset: u64, length: u64) -> Result<Command, (Refusal, u64)> {
    match received_by(&Export::new("", SIZE), replies, flags, kind, offset, length) {
        Received::Request(request) => {
            assert_eq!((request.cookie, request.offset), (0x0123_4567_89ab_cdef, offset));
            Ok(request.command)
        }
        Received::Refused { origin, refusal, payload_bytes } => {
            let expected = Origin { cookie: 0x0123_4567_89ab_cdef, offset, is_read: kind == command::READ };
            assert_eq!(origin, expected);
            Err((refusal, payload_bytes))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn commands_are_understood_with_their_flags() {
    use Command::*;
    for replies in [Replies::Simple, Replies::Chunks, Replies::ExtendedChunks] {
        let chunks = replies.are_chunks();
        let payload = if replies == Replies::ExtendedChunks { flag::PAYLOAD_LEN } else { 0 };
        let of = |flags, kind| asked(replies, flags, kind, 512, 4096);
        assert_eq!(of(0, command::READ), Ok(Read { unfragmented: false }));
        assert_eq!(of(flag::DF, command::READ).is_ok(), chunks);
        assert_eq!(of(payload, command::WRITE), Ok(Write { fua: false }));
        assert_eq!(of(payload | flag::FUA, command::WRITE), Ok(Write { fua: true }));
        assert_eq!(of(0, command::FLUSH), Ok(Flush));
        assert_eq!(of(flag::FUA, command::TRIM), Ok(Trim { fua: true }));
        assert_eq!(of(0, command::CACHE), Ok(Cache));
        let zeroes = WriteZeroes { fua: false, no_hole: true, fast: true };
        assert_eq!(of(flag::NO_HOLE | flag::FAST_ZERO, command::WRITE_ZEROES), Ok(zeroes));
        let status = of(flag::REQ_ONE, command::BLOCK_STATUS);
        assert_eq!(status.ok(), chunks.then_some(BlockStatus { one: true }));
    }
}

#[test]
fn fua_may_come_with_every_command() {
    for kind in [command::READ, command::WRITE, command::FLUSH, command::TRIM, command::CACHE, command::WRITE_ZEROES] {
        assert!(asked(Replies::Simple, flag::FUA, kind, 0, 512).is_ok(), "{kind}");
    }
}

#[test]
fn unnegotiated_and_unknown_flags_and_commands_are_invalid() {
    let invalid = Err((Refusal::Invalid, 0));
    assert_eq!(asked(Replies::Simple, flag::DF, command::READ, 0, 512), invalid);
    assert_eq!(asked(Replies::Simple, 0, command::BLOCK_STATUS, 0, 512), invalid);
    assert_eq!(asked(Replies::Chunks, 0, 9, 0, 512), invalid);
    assert_eq!(asked(Replies::Chunks, 1 << 9, command::READ, 0, 512), invalid);
    assert_eq!(asked(Replies::Simple, flag::NO_HOLE, command::WRITE, 0, 512), Err((Refusal::Invalid, 512)));
    // Data follows only if the flag says so, and then with any command.
    assert_eq!(asked(Replies::ExtendedChunks, 0, command::WRITE, 0, 512), invalid);
    let status = asked(Replies::ExtendedChunks, flag::PAYLOAD_LEN, command::BLOCK_STATUS, 0, 512);
    assert_eq!(status, Err((Refusal::Invalid, 512)));
}

#[test]
fn beyond_the_end_nothing_is_read_and_no_space_is_left() {
    for (offset, length) in
        [(SIZE, 512), (SIZE - 512, 1024), (u64::MAX - 511, 512), (u64::MAX - 511, 1024), (1 << 63, 512)]
    {
        for kind in [command::READ, command::TRIM, command::CACHE, command::BLOCK_STATUS] {
            assert_eq!(asked(Replies::Chunks, 0, kind, offset, length), Err((Refusal::Invalid, 0)), "{kind}");
        }
        assert_eq!(asked(Replies::Chunks, 0, command::WRITE, offset, length), Err((Refusal::NoSpace, length)));
        assert_eq!(asked(Replies::Chunks, 0, command::WRITE_ZEROES, offset, length), Err((Refusal::NoSpace, 0)));
    }
    assert!(asked(Replies::Chunks, 0, command::READ, SIZE - 512, 512).is_ok());
}

#[test]
fn unaligned_and_empty_ranges_are_invalid() {
    for (offset, length) in [(0, 0), (1, 512), (0, 511), (513, 1)] {
        for kind in [command::READ, command::WRITE, command::TRIM, command::WRITE_ZEROES, command::BLOCK_STATUS] {
            let refusal = asked(Replies::Chunks, 0, kind, offset, length).unwrap_err().0;
            assert_eq!(refusal, Refusal::Invalid, "{kind} {offset} {length}");
        }
    }
    assert_eq!(asked(Replies::Chunks, 0, command::FLUSH, 77, 3), Ok(Command::Flush));
}

#[test]
fn lengths_have_limits() {
    let large = Export::new("", 1 << 40);
    let of = |flags, kind, length| received_by(&large, Replies::Chunks, flags, kind, 0, length);
    let over = (32 << 20) + 512;
    assert!(matches!(of(0, command::READ, over), Received::Refused { refusal: Refusal::Invalid, .. }));
    assert!(matches!(of(flag::DF, command::READ, over), Received::Refused { refusal: Refusal::Overflow, .. }));
    assert_eq!(of(0, command::WRITE, over), Received::Violation(Violation::OversizedPayload(over)));
    for kind in [command::TRIM, command::WRITE_ZEROES, command::BLOCK_STATUS, command::CACHE] {
        assert!(matches!(of(0, kind, 0xffff_fe00), Received::Request(_)), "no data, so no limit");
    }
    let huge = received_by(&large, Replies::ExtendedChunks, flag::PAYLOAD_LEN, command::TRIM, 0, 1 << 40);
    assert_eq!(huge, Received::Violation(Violation::OversizedPayload(1 << 40)));
    let huge = received_by(&large, Replies::ExtendedChunks, 0, command::TRIM, 0, 1 << 40);
    assert!(matches!(huge, Received::Request(request) if request.length == 1 << 40));
}

#[test]
fn writes_to_a_read_only_export_are_refused_and_their_data_dropped() {
    let export = Export { read_only: true, ..Export::new("", SIZE) };
    for (kind, expected) in [(command::WRITE, 512), (command::TRIM, 0), (command::WRITE_ZEROES, 0)] {
        let received = received_by(&export, Replies::Simple, 0, kind, 0, 512);
        let Received::Refused { refusal: Refusal::NotPermitted, payload_bytes, .. } = received else {
            panic!("{received:?}");
        };
        assert_eq!(payload_bytes, expected);
    }
}

#[test]
fn a_wrong_magic_closes_the_session_early_and_a_disconnect_gets_no_reply() {
    let requests = Requests::new(agreed(Replies::Simple), &Export::new("", SIZE));
    assert_eq!(requests.read(b"GET /"), Some(Received::Violation(Violation::NotARequest(0x4745_5420))));
    assert_eq!(received_by(&Export::new("", 0), Replies::Simple, 0, command::DISCONNECT, 1, 1), Received::Disconnect);
}

const ORIGIN: Origin = Origin { cookie: 0x1122_3344_5566_7788, offset: 4096, is_read: true };

fn written(replies: Replies, write: impl FnOnce(ReplyWriter, &mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(ReplyWriter::new(replies), &mut out);
    out.chunks(4)
        .map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn replies_have_the_negotiated_form() {
    let (cookie, range) = ("11223344 55667788", "00000000 00001000");
    let done = |replies| written(replies, |writer, out| writer.done(ORIGIN, out));
    assert_eq!(done(Replies::Simple), format!("67446698 00000000 {cookie}"));
    assert_eq!(done(Replies::Chunks), format!("67446698 00000000 {cookie}"));
    assert_eq!(done(Replies::ExtendedChunks), format!("6e8a278c 00010000 {cookie} {range} 00000000 00000000"));

    let refused = |replies, is_read| {
        let origin = Origin { is_read, ..ORIGIN };
        written(replies, |writer, out| writer.refused(origin, Refusal::NoSpace, out))
    };
    assert_eq!(refused(Replies::Simple, true), format!("67446698 0000001c {cookie}"));
    assert_eq!(refused(Replies::Chunks, false), format!("67446698 0000001c {cookie}"));
    assert_eq!(refused(Replies::Chunks, true), format!("668e33ef 00018001 {cookie} 00000006 0000001c 0000"));
    let extended = format!("6e8a278c 00018001 {cookie} {range} 00000000 00000006 0000001c 0000");
    assert_eq!(refused(Replies::ExtendedChunks, false), extended);

    let data = |replies| written(replies, |writer, out| writer.data_header(ORIGIN, 8192, 512, true, out));
    assert_eq!(data(Replies::Simple), format!("67446698 00000000 {cookie}"));
    assert_eq!(data(Replies::Chunks), format!("668e33ef 00010001 {cookie} 00000208 00000000 00002000"));
    let extended = format!("6e8a278c 00010001 {cookie} {range} 00000000 00000208 00000000 00002000");
    assert_eq!(data(Replies::ExtendedChunks), extended);

    let hole = written(Replies::Chunks, |writer, out| writer.hole(ORIGIN, 8192, 512, false, out));
    assert_eq!(hole, format!("668e33ef 00000002 {cookie} 0000000c 00000000 00002000 00000200"));
}

/// Lengths and flags of the extents in an answer to a BLOCK_STATUS for this many bytes.
fn status(length: u64, one: bool, extents: &[(u64, bool)]) -> Vec<(u32, u32)> {
    let mut out = Vec::new();
    let extents = extents.iter().map(|&(length, hole)| Extent { length, hole, zero: hole });
    ReplyWriter::new(Replies::Chunks).block_status(ORIGIN, length, one, extents, &mut out);
    let words: Vec<_> = out.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect();
    assert_eq!((words[1], words[4] as usize, words[5]), (0x0001_0005, out.len() - 20, 1));
    words[6..].chunks(2).map(|pair| (pair[0], pair[1])).collect()
}

#[test]
fn extents_are_joined_and_cut_to_the_range_and_there_is_always_one() {
    assert_eq!(status(8192, false, &[(4096, false), (4096, true)]), [(4096, 0), (4096, 3)]);
    assert_eq!(status(8192, false, &[(2048, true), (2048, true), (9999, false)]), [(4096, 3), (4096, 0)]);
    assert_eq!(status(8192, true, &[(2048, true), (2048, true), (9999, false)]), [(4096, 3)]);
    assert_eq!(status(8192, true, &[(1 << 40, false)]), [(8192, 0)]);
    assert_eq!(status(8192, false, &[]), [(8192, 0)]);
    assert_eq!(status(8192, false, &[(0, true), (512, false)]), [(512, 0)]);
}

#[test]
fn with_extended_headers_extents_have_64_bits() {
    let mut out = Vec::new();
    let extents = [Extent { length: 1 << 40, hole: true, zero: true }];
    ReplyWriter::new(Replies::ExtendedChunks).block_status(ORIGIN, 1 << 41, false, extents, &mut out);
    let tail = [&1_u32.to_be_bytes()[..], &1_u32.to_be_bytes(), &(1_u64 << 40).to_be_bytes(), &3_u64.to_be_bytes()];
    assert_eq!(out[32..], tail.concat());
    assert_eq!(out[24..32], 24_u64.to_be_bytes());
}

#[test]
fn an_errno_becomes_a_number_that_clients_know() {
    for (errno, refusal) in [
        (5, Refusal::Io),
        (28, Refusal::NoSpace),
        (122, Refusal::NoSpace),
        (30, Refusal::NotPermitted),
        (95, Refusal::NotSupported),
        (22, Refusal::Invalid),
        (110, Refusal::Io),
        (-1, Refusal::Io),
    ] {
        assert_eq!(Refusal::from_errno(errno), refusal, "{errno}");
    }
}
