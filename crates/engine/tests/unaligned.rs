//! Requests that begin and end anywhere, beside what a byte array would hold.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use hoistway_engine::{
    Backend, Buffer, Client, Completion, Completions, Config, Context, Engine, Errno, FileSpec, Files, Memory,
    Operation, Request, completions,
};
use tempfile::NamedTempFile;

/// A size that is no multiple of any block.
const BYTES: u64 = 1_000_001;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn odd_file() -> NamedTempFile {
    let file = NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    file.as_file().set_len(BYTES).unwrap();
    file
}

fn client(engine: &Engine) -> (Client, Completions) {
    let (handler, completions) = completions();
    (engine.volume().client(Context::default(), 16, handler), completions)
}

fn submit_and_wait(client: &(Client, Completions), request: Request) -> Completion {
    client.0.submit(request).unwrap();
    let mut ended = Vec::new();
    assert!(client.1.wait(&mut ended));
    ended.pop().unwrap()
}

/// Random requests of one client, each of which must do what it does to a byte array.
fn like_a_byte_array(engine: &Engine, has_margins: bool) {
    let (client, mut random, mut model) = (client(engine), Random(7), vec![0_u8; BYTES as usize]);
    let buffers = engine.buffers();
    let block = u64::from(engine.volume().block_bytes());
    assert_eq!(engine.volume().bytes(), BYTES);
    for round in 0..600 {
        // Often in the last bytes, often short, sometimes long.
        let length_max = [8, 600, 5000, 200_000][random.below(4) as usize];
        let len = 1 + random.below(length_max);
        let offset = match random.below(3) {
            0 => BYTES - len,
            _ => random.below(BYTES - len),
        };
        let range = offset as usize..(offset + len) as usize;
        let buffer = || {
            let (before, behind) = (offset % block, (block - (offset + len) % block) % block);
            let (before, behind) = if has_margins { (before as usize, behind as usize) } else { (0, 0) };
            buffers.around(before, len as usize, behind)
        };
        let result = match random.below(8) {
            0..=2 => {
                let read = submit_and_wait(&client, Request::read(offset, buffer(), round));
                assert!(*read.buffer == model[range], "{offset} {len}");
                read.result
            }
            3..=5 => {
                let mut data = buffer();
                data.iter_mut().for_each(|byte| *byte = random.below(256) as u8);
                model[range].copy_from_slice(&data);
                let operation = Operation::Write { durable: random.below(4) == 0 };
                let ended = submit_and_wait(&client, Request { operation, ..Request::write(offset, data, round) });
                assert_eq!(ended.buffer.len() as u64, len);
                ended.result
            }
            6 => {
                model[range].fill(0);
                let operation = Operation::WriteZeroes { bytes: len, may_unmap: round % 2 == 0, fast_only: false };
                submit_and_wait(&client, Request { operation, offset, ..Request::flush(round) }).result
            }
            _ => {
                // What it discards may read as zeroes or as before: it is written again, so that it is known.
                let ended = submit_and_wait(&client, Request::discard(offset, len, round));
                let mut data = buffer();
                data.copy_from_slice(&model[range]);
                ended.result.and(submit_and_wait(&client, Request::write(offset, data, round)).result)
            }
        };
        assert_eq!(result, Ok(()), "{round}: {offset} {len}");
    }
    let mut all = Buffer::zeroed(BYTES as usize);
    all = submit_and_wait(&client, Request::read(0, all, 0)).buffer;
    assert!(*all == model);
}

#[test]
fn memory_is_read_and_written_anywhere() {
    for has_margins in [false, true] {
        let engine = Engine::start(&Config { workers: 2, ..Config::default() }, Memory::new(BYTES)).unwrap();
        like_a_byte_array(&engine, has_margins);
    }
}

#[test]
fn a_file_is_read_and_written_anywhere_to_its_last_byte_and_keeps_its_length() {
    for (buffered, with_threads) in [(false, false), (true, false), (false, true)] {
        let file = odd_file();
        let files = Files::open(&[FileSpec { buffered, ..FileSpec::new(file.path()) }]).unwrap();
        let files = if with_threads { files.without_io_uring() } else { files.with_fixed_buffers(1 << 20, 1) };
        let engine = Engine::start(&Config { scheduler: "mq-deadline".into(), ..Config::default() }, files).unwrap();
        like_a_byte_array(&engine, true);
        assert_eq!(file.as_file().metadata().unwrap().len(), BYTES);
    }
}

#[test]
fn the_last_bytes_of_a_file_are_its_own_and_behind_it_nothing_is_written() {
    let file = odd_file();
    let content: Vec<u8> = (0..BYTES).map(|index| (index % 251) as u8).collect();
    file.as_file().write_all_at(&content, 0).unwrap();
    let engine = Engine::start(&Config::default(), Files::open(&[FileSpec::new(file.path())]).unwrap()).unwrap();
    let client = client(&engine);
    let read = submit_and_wait(&client, Request::read(BYTES - 5, Buffer::zeroed(5), 0));
    assert_eq!(*read.buffer, content[BYTES as usize - 5..]);
    let zeroes = Operation::WriteZeroes { bytes: 3, may_unmap: true, fast_only: false };
    assert_eq!(
        submit_and_wait(&client, Request { operation: zeroes, offset: BYTES - 3, ..Request::flush(0) }).result,
        Ok(())
    );
    assert_eq!(submit_and_wait(&client, Request::flush(0)).result, Ok(()));
    drop((client, engine));
    let after = fs::read(file.path()).unwrap();
    assert_eq!(after.len() as u64, BYTES);
    assert_eq!(after[..BYTES as usize - 3], content[..BYTES as usize - 3]);
    assert_eq!(after[BYTES as usize - 3..], [0; 3]);
}

/// Each client writes every fourth byte: all of them share all blocks.
fn shared_bytes(backend: impl Backend + 'static, scheduler: &str) {
    const CLIENTS: u64 = 4;
    const PIECE: u64 = 96;
    let config = Config { workers: 2, scheduler: scheduler.into(), ..Config::default() };
    let engine = Engine::start(&config, backend).unwrap();
    std::thread::scope(|scope| {
        for own in 0..CLIENTS {
            let engine = &engine;
            scope.spawn(move || {
                let client = client(engine);
                for round in 0..40_u64 {
                    let mut batch = Vec::new();
                    for piece in 0..16 {
                        let offset = (piece * CLIENTS + own) * PIECE;
                        batch.push(Request::write(offset, Buffer::from(&[round as u8 + 1; PIECE as usize][..]), piece));
                    }
                    assert_eq!(client.0.submit_all(&mut batch), Ok(true));
                    let mut ended = Vec::new();
                    while ended.len() < 16 {
                        assert!(client.1.wait(&mut ended));
                    }
                    for piece in 0..16 {
                        let offset = (piece * CLIENTS + own) * PIECE;
                        let read = submit_and_wait(&client, Request::read(offset, Buffer::zeroed(PIECE as usize), 0));
                        let expected = [round as u8 + 1; PIECE as usize];
                        assert!(*read.buffer == expected, "a write of another client was lost or took this with it");
                    }
                }
            });
        }
        // And one that writes whole blocks beside them.
        let engine = &engine;
        scope.spawn(move || {
            let client = client(engine);
            for round in 0..200_u64 {
                let offset = 8192 + round % 4 * 4096;
                submit_and_wait(&client, Request::write(offset, Buffer::from(&[round as u8; 4096][..]), 0));
                let byte = submit_and_wait(&client, Request::write(offset + 7, Buffer::from(&[!round as u8][..]), 0));
                assert_eq!(byte.result, Ok(()));
                let read = submit_and_wait(&client, Request::read(offset, Buffer::zeroed(4096), 0)).buffer;
                let as_written =
                    |(place, &byte): (usize, &u8)| byte == if place == 7 { !round as u8 } else { round as u8 };
                assert!(read.iter().enumerate().all(as_written));
            }
        });
    });
}

#[test]
fn clients_sharing_blocks_lose_no_bytes() {
    for scheduler in ["none", "bfq"] {
        shared_bytes(Memory::new(64 << 10), scheduler);
    }
    let file = NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    File::options().write(true).open(file.path()).unwrap().set_len(64 << 10).unwrap();
    shared_bytes(Files::open(&[FileSpec::new(file.path())]).unwrap(), "none");
}

/// tmpfs punches holes, and cannot zero a range that stays allocated.
#[test]
fn zeroes_that_are_refused_as_slow_change_nothing_and_holes_stay_fast_after_them() {
    let Some(file) = NamedTempFile::new_in("/dev/shm")
        .ok()
        .filter(|file| rustix::fs::fstatfs(file).is_ok_and(|system| i128::from(system.f_type) == 0x0102_1994))
    else {
        assert!(std::env::var("CI").is_err(), "/dev/shm is a tmpfs");
        eprintln!("skipped: /dev/shm is no tmpfs");
        return;
    };
    let content = vec![7; 256 << 10];
    file.as_file().write_all_at(&content, 0).unwrap();
    let engine = Engine::start(&Config::default(), Files::open(&[FileSpec::new(file.path())]).unwrap()).unwrap();
    let client = client(&engine);
    let zeroes = |may_unmap, fast_only| {
        let operation = Operation::WriteZeroes { bytes: (256 << 10) - 200, may_unmap, fast_only };
        submit_and_wait(&client, Request { operation, offset: 100, ..Request::flush(0) }).result
    };
    assert_eq!(zeroes(false, true), Err(Errno::OPNOTSUPP));
    assert!(fs::read(file.path()).unwrap() == content);
    assert_eq!(zeroes(false, false), Ok(()));
    assert_eq!(file.as_file().metadata().unwrap().blocks(), 512);
    assert_eq!(zeroes(true, true), Ok(()));
    let after = fs::read(file.path()).unwrap();
    assert!(after[..100] == content[..100] && after[100..][..(256 << 10) - 200].iter().all(|&byte| byte == 0));
    assert!(file.as_file().metadata().unwrap().blocks() <= 16, "the blocks between the first and the last are holes");
}

#[test]
fn a_turn_is_made_of_whole_blocks() {
    for turn_bytes in [0, 511, 4095] {
        let config = Config { turn_bytes, ..Config::default() };
        let error = Engine::start(&config, Memory::new(1 << 20)).err().unwrap().to_string();
        assert!(error.contains("turn_bytes") && error.contains("block size (512 bytes)"), "{error}");
    }
}
