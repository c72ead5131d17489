//! Guests that break what they can reach, which is their own disk.

use super::client::*;
use super::memory::REGIONS;
use super::ring::{Descriptor, INDIRECT, NEXT, WRITE, describe};
use super::{serve, socket};
use crate::running::Running;
use crate::wire;

/// Where a test lays what it needs: behind the places of all heads.
const SPARE: u64 = DATA_AT + (32 << 20);
const STATUS: u64 = SPARE + 512;
const TABLE: u64 = SPARE + (1 << 20);

struct Scene {
    server: Running,
    guest: Client,
}

impl Scene {
    fn new() -> Scene {
        let server = serve(&["--target", "mem:16M"]);
        let guest = Client::start(&socket(&server), Options::default());
        Scene { server, guest }
    }

    fn header(&self, kind: u32, sector: u64) {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([0; 4]);
        bytes.extend(sector.to_le_bytes());
        self.guest.memory.write(SPARE, &bytes);
        self.guest.memory.store(STATUS, UNTOUCHED);
    }

    /// Offers a chain of these descriptors, which begins with the first. Returns the status and the length that came back.
    fn offer(&mut self, chain: &[Descriptor]) -> (u8, u32) {
        let ring = &mut self.guest.rings[0];
        for (index, &descriptor) in chain.iter().enumerate() {
            ring.describe(index as u16, descriptor);
        }
        let before = ring.available_index;
        ring.offer_all(&[0]);
        ring.kick_since(before);
        let (head, len) = ring.next_used();
        assert_eq!(head, 0);
        (self.guest.memory.load(STATUS), len)
    }

    /// A header, a piece of data and a status.
    fn ask(&mut self, kind: u32, sector: u64, data: (u64, u32), is_in: bool) -> (u8, u32) {
        self.header(kind, sector);
        let flags = if is_in { NEXT | WRITE } else { NEXT };
        self.offer(&[(SPARE, 16, NEXT, 1), (data.0, data.1, flags, 2), (STATUS, 1, WRITE, 0)])
    }

    fn works(&mut self) {
        assert!(self.guest.works(), "log:\n{}", self.server.log());
    }
}

const DATA: u64 = SPARE + 4096;

#[test]
fn invalid_lengths_and_offsets_only_cause_errors() {
    let mut scene = Scene::new();
    let (memory_at, memory_bytes) = REGIONS[1];
    for (kind, is_in) in [(READ, true), (WRITE_OUT, false)] {
        for bytes in [0, 1, 511, 513, u32::MAX, (64 << 20) + 512] {
            assert_eq!(scene.ask(kind, 0, (DATA, bytes), is_in), (IO_ERROR, 1), "{bytes} bytes");
        }
        for sector in [u64::MAX, u64::MAX - 7, u64::MAX / 512, 1 << 55, 32768, 32761] {
            assert_eq!(scene.ask(kind, sector, (DATA, 4096), is_in), (IO_ERROR, 1), "sector {sector}");
        }
        // Beyond the end, across it, into the hole, in no memory, and around the end of all addresses.
        let ends = [memory_at + memory_bytes, memory_at + memory_bytes - 512, REGIONS[0].0 + REGIONS[0].1 - 1024];
        for address in ends.into_iter().chain([0, u64::MAX - 511, u64::MAX, 1 << 63]) {
            assert_eq!(scene.ask(kind, 0, (address, 4096), is_in), (IO_ERROR, 1), "data at {address:#x}");
        }
    }
    for kind in [2, 3, 5, 10, 14, 15, 26, 0x8000_0000, u32::MAX] {
        assert_eq!(scene.ask(kind, 0, (DATA, 512), true), (UNSUPPORTED, 1), "type {kind}");
    }
    for bytes in [0, 1, 19, 20, 21] {
        assert_eq!(scene.ask(GET_ID, 0, (DATA, bytes), true), (OK, bytes.min(20) + 1), "an id of {bytes} bytes");
    }
    scene.works();
}

#[test]
fn one_invalid_range_rejects_all_ranges_of_the_request() {
    let mut scene = Scene::new();
    let kept = [7; 4096];
    assert_eq!(scene.guest.request(WRITE_OUT, 0, Data::Out(&kept)).0, OK);
    let good = range(0, 8, 0);
    for (kind, last, expected) in [
        (DISCARD, range(0, 8, 1), UNSUPPORTED),
        (DISCARD, range(0, 8, 2), UNSUPPORTED),
        (WRITE_ZEROES, range(0, 8, 2), UNSUPPORTED),
        (WRITE_ZEROES, range(32768, 1, 0), IO_ERROR),
        (WRITE_ZEROES, range(u64::MAX, 1, 0), IO_ERROR),
        (DISCARD, range(0, u32::MAX, 0), IO_ERROR),
        (DISCARD, range(u64::MAX - 1, 8, 0), IO_ERROR),
    ] {
        let both = [good.clone(), last.clone()].concat();
        assert_eq!(scene.guest.request(kind, 0, Data::Out(&both)).0, expected, "{kind}: {last:?}");
    }
    for kind in [DISCARD, WRITE_ZEROES] {
        for text in [vec![], vec![0; 15], vec![0; 17], good.repeat(33)] {
            assert_eq!(scene.guest.request(kind, 0, Data::Out(&text)).0, IO_ERROR, "{} bytes", text.len());
        }
        assert_eq!(scene.guest.request(READ, 0, Data::In(4096)).2, kept);
    }
    scene.works();
}

#[test]
fn a_request_may_be_cut_into_pieces_anywhere() {
    let mut scene = Scene::new();
    let data: Vec<u8> = (0..1536_u32).map(|at| (at / 3) as u8).collect();
    scene.header(WRITE_OUT, 40);
    scene.guest.memory.write(SPARE + 16, &data);
    // The header in three, the last of which continues with data; an empty one; the status behind a byte that is not ours.
    let chain = [
        (SPARE, 1, NEXT, 1),
        (SPARE + 1, 9, NEXT, 2),
        (SPARE + 10, 6 + 100, NEXT, 3),
        (0, 0, NEXT, 4),
        (SPARE + 116, 395, NEXT, 5),
        (SPARE + 511, 1, NEXT, 6),
        (SPARE + 512, 1024 + 16, NEXT, 7),
        (STATUS + 4096, 1, WRITE, 0),
    ];
    scene.guest.memory.store(STATUS + 4096, UNTOUCHED);
    scene.guest.memory.write(SPARE + 16, &data);
    scene.offer(&chain);
    assert_eq!(scene.guest.memory.load::<u8>(STATUS + 4096), OK);

    scene.header(READ, 40);
    scene.guest.memory.store(DATA + 1536, UNTOUCHED);
    let chain = [(SPARE, 16, NEXT, 1), (DATA, 7, NEXT | WRITE, 2), (DATA + 7, 1530, WRITE, 0)];
    assert_eq!(scene.offer(&chain).1, 1537);
    assert_eq!(scene.guest.memory.load::<u8>(DATA + 1536), OK);
    assert!(scene.guest.memory.read(DATA, 1536) == data);

    // By way of a table, and 64 pieces.
    scene.header(READ, 40);
    describe(&scene.guest.memory, TABLE, (SPARE, 16, NEXT, 1));
    for piece in 0..64_u16 {
        let at = TABLE + 16 * (1 + u64::from(piece));
        describe(&scene.guest.memory, at, (DATA + 24 * u64::from(piece), 24, NEXT | WRITE, piece + 2));
    }
    describe(&scene.guest.memory, TABLE + 16 * 65, (STATUS, 1, WRITE, 0));
    scene.guest.memory.write(DATA, &[0; 1536]);
    assert_eq!(scene.offer(&[(TABLE, 66 * 16, INDIRECT, 0)]), (OK, 1537));
    assert!(scene.guest.memory.read(DATA, 1536) == data);
    scene.works();
}

#[test]
fn a_chain_without_an_end_or_a_status_is_given_back_and_that_is_all() {
    let mut scene = Scene::new();
    scene.header(READ, 0);
    let nested = [(TABLE, 16, INDIRECT, 0), (0, 0, 0, 0)];
    let looped = [(SPARE, 16, NEXT, 1), (DATA, 512, NEXT | WRITE, 1)];
    describe(&scene.guest.memory, TABLE, (TABLE, 32, INDIRECT, 0));
    describe(&scene.guest.memory, TABLE + 4096, (SPARE, 16, NEXT, 1));
    describe(&scene.guest.memory, TABLE + 4112, (DATA, 512, NEXT | WRITE, 0));
    let chains: [&[Descriptor]; 14] = [
        &[(SPARE, 16, NEXT, 0)],
        &[(SPARE, 16, NEXT, 1), (DATA, 512, NEXT | WRITE, 0)],
        &looped,
        &[(SPARE, 16, NEXT, 128)],
        &[(SPARE, 16, NEXT, 65535)],
        &[(SPARE, 16, 0, 0)],
        &[(SPARE, 16, NEXT, 1), (STATUS, 0, WRITE, 0)],
        &[(SPARE, 16, NEXT, 1), (0x10, 1, WRITE, 0)],
        &[(SPARE, 16, NEXT, 1), (u64::MAX, 2, WRITE, 0)],
        &nested,
        &[(TABLE + 4096, 32, INDIRECT, 0)],
        &[(TABLE, 0, INDIRECT, 0)],
        &[(TABLE, 24, INDIRECT, 0)],
        &[(TABLE, 16, INDIRECT | NEXT, 1), (STATUS, 1, WRITE, 0)],
    ];
    for chain in chains {
        assert_eq!(scene.offer(chain), (UNTOUCHED, 0), "{chain:?}");
        scene.works();
        scene.header(READ, 0);
    }
    // As long a table as there can be, of which nothing ends, and one that is nowhere.
    for index in 0..65535_u32 {
        let next = (index + 1) as u16;
        describe(&scene.guest.memory, TABLE + 16 * u64::from(index), (DATA, 512, NEXT | WRITE, next));
    }
    assert_eq!(scene.offer(&[(TABLE, 65535 * 16, INDIRECT, 0)]).1, 0);
    assert_eq!(scene.offer(&[(0x10, 160, INDIRECT, 0)]).1, 0);
    scene.works();
    // Where there is a status it is used: readable behind writable.
    scene.header(READ, 0);
    assert_eq!(
        scene.offer(&[(DATA, 512, NEXT | WRITE, 1), (SPARE, 16, NEXT, 2), (STATUS, 1, WRITE, 0)]),
        (IO_ERROR, 1)
    );
    scene.works();
    assert!(scene.server.log().contains("returned a request without a status descriptor"));
}

#[test]
fn a_broken_ring_stops_alone_and_starts_again() {
    let mut server = serve(&["--target", "mem:16M"]);
    let mut other = Client::start(&socket(&server), Options { queues: 2, ..Options::default() });
    for (how, said) in [(0, "more requests are available"), (1, "begins beyond"), (2, "made available twice")] {
        let ring = &mut other.rings[0];
        match how {
            0 => {
                ring.available_index = ring.available_index.wrapping_add(129);
                other.memory.store(ring.available + 2, ring.available_index);
            }
            1 => ring.offer_all(&[200]),
            _ => {
                other.prepare(0, 0, READ, 0, Data::In(4096));
                other.rings[0].offer_all(&[0, 0]);
            }
        }
        other.rings[0].kick.write(1).unwrap();
        while other.rings[0].error.read().is_err() {
            std::thread::yield_now();
        }
        server.wait_until(said, |server| server.log().contains(said));
        // The other ring works on, and this one does after it has been started anew.
        assert_eq!(other.request_on(1, READ, 0, Data::In(512)).0, OK);
        other.restart(0);
        assert!(other.works());
    }
}

#[test]
fn overlapping_or_misplaced_rings_harm_no_other_client() {
    let server = serve(&[
        "--target",
        "mem:16M",
        "--export",
        "name=a,size=8M",
        "--export",
        "name=b,offset=8M,vhost-user={}/b.sock",
    ]);
    let mut calm = Client::start(&server.folder().join("b.sock"), Options::default());
    for shift in [0, 4, 64] {
        let mut guest = Client::connect(&socket(&server), Options::default());
        let ring = &mut guest.rings[0];
        (ring.available, ring.used) = (ring.descriptors + shift, ring.descriptors + 2 * shift);
        guest.start_rings();
        for _ in 0..100 {
            guest.rings[0].kick.write(1).unwrap();
        }
        assert!(calm.works());
    }
    let mut guest = Client::connect(&socket(&server), Options::default());
    guest.rings[0].used = REGIONS[1].0 + REGIONS[1].1 - 8;
    guest.start_rings();
    guest.rings[0].kick.write(1).unwrap();
    assert!(calm.works());
}

#[test]
fn endless_descriptor_chains_in_all_rings_delay_no_other_client() {
    let server = serve(&["--target", "mem:16M"]);
    let mut guest = Client::start(&socket(&server), Options { queues: 64, size: 1024, ..Options::default() });
    for ring in &guest.rings {
        (0..1024).for_each(|index| ring.describe(index, (SPARE, 16, NEXT, (index + 1) % 1024)));
    }
    let mut calm = wire::Client::at(&server, "").unwrap();
    calm.0.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
    let calm = std::thread::spawn(move || (0..20).take_while(|_| calm.is_served()).count());
    while !calm.is_finished() {
        for ring in &mut guest.rings {
            // All of the ring, whose entries are zeroes, as soon as it has been given back.
            if guest.memory.load::<u16>(ring.used + 2) == ring.available_index {
                ring.available_index = ring.available_index.wrapping_add(1024);
                guest.memory.store(ring.available + 2, ring.available_index);
                let _ = ring.kick.write(1);
            }
        }
    }
    assert_eq!(calm.join().unwrap(), 20);
}
