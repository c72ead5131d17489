//! Clients that send whatever they like. Others are served meanwhile.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use rustix::net::sockopt::set_socket_send_buffer_size;

use crate::control::shown;
use crate::running::Running;
use crate::wire::Client;

/// A generator of noise.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

const HELLO: [u8; 4] = [0, 0, 0, 3];

/// GO for the first export, with nothing asked.
const GO: &[u8] = b"IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0";

pub(crate) fn request(flags: u16, kind: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}

/// Says hello and goes; what was answered has been read.
fn begun(server: &Running) -> UnixStream {
    let mut stream = server.connect();
    stream.write_all(&[&HELLO, GO].concat()).unwrap();
    // Greeting, then EXPORT, BLOCK_SIZE and ACK.
    stream.read_exact(&mut [0; 18 + 32 + 34 + 20]).unwrap();
    stream
}

/// Writes, reads back and compares, until it is to stop; returns how often.
fn honest(server: &Running, is_over: &AtomicBool) -> u64 {
    let mut stream = begun(server);
    let mut rounds = 0_u64;
    while !is_over.load(Relaxed) {
        rounds += 1;
        let data = [rounds as u8; 4096];
        let mut bytes = request(0, 1, 1, 4096 * (rounds % 16), 4096);
        bytes.extend(data);
        stream.write_all(&bytes).unwrap();
        stream.read_exact(&mut [0; 16]).unwrap();
        stream.write_all(&request(0, 0, 2, 4096 * (rounds % 16), 4096)).unwrap();
        let mut answer = [0; 16 + 4096];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0]);
        assert!(answer[16..] == data, "round {rounds}");
    }
    rounds
}

/// A frame that may mean anything, or nothing: it writes only where honest clients do not.
fn frame(noise: &mut Noise) -> Vec<u8> {
    let word = noise.next();
    let offset = if word & 1 == 0 { (1 << 20) + (noise.next() % 4096) * 512 } else { (1 << 20) + noise.next() / 2 };
    let length = [0, 512, 4096, 65536, 1 << 30, noise.next() as u32][(word >> 8) as usize % 6];
    let (flags, kind) = ((word >> 16) as u16 & 0x1f, (word >> 40) as u16 % 10);
    match kind {
        // Followed by its data, by a little of it, or by the next frame.
        1 if length <= 65536 => {
            let mut bytes = request(flags, kind, word, offset, length);
            bytes.extend(vec![7; if word >> 60 == 0 { 100 } else { length as usize }]);
            bytes
        }
        2 => request(0, 3, word, 0, 0),
        _ if word >> 56 == 0 => word.to_be_bytes().to_vec(),
        _ => request(flags, kind, word, offset, length),
    }
}

#[test]
fn a_hundred_thousand_random_frames_disturb_no_other_client() {
    const FRAMES: usize = 100_000;
    let server = Running::start(&["--target", "mem:8M", "--scheduler", "bfq", "--workers", "2"]);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let honest = scope.spawn(|| honest(&server, &is_over));
        let mut noise = Noise(0x2545_f491_4f6c_dd1d);
        let (mut sent, mut connections) = (0, 0);
        while sent < FRAMES {
            connections += 1;
            let mut stream = begun(&server);
            stream.set_nonblocking(true).unwrap();
            let mut answers = [0; 65536];
            for _ in 0..1 + noise.next() % 400 {
                sent += 1;
                let bytes = frame(&mut noise);
                let mut rest = &bytes[..];
                while !rest.is_empty() {
                    // Answers are read and not looked at, or the socket would fill.
                    let gone = match stream.write(rest) {
                        Ok(count) => {
                            rest = &rest[count..];
                            false
                        }
                        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
                    };
                    if matches!(stream.read(&mut answers), Ok(0)) || gone {
                        rest = &[];
                    }
                }
            }
        }
        assert!(connections > 200);
        is_over.store(true, Relaxed);
        assert!(honest.join().unwrap() > 100);
    });
    let log = server.end();
    assert!(log.ends_with("Some(0)") && !log.contains("bug"), "{log}");
}

#[test]
fn noise_instead_of_a_handshake_ends_that_connection() {
    let server = Running::start(&["--target", "mem:1M"]);
    let mut noise = Noise(77);
    for round in 0..300 {
        let mut stream = server.connect();
        let mut bytes = if round % 2 == 0 { HELLO.to_vec() } else { Vec::new() };
        if round % 4 == 0 {
            bytes.extend(b"IHAVEOPT");
        }
        bytes.extend((0..noise.next() % 60).flat_map(|_| noise.next().to_be_bytes()));
        // It may be closed before everything is sent.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    honest_round(&server);
    assert!(server.end().ends_with("Some(0)"));
}

fn honest_round(server: &Running) {
    let mut stream = begun(server);
    stream.write_all(&request(0, 0, 5, 0, 512)).unwrap();
    let mut answer = [0; 16 + 512];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer[4..16], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]);
}

#[test]
fn a_client_that_never_reads_is_bounded_and_others_are_served() {
    let server = Running::start(&["--target", "mem:64M", "--max-in-flight", "8"]);
    let mut deaf: Vec<_> = (0..4).map(|_| begun(&server)).collect();
    for stream in &mut deaf {
        stream.set_nonblocking(true).unwrap();
        // 8 reads of 1 MiB are taken; the others wait in the socket, until that is full.
        let requests = request(0, 0, 1, 0, 1 << 20).repeat(100);
        let mut sent = 0;
        while let Ok(count) = stream.write(&requests) {
            sent += count;
            assert!(sent < 64 << 20, "everything is taken");
        }
    }
    honest_round(&server);
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id().as_raw_nonzero())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    let kib: u64 = line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap();
    // For each of the deaf 64 MiB of answers that are not taken, and the server itself.
    assert!(kib < (4 * 64 + 64) << 10, "{line}");
    drop(deaf);
    honest_round(&server);
}

#[test]
fn repeated_block_status_on_a_fragmented_file_delays_no_other_client() {
    let folder = tempfile::tempdir().unwrap();
    let file = File::create(folder.path().join("disk")).unwrap();
    file.set_len(64 << 20).unwrap();
    for piece in 0..2000 {
        file.write_all_at(&[1; 4096], piece * 8192).unwrap();
    }
    let server = Running::start_in(folder, &["--target", "file:{}/disk"]);
    let mut asks = server.connect();
    let option = |code: u32, data: &[u8]| {
        [b"IHAVEOPT", &code.to_be_bytes()[..], &(data.len() as u32).to_be_bytes(), data].concat()
    };
    let context = b"\0\0\0\0\0\0\0\x01\0\0\0\x0fbase:allocation";
    let hello = [&b"\0\0\0\x03"[..], &option(8, b""), &option(10, context), &option(7, &[0; 6])].concat();
    asks.write_all(&hello).unwrap();
    asks.read_exact(&mut [0; 18]).unwrap();
    loop {
        let mut head = [0; 20];
        asks.read_exact(&mut head).unwrap();
        let of = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        asks.read_exact(&mut vec![0; of(16) as usize]).unwrap();
        if (of(8), of(12)) == (7, 1) {
            break;
        }
    }
    let mut calm = Client::at(&server, "").unwrap();
    // BLOCK_STATUS of 32 MiB: less than a millisecond of them each, and all in one buffer.
    let ask = b"\x25\x60\x95\x13\0\0\0\x07abcdefgh\0\0\0\0\0\0\0\0\x02\0\0\0";
    asks.write_all(&ask.repeat(2000)).unwrap();
    assert!(calm.is_served());
    let answered = shown(&server)["exports"][0]["others"].as_u64().unwrap();
    assert!(answered < 1900, "{answered}");
    // The reply covers the beginning of the range: 128 extents, perhaps one more, of 4 KiB each.
    let mut head = [0; 20];
    asks.read_exact(&mut head).unwrap();
    let length = u32::from_be_bytes(head[16..].try_into().unwrap());
    assert!((4 + 8 * 128..=4 + 8 * 129).contains(&length), "{length}");
}

/// Sends these bytes again and again, and takes and counts what is answered, until it is to stop.
fn flood(stream: &UnixStream, bytes: &[u8], answered: &AtomicUsize, is_over: &AtomicBool) {
    // So that there is always more than is received at a time.
    set_socket_send_buffer_size(stream, 8 << 20).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, mut answers) = (stream, vec![0; 1 << 20]);
            while let Ok(count @ 1..) = stream.read(&mut answers) {
                answered.fetch_add(count, Relaxed);
            }
        });
        let mut stream = stream;
        while !is_over.load(Relaxed) && stream.write_all(bytes).is_ok() {}
        let _ = stream.shutdown(std::net::Shutdown::Both);
    });
}

#[test]
fn endless_immediately_answered_requests_delay_no_other_client() {
    let server = Running::start(&["--target", "mem:64M"]);
    let in_chunks = || Client::in_chunks(&server, "").unwrap().0;
    let greeted = || {
        let mut stream = server.connect();
        stream.write_all(&HELLO).unwrap();
        stream
    };
    for (what, stream, bytes) in [
        ("CACHE", begun(&server), request(0, 5, 1, 0, 512)),
        ("a command that there is not", begun(&server), request(0, 99, 1, 0, 0)),
        ("READ behind the end", begun(&server), request(0, 0, 1, 1 << 60, 512)),
        ("READ of a hole", in_chunks(), request(0, 0, 1, 0, 1 << 20)),
        ("READ of 32 MiB", begun(&server), request(0, 0, 1, 0, 32 << 20)),
        ("READ that begins within a block", begun(&server), request(0, 0, 1, 1, 1 << 20)),
        ("LIST", greeted(), b"IHAVEOPT\0\0\0\x03\0\0\0\0".to_vec()),
        ("an option that there is not", greeted(), b"IHAVEOPT\0\0\0\x4d\0\0\0\0".to_vec()),
    ] {
        let mut calm = Client::at(&server, "").unwrap();
        calm.0.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let (answered, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| flood(&stream, &bytes.repeat(8000), &answered, &is_over));
            while answered.load(Relaxed) < 1 << 20 {
                std::thread::yield_now();
            }
            let are_served = (0..50).take_while(|_| calm.is_served()).count();
            is_over.store(true, Relaxed);
            // What it still writes may take long to be replied to.
            let _ = stream.shutdown(std::net::Shutdown::Both);
            assert_eq!(are_served, 50, "beside {what}");
        });
    }
}
