//! Buffers that a connection uses again, and what it holds of the memory of all.

use std::sync::Arc;

use hoistway_engine::{Buffer, Buffers};

use crate::memory::Account;

/// Most buffers that are kept.
const BUFFERS: usize = 160;
/// Most bytes of all that are kept.
const BYTES: usize = 8 << 20;

/// Buffers of completed requests. What is in them is of this connection's own past.
///
/// Each buffer is paid for from the account when it is allocated, until it is given back and not kept.
pub struct Pool {
    source: Buffers,
    account: Arc<Account>,
    buffers: Vec<Buffer>,
    bytes: usize,
}

/// The place of a request's data on the target.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Bytes of the first block before it.
    pub before: usize,
    /// Its length in bytes.
    pub len: usize,
    /// Bytes of the last block behind it.
    pub behind: usize,
}

impl Place {
    /// At this byte of a target with such blocks.
    pub fn new(offset: u64, len: usize, block_bytes: u32) -> Place {
        let block = u64::from(block_bytes);
        let before = (offset & (block - 1)) as usize;
        let all = (before as u64 + len as u64).next_multiple_of(block) as usize;
        Place { before, len, behind: all - before - len }
    }

    /// Bytes of all of its blocks.
    pub fn all(self) -> usize {
        self.before + self.len + self.behind
    }
}

impl Pool {
    /// An empty one.
    pub fn new(source: Buffers, account: Arc<Account>) -> Self {
        Pool { source, account, buffers: Vec::new(), bytes: 0 }
    }

    /// The account that pays.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// A buffer that was kept, with room around the data for the rest of the first and last block.
    pub fn kept(&mut self, place: Place) -> Option<Buffer> {
        let all = place.all();
        let at = self.buffers.iter().rposition(|buffer| buffer.len() == all)?;
        self.bytes -= all;
        let buffer = self.buffers.swap_remove(at);
        Some(if all == place.len { buffer } else { buffer.window(place.before, place.len) })
    }

    /// A new one, which the caller has paid for.
    pub fn paid(&self, place: Place) -> Buffer {
        if place.all() == place.len {
            return self.source.zeroed(place.len);
        }
        self.source.around(place.before, place.len, place.behind)
    }

    /// One of this kind, if there is memory for it. Else the connection is notified when there may be.
    pub fn take(&mut self, place: Place) -> Option<Buffer> {
        if let Some(buffer) = self.kept(place) {
            return Some(buffer);
        }
        self.account.take(place.all()).then(|| self.paid(place))
    }

    /// One of this length, whether there is memory for it or not.
    pub fn take_anyway(&mut self, len: usize) -> Buffer {
        let place = Place { before: 0, len, behind: 0 };
        self.kept(place).unwrap_or_else(|| {
            self.account.take_anyway(len);
            self.paid(place)
        })
    }

    /// Takes a buffer back: keeps it for later, unless it is long or memory is short.
    pub fn give_back(&mut self, buffer: Buffer) {
        let (before, behind) = buffer.margins();
        let len = before + buffer.len() + behind;
        if len == 0 {
            return;
        }
        if len > BYTES / 2 || self.account.memory().is_short() {
            self.account.give_back(len);
            return;
        }
        while self.buffers.len() >= BUFFERS || self.bytes + len > BYTES {
            let dropped = self.buffers.swap_remove(0).len();
            self.bytes -= dropped;
            self.account.give_back(dropped);
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

    fn plain(len: usize) -> Place {
        Place { before: 0, len, behind: 0 }
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
            let two = [pool.take_anyway(64 << 10), pool.take_anyway(64 << 10)];
            two.into_iter().for_each(|buffer| pool.give_back(buffer));
            assert!(pool.bytes <= BYTES && pool.buffers.len() <= BUFFERS);
        }
        let long = pool.take(plain(32 << 20)).unwrap();
        pool.give_back(long);
        assert!(pool.bytes <= BYTES);
        let kept: usize = pool.buffers.iter().map(|buffer| buffer.len()).sum();
        assert_eq!(kept, pool.bytes);
        // Two buffers were not given back.
        assert_eq!(memory.used(), kept + 4096 + 512);
        drop(pool);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn a_place_within_blocks_has_room_around_it() {
        let place = Place::new(1000, 600, 512);
        assert_eq!((place.before, place.len, place.behind, place.all()), (488, 600, 448, 1536));
        assert_eq!(Place::new(512, 1024, 512).all(), 1024);
    }
}
