//! Thousands of mixed requests against an array of bytes.

use super::client::*;
use super::{serve, socket};

const SECTORS: u64 = 4096;

/// A generator of its own: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// A request in flight, and what it is expected to come to.
struct Expected {
    kind: u32,
    sectors: std::ops::Range<usize>,
    data: Vec<u8>,
}

fn mixed(server_arguments: &[&str], options: Options, seed: u64) {
    let server = serve(server_arguments);
    let mut guest = Client::start(&socket(&server), options);
    let (mut random, mut disk) = (Random(seed), vec![0_u8; SECTORS as usize * 512]);
    let queues = usize::from(options.queues);
    let slots = usize::from(options.size / 3);
    let mut under_way: Vec<Vec<Option<Expected>>> = (0..queues).map(|_| (0..slots).map(|_| None).collect()).collect();
    let (mut begun, mut ended) = (0, 0);
    while ended < 6000 {
        let ring = random.below(queues as u64) as usize;
        let batch = random.below(8);
        let before = guest.rings[ring].available_index;
        for _ in 0..batch {
            if begun == 6000 {
                break;
            }
            let Some(slot) = under_way[ring].iter().position(Option::is_none) else { break };
            let (sector, sectors) = (random.below(SECTORS - 16), 1 + random.below(16));
            let span = sector as usize..(sector + sectors) as usize;
            // What is in flight has no order: no two touch the same, unless both read.
            let kind =
                [READ, READ, WRITE_OUT, WRITE_OUT, WRITE_ZEROES, DISCARD, FLUSH, GET_ID][random.below(8) as usize];
            let all = under_way.iter().flatten().flatten();
            let is_free = all.clone().all(|other| {
                (kind == READ && other.kind == READ)
                    || other.sectors.end <= span.start
                    || span.end <= other.sectors.start
            });
            if !is_free {
                continue;
            }
            let bytes = span.start * 512..span.end * 512;
            let head = slot as u16 * 3;
            let (span, data) = match kind {
                READ => (span, disk[bytes].to_vec()),
                WRITE_OUT => {
                    let data: Vec<u8> = bytes.clone().map(|_| random.below(256) as u8).collect();
                    disk[bytes].copy_from_slice(&data);
                    (span, data)
                }
                WRITE_ZEROES | DISCARD => {
                    disk[bytes].fill(0);
                    (span, range(sector, sectors as u32, u32::from(kind == WRITE_ZEROES && sector % 2 == 0)))
                }
                GET_ID => (0..0, b"hoistway\0\0\0\0\0\0\0\0\0\0\0\0".to_vec()),
                _ => (0..0, vec![]),
            };
            let is_in = matches!(kind, READ | GET_ID | FLUSH);
            let request = if is_in { Data::In(data.len() as u32) } else { Data::Out(&data) };
            guest.prepare(ring, head, kind, if matches!(kind, READ | WRITE_OUT) { sector } else { 0 }, request);
            guest.rings[ring].offer_all(&[head]);
            under_way[ring][slot] = Some(Expected { kind, sectors: span, data });
            begun += 1;
        }
        guest.rings[ring].kick_since(before);
        let is_busy = |under_way: &[Option<Expected>]| under_way.iter().any(Option::is_some);
        // The ring is drained now and then, so that the server sleeps and has to be woken.
        let least = if random.below(16) == 0 { usize::MAX } else { 1 };
        for _ in 0..least {
            if !is_busy(&under_way[ring]) {
                break;
            }
            let (head, len) = guest.rings[ring].next_used();
            let expected = under_way[ring][usize::from(head / 3)].take().expect("it was under way");
            let what = format!("seed {seed}: request {ended}, {} of {:?}", expected.kind, expected.sectors);
            assert_eq!(guest.status(ring, head), OK, "{what}");
            if matches!(expected.kind, READ | GET_ID) {
                let data = guest.memory.read(guest.data_at(ring, head), expected.data.len());
                assert!(data == expected.data && len as usize == data.len() + 1, "{what}");
            } else {
                assert_eq!(len, 1, "{what}");
            }
            ended += 1;
        }
    }
}

#[test]
fn mixed_requests_of_several_queues_match_a_byte_array_model() {
    for (seed, scheduler) in [(1, "none"), (2, "mq-deadline"), (3, "kyber"), (4, "bfq")] {
        let options = Options { queues: 3, size: 64, ..Options::default() };
        mixed(&["--target", "mem:2M", "--scheduler", scheduler, "--max-in-flight", "17"], options, seed);
    }
}

#[test]
fn mixed_requests_over_a_file_match_with_and_without_event_idx() {
    for (seed, without) in [(5, 0), (6, EVENT_IDX)] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("disk");
        std::fs::File::create(&file).unwrap().set_len(2 << 20).unwrap();
        let target = format!("file:{}", file.display());
        let options = Options { queues: 2, without, ..Options::default() };
        mixed(&["--target", &target, "--scheduler", "kyber", "--workers", "2"], options, seed);
    }
}
