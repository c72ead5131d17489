//! A disk with a cache that forgets.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hoistway_blk::ground::SECTOR_BYTES;

use super::random::Random;

/// Its content, and what of it would be left without power. Clones are the same disk, which outlives its targets.
#[derive(Clone, Debug)]
pub struct Disk(Arc<Mutex<Content>>);

#[derive(Debug)]
pub(super) struct Content {
    /// As it reads.
    pub bytes: Vec<u8>,
    /// What is on stable storage.
    stable: Vec<u8>,
    /// Sectors that may differ between both, and the last change of each.
    dirty: BTreeMap<usize, u64>,
    /// Of each sector the change that is stable: it never becomes an older one.
    stable_at: Vec<u64>,
    changes: u64,
    /// Whether it is pulled out.
    pub is_gone: bool,
}

/// What a sync makes durable: a sector, the change that it is at, and what it holds.
pub(super) type Unstable = (usize, u64, Vec<u8>);

const SECTOR: usize = SECTOR_BYTES as usize;

impl Disk {
    /// This many sectors of zeroes.
    #[must_use]
    pub fn new(sectors: u64) -> Self {
        Disk::of(vec![0; sectors as usize * SECTOR])
    }

    fn of(bytes: Vec<u8>) -> Self {
        let (stable, stable_at) = (bytes.clone(), vec![0; bytes.len() / SECTOR]);
        Disk(Arc::new(Mutex::new(Content {
            bytes,
            stable,
            dirty: BTreeMap::new(),
            stable_at,
            changes: 0,
            is_gone: false,
        })))
    }

    /// Its length in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.lock().bytes.len() as u64
    }

    /// It is pulled out: from now on everything errs, in-flight jobs too.
    pub fn vanish(&self) {
        self.lock().is_gone = true;
    }

    /// It is there again, with what it held.
    pub fn come_back(&self) {
        self.lock().is_gone = false;
    }

    /// What of a range of sectors holds nothing but zeroes, as pieces: their lengths, and whether they do. `None` if it is gone.
    pub(super) fn pieces(&self, sectors: Range<usize>) -> Option<Vec<(u64, bool)>> {
        let content = self.lock();
        if content.is_gone {
            return None;
        }
        let is_empty =
            |sector: usize| content.bytes[sector * SECTOR..(sector + 1) * SECTOR].iter().all(|&byte| byte == 0);
        let mut pieces: Vec<(u64, bool)> = Vec::new();
        for hole in sectors.map(is_empty) {
            match pieces.last_mut() {
                Some((count, before)) if *before == hole => *count += 1,
                _ => pieces.push((1, hole)),
            }
        }
        Some(pieces)
    }

    /// All of it, as it reads.
    #[must_use]
    pub fn content(&self) -> Vec<u8> {
        self.lock().bytes.clone()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another one with what this would hold if its power went now: of each sector that was not made durable what is stable,
    /// or what it reads as.
    #[must_use]
    pub fn after_power_cut(&self, random: &mut Random) -> Disk {
        let content = self.lock();
        let mut bytes = content.stable.clone();
        for &sector in content.dirty.keys().filter(|_| random.one_in(2)) {
            let place = sector * SECTOR..(sector + 1) * SECTOR;
            bytes[place.clone()].copy_from_slice(&content.bytes[place]);
        }
        Disk::of(bytes)
    }
}

impl Content {
    /// These bytes were changed.
    pub fn changed(&mut self, at: usize, len: usize) {
        self.changes += 1;
        self.dirty.extend((at / SECTOR..(at + len).div_ceil(SECTOR)).map(|sector| (sector, self.changes)));
    }

    /// What a sync that begins now makes durable.
    pub fn unstable(&self) -> Vec<Unstable> {
        let place = |sector: usize| sector * SECTOR..(sector + 1) * SECTOR;
        self.dirty.iter().map(|(&sector, &change)| (sector, change, self.bytes[place(sector)].to_vec())).collect()
    }

    /// It has ended.
    pub fn synced(&mut self, sectors: &[Unstable]) {
        for (sector, change, bytes) in sectors {
            if *change <= self.stable_at[*sector] {
                continue;
            }
            self.stable_at[*sector] = *change;
            self.stable[sector * SECTOR..(sector + 1) * SECTOR].copy_from_slice(bytes);
            if self.dirty.get(sector) == Some(change) {
                self.dirty.remove(sector);
            }
        }
    }
}
