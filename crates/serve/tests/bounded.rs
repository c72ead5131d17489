//! What hostile clients make the server allocate, at most: the bound of its memory, and a tenth.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use hoistway_engine::faults::{CountingAllocator, Random};
use hoistway_engine::{Config, FileSpec, Files};
use hoistway_serve::{ExportSpec, FrontEnd, Listener, NewDisk, Placed, Server, ServerLimits, SocketAccess, Stop};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// The bound of the server's memory, and what may be exceeded it by.
const BOUND: usize = 64 << 20;
const TOLERANCE: usize = BOUND / 10;
const EXPORT_BYTES: u64 = 1 << 30;

/// Commands of NBD.
const READ: u16 = 0;
const WRITE: u16 = 1;
const TRIM: u16 = 4;
const CACHE: u16 = 5;
const BLOCK_STATUS: u16 = 7;

/// Memory of this process that takes up space, which includes mappings.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// A client that sends one kind of request as long as the server takes it, and reads nothing.
struct Hostile {
    stream: UnixStream,
    batch: Vec<u8>,
    sent: usize,
}

impl Hostile {
    fn connect(socket: &Path, random: &mut Random) -> Hostile {
        let mut stream = UnixStream::connect(socket).unwrap();
        if random.one_in(12) {
            // It stays in the handshake, with as much of an option as is taken.
            stream.set_nonblocking(true).unwrap();
            let mut batch = b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\x01\0\0".to_vec();
            batch.resize(60 << 10, b'a');
            return Hostile { stream, batch, sent: 0 };
        }
        let in_chunks = random.one_in(2);
        stream.write_all(b"\0\0\0\x03").unwrap();
        stream.read_exact(&mut [0; 18]).unwrap();
        if in_chunks {
            stream.write_all(b"IHAVEOPT\0\0\0\x08\0\0\0\0").unwrap();
            stream.read_exact(&mut [0; 20]).unwrap();
        }
        stream.write_all(b"IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0").unwrap();
        // The size, the block sizes, the acknowledgement.
        stream.read_exact(&mut [0; 20 + 12 + 20 + 14 + 20]).unwrap();
        stream.set_nonblocking(true).unwrap();
        Hostile { stream, batch: batch(random), sent: 0 }
    }

    /// Sends as much as the server takes. Returns whether that was anything.
    fn send(&mut self) -> bool {
        let before = self.sent;
        loop {
            let at = self.sent % self.batch.len();
            match self.stream.write(&self.batch[at..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return self.sent > before,
                // The server has closed it.
                Err(_) => return false,
            }
        }
    }
}

fn batch(random: &mut Random) -> Vec<u8> {
    let sizes = [1, 100, 512, 4096, 5000, 64 << 10, (256 << 10) + 1, 1 << 20, 32 << 20];
    let bytes = sizes[random.below(sizes.len() as u64) as usize];
    let kinds = [READ, READ, READ, WRITE, TRIM, CACHE, BLOCK_STATUS, 99];
    let kind = kinds[random.below(kinds.len() as u64) as usize];
    let is_refused = random.one_in(4);
    let mut batch = Vec::new();
    for cookie in 0..200_u64 {
        batch.extend(0x2560_9513_u32.to_be_bytes());
        batch.extend(0_u16.to_be_bytes());
        batch.extend(kind.to_be_bytes());
        batch.extend(cookie.to_be_bytes());
        batch.extend(if is_refused { 1 << 50 } else { cookie * 512 + random.below(3) }.to_be_bytes());
        batch.extend((bytes as u32).to_be_bytes());
        if kind == WRITE {
            batch.resize(batch.len() + bytes.min(4096), 7);
            if batch.len() > 1 << 20 || bytes > 4096 {
                break;
            }
        }
    }
    batch
}

#[test]
fn hostile_clients_of_every_kind_cannot_take_more_than_the_memory_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::File::create(&file).unwrap().set_len(EXPORT_BYTES).unwrap();
    let mut most_of_all = 0;
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let socket = folder.path().join(format!("s{seed}"));
        // What is written to a file takes no memory of the process, and what is read takes its buffer.
        let file = FileSpec { buffered: true, ..FileSpec::new(&file) };
        let disk = NewDisk { name: "file".into(), id: None, backend: Box::new(Files::open(&[file]).unwrap()) };
        let limits = ServerLimits { memory_bytes: BOUND, ..ServerLimits::default() };
        let exports = [Placed::on_target(ExportSpec::default())];
        let server = Server::start(&Config::default(), vec![disk], &exports, limits, Box::new(|_, _| {})).unwrap();
        let front_ends: [Box<dyn FrontEnd>; 1] = [Box::new(Listener::unix(&socket, SocketAccess::default()).unwrap())];
        let stop = Stop::new().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| server.accept(&front_ends, &stop));
            let clients = [4, 30, 200][seed as usize % 3] + random.below(40);
            let mut hostile: Vec<_> = (0..clients).map(|_| Hostile::connect(&socket, &mut random)).collect();
            let before = (ALLOCATOR.allocated_bytes(), resident());
            let _ = ALLOCATOR.take_most_bytes();
            let (begin, mut most_resident) = (Instant::now(), 0);
            // The memory of the server fills up in much less.
            while begin.elapsed() < Duration::from_millis(800) {
                let sent = hostile.iter_mut().map(Hostile::send).fold(false, |any, sent| any | sent);
                most_resident = most_resident.max(resident());
                if !sent {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            let most = ALLOCATOR.take_most_bytes().saturating_sub(before.0);
            let resident = most_resident.saturating_sub(before.1);
            println!("seed {seed}, {clients} clients: {most} bytes allocated, {resident} resident");
            stop.stop();
            most_of_all = most_of_all.max(resident);
            assert!(most <= BOUND + TOLERANCE && resident <= BOUND + TOLERANCE, "seed {seed}: {most}, {resident}");
        });
        let _ = server.drain(Duration::from_secs(20));
        server.stop();
    }
    // Without this the clients were harmless, and the test proves nothing.
    assert!(most_of_all > BOUND / 4, "{most_of_all}");
}
