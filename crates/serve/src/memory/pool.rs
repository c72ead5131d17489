//! Reusable buffers of a connection, and its account in the shared memory.

use std::sync::Arc;

use hoistway_engine::{Buffer, Buffers};

use crate::memory::Account;

/// Maximum number of buffers that are kept.
const BUFFERS: usize = 160;
/// Maximum bytes of all kept buffers.
const BYTES: usize = 8 << 20;

/// Buffers of completed requests. Their old contents come from this connection only.
///
/// Each buffer is charged to the account from its allocation until it is returned and not kept.
pub struct Pool {
    source: Buffers,
    account: Arc<Account>,
    buffers: Vec<Buffer>,
    bytes: usize,
}

/// The position of a request's data on the target.
#[derive(Clone, Copy, Debug)]
pub struct DataPosition {
    /// Bytes of the first block before the data.
    pub before: usize,
    /// Its length in bytes.
    pub len: usize,
    /// Bytes of the last block after the data.
    pub behind: usize,
}

impl DataPosition {
    /// The position at this byte of a target with blocks of this size.
    pub fn new(offset: u64, len: usize, block_bytes: u32) -> DataPosition {
        let block = u64::from(block_bytes);
        let before = (offset & (block - 1)) as usize;
        let total_bytes = (before as u64 + len as u64).next_multiple_of(block) as usize;
        DataPosition { before, len, behind: total_bytes - before - len }
    }

    /// The memory that a buffer for all its blocks takes.
    pub fn footprint(self) -> usize {
        Buffer::footprint(self.total_bytes())
    }

    /// Bytes of all its blocks.
    pub fn total_bytes(self) -> usize {
        self.before + self.len + self.behind
    }
}

impl Pool {
    /// An empty pool.
    pub fn new(source: Buffers, account: Arc<Account>) -> Self {
        Pool { source, account, buffers: Vec::new(), bytes: 0 }
    }

    /// The account that is charged.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// A kept buffer, if any, with room around the data for the rest of the first and last block.
    pub fn take_kept(&mut self, position: DataPosition) -> Option<Buffer> {
        let total_bytes = position.total_bytes();
        let at = self.buffers.iter().rposition(|buffer| buffer.len() == total_bytes)?;
        self.bytes -= total_bytes;
        let buffer = self.buffers.swap_remove(at);
        Some(if total_bytes == position.len { buffer } else { buffer.window(position.before, position.len) })
    }

    /// A new buffer, which the caller has charged to the account.
    pub fn allocate_charged(&self, position: DataPosition) -> Buffer {
        if position.total_bytes() == position.len {
            return self.source.zeroed(position.len);
        }
        self.source.around(position.before, position.len, position.behind)
    }

    /// A buffer for this position, if there is memory for it. Otherwise the connection is notified when there may be.
    pub fn take(&mut self, position: DataPosition) -> Option<Buffer> {
        if let Some(buffer) = self.take_kept(position) {
            return Some(buffer);
        }
        self.account.take(position.footprint()).then(|| self.allocate_charged(position))
    }

    /// A buffer of this length, even if no memory is free.
    pub fn take_over_limit(&mut self, len: usize) -> Buffer {
        let position = DataPosition { before: 0, len, behind: 0 };
        self.take_kept(position).unwrap_or_else(|| {
            self.account.take_over_limit(position.footprint());
            self.allocate_charged(position)
        })
    }

    /// Takes a buffer back: keeps it, unless it is long or memory is short.
    pub fn give_back(&mut self, buffer: Buffer) {
        let (before, behind) = buffer.margins();
        let len = before + buffer.len() + behind;
        if len == 0 {
            return;
        }
        if len > BYTES / 2 || self.account.memory().is_short() {
            self.account.give_back(Buffer::footprint(len));
            return;
        }
        while self.buffers.len() >= BUFFERS || self.bytes + len > BYTES {
            let dropped = self.buffers.swap_remove(0).len();
            self.bytes -= dropped;
            self.account.give_back(Buffer::footprint(dropped));
        }
        self.bytes += len;
        self.buffers.push(buffer.window(0, len));
    }
}

#[cfg(test)]
mod tests {
    use hoistway_engine::{Config, Engine, Null};

    use super::*;
    use crate::event_loop::{ConnectionId, Inboxes};
    use crate::memory::Memory;

    fn plain(len: usize) -> DataPosition {
        DataPosition { before: 0, len, behind: 0 }
    }

    #[test]
    fn a_buffer_of_the_same_length_is_used_again_and_few_are_kept_and_paid_for() {
        let engine = Engine::start(&Config::default(), Null::new(8)).expect("an engine over nothing");
        let memory = Memory::new(1 << 30, Inboxes::new(1).unwrap());
        let account = Account::new(Arc::clone(&memory), ConnectionId { worker: 0, number: 1 });
        let mut pool = Pool::new(engine.buffers(), account);
        let mut first = pool.take(plain(4096)).unwrap();
        first[0] = 7;
        pool.give_back(first);
        assert_eq!(pool.take(plain(512)).unwrap()[0], 0);
        assert_eq!(pool.take(plain(4096)).unwrap()[0], 7);
        for _ in 0..1000 {
            let two = [pool.take_over_limit(64 << 10), pool.take_over_limit(64 << 10)];
            two.into_iter().for_each(|buffer| pool.give_back(buffer));
            assert!(pool.bytes <= BYTES && pool.buffers.len() <= BUFFERS);
        }
        let long = pool.take(plain(32 << 20)).unwrap();
        pool.give_back(long);
        assert!(pool.bytes <= BYTES);
        let sum = |size: fn(&Buffer) -> usize| pool.buffers.iter().map(size).sum::<usize>();
        assert_eq!(sum(|buffer| buffer.len()), pool.bytes);
        // Two buffers are still in use, of which each takes a page and what its alignment wastes.
        assert_eq!(memory.used(), sum(|buffer| Buffer::footprint(buffer.len())) + 2 * 8192);
        drop(pool);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn a_place_within_blocks_has_room_around_it() {
        let position = DataPosition::new(1000, 600, 512);
        assert_eq!((position.before, position.len, position.behind, position.total_bytes()), (488, 600, 448, 1536));
        assert_eq!(DataPosition::new(512, 1024, 512).total_bytes(), 1024);
    }
}
