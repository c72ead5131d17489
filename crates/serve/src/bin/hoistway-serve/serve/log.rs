//! The log, on standard error. A separate thread writes it, so a slow reader of standard error never blocks a client.

use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use hoistway_serve::Level;

use crate::text::one_line;

/// Lines that may be queued; further ones are counted and dropped.
const LINES_MAX: usize = 4096;
/// How long the server waits for queued lines when it exits.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

static LINES: OnceLock<SyncSender<(Level, String)>> = OnceLock::new();
static IS_JSON: AtomicBool = AtomicBool::new(false);
static LEVEL: AtomicU8 = AtomicU8::new(Level::Info as u8);
static QUEUED_LINES: AtomicU64 = AtomicU64::new(0);
static DROPPED_LINES: AtomicU64 = AtomicU64::new(0);

/// Starts the thread that writes the log.
pub(super) fn begin() -> Result<()> {
    let (sender, lines) = sync_channel(LINES_MAX);
    thread::Builder::new().name("log".into()).spawn(move || write_all(&lines))?;
    // A second start is harmless.
    let _ = LINES.set(sender);
    Ok(())
}

fn write_all(lines: &Receiver<(Level, String)>) {
    for (level, line) in lines {
        write(level, &line);
        QUEUED_LINES.fetch_sub(1, Relaxed);
        let lost = DROPPED_LINES.swap(0, Relaxed);
        if lost > 0 {
            write(Level::Warning, &format!("dropped {lost} log lines: stderr reader too slow"));
        }
    }
}

fn write(level: Level, line: &str) {
    let line = if IS_JSON.load(Relaxed) { as_json(level, line) } else { format!("hoistway-serve: {}", one_line(line)) };
    // `eprintln!` would panic if standard error is closed.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn as_json(level: Level, line: &str) -> String {
    let level = match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Info => "info",
    };
    let time_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    serde_json::json!({ "time_ms": time_ms, "level": level, "message": one_line(line) }).to_string()
}

/// Lines are JSON objects from now on.
pub(super) fn set_json(is_json: bool) {
    IS_JSON.store(is_json, Relaxed);
}

/// Lines of less important levels are dropped from now on.
pub(super) fn set_level(level: Level) {
    LEVEL.store(level as u8, Relaxed);
}

/// Queues a line of level info; never blocks.
pub(super) fn say(message: &str) {
    log(Level::Info, message);
}

/// Queues a line; never blocks.
pub(super) fn log(level: Level, message: &str) {
    if level as u8 > LEVEL.load(Relaxed) {
        return;
    }
    let Some(lines) = LINES.get() else { return write(level, message) };
    QUEUED_LINES.fetch_add(1, Relaxed);
    if lines.try_send((level, message.to_owned())).is_err() {
        QUEUED_LINES.fetch_sub(1, Relaxed);
        DROPPED_LINES.fetch_add(1, Relaxed);
    }
}

/// Waits up to [`FLUSH_TIMEOUT`] for queued lines to be written.
pub(super) fn end() {
    let deadline = Instant::now() + FLUSH_TIMEOUT;
    while QUEUED_LINES.load(Relaxed) > 0 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
}
