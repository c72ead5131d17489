//! A simulated disk with a volatile cache.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hoistway_blk::ground::SECTOR_BYTES;

use super::random::Random;

/// The content of the disk, and the part of it that would survive a power cut. Clones are the same disk, which outlives
/// its targets.
#[derive(Clone, Debug)]
pub struct Disk(Arc<Mutex<Content>>);

#[derive(Debug)]
pub(super) struct Content {
    /// The content as read.
    pub bytes: Vec<u8>,
    /// The content of stable storage.
    stable: Vec<u8>,
    /// Sectors that may differ between the two, and the last change of each.
    dirty: BTreeMap<usize, u64>,
    /// For each sector the change that is stable; it never reverts to an older one.
    durable_change: Vec<u64>,
    changes: u64,
    /// Whether the disk is removed.
    pub is_gone: bool,
}

/// What a sync makes durable: a sector, its change number, and its content.
pub(super) type Unstable = (usize, u64, Vec<u8>);

const SECTOR: usize = SECTOR_BYTES as usize;

impl Disk {
    /// A disk of this many sectors of zeroes.
    #[must_use]
    pub fn new(sectors: u64) -> Self {
        Disk::of(vec![0; sectors as usize * SECTOR])
    }

    fn of(bytes: Vec<u8>) -> Self {
        let (stable, durable_change) = (bytes.clone(), vec![0; bytes.len() / SECTOR]);
        Disk(Arc::new(Mutex::new(Content {
            bytes,
            stable,
            dirty: BTreeMap::new(),
            durable_change,
            changes: 0,
            is_gone: false,
        })))
    }

    /// Its length in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.lock().bytes.len() as u64
    }

    /// Removes the disk: from now on everything fails, including jobs in flight.
    pub fn remove_disk(&self) {
        self.lock().is_gone = true;
    }

    /// Puts the disk back, with its content.
    pub fn reinsert_disk(&self) {
        self.lock().is_gone = false;
    }

    /// Splits a range of sectors into pieces of zeroes and data: their lengths, and whether they are zeroes. `None` if the disk
    /// is removed.
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

    /// Its whole content, as read.
    #[must_use]
    pub fn content(&self) -> Vec<u8> {
        self.lock().bytes.clone()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new disk with the content after a power cut now: each sector that was not made durable has either its stable or its
    /// latest content.
    #[must_use]
    pub fn after_power_cut(&self, random: &mut Random) -> Disk {
        let content = self.lock();
        let mut bytes = content.stable.clone();
        for &sector in content.dirty.keys().filter(|_| random.one_in(2)) {
            let bytes_of_sector = sector * SECTOR..(sector + 1) * SECTOR;
            bytes[bytes_of_sector.clone()].copy_from_slice(&content.bytes[bytes_of_sector]);
        }
        Disk::of(bytes)
    }
}

impl Content {
    /// Records a change of these bytes.
    pub fn changed(&mut self, at: usize, len: usize) {
        self.changes += 1;
        self.dirty.extend((at / SECTOR..(at + len).div_ceil(SECTOR)).map(|sector| (sector, self.changes)));
    }

    /// The sectors that a sync starting now makes durable.
    pub fn unstable(&self) -> Vec<Unstable> {
        let bytes_of_sector = |sector: usize| sector * SECTOR..(sector + 1) * SECTOR;
        self.dirty
            .iter()
            .map(|(&sector, &change)| (sector, change, self.bytes[bytes_of_sector(sector)].to_vec()))
            .collect()
    }

    /// The sync has ended.
    pub fn synced(&mut self, sectors: &[Unstable]) {
        for (sector, change, bytes) in sectors {
            if *change <= self.durable_change[*sector] {
                continue;
            }
            self.durable_change[*sector] = *change;
            self.stable[sector * SECTOR..(sector + 1) * SECTOR].copy_from_slice(bytes);
            if self.dirty.get(sector) == Some(change) {
                self.dirty.remove(sector);
            }
        }
    }
}
