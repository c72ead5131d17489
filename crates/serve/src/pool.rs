//! Buffers that a connection uses again: those of a client's requests are mostly of one or two lengths.

use hoistway_engine::{Buffer, Buffers};

/// Most buffers that are kept.
const BUFFERS: usize = 160;
/// Most bytes of all that are kept.
const BYTES: usize = 8 << 20;

/// Buffers of completed requests.
pub struct Pool {
    source: Buffers,
    buffers: Vec<Buffer>,
    bytes: usize,
}

impl Pool {
    /// An empty one.
    pub fn new(source: Buffers) -> Self {
        Pool { source, buffers: Vec::new(), bytes: 0 }
    }

    /// One of this length. What is in it is of this connection's own past.
    ///
    /// Around it is room for the rest of its first and last block, if it begins at `offset` of a target with blocks of `block_bytes`: the
    /// engine needs no copy then.
    pub fn take_at(&mut self, offset: u64, len: usize, block_bytes: u32) -> Buffer {
        let block = u64::from(block_bytes);
        let before = offset & (block - 1);
        let all = (before + len as u64).next_multiple_of(block) as usize;
        if all == len { self.take(len) } else { self.take(all).window(before as usize, len) }
    }

    /// One of this length, at the beginning of its memory.
    pub fn take(&mut self, len: usize) -> Buffer {
        match self.buffers.iter().rposition(|buffer| buffer.len() == len) {
            Some(at) => {
                self.bytes -= len;
                self.buffers.swap_remove(at)
            }
            None => self.source.zeroed(len),
        }
    }

    /// Keeps one for later.
    pub fn give_back(&mut self, buffer: Buffer) {
        let (before, behind) = buffer.margins();
        let len = before + buffer.len() + behind;
        let buffer = buffer.window(0, len);
        if len == 0 || len > BYTES / 2 {
            return;
        }
        while self.buffers.len() >= BUFFERS || self.bytes + len > BYTES {
            self.bytes -= self.buffers.swap_remove(0).len();
        }
        self.bytes += len;
        self.buffers.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use hoistway_engine::{Config, Engine, Null};

    use super::*;

    #[test]
    fn a_buffer_of_the_same_length_is_used_again_and_few_are_kept() {
        let engine = Engine::start(&Config::default(), Null::new(8)).expect("an engine over nothing");
        let mut pool = Pool::new(engine.buffers());
        let mut first = pool.take(4096);
        first[0] = 7;
        pool.give_back(first);
        assert_eq!(pool.take(512)[0], 0);
        assert_eq!(pool.take(4096)[0], 7);
        for _ in 0..1000 {
            pool.give_back(Buffer::zeroed(64 << 10));
            assert!(pool.bytes <= BYTES && pool.buffers.len() <= BUFFERS);
        }
        pool.give_back(Buffer::zeroed(32 << 20));
        assert!(pool.bytes <= BYTES);
        let kept: usize = pool.buffers.iter().map(|buffer| buffer.len()).sum();
        assert_eq!(kept, pool.bytes);
    }
}
