//! What a server says to options, beside the protocol's rules.

use hoistway_nbd::wire::{handshake_flag, info, option, option_reply};
use hoistway_nbd::{ANSWERS_BYTES_MAX, Agreed, Departure, Export, Handshake, Progress, Replies, Tls};

/// A client that has said hello, and what it was answered.
struct Haggling {
    handshake: Handshake,
    exports: Vec<Export>,
}

fn exports() -> Vec<Export> {
    let described = Export { description: "the second".into(), ..Export::new("vm2", 2 << 20) };
    vec![Export::new("vm1", 1 << 20), described]
}

fn begun(tls: Tls, client_flags: u16) -> Haggling {
    let mut greeting = Vec::new();
    let mut handshake = Handshake::new(tls, &mut greeting);
    assert_eq!(greeting, b"NBDMAGICIHAVEOPT\x00\x03");
    let exports = exports();
    let flags = u32::from(client_flags).to_be_bytes();
    assert_eq!(handshake.receive(&flags, &exports, &mut greeting), (4, Progress::Unfinished));
    Haggling { handshake, exports }
}

fn usual() -> Haggling {
    begun(Tls::Off, handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES)
}

fn an_option(code: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(code.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// Types and data of the answers in `out`, which are all to one option.
fn answers(mut out: &[u8], code: u32) -> Vec<(u32, Vec<u8>)> {
    let mut answers = Vec::new();
    while !out.is_empty() {
        let number = |at: usize| u32::from_be_bytes(out[at..at + 4].try_into().unwrap());
        assert_eq!((&out[..8], number(8)), (&0x0003_e889_0455_65a9_u64.to_be_bytes()[..], code));
        let (kind, length) = (number(12), number(16) as usize);
        answers.push((kind, out[20..20 + length].to_vec()));
        out = &out[20 + length..];
    }
    answers
}

impl Haggling {
    fn sends(&mut self, code: u32, data: &[u8]) -> (Vec<(u32, Vec<u8>)>, Progress) {
        let (option, mut out) = (an_option(code, data), Vec::new());
        let (taken, progress) = self.handshake.receive(&option, &self.exports, &mut out);
        assert_eq!(taken, option.len());
        (answers(&out, code), progress)
    }

    /// The type of the only answer.
    fn is_told(&mut self, code: u32, data: &[u8]) -> u32 {
        let (answers, progress) = self.sends(code, data);
        assert_eq!(progress, Progress::Unfinished);
        assert_eq!(answers.len(), 1, "{answers:?}");
        answers[0].0
    }
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

fn asking(name: &str, infos: &[u16]) -> Vec<u8> {
    let mut data = string(name);
    data.extend((infos.len() as u16).to_be_bytes());
    data.extend(infos.iter().flat_map(|info| info.to_be_bytes()));
    data
}

fn querying(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = string(name);
    data.extend((queries.len() as u32).to_be_bytes());
    data.extend(queries.iter().flat_map(|query| string(query)));
    data
}

#[test]
fn go_describes_the_export_and_ends_the_handshake() {
    let (answers, progress) = usual().sends(option::GO, &asking("vm2", &[info::NAME, info::DESCRIPTION]));
    let infos: Vec<_> = answers[..4].iter().map(|(kind, data)| (*kind, data[..2].to_vec())).collect();
    let expected = [info::EXPORT, info::NAME, info::DESCRIPTION, info::BLOCK_SIZE];
    assert_eq!(infos, expected.map(|kind| (option_reply::INFO, kind.to_be_bytes().to_vec())));
    assert_eq!(answers[0].1[2..], [&(2_u64 << 20).to_be_bytes()[..], &0x0d6d_u16.to_be_bytes()].concat());
    assert_eq!(answers[1].1[2..], *b"vm2");
    assert_eq!(answers[2].1[2..], *b"the second");
    let sizes = [512_u32, 4096, 32 << 20].map(u32::to_be_bytes).concat();
    assert_eq!(answers[3].1[2..], sizes);
    assert_eq!(answers[4], (option_reply::ACK, Vec::new()));
    let agreed = Agreed { export: 1, replies: Replies::Simple, allocation: false };
    assert_eq!(progress, Progress::Transmission(agreed));
}

#[test]
fn info_describes_the_export_and_the_handshake_continues() {
    let mut client = usual();
    let (answers, progress) = client.sends(option::INFO, &asking("vm2", &[]));
    assert_eq!((answers.len(), progress), (3, Progress::Unfinished));
    assert_eq!(client.is_told(option::STRUCTURED_REPLY, b""), option_reply::ACK);
}

#[test]
fn the_empty_name_is_the_first_export_unless_one_is_called_so() {
    let mut client = usual();
    let (_, progress) = client.sends(option::GO, &asking("", &[]));
    assert!(matches!(progress, Progress::Transmission(Agreed { export: 0, .. })));
    let mut client = usual();
    client.exports.push(Export::new("", 4096));
    let (_, progress) = client.sends(option::GO, &asking("", &[]));
    assert!(matches!(progress, Progress::Transmission(Agreed { export: 2, .. })));
}

#[test]
fn after_an_unknown_export_the_client_may_continue_negotiating() {
    let mut client = usual();
    for code in [option::GO, option::INFO] {
        assert_eq!(client.is_told(code, &asking("vm3", &[])), option_reply::ERR_UNKNOWN);
    }
    assert_eq!(client.is_told(option::SET_META_CONTEXT, &querying("vm1", &[])), option_reply::ERR_INVALID);
    assert_eq!(client.is_told(option::STRUCTURED_REPLY, b""), option_reply::ACK);
    assert_eq!(client.is_told(option::SET_META_CONTEXT, &querying("vm3", &[])), option_reply::ERR_UNKNOWN);
}

#[test]
fn export_name_replies_without_a_header_and_pads_zeroes_unless_agreed() {
    for (client_flags, length) in [(0, 134), (handshake_flag::FIXED_NEWSTYLE, 134), (3, 10)] {
        let (mut client, mut out) = (begun(Tls::Off, client_flags), Vec::new());
        let option = an_option(option::EXPORT_NAME, b"vm1");
        let (taken, progress) = client.handshake.receive(&option, &client.exports, &mut out);
        assert_eq!((taken, out.len()), (option.len(), length));
        assert_eq!(out[..10], [0, 0, 0, 0, 0, 0x10, 0, 0, 0x0d, 0x6d]);
        assert!(matches!(progress, Progress::Transmission(Agreed { export: 0, .. })));
    }
    let (answers, progress) = usual().sends(option::EXPORT_NAME, b"nobody");
    assert_eq!((answers, progress), (vec![], Progress::Closed(Departure::UnknownExport)));
}

#[test]
fn list_names_all_exports_and_takes_no_data() {
    let mut client = usual();
    let (answers, _) = client.sends(option::LIST, b"");
    let second = [string("vm2"), b"the second".to_vec()].concat();
    let expected = [(option_reply::SERVER, string("vm1")), (option_reply::SERVER, second), (option_reply::ACK, vec![])];
    assert_eq!(answers, expected);
    assert_eq!(client.is_told(option::LIST, b"x"), option_reply::ERR_INVALID);
}

#[test]
fn structured_replies_bring_df_and_extended_headers_bring_both() {
    for (code, replies) in
        [(option::STRUCTURED_REPLY, Replies::Chunks), (option::EXTENDED_HEADERS, Replies::ExtendedChunks)]
    {
        let mut client = usual();
        assert_eq!(client.is_told(code, b"?"), option_reply::ERR_INVALID);
        assert_eq!(client.is_told(code, b""), option_reply::ACK);
        let (answers, progress) = client.sends(option::GO, &asking("vm1", &[]));
        assert_eq!(answers[0].1[10..], 0x0ded_u16.to_be_bytes());
        assert_eq!(progress, Progress::Transmission(Agreed { export: 0, replies, allocation: false }));
    }
    let mut client = usual();
    assert_eq!(client.is_told(option::EXTENDED_HEADERS, b""), option_reply::ACK);
    assert_eq!(client.is_told(option::STRUCTURED_REPLY, b""), option_reply::ERR_INVALID);
}

#[test]
fn a_metadata_context_holds_for_the_export_it_was_chosen_for() {
    for (chosen, went, allocation) in [("vm1", "vm1", true), ("", "vm1", true), ("vm1", "vm2", false)] {
        let mut client = usual();
        client.sends(option::STRUCTURED_REPLY, b"");
        let (answers, _) = client.sends(option::SET_META_CONTEXT, &querying(chosen, &["x:y", "base:allocation"]));
        assert_eq!(answers[0], (option_reply::META_CONTEXT, b"\x00\x00\x00\x01base:allocation".to_vec()));
        assert_eq!(answers[1..], [(option_reply::ACK, vec![])]);
        let (_, progress) = client.sends(option::GO, &asking(went, &[]));
        assert!(
            matches!(progress, Progress::Transmission(agreed) if agreed.allocation == allocation),
            "{chosen} {went}"
        );
    }
}

#[test]
fn choosing_contexts_again_replaces_the_choice_even_if_it_fails() {
    for replacement in [querying("vm1", &[]), querying("vm3", &["base:allocation"]), b"nonsense".to_vec()] {
        let mut client = usual();
        client.sends(option::STRUCTURED_REPLY, b"");
        client.sends(option::SET_META_CONTEXT, &querying("vm1", &["base:allocation"]));
        client.sends(option::SET_META_CONTEXT, &replacement);
        let (_, progress) = client.sends(option::GO, &asking("vm1", &[]));
        assert!(matches!(progress, Progress::Transmission(agreed) if !agreed.allocation));
    }
}

#[test]
fn contexts_are_listed_for_no_query_for_their_name_and_for_their_namespace() {
    let mut client = usual();
    for (queries, count) in [(&[][..], 2), (&["base:allocation"], 2), (&["base:"], 2), (&["qemu:"], 1)] {
        let (answers, _) = client.sends(option::LIST_META_CONTEXT, &querying("vm1", queries));
        assert_eq!(answers.len(), count, "{queries:?}");
    }
}

#[test]
fn data_that_does_not_fit_its_option_is_invalid_and_the_next_option_is_understood() {
    let too_long = string(&"x".repeat(4097));
    let nul = [string("v\0"), vec![0, 0]].concat();
    let not_utf8 = [&2_u32.to_be_bytes()[..], b"\xff\xfe", &[0, 0]].concat();
    let too_much = [asking("vm1", &[]), vec![0]].concat();
    let mut client = usual();
    for data in [&b""[..], b"\xff\xff\xff\xff", &too_long, &nul, &not_utf8, &too_much, &asking("vm1", &[3])[..8]] {
        assert_eq!(client.is_told(option::GO, data), option_reply::ERR_INVALID, "{data:?}");
    }
    client.sends(option::STRUCTURED_REPLY, b"");
    for data in [&b""[..], &querying("vm1", &["base:allocation"])[..20], b"\0\0\0\0\xff\xff\xff\xff"] {
        assert_eq!(client.is_told(option::SET_META_CONTEXT, data), option_reply::ERR_INVALID, "{data:?}");
    }
    assert_eq!(client.is_told(4711, b"whatever"), option_reply::ERR_UNSUP);
    assert!(matches!(client.sends(option::GO, &asking("vm1", &[])).1, Progress::Transmission(_)));
}

#[test]
fn a_client_must_read_the_replies_before_more_options_are_accepted() {
    let mut client = usual();
    let asked = an_option(option::LIST, b"").repeat(4000);
    let (mut rest, mut rounds, mut all) = (&asked[..], 0, Vec::new());
    while !rest.is_empty() {
        let mut out = Vec::new();
        let (taken, progress) = client.handshake.receive(rest, &client.exports, &mut out);
        assert!(taken > 0 && progress == Progress::Unfinished);
        // The answer with which it was enough is whole.
        assert!(out.len() < ANSWERS_BYTES_MAX + 1000, "{}", out.len());
        rest = &rest[taken..];
        rounds += 1;
        all.extend(out);
    }
    assert!(rounds > 10);
    let ends = answers(&all, option::LIST).iter().filter(|(kind, _)| *kind == option_reply::ACK).count();
    assert_eq!(ends, 4000);
}

#[test]
fn oversized_options_are_dropped_up_to_a_limit() {
    let mut client = usual();
    let mut bytes = an_option(option::GO, &vec![7; 65537]);
    bytes.extend(an_option(option::LIST, b"no"));
    let mut out = Vec::new();
    assert_eq!(client.handshake.receive(&bytes, &client.exports, &mut out).0, bytes.len());
    let kinds: Vec<_> = [&out[12..16], &out[out.len() - 24..]].iter().map(|at| at[..4].to_vec()).collect();
    assert_eq!(kinds[0], option_reply::ERR_TOO_BIG.to_be_bytes());
    assert_eq!(answers(&out[20 + 29..], option::LIST)[0].0, option_reply::ERR_INVALID);

    let header = &an_option(option::GO, &vec![7; (1 << 20) + 1])[..16];
    let (_, progress) = usual().handshake.receive(header, &exports(), &mut out);
    assert_eq!(progress, Progress::Closed(Departure::OversizedOption((1 << 20) + 1)));
}

#[test]
fn abort_is_acknowledged_and_ends_it() {
    let (answers, progress) = usual().sends(option::ABORT, b"tired");
    assert_eq!(answers, [(option_reply::ACK, vec![])]);
    assert_eq!(progress, Progress::Closed(Departure::Aborted));
}

#[test]
fn starttls_is_refused_without_tls_and_required_before_other_options() {
    assert_eq!(usual().is_told(option::STARTTLS, b""), option_reply::ERR_POLICY);
    let mut client = begun(Tls::Required, 3);
    for code in [option::GO, option::LIST, option::STRUCTURED_REPLY] {
        assert_eq!(client.is_told(code, b""), option_reply::ERR_TLS_REQD);
    }
    assert_eq!(client.is_told(option::STARTTLS, b"x"), option_reply::ERR_INVALID);
    let (answers, progress) = client.sends(option::STARTTLS, b"");
    assert_eq!((answers, progress), (vec![(option_reply::ACK, vec![])], Progress::StartTls));
    client.handshake = client.handshake.within_tls();
    assert_eq!(client.is_told(option::STARTTLS, b""), option_reply::ERR_INVALID);
    assert!(matches!(client.sends(option::GO, &asking("vm1", &[])).1, Progress::Transmission(_)));
    let (_, progress) = begun(Tls::Required, 3).sends(option::EXPORT_NAME, b"vm1");
    assert_eq!(progress, Progress::Closed(Departure::TlsRequired));
}

#[test]
fn starttls_resets_what_was_negotiated_before_it() {
    let mut client = begun(Tls::Offered, 3);
    client.sends(option::STRUCTURED_REPLY, b"");
    client.sends(option::SET_META_CONTEXT, &querying("vm1", &["base:allocation"]));
    assert_eq!(client.sends(option::STARTTLS, b"").1, Progress::StartTls);
    client.handshake = client.handshake.within_tls();
    let agreed = Agreed { export: 0, replies: Replies::Simple, allocation: false };
    assert_eq!(client.sends(option::GO, &asking("vm1", &[])).1, Progress::Transmission(agreed));
}

#[test]
fn a_client_of_another_protocol_is_disconnected() {
    let mut out = Vec::new();
    let mut handshake = Handshake::new(Tls::Off, &mut out);
    let (_, progress) = handshake.receive(&[0, 0, 0, 8], &exports(), &mut out);
    assert_eq!(progress, Progress::Closed(Departure::UnknownClientFlags(8)));
    let mut client = usual();
    let (_, progress) = client.handshake.receive(b"GET / HTTP/1.1\r\n", &client.exports, &mut out);
    assert_eq!(progress, Progress::Closed(Departure::NotAnOption(u64::from_be_bytes(*b"GET / HT"))));
}

#[test]
fn operations_a_read_only_export_lacks_are_not_announced() {
    let export = Export { read_only: true, rotational: true, ..Export::new("iso", 1 << 20) };
    assert_eq!((export.flags(false), export.flags(true)), (0x0517, 0x0597));
}

#[test]
fn a_client_that_is_turned_away_reads_why_before_the_end() {
    let turned_away = |tls| {
        let mut client = begun(tls, 3);
        client.handshake = client.handshake.refusing_all_options("too many");
        client
    };
    let refusal = vec![(option_reply::ERR_POLICY, b"too many".to_vec())];
    for tls in [Tls::Off, Tls::Offered, Tls::Required] {
        let mut client = turned_away(tls);
        assert_eq!(client.sends(option::STRUCTURED_REPLY, b""), (refusal.clone(), Progress::Unfinished));
        let go = [&3_u32.to_be_bytes()[..], b"vm1", &[0, 0]].concat();
        assert_eq!(client.sends(option::GO, &go), (refusal.clone(), Progress::Closed(Departure::ServerFull)));
    }
    let closed = Progress::Closed(Departure::ServerFull);
    assert_eq!(turned_away(Tls::Off).sends(option::LIST, b""), (refusal, closed.clone()));
    assert_eq!(turned_away(Tls::Off).sends(option::EXPORT_NAME, b"vm1").1, closed);
    assert_eq!(turned_away(Tls::Off).sends(option::ABORT, b"").1, Progress::Closed(Departure::Aborted));
}
