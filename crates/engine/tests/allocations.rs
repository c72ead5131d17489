//! In steady state a request takes no memory that was not there before, and a large queue takes it for what is used.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use hoistway_blk::ground::{Kernel, Threads};
use hoistway_blk::queue::{Queue, QueueConfig, SCHEDULERS};
use hoistway_engine::{Backend, Buffer, Config, Context, Engine, FileSpec, Files, Memory, Request, completions};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// Held by the test that counts.
static COUNTED: Mutex<()> = Mutex::new(());

// SAFETY: all is the system's; it is only counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        BYTES.fetch_add(layout.size() as u64, Relaxed);
        // SAFETY: as the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as u64, Relaxed);
        // SAFETY: as the caller's.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const DEPTH: u32 = 32;

/// Allocations of this many requests of a client, from its hand and back, after as many to warm up.
fn allocations(scheduler: &str, backend: impl Backend + 'static, ios: usize) -> u64 {
    let config = Config { scheduler: scheduler.into(), queue_depth: Some(8), ..Config::default() };
    let engine = Engine::start(&config, backend).unwrap();
    let volume = engine.volume();
    let (handler, completions) = completions();
    let client = volume.client(Context::default(), DEPTH, handler);
    let blocks = volume.bytes() / 4096;
    let (mut state, mut ended) = (1u64, Vec::with_capacity(DEPTH as usize));
    let mut requests: Vec<Request> =
        (0..DEPTH).map(|token| Request::read(0, Buffer::zeroed(4096), u64::from(token))).collect();
    let mut before = 0;
    let mut done = 0;
    while done < 2 * ios {
        client.submit_all(&mut requests).unwrap();
        completions.wait(&mut ended);
        done += ended.len();
        for completion in ended.drain(..) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let offset = (state >> 33) % blocks * 4096;
            let write = state >> 63 == 0;
            let make = if write { Request::write } else { Request::read };
            requests.push(make(offset, completion.buffer, completion.token));
        }
        if done < ios {
            before = ALLOCATIONS.load(Relaxed);
        }
    }
    ALLOCATIONS.load(Relaxed) - before
}

#[test]
fn a_thousand_hardware_queues_take_memory_for_what_is_used() {
    let _counted = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
    let config = QueueConfig { cpus: 1000, hw_queues: 1000, queue_depth: 1023, ..QueueConfig::new(Kernel::DEFAULT) };
    for scheduler in SCHEDULERS {
        let before = BYTES.load(Relaxed);
        let queue: Queue<Threads> = Queue::new(&config, scheduler).unwrap();
        let bytes = BYTES.load(Relaxed) - before;
        assert!(bytes < 60_000_000, "{scheduler}: {bytes} bytes for {} hardware queues", queue.hw_queues());
        println!("{scheduler}: {bytes} bytes");
    }
}

#[test]
fn a_request_allocates_nothing() {
    let _counted = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
    let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    file.as_file().set_len(1 << 20).unwrap();
    for scheduler in SCHEDULERS {
        // Lists grow now and then to a length that they have not had yet.
        let allocations_max = 20;
        let of_memory = allocations(scheduler, Memory::new(1 << 20), 20_000);
        assert!(of_memory <= allocations_max, "{scheduler}: {of_memory} for 20000 requests over memory");
        let files = Files::open(&[FileSpec::new(file.path())]).unwrap();
        let of_file = allocations(scheduler, files, 5000);
        assert!(of_file <= allocations_max, "{scheduler}: {of_file} for 5000 requests over a file");
        println!("{scheduler}: {of_memory} allocations for 20000 requests over memory, {of_file} for 5000 over a file");
    }
}
