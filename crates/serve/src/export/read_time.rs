//! Measures the read time of an idle disk, which determines its default scheduler.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use hoistway_engine::{Buffer, Completion, Context, Request};

use crate::export::exports::LiveExport;

/// Maximum number of reads.
const READS_MAX: u64 = 16;
/// A probe takes at most this time for all reads, and a read that takes longer counts as one that took this long.
const PROBE_TIME_MAX: Duration = Duration::from_millis(250);

impl LiveExport {
    /// The first quartile of the time to read one block of it. `None` if it holds no data yet. To be called before clients of its disk are
    /// accepted.
    #[must_use]
    pub fn read_time(&self) -> Option<Duration> {
        let volume = self.part().ok()?.read_only();
        let (sender, times) = mpsc::channel();
        let client = volume.client(Context::default(), 1, move |batch: &mut Vec<Completion>| {
            // The receiver is gone if a read took too long.
            for completion in batch.drain(..) {
                let _ = sender.send(completion.result.is_ok());
            }
        });
        let block_bytes = u64::from(volume.preferred_block_bytes());
        let (begin, blocks) = (Instant::now(), volume.bytes() / block_bytes);
        let mut read_times: Vec<Duration> = Vec::new();
        for index in 0..READS_MAX.min(blocks) {
            // Random order, because disks are fast at sequential reads.
            let offset = (index * 7 % READS_MAX) * (blocks / READS_MAX.min(blocks)) % blocks * block_bytes;
            let is_hole = |offset| volume.extents(offset..offset + block_bytes, 1).map(|first| first[0].is_hole);
            if is_hole(offset).unwrap_or(true) {
                continue;
            }
            let Some(time_left) = PROBE_TIME_MAX.checked_sub(begin.elapsed()) else { break };
            let now = Instant::now();
            client.submit(Request::read(offset, Buffer::zeroed(block_bytes as usize), index)).ok()?;
            match times.recv_timeout(time_left) {
                Ok(true) => read_times.push(now.elapsed()),
                Ok(false) => {}
                Err(_) => {
                    read_times.push(PROBE_TIME_MAX);
                    break;
                }
            }
        }
        read_times.sort_unstable();
        read_times.get(read_times.len() / 4).copied()
    }
}
