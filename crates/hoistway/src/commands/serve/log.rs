//! The log, on standard error. A line waits here until it is written: who has something to say has clients to serve, and a pipe
//! whose reader reads no more takes nothing.

use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use hoistway_terminal::printable;

/// Lines that may wait; what comes beyond them is counted, and lost.
const LINES_MAX: usize = 4096;
/// How long the end waits for what has been said before.
const FAREWELL_MAX: Duration = Duration::from_secs(1);

static LINES: OnceLock<SyncSender<String>> = OnceLock::new();
static WAITING: AtomicU64 = AtomicU64::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);

/// Begins it, in a thread of its own.
pub(super) fn begin() -> Result<()> {
    let (sender, lines) = sync_channel(LINES_MAX);
    thread::Builder::new().name("log".into()).spawn(move || write_all(&lines))?;
    // Who begins it twice has it already.
    let _ = LINES.set(sender);
    Ok(())
}

fn write_all(lines: &Receiver<String>) {
    for line in lines {
        write(&line);
        WAITING.fetch_sub(1, Relaxed);
        let lost = LOST.swap(0, Relaxed);
        if lost > 0 {
            write(&format!("{lost} lines of this log were lost: nobody read it"));
        }
    }
}

fn write(line: &str) {
    // Not `eprintln!`: that panics if nobody reads standard error any more. One line is one, whatever somebody has named.
    let _ = writeln!(std::io::stderr(), "hoistway: {}", printable::text(&line.replace('\n', "\u{240a}")));
}

/// Says it as soon as it can be said, and does not wait for that.
pub(super) fn say(what: &str) {
    let Some(lines) = LINES.get() else { return write(what) };
    WAITING.fetch_add(1, Relaxed);
    if lines.try_send(what.to_owned()).is_err() {
        WAITING.fetch_sub(1, Relaxed);
        LOST.fetch_add(1, Relaxed);
    }
}

/// Waits a moment for what has been said.
pub(super) fn end() {
    let until = Instant::now() + FAREWELL_MAX;
    while WAITING.load(Relaxed) > 0 && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
}
