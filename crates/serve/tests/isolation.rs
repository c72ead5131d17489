//! A calm client beside a loud one: whatever the loud one sends, the calm one waits for little of it.
//!
//! Each round measures the calm client three times: alone, beside the loud client on its own server, and beside the same loud client on
//! another server. The last one is what the machine and the disk make of that load; the server answers for the rest.
//!
//! `scripts/isolation` runs the long form.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::hostile::request;
use crate::running::Running;
use crate::wire::Client;

const KIB: u32 = 1 << 10;
const MIB: u32 = 1 << 20;
/// The calm client's export, and the loud one's behind it.
const CALM_BYTES: u64 = 4 << 20;
const LOUD_BYTES: u64 = 128 << 20;

/// Commands of NBD, and flags.
const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const CACHE: u16 = 5;
const WRITE_ZEROES: u16 = 6;
const BLOCK_STATUS: u16 = 7;
const FUA: u16 = 1;
const NO_HOLE: u16 = 2;

/// What a loud client does, again and again.
#[derive(Clone, Copy)]
enum Noise {
    /// As many requests at a time, and then their replies.
    Requests { kind: u16, flags: u16, bytes: u32, depth: usize },
    /// Connects, asks for a MiB and disconnects.
    Churn,
}

fn requests(kind: u16, bytes: u32, depth: usize) -> Noise {
    Noise::Requests { kind, flags: 0, bytes, depth }
}

fn noises() -> Vec<(&'static str, Noise)> {
    let durable = |kind, bytes| Noise::Requests { kind, flags: FUA, bytes, depth: 16 };
    let allocating = |bytes| Noise::Requests { kind: WRITE_ZEROES, flags: NO_HOLE, bytes, depth: 4 };
    vec![
        ("read 1 B", requests(READ, 1, 64)),
        ("read 4 KiB", requests(READ, 4 * KIB, 64)),
        ("read 128 KiB", requests(READ, 128 * KIB, 32)),
        ("read 1 MiB", requests(READ, MIB, 16)),
        ("read 32 MiB", requests(READ, 32 * MIB, 1)),
        ("write 1 B", requests(WRITE, 1, 64)),
        ("write 4 KiB", requests(WRITE, 4 * KIB, 64)),
        ("write 4 KiB, FUA", durable(WRITE, 4 * KIB)),
        ("write 1 MiB", requests(WRITE, MIB, 8)),
        ("write 32 MiB", requests(WRITE, 32 * MIB, 1)),
        ("flush", requests(FLUSH, 0, 16)),
        ("cache 32 MiB", requests(CACHE, 32 * MIB, 64)),
        ("block status 4 KiB", requests(BLOCK_STATUS, 4 * KIB, 64)),
        ("block status 120 MiB", requests(BLOCK_STATUS, 120 * MIB, 16)),
        ("write zeroes 4 KiB", requests(WRITE_ZEROES, 4 * KIB, 64)),
        ("write zeroes 120 MiB", requests(WRITE_ZEROES, 120 * MIB, 4)),
        ("write zeroes 32 MiB, no hole", allocating(32 * MIB)),
        ("trim 4 KiB", requests(TRIM, 4 * KIB, 64)),
        ("trim 120 MiB", requests(TRIM, 120 * MIB, 4)),
        ("connect and leave", Noise::Churn),
    ]
}

/// The replies to a batch of requests, simple or in chunks, until each has its last.
fn read_replies(stream: &mut UnixStream, mut left: usize, scratch: &mut Vec<u8>) {
    while left > 0 {
        let mut head = [0; 20];
        stream.read_exact(&mut head[..16]).unwrap();
        if head[..8] == [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0] {
            left -= 1;
            continue;
        }
        assert_eq!(head[..4], [0x66, 0x8e, 0x33, 0xef]);
        stream.read_exact(&mut head[16..]).unwrap();
        let bytes = u32::from_be_bytes(head[16..].try_into().unwrap()) as usize;
        scratch.resize(scratch.len().max(bytes), 0);
        stream.read_exact(&mut scratch[..bytes]).unwrap();
        left -= usize::from(head[5] & 1);
    }
}

/// Makes the noise while it is wanted, until it is over.
fn make_noise(server: &Running, noise: Noise, is_wanted: &AtomicBool, is_over: &AtomicBool) {
    let mut client = Client::in_chunks(server, "loud").unwrap();
    let (mut scratch, mut batch, mut at) = (Vec::new(), Vec::new(), 0_u64);
    while !is_over.load(SeqCst) {
        if !is_wanted.load(SeqCst) {
            std::thread::yield_now();
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        match noise {
            Noise::Churn => {
                let mut visitor = Client::at(server, "loud").unwrap();
                visitor.0.write_all(&request(0, READ, 1, 0, MIB)).unwrap();
            }
            Noise::Requests { kind, flags, bytes, depth } => {
                batch.clear();
                for cookie in 0..depth {
                    // No two that follow each other are neighbours. Single bytes lie across from a border.
                    let step = u64::from(bytes.max(512)).next_multiple_of(512);
                    at = (at + 7 * step + u64::from(bytes == 1)) % (LOUD_BYTES - u64::from(bytes)).max(1);
                    let offset = if bytes.is_multiple_of(512) { at - at % 512 } else { at };
                    let offset = if kind == FLUSH { 0 } else { offset };
                    batch.extend(request(flags, kind, cookie as u64, offset, bytes));
                    if kind == WRITE {
                        batch.resize(batch.len() + bytes as usize, 0x5a);
                    }
                }
                client.0.write_all(&batch).unwrap();
                read_replies(&mut client.0, depth, &mut scratch);
            }
        }
    }
}

/// A percentile of the calm client's reads of 4 KiB within a window; at least some.
fn percentile(client: &mut Client, window: Duration, percent: usize) -> Duration {
    const READS_MIN: usize = 60;
    let (until, mut took) = (Instant::now() + window, Vec::new());
    let mut reply = [0; 16 + 4096];
    while took.len() < READS_MIN || Instant::now() < until {
        let offset = (took.len() as u64 * 37 % 1000) * 4096;
        let begin = Instant::now();
        client.0.write_all(&request(0, READ, 1, offset, 4 * KIB)).unwrap();
        client.0.read_exact(&mut reply).unwrap();
        took.push(begin.elapsed());
        assert_eq!(reply[4..8], [0; 4]);
    }
    took.sort_unstable();
    took[took.len() * percent / 100]
}

/// Medians of the calm client's percentile.
#[derive(Clone, Copy)]
struct Seen {
    alone: Duration,
    beside: Duration,
    elsewhere: Duration,
}

impl Seen {
    fn of(servers: &[Running; 2], noise: Noise, (rounds, window): (usize, Duration), percent: usize) -> Seen {
        let mut calm = Client::at(&servers[0], "calm").unwrap();
        let (wanted, is_over) = ([const { AtomicBool::new(false) }; 2], AtomicBool::new(false));
        let mut all: [Vec<Duration>; 3] = Default::default();
        std::thread::scope(|scope| {
            for (server, wanted) in servers.iter().zip(&wanted) {
                scope.spawn(|| make_noise(server, noise, wanted, &is_over));
            }
            for round in 0..3 * rounds {
                let at = round % 3;
                if at > 0 {
                    wanted[at - 1].store(true, SeqCst);
                }
                // What went before ends, and this begins.
                std::thread::sleep(window / 5);
                all[at].push(percentile(&mut calm, window, percent));
                wanted.iter().for_each(|wanted| wanted.store(false, SeqCst));
            }
            is_over.store(true, SeqCst);
        });
        let [alone, beside, elsewhere] = all.map(|mut all| {
            all.sort_unstable();
            all[all.len() / 2]
        });
        Seen { alone, beside, elsewhere }
    }

    /// How much longer it takes beside the loud client than the machine and the disk explain.
    fn ratio(&self) -> f64 {
        self.beside.as_secs_f64() / self.alone.max(self.elsewhere).as_secs_f64()
    }
}

fn servers(kind: &str) -> [Running; 2] {
    let mut servers = (0..2).map(|_| {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let file = File::create(folder.path().join("disk")).unwrap();
        file.set_len(CALM_BYTES + LOUD_BYTES).unwrap();
        let piece = vec![7; 1 << 20];
        let step = if kind == "file with holes" { 2 << 16 } else { 1 << 16 };
        for at in (0..CALM_BYTES + LOUD_BYTES).step_by(step) {
            file.write_all_at(&piece[..1 << 16], at).unwrap();
        }
        let target = if kind == "memory" { "mem:132M" } else { "file:{}/disk" };
        let exports = ["--export", "name=calm,size=4M", "--export", "name=loud,offset=4M", "--log-level", "error"];
        let launched = [&["--target", target][..], &exports].concat();
        let server = Running::start_quietly(folder, &launched);
        // Memory that was never written is one hole.
        let mut loud = Client::at(&server, "loud").unwrap();
        for at in (0..if kind == "memory" { LOUD_BYTES } else { 0 }).step_by(1 << 20) {
            loud.0.write_all(&request(0, WRITE, 1, at, MIB)).unwrap();
            loud.0.write_all(&piece).unwrap();
            loud.0.read_exact(&mut [0; 16]).unwrap();
        }
        server
    });
    [servers.next().unwrap(), servers.next().unwrap()]
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What a server that was not optimised does in its turn, and a busy machine of two CPUs besides.
const ALLOWANCE: Duration = Duration::from_millis(25);
const RATIO_MAX: f64 = 3.0;

#[test]
fn no_input_of_one_client_delays_another_noticeably() {
    let rounds = number("HOISTWAY_ISOLATION_ROUNDS", 1) as usize;
    let window = Duration::from_millis(number("HOISTWAY_ISOLATION_MS", 25));
    let is_long = rounds > 3;
    // Of 60 reads the p99 is the second longest, which another program may have held up.
    let percent = if is_long { 99 } else { 90 };
    let only = std::env::var("HOISTWAY_ISOLATION_ONLY").unwrap_or_default();
    let mut failures = Vec::new();
    for kind in ["memory", "file", "file with holes"] {
        let servers = servers(kind);
        for (name, noise) in noises().into_iter().filter(|(name, _)| format!("{kind} {name}").contains(&only)) {
            let mut seen = Seen::of(&servers, noise, (rounds, window), percent);
            let is_heard = |seen: &Seen| {
                seen.ratio() > RATIO_MAX && (is_long || seen.beside > ALLOWANCE + seen.alone.max(seen.elsewhere))
            };
            // Another program may have been in the way.
            for _ in 0..3 {
                if is_long || !is_heard(&seen) {
                    break;
                }
                seen = Seen::of(&servers, noise, (rounds, window), percent);
            }
            let us = |time: Duration| time.as_secs_f64() * 1e6;
            let Seen { alone, beside, elsewhere } = seen;
            let line = format!(
                "| {kind} | {name} | {:.0} | {:.0} | {:.0} | {:.1} |",
                us(alone),
                us(elsewhere),
                us(beside),
                seen.ratio()
            );
            println!("{line}");
            if is_heard(&seen) {
                failures.push(line);
            }
        }
    }
    assert!(
        failures.is_empty(),
        "the calm client's p{percent}, us: alone, beside another server, beside: {failures:#?}"
    );
}
