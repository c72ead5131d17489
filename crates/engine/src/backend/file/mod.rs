//! Files and block devices, one volume each.
//!
//! Used by: `backend::simulated`, `backend`, `open_volume`; crates `serve`, `calibrate`.
//! Tests: `crates/engine/src/backend/file/` (in its files), `crates/engine/tests/files.rs`, `crates/engine/tests/unaligned.rs`.
//!
//! | operation | done |
//! | --- | --- |
//! | read, write | `preadv`, `pwritev` past the page cache (`O_DIRECT`) where the file system can; on the worker's thread if the data is in memory |
//! | durable write | the same with `RWF_DSYNC` |
//! | flush | `fdatasync` of every file, because a flush does not name its volume |
//! | discard | a hole is punched; it reads as zeroes then |
//! | write zeroes | a hole is punched if that is allowed, otherwise the range is zeroed; a file system that supports neither gets zeroes written, unless only fast methods are allowed |
//! | block status | `SEEK_DATA` and `SEEK_HOLE` |
//!
//! The size of a file need not be a multiple of a block. Its last bytes go through the page cache in separate calls, because
//! direct I/O only takes whole blocks and would extend the file.

mod channel;
mod data_map;
mod disk_id;
mod lock;
mod sparse;
mod table;

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hoistway_blk::bio::Limits;
use hoistway_blk::ground::{SECTOR_BYTES, Sector};
use rustix::fs::{AtFlags, OFlags, SeekFrom, StatxFlags, ioctl_blkpbszget, ioctl_blksszget, seek, statx};

use super::{Backend, Extent, IoChannel, Shape, VolumeShape};
use crate::memory::{Arena, BUFFER_ALIGN, Buffer};
use crate::ring::{InlineAccess, ThreadRing, Uring};
pub(crate) use channel::FileChannel;
use channel::ZERO_BYTES_MAX;
pub use disk_id::DiskId;
use disk_id::folder_of_device;
use lock::{LockOutcome, try_lock};
pub(super) use sparse::SparseFile;
pub(crate) use table::{FileListing, FileTable};
use table::{FileVolume, Tail};

const QUEUE_DEPTH: u32 = 128;
/// Less memory is not registered with a ring.
const FIXED_BYTES_MIN: usize = 128 << 10;
/// Files that may be open at a time beyond those at the start, if there may be any.
const EXTRA_FILES_MAX: usize = 256;
/// Distance of the first sectors of volumes that may grow: 128 TiB.
const SPACE_TO_GROW: u64 = 1 << 38;
/// Volumes begin at multiples of this, in sectors, and are at least this far apart, so that no request crosses two
/// volumes.
const VOLUME_ALIGN: u64 = 2048;
/// The last bytes of a file that does not end with a full block begin at a multiple of this, in bytes: no page is accessed both
/// directly and through the page cache.
const TAIL_ALIGN: u64 = 4096;
/// The block size of direct I/O if the system does not report it.
const BLOCK_BYTES_SAFE: u32 = 4096;

/// A file or block device to open.
#[derive(Clone, Debug)]
pub struct FileSpec {
    /// Its path.
    pub path: PathBuf,
    /// Whether it is opened read-only.
    pub read_only: bool,
    /// Whether to use the page cache even if direct I/O is possible. If one of the files at the start does, files that are opened later do,
    /// too.
    pub buffered: bool,
}

impl FileSpec {
    /// For reading and writing, with direct I/O if possible.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        FileSpec { path: path.into(), read_only: false, buffered: false }
    }
}

/// Why a file cannot be a target.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A system call failed.
    #[error("{}: {why}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        why: io::Error,
    },
    /// It is unsuitable.
    #[error("{}: {why}", .path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// Why, and what was expected.
        why: String,
    },
}

/// How files are accessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FileAccess {
    Uring,
    Threads,
}

/// Files and block devices.
pub struct Files {
    table: Arc<FileTable>,
    shape: Shape,
    access: FileAccess,
    notes: Vec<String>,
    /// Memory that is registered with rings, in part or whole.
    fixed: Option<Arc<Arena>>,
    /// Rings with registered memory for the first workers.
    rings: Mutex<VecDeque<Uring>>,
    /// Files that may be opened later, at a time.
    extra_files_max: usize,
    /// Whether files that are opened later go through the page cache.
    buffered: bool,
    /// The volumes that are open, which others must not open.
    opened: Mutex<Vec<OpenVolumeFile>>,
}

/// An open volume.
struct OpenVolumeFile {
    volume: usize,
    path: PathBuf,
    /// A lock that keeps other programs from the file.
    _lock: Option<File>,
}

/// The properties of an opened file.
struct OpenedFile {
    file: File,
    /// The same file through the page cache, if `file` is direct and does not end with a full block.
    tail_file: Option<File>,
    /// Whether the last bytes need that, unless they are a full block.
    is_direct: bool,
    inline: InlineAccess,
    bytes: u64,
    logical_bytes: u32,
    physical_bytes: u32,
    rotational: bool,
    notes: Vec<String>,
    lock_file: Option<File>,
}

impl Files {
    /// Opens the files and determines how they can be accessed. They stay locked as long as the target exists: read-only
    /// ones against writers, others against all other programs.
    ///
    /// # Errors
    /// If a file cannot be opened, is neither a file nor a block device, is empty, or is in use.
    pub fn open(specs: &[FileSpec]) -> Result<Files, OpenError> {
        let mut opened: Vec<OpenedFile> = Vec::new();
        for (index, spec) in specs.iter().enumerate() {
            let before: Vec<&Path> = specs[..index].iter().map(|spec| spec.path.as_path()).collect();
            opened.push(open(spec, &before)?);
        }
        let logical = opened.iter().map(|file| file.logical_bytes).max().unwrap_or(SECTOR_BYTES as u32);
        let physical = opened.iter().map(|file| file.physical_bytes).max().unwrap_or(logical).max(logical);
        let notes: Vec<String> = opened.iter().flat_map(|file| file.notes.iter().cloned()).collect();
        let rotational = opened.iter().any(|file| file.rotational);
        let (mut listing, mut held) = (FileListing::default(), Vec::new());
        for (spec, file) in specs.iter().zip(opened) {
            let room = listing.files.len() + 2;
            held.push(add_volume(&mut listing, spec, file, logical, room, 0));
        }
        let sectors = |bytes: u32| bytes / SECTOR_BYTES as u32;
        let limits = Limits {
            max_write_zeroes_sectors: sectors(ZERO_BYTES_MAX as u32),
            capacity: end(&listing),
            write_cache: true,
            fua: true,
            rotational,
            ..Limits::new(sectors(logical), sectors(physical), u32::MAX, 2560, 128)
        };
        let mut notes = notes;
        let access = match Uring::new(1, &[]) {
            Ok(_) => FileAccess::Uring,
            Err(error) => {
                notes.push(format!("io_uring cannot be used ({error}): threads make the system calls instead"));
                FileAccess::Threads
            }
        };
        let shape = Shape {
            volumes: listing.volumes.iter().map(|volume| volume.shape.clone()).collect(),
            limits,
            hw_queues_max: u16::MAX,
            queue_depth: QUEUE_DEPTH,
            host_wide_tags: false,
        };
        let table = Arc::new(FileTable::new(listing));
        let buffered = specs.iter().any(|spec| spec.buffered);
        let rings = Mutex::default();
        Ok(Files {
            table,
            shape,
            access,
            notes,
            fixed: None,
            rings,
            extra_files_max: 0,
            buffered,
            opened: Mutex::new(held),
        })
    }

    /// Further files may be [opened](Backend::open) later, and closed; those that have become longer may [grow](Backend::grow). Goes before
    /// [fixed buffers](Self::with_fixed_buffers), whose rings have room for these files.
    #[must_use]
    pub fn growing(mut self) -> Self {
        self.extra_files_max = EXTRA_FILES_MAX;
        self.shape.volumes = self.table.change(|listing| {
            let volumes = std::mem::take(&mut listing.volumes);
            for mut volume in volumes {
                volume.shape.first = next_first_sector(listing, SPACE_TO_GROW);
                listing.volumes.push(volume);
            }
            listing.volumes.iter().map(|volume| volume.shape.clone()).collect()
        });
        self.shape.limits.capacity = Sector(u64::MAX / SECTOR_BYTES);
        self
    }

    /// Adds memory for [buffers](Backend::buffer) that is registered with the ring of each worker (fixed buffers), so that requests
    /// need not look up and pin pages. The memory is locked, and counts once per worker against `ulimit -l`; if less
    /// is allowed, less is registered, and a [note](Self::notes) says so.
    #[must_use]
    pub fn with_fixed_buffers(mut self, bytes: usize, workers: usize) -> Self {
        if bytes == 0 || self.access != FileAccess::Uring {
            return self;
        }
        let arena = Arena::new(bytes.next_multiple_of(BUFFER_ALIGN));
        // The rings that are used later: those of a trial would be freed late, and their memory would count until then.
        let mut registered_bytes = Vec::new();
        for _ in 0..workers {
            // The worker gets the error, if it is one then.
            let Ok(mut ring) = self.ring(|files| Uring::new(QUEUE_DEPTH, files)) else { break };
            match register(&mut ring, &arena) {
                Ok(registered) => registered_bytes.push(registered),
                Err(error) => {
                    registered_bytes.push(0);
                    self.notes.push(format!("fixed buffers: {error}"));
                }
            }
            self.rings().push_back(ring);
        }
        let (all, registered) = (workers * arena.bytes(), registered_bytes.iter().sum::<usize>());
        if registered > 0 {
            self.fixed = Some(arena);
        }
        if registered < all {
            let (all, size) = (format!("{workers} x {} KiB", bytes >> 10), registered >> 10);
            self.notes.push(match size {
                0 => format!("no fixed buffers, {all} cannot be locked (`ulimit -l`): each request costs a little more"),
                _ => format!(
                    "fixed buffers of {size} KiB instead of {all}, more cannot be locked (`ulimit -l`): some requests cost a little more"
                ),
            });
        }
        self
    }

    /// Features that are unavailable here, as sentences: direct I/O, io_uring, fixed buffers.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Makes the system calls on threads, as where io_uring is unavailable.
    #[must_use]
    pub fn without_io_uring(mut self) -> Self {
        (self.access, self.fixed) = (FileAccess::Threads, None);
        self.rings().clear();
        self
    }
}

impl Files {
    /// The volume of a range of sectors, its file, and the bytes in it.
    fn resolve(&self, range: Range<Sector>) -> io::Result<(FileVolume, Arc<File>, Range<u64>)> {
        let listing = self.table.listing();
        let volume = listing.volumes.get(listing.volume_of(range.start)).ok_or(io::ErrorKind::NotFound)?;
        let file = listing.files.get(volume.file as usize).cloned().flatten().filter(|_| volume.is_open);
        let offset = |sector: Sector| (sector - volume.shape.first) * SECTOR_BYTES;
        Ok((volume.clone(), file.ok_or(io::ErrorKind::NotFound)?, offset(range.start)..offset(range.end)))
    }

    fn rings(&self) -> MutexGuard<'_, VecDeque<Uring>> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self) -> MutexGuard<'_, Vec<OpenVolumeFile>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a ring with room for further files, or without if the system has none.
    fn ring<R>(&self, make: impl Fn(&[Option<Arc<File>>]) -> io::Result<R>) -> io::Result<R> {
        let mut files = self.table.listing().files.clone();
        let count = files.len();
        files.resize(count + self.extra_files_max, None);
        if self.extra_files_max > 0 {
            if let Ok(ring) = make(&files) {
                self.table.set_room(files.len());
                return Ok(ring);
            }
            self.table.set_room(count);
        }
        make(&files[..count])
    }
}

/// Registers as much memory with a ring as may be locked: all, or its first half, quarter, and so on. Returns the bytes.
fn register(ring: &mut Uring, arena: &Arc<Arena>) -> io::Result<usize> {
    let mut bytes = arena.bytes();
    while bytes >= FIXED_BYTES_MIN {
        match ring.register(arena, bytes) {
            Ok(()) => return Ok(bytes),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOMEM.raw_os_error()) => {
                bytes = bytes / 2 / BUFFER_ALIGN * BUFFER_ALIGN;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(0)
}

/// The end of the last volume.
fn end(listing: &FileListing) -> Sector {
    listing.volumes.last().map_or(Sector(0), |last| Sector(last.shape.first.0 + last.shape.sectors))
}

/// The first sector of the next volume, at least this far from that of the last one.
fn next_first_sector(listing: &FileListing, distance: u64) -> Sector {
    let Some(last) = listing.volumes.last() else { return Sector(0) };
    let after_last = (end(listing).0 + VOLUME_ALIGN).next_multiple_of(VOLUME_ALIGN);
    Sector(after_last.max(last.shape.first.0 + distance))
}

/// Adds a file in blocks of this length as the last volume, in a ring with room for this many files.
fn add_volume(
    listing: &mut FileListing,
    spec: &FileSpec,
    opened: OpenedFile,
    block_bytes: u32,
    room: usize,
    distance: u64,
) -> OpenVolumeFile {
    let bytes = opened.bytes;
    let sectors = bytes.next_multiple_of(u64::from(block_bytes)) / SECTOR_BYTES;
    let first = next_first_sector(listing, distance);
    let shape = VolumeShape { first, sectors, bytes, read_only: spec.read_only };
    let file = listing.insert_file(opened.file, room);
    let tail_file = opened.tail_file.map(|tail| listing.insert_file(tail, room));
    let volume = listing.volumes.len();
    let (tail, is_direct) = (tail_of(&shape, tail_file.unwrap_or(file)), opened.is_direct);
    let inline = Arc::new(opened.inline);
    let map = Arc::default();
    listing.volumes.push(FileVolume { shape, file, tail, tail_file, is_direct, map, inline, is_open: true });
    OpenVolumeFile { volume, path: spec.path.clone(), _lock: opened.lock_file }
}

/// The last bytes of a volume that does not end with a full block; the file with this index has them.
fn tail_of(shape: &VolumeShape, file: u32) -> Option<Tail> {
    let bytes = shape.bytes;
    (bytes < shape.sectors * SECTOR_BYTES).then(|| Tail { start: bytes / TAIL_ALIGN * TAIL_ALIGN, end: bytes, file })
}

/// Opens a file again, through the page cache.
fn open_buffered(file: &File, read_only: bool) -> io::Result<File> {
    // Its path may name another file by now.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    OpenOptions::new().read(true).write(!read_only).open(path)
}

/// Opens a file; `before` are the files that are open already.
fn open(spec: &FileSpec, before: &[&Path]) -> Result<OpenedFile, OpenError> {
    let failed = |why: io::Error| OpenError::File { path: spec.path.clone(), why };
    let unfit = |why: &str| OpenError::Unfit { path: spec.path.clone(), why: why.into() };
    let kind = std::fs::metadata(&spec.path).map_err(failed)?.file_type();
    let is_device = kind.is_block_device();
    if !is_device && !kind.is_file() {
        return Err(unfit("is neither a file nor a block device"));
    }
    let open = |flags: OFlags| {
        let mut options = OpenOptions::new();
        options.read(true).write(!spec.read_only).custom_flags(flags.bits() as i32).open(&spec.path)
    };
    let mut notes = Vec::new();
    // A file that can be read may be served without writing.
    let open_failed = |why: io::Error| match why.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            if !spec.read_only && File::open(&spec.path).is_ok() =>
        {
            unfit(&format!("{why} (expected a file that may be written, or read-only)"))
        }
        _ => failed(why),
    };
    let file = match if spec.buffered { open(OFlags::empty()) } else { open(OFlags::DIRECT) } {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
            let text = "no direct I/O on this file system, so the page cache is used";
            notes.push(format!("{}: {text}", spec.path.display()));
            open(OFlags::empty()).map_err(open_failed)?
        }
        opened => opened.map_err(open_failed)?,
    };
    let is_direct = !spec.buffered && notes.is_empty();
    let lock_file = match try_lock(&spec.path, spec.read_only, is_device).map_err(failed)? {
        LockOutcome::Acquired(file) => Some(file),
        LockOutcome::NoLocking(why) => {
            notes.push(format!("{}: cannot be locked ({why}): nothing keeps others from it", spec.path.display()));
            None
        }
        LockOutcome::InUse => {
            let is_same_file = |other: &&&Path| is_same(&spec.path, other);
            return Err(unfit(&match before.iter().find(is_same_file) {
                Some(other) => format!("is the same file as {}", other.display()),
                None => "is in use by another program (only readers can share a file)".into(),
            }));
        }
    };
    let bytes = seek(&file, SeekFrom::End(0)).map_err(|errno| failed(errno.into()))?;
    if bytes == 0 {
        return Err(unfit("is empty"));
    }
    let (mut logical_bytes, mut physical_bytes) = (SECTOR_BYTES as u32, BLOCK_BYTES_SAFE);
    if is_device {
        logical_bytes = ioctl_blksszget(&file).map_err(|errno| failed(errno.into()))?;
        physical_bytes = ioctl_blkpbszget(&file).map_err(|errno| failed(errno.into()))?;
    } else if is_direct {
        logical_bytes = direct_block_bytes(&file).unwrap_or(BLOCK_BYTES_SAFE);
    }
    if !logical_bytes.is_power_of_two() || !(SECTOR_BYTES as u32..=1 << 20).contains(&logical_bytes) {
        return Err(unfit(&format!("has blocks of {logical_bytes} bytes (expected a power of two from 512)")));
    }
    // The largest block of all files is not known yet; except for devices none is larger than a page.
    let ends_with_a_block = bytes.is_multiple_of(u64::from(logical_bytes)) && bytes.is_multiple_of(TAIL_ALIGN);
    let tail_file =
        if is_direct && !is_device && !ends_with_a_block { Some(open(OFlags::empty()).map_err(failed)?) } else { None };
    let rotational = is_rotational(&file, is_device).unwrap_or(false);
    let physical_bytes = physical_bytes.max(logical_bytes).next_multiple_of(logical_bytes);
    let inline = InlineAccess::of(&file, is_direct);
    let is_direct = is_direct && !is_device;
    Ok(OpenedFile {
        file,
        tail_file,
        is_direct,
        inline,
        bytes,
        logical_bytes,
        physical_bytes,
        rotational,
        notes,
        lock_file,
    })
}

/// Whether two paths name the same file.
fn is_same(left: &Path, right: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino())).ok();
    identity(left).is_some_and(|left| Some(left) == identity(right))
}

/// The block size that direct I/O on a file requires, if the system reports it (Linux 6.1).
fn direct_block_bytes(file: &File) -> Option<u32> {
    let stat = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let align = stat.stx_dio_offset_align;
    let is_reported = stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0 && align > 0;
    is_reported.then_some(align.max(SECTOR_BYTES as u32))
}

/// Whether the medium of a file rotates, if the system reports it.
fn is_rotational(file: &File, is_device: bool) -> Option<bool> {
    let metadata = file.metadata().ok()?;
    let device = if is_device { metadata.rdev() } else { metadata.dev() };
    let folder = folder_of_device(device);
    // A partition has no queue, but its disk, one level above, has.
    let mut files = ["queue/rotational", "../queue/rotational"].iter();
    files.find_map(|name| std::fs::read_to_string(folder.join(name)).ok()).map(|text| text.trim() == "1")
}

impl Backend for Files {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn volumes(&self) -> Vec<VolumeShape> {
        self.table.listing().volumes.iter().map(|volume| volume.shape.clone()).collect()
    }

    fn open(&self, spec: &FileSpec) -> Result<(usize, Vec<String>), OpenError> {
        let unfit = |why: String| Err(OpenError::Unfit { path: spec.path.clone(), why });
        let block_bytes = self.shape.limits.logical_block * SECTOR_BYTES as u32;
        let mut held = self.opened();
        let spec = &FileSpec { buffered: spec.buffered || self.buffered, ..spec.clone() };
        let file = open(spec, &held.iter().map(|held| held.path.as_path()).collect::<Vec<_>>())?;
        if file.logical_bytes > block_bytes {
            return unfit(format!(
                "has blocks of {} bytes, but the target was opened with blocks of {block_bytes} bytes (expected no larger ones)",
                file.logical_bytes
            ));
        }
        let needed = 1 + usize::from(file.tail_file.is_some());
        let used = self.table.listing().files.iter().flatten().count();
        if used + needed > self.table.room() {
            return unfit(format!("too many files are open (expected at most {})", self.table.room()));
        }
        let (first, sectors) =
            (next_first_sector(&self.table.listing(), SPACE_TO_GROW), file.bytes.div_ceil(SECTOR_BYTES));
        if first.0.saturating_add(sectors) > self.shape.limits.capacity.0 {
            return unfit("no sectors are left (restart the program to open it)".to_owned());
        }
        let (notes, room) = (file.notes.clone(), self.table.room());
        let added = self.table.change(|listing| add_volume(listing, spec, file, block_bytes, room, SPACE_TO_GROW));
        let volume = added.volume;
        held.push(added);
        Ok((volume, notes))
    }

    fn grow(&self, volume: usize) -> Result<(), OpenError> {
        let held = self.opened();
        let Some(path) = held.iter().find(|held| held.volume == volume).map(|held| &held.path) else { return Ok(()) };
        let failed = |why: io::Error| OpenError::File { path: path.clone(), why };
        let listing = self.table.listing();
        let entry = &listing.volumes[volume];
        let Some(file) = listing.files[entry.file as usize].as_ref() else { return Ok(()) };
        let bytes = seek(&**file, SeekFrom::End(0)).map_err(|errno| failed(errno.into()))?;
        if bytes <= entry.shape.bytes {
            return Ok(());
        }
        let block_bytes = u64::from(self.shape.limits.logical_block) * SECTOR_BYTES;
        let sectors = bytes.next_multiple_of(block_bytes) / SECTOR_BYTES;
        let next = listing.volumes.get(volume + 1).map_or(self.shape.limits.capacity, |next| next.shape.first);
        if entry.shape.first.0 + sectors > next.0 {
            let bytes_max = (next - entry.shape.first) * SECTOR_BYTES;
            let why = format!("has become too long, {bytes} bytes (expected at most {bytes_max} while it is open)");
            return Err(OpenError::Unfit { path: path.clone(), why });
        }
        let needs_tail_file = entry.is_direct && entry.tail_file.is_none() && bytes < sectors * SECTOR_BYTES;
        if needs_tail_file && listing.files.iter().flatten().count() >= self.table.room() {
            let why = format!("too many files are open (expected at most {})", self.table.room());
            return Err(OpenError::Unfit { path: path.clone(), why });
        }
        let tail_file =
            needs_tail_file.then(|| open_buffered(file, entry.shape.read_only)).transpose().map_err(failed)?;
        self.table.change(|listing| {
            let added = tail_file.map(|tail| listing.insert_file(tail, self.table.room()));
            let entry = &mut listing.volumes[volume];
            (entry.shape.bytes, entry.shape.sectors, entry.tail_file) = (bytes, sectors, entry.tail_file.or(added));
            entry.tail = tail_of(&entry.shape, entry.tail_file.unwrap_or(entry.file));
        });
        Ok(())
    }

    fn close(&self, volume: usize) {
        self.opened().retain(|held| held.volume != volume);
        self.table.change(|listing| {
            let Some(entry) = listing.volumes.get_mut(volume).filter(|entry| entry.is_open) else { return };
            entry.is_open = false;
            let files = [Some(entry.file), entry.tail_file];
            files.into_iter().flatten().for_each(|file| listing.files[file as usize] = None);
        });
    }

    fn channel(&self, _: usize) -> io::Result<Box<dyn IoChannel>> {
        let table = Arc::clone(&self.table);
        Ok(match self.access {
            FileAccess::Uring => {
                let ring = self.rings().pop_front();
                let ring = ring.map_or_else(|| self.ring(|files| Uring::new(QUEUE_DEPTH, files)), Ok)?;
                Box::new(FileChannel::new(ring, table))
            }
            FileAccess::Threads => {
                Box::new(FileChannel::new(self.ring(|files| ThreadRing::new(QUEUE_DEPTH, files))?, table))
            }
        })
    }

    fn buffer(&self, len: usize) -> Buffer {
        self.fixed.as_ref().and_then(|arena| arena.zeroed(len)).unwrap_or_else(|| Buffer::zeroed(len))
    }

    fn extents(&self, range: Range<Sector>, extents_max: usize) -> io::Result<Vec<Extent>> {
        let (volume, file, bytes) = self.resolve(range)?;
        volume.map.extents(&file, bytes, extents_max)
    }

    fn extents_of_read(&self, range: Range<Sector>) -> io::Result<Vec<Extent>> {
        let (volume, file, bytes) = self.resolve(range)?;
        volume.map.extents_of_read(&file, bytes)
    }
}
