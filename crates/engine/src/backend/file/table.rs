//! The open files of a target. Files come and go while it runs: each channel follows the table when its generation changes.

use std::fs::File;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use hoistway_blk::ground::Sector;

use super::data_map::DataMap;
use crate::backend::VolumeShape;
use crate::ring::InlineAccess;

/// The files that channels access, and the current state of each volume.
#[derive(Clone, Default)]
pub struct FileListing {
    /// All volumes since the start, ordered by sector. Their sectors are never reused.
    pub volumes: Vec<FileVolume>,
    /// The files of the ring, by their index there.
    pub files: Vec<Option<Arc<File>>>,
    /// Where the search for a free index begins: an index is free for long before it is used again.
    next: usize,
}

/// A volume.
#[derive(Clone)]
pub struct FileVolume {
    /// Its place and size.
    pub shape: VolumeShape,
    /// Index of its file in the ring.
    pub file: u32,
    /// The last bytes of the file that need separate calls.
    pub tail: Option<Tail>,
    /// Index of the same file through the page cache, once it has been needed.
    pub tail_file: Option<u32>,
    /// Whether the last bytes need that, unless they are a full block.
    pub is_direct: bool,
    /// The ranges known to contain data.
    pub map: Arc<DataMap>,
    /// Which of its transfers may complete without the ring.
    pub inline: Arc<InlineAccess>,
    /// Whether its file is open.
    pub is_open: bool,
}

/// The last bytes of a file that does not end with a full block.
#[derive(Clone, Copy, Debug)]
pub struct Tail {
    /// Their offset in the file, in bytes.
    pub start: u64,
    /// The end of the file.
    pub end: u64,
    /// Index of the ring's file that accesses them.
    pub file: u32,
}

impl FileListing {
    /// A listing of these volumes without files.
    #[cfg(any(test, feature = "faults"))]
    pub fn without_files(shapes: &[VolumeShape]) -> FileListing {
        let entry = |(file, shape): (usize, &VolumeShape)| FileVolume {
            shape: shape.clone(),
            file: file as u32,
            tail: None,
            tail_file: None,
            is_direct: false,
            map: Arc::default(),
            inline: Arc::default(),
            is_open: true,
        };
        FileListing { volumes: shapes.iter().enumerate().map(entry).collect(), ..FileListing::default() }
    }

    /// The index of the volume that contains a sector, if there is one.
    #[inline]
    pub fn volume_of(&self, sector: Sector) -> usize {
        self.volumes.partition_point(|volume| volume.shape.first <= sector).saturating_sub(1)
    }

    /// Gives a file a free index below `room`. There must be one.
    pub fn insert_file(&mut self, file: File, room: usize) -> u32 {
        let is_free = |index: &usize| self.files.get(*index).is_none_or(Option::is_none);
        let index = (0..room).map(|step| (self.next + step) % room).find(is_free).unwrap_or(self.files.len());
        self.files.resize(self.files.len().max(index + 1), None);
        self.files[index] = Some(Arc::new(file));
        self.next = index + 1;
        index as u32
    }

    /// The first open volume from this index.
    pub fn next_open_volume(&self, index: usize) -> Option<usize> {
        (index..self.volumes.len()).find(|&candidate| self.volumes[candidate].is_open)
    }
}

/// The current listing.
#[derive(Default)]
pub struct FileTable {
    current: RwLock<Arc<FileListing>>,
    generation: AtomicU64,
    /// Files that every ring has room for.
    room: AtomicUsize,
}

impl FileTable {
    /// A table with this listing; rings have room for its files only.
    pub fn new(listing: FileListing) -> FileTable {
        let room = AtomicUsize::new(listing.files.len());
        FileTable { current: RwLock::new(Arc::new(listing)), generation: AtomicU64::new(0), room }
    }

    /// Changes with each change of the listing.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The current listing.
    pub fn listing(&self) -> Arc<FileListing> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the listing.
    pub fn change<T>(&self, change: impl FnOnce(&mut FileListing) -> T) -> T {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let result = change(Arc::make_mut(&mut current));
        self.generation.fetch_add(1, Ordering::Release);
        result
    }

    /// Files that every ring has room for.
    pub fn room(&self) -> usize {
        self.room.load(Ordering::Relaxed)
    }

    /// Sets the number of files that every ring has room for.
    pub fn set_room(&self, files: usize) {
        self.room.store(files, Ordering::Relaxed);
    }
}
