//! Measures the CPU time of an I/O through the whole engine, over a null target or a device.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use hoistway_blk::ground::Instant;
use hoistway_engine::{Backend, Buffer, Completion, Config, Context, Engine, Request, Resident, Turn};

use super::machine::process_cpu_ns;

const BLOCK: usize = 4096;
const DEPTH: usize = 32;

/// The number of I/Os, set when all have completed; the inner `None` means that one failed.
type CompletedRequests = Arc<(Mutex<Option<Option<u64>>>, Condvar)>;

/// Issues random reads and counts them.
struct ReadingClient {
    done: CompletedRequests,
    blocks: u64,
    length: Duration,
    state: u64,
    buffers: Vec<Buffer>,
    start: Option<Instant>,
    ios: u64,
    in_flight: usize,
    has_failed: bool,
}

impl Resident for ReadingClient {
    fn turn(&mut self, now: Instant, ended: &mut Vec<Completion>, requests: &mut Vec<Request>) -> Turn {
        let start = *self.start.get_or_insert(now);
        self.ios += ended.len() as u64;
        self.in_flight -= ended.len();
        self.has_failed |= ended.iter().any(|answer| answer.result.is_err());
        self.buffers.extend(ended.drain(..).map(|answer| answer.buffer));
        // On a busy machine the time may be over before any I/O completed.
        let is_over = self.ios > 0 && now.since(start).0 > self.length.as_nanos() as u64;
        if self.has_failed || is_over {
            if self.in_flight > 0 {
                return Turn::By(Instant::NEVER);
            }
            let (done, condition) = &*self.done;
            *done.lock().unwrap_or_else(PoisonError::into_inner) = Some((!self.has_failed).then_some(self.ios));
            condition.notify_all();
            return Turn::Detached;
        }
        while self.in_flight < DEPTH
            && let Some(buffer) = self.buffers.pop()
        {
            self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            requests.push(Request::read((self.state >> 20) % self.blocks * BLOCK as u64, buffer, 0));
            self.in_flight += 1;
        }
        Turn::By(Instant::NEVER)
    }
}

/// CPU time per I/O in ns: random reads of 4 KiB on one worker of the engine without a scheduler, for this time.
///
/// # Errors
/// If the engine cannot be started, or an I/O fails.
pub(super) fn cpu_ns_per_io(backend: impl Backend + 'static, length: Duration) -> Result<f64, String> {
    let engine = Engine::start(&Config::default(), backend).map_err(|error| error.to_string())?;
    let done: CompletedRequests = Arc::default();
    let volume = engine.volume();
    let blocks = volume.bytes() / BLOCK as u64;
    if blocks == 0 {
        return Err("it is smaller than a block of 4 KiB".to_owned());
    }
    let before = process_cpu_ns();
    let reader = ReadingClient {
        done: Arc::clone(&done),
        blocks,
        length,
        state: 1,
        buffers: (0..DEPTH).map(|_| Buffer::zeroed(BLOCK)).collect(),
        start: None,
        ios: 0,
        in_flight: 0,
        has_failed: false,
    };
    volume.settle(Context::default(), 0, reader);
    let (answer, condition) = &*done;
    let answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
    let ios = condition.wait_while(answer, |answer| answer.is_none()).unwrap_or_else(PoisonError::into_inner).flatten();
    let spent = (process_cpu_ns() - before) as f64;
    match ios {
        Some(ios) if ios > 0 => Ok(spent / ios as f64),
        _ => Err("a read failed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use hoistway_engine::{Memory, Null};

    use super::*;

    #[test]
    fn an_io_costs_more_than_nothing_and_a_target_without_room_is_refused() {
        assert!(cpu_ns_per_io(Null::new(1 << 20), Duration::from_millis(2)).unwrap() > 0.0);
        let error = cpu_ns_per_io(Null::new(1), Duration::from_millis(2)).unwrap_err();
        assert_eq!(error, "it is smaller than a block of 4 KiB");
        assert!(cpu_ns_per_io(Memory::new(1 << 16), Duration::from_millis(2)).unwrap() > 0.0);
    }
}
