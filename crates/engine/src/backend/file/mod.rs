//! Files and block devices, one volume each.
//!
//! | operation | done |
//! | --- | --- |
//! | read, write | `preadv`, `pwritev` past the page cache (`O_DIRECT`) where the file system can |
//! | durable write | the same with `RWF_DSYNC` |
//! | flush | `fdatasync` of every file, because a flush does not name its volume |
//! | discard | a hole is punched; it reads as zeroes then |
//! | write zeroes | a hole is punched if that is allowed, otherwise the range is zeroed; a file system that supports neither gets zeroes written, unless only fast methods are allowed |
//! | block status | `SEEK_DATA` and `SEEK_HOLE` |
//!
//! The size of a file need not be a multiple of a block. Its last bytes go through the page cache in separate calls, because
//! direct I/O only takes whole blocks and would extend the file.

mod data_map;
mod lock;
mod sparse;
mod station;

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hoistway_blk::bio::Limits;
use hoistway_blk::ground::{SECTOR_BYTES, Sector};
use rustix::fs::{AtFlags, OFlags, SeekFrom, StatxFlags, ioctl_blkpbszget, ioctl_blksszget, seek, statx};

use super::{Backend, Extent, Shape, Station, VolumeShape};
use crate::memory::{Arena, BUFFER_ALIGN, Buffer};
use crate::ring::{ThreadRing, Uring};
pub(crate) use data_map::DataMap;
use lock::{Claim, claim};
pub(super) use sparse::SparseFile;
pub(crate) use station::FileStation;
use station::{Tail, ZERO_BYTES_MAX};

const QUEUE_DEPTH: u32 = 128;
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
    /// Whether to use the page cache even if direct I/O is possible.
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
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
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
enum Way {
    Uring,
    Threads,
}

/// Files and block devices.
pub struct Files {
    files: Vec<File>,
    volumes: Arc<[VolumeShape]>,
    shape: Shape,
    way: Way,
    notes: Vec<String>,
    /// Descriptors for the last bytes of files, if those need separate ones.
    tail_files: Vec<File>,
    /// For each file, the last bytes that need separate calls.
    tails: Arc<[Option<Tail>]>,
    /// For each file, the ranges known to contain data.
    maps: Arc<[DataMap]>,
    /// Memory that is registered with every ring.
    fixed: Option<Arc<Arena>>,
    /// Locks that keep other programs from the files.
    _claims: Vec<File>,
}

/// The properties of an opened file.
struct Opened {
    file: File,
    /// The same file through the page cache, if `file` is direct and does not end with a full block.
    tail_file: Option<File>,
    bytes: u64,
    logical_bytes: u32,
    physical_bytes: u32,
    rotational: bool,
    notes: Vec<String>,
    claim: Option<File>,
}

impl Files {
    /// Opens the files and determines how they can be accessed. They stay locked as long as the target exists: read-only
    /// ones against writers, others against all other programs.
    ///
    /// # Errors
    /// If a file cannot be opened, is neither a file nor a block device, is empty, or is in use.
    pub fn open(specs: &[FileSpec]) -> Result<Files, OpenError> {
        let mut opened: Vec<Opened> = Vec::new();
        for (index, spec) in specs.iter().enumerate() {
            opened.push(open(spec, &specs[..index])?);
        }
        let logical = opened.iter().map(|it| it.logical_bytes).max().unwrap_or(SECTOR_BYTES as u32);
        let physical = opened.iter().map(|it| it.physical_bytes).max().unwrap_or(logical).max(logical);
        let mut volumes: Vec<VolumeShape> = Vec::new();
        for (spec, it) in specs.iter().zip(&opened) {
            let bytes = it.bytes;
            if bytes == 0 {
                return Err(OpenError::Unfit { path: spec.path.clone(), why: "is empty".into() });
            }
            let sectors = bytes.next_multiple_of(u64::from(logical)) / SECTOR_BYTES;
            let end = volumes.last().map_or(0, |last| last.first.0 + last.sectors + VOLUME_ALIGN);
            let first = Sector(end.next_multiple_of(VOLUME_ALIGN));
            volumes.push(VolumeShape { first, sectors, bytes, read_only: spec.read_only });
        }
        let sectors = |bytes: u32| bytes / SECTOR_BYTES as u32;
        let limits = Limits {
            max_write_zeroes_sectors: sectors(ZERO_BYTES_MAX as u32),
            capacity: volumes.last().map_or(Sector(0), |last| Sector(last.first.0 + last.sectors)),
            write_cache: true,
            fua: true,
            rotational: opened.iter().any(|it| it.rotational),
            ..Limits::new(sectors(logical), sectors(physical), u32::MAX, 2560, 128)
        };
        let mut notes: Vec<String> = opened.iter().flat_map(|it| it.notes.iter().cloned()).collect();
        let way = match Uring::new(1, &[]) {
            Ok(_) => Way::Uring,
            Err(error) => {
                notes.push(format!("io_uring cannot be used ({error}): threads make the system calls instead"));
                Way::Threads
            }
        };
        let shape = Shape {
            volumes: volumes.clone(),
            limits,
            hw_queues_max: u16::MAX,
            queue_depth: QUEUE_DEPTH,
            host_wide_tags: false,
        };
        let (mut files, mut tail_files, mut tails, mut claims) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (index, (it, volume)) in opened.into_iter().zip(&volumes).enumerate() {
            let has_tail = volume.bytes < volume.sectors * SECTOR_BYTES;
            let place = if it.tail_file.is_some() { specs.len() + tail_files.len() } else { index };
            let at = volume.bytes / TAIL_ALIGN * TAIL_ALIGN;
            tails.push(has_tail.then_some(Tail { at, end: volume.bytes, file: place as u32 }));
            files.push(it.file);
            tail_files.extend(it.tail_file);
            claims.extend(it.claim);
        }
        let maps = volumes.iter().map(|_| DataMap::default()).collect();
        let (volumes, tails) = (volumes.into(), tails.into());
        Ok(Files { files, volumes, shape, way, notes, tail_files, tails, maps, fixed: None, _claims: claims })
    }

    /// Adds memory for [buffers](Backend::buffer) that is registered with the ring of each worker (fixed buffers), so that requests
    /// need not look up and pin pages. The memory is locked, and counts once per worker against `ulimit -l`; if that is not
    /// allowed, a [note](Self::notes) says so and buffers are not registered.
    #[must_use]
    pub fn with_fixed_buffers(mut self, bytes: usize, workers: usize) -> Self {
        if bytes == 0 || self.way != Way::Uring {
            return self;
        }
        let arena = Arena::new(bytes.next_multiple_of(BUFFER_ALIGN));
        let trial = || -> io::Result<Vec<Uring>> {
            let known = |_| Uring::new(1, &[]).and_then(|mut ring| ring.register(&arena).map(|()| ring));
            (0..workers).map(known).collect()
        };
        match trial() {
            Ok(_) => self.fixed = Some(arena),
            Err(error) => self.notes.push(format!(
                "no fixed buffers, {workers} x {} KiB cannot be locked ({error}; `ulimit -l`): each request costs a little more",
                bytes >> 10
            )),
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
        (self.way, self.fixed) = (Way::Threads, None);
        self
    }
}

impl Files {
    /// The file of a range of sectors, and the bytes in it.
    fn place(&self, range: Range<Sector>) -> (usize, Range<u64>) {
        let index = self.volumes.partition_point(|volume| volume.first <= range.start).saturating_sub(1);
        let place = |sector: Sector| (sector - self.volumes[index].first) * SECTOR_BYTES;
        (index, place(range.start)..place(range.end))
    }
}

/// Opens a file; `before` are the files that are open already.
fn open(spec: &FileSpec, before: &[FileSpec]) -> Result<Opened, OpenError> {
    let failed = |source: io::Error| OpenError::File { path: spec.path.clone(), source };
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
    let file = match if spec.buffered { open(OFlags::empty()) } else { open(OFlags::DIRECT) } {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
            let text = "no direct I/O on this file system, so the page cache is used";
            notes.push(format!("{}: {text}", spec.path.display()));
            open(OFlags::empty()).map_err(failed)?
        }
        opened => opened.map_err(failed)?,
    };
    let is_direct = !spec.buffered && notes.is_empty();
    let claim = match claim(&spec.path, spec.read_only, is_device).map_err(failed)? {
        Claim::Ours(file) => Some(file),
        Claim::Impossible(why) => {
            notes.push(format!("{}: cannot be locked ({why}): nothing keeps others from it", spec.path.display()));
            None
        }
        Claim::InUse => {
            let same = |other: &&FileSpec| is_same(&spec.path, &other.path);
            return Err(unfit(&match before.iter().find(same) {
                Some(other) => format!("is the same file as {}", other.path.display()),
                None => "is in use by another program (only readers can share a file)".into(),
            }));
        }
    };
    let bytes = seek(&file, SeekFrom::End(0)).map_err(|errno| failed(errno.into()))?;
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
    Ok(Opened { file, tail_file, bytes, logical_bytes, physical_bytes, rotational, notes, claim })
}

/// Whether two paths name the same file.
fn is_same(one: &Path, other: &Path) -> bool {
    let name = |path: &Path| std::fs::metadata(path).map(|it| (it.dev(), it.ino())).ok();
    name(one).is_some_and(|one| Some(one) == name(other))
}

/// The block size that direct I/O on a file requires, if the system reports it (Linux 6.1).
fn direct_block_bytes(file: &File) -> Option<u32> {
    let stat = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let align = stat.stx_dio_offset_align;
    let is_told = stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0 && align > 0;
    is_told.then_some(align.max(SECTOR_BYTES as u32))
}

/// Whether the medium of a file rotates, if the system reports it.
fn is_rotational(file: &File, is_device: bool) -> Option<bool> {
    let metadata = file.metadata().ok()?;
    let device = if is_device { metadata.rdev() } else { metadata.dev() };
    let folder = format!("/sys/dev/block/{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    // A partition has no queue, but its disk, one level above, has.
    let mut files = ["queue/rotational", "../queue/rotational"].iter();
    files.find_map(|name| std::fs::read_to_string(Path::new(&folder).join(name)).ok()).map(|text| text.trim() == "1")
}

impl Backend for Files {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn station(&self, _: usize) -> io::Result<Box<dyn Station>> {
        let files: Vec<&File> = self.files.iter().chain(&self.tail_files).collect();
        let volumes = Arc::clone(&self.volumes);
        let (maps, tails) = (Arc::clone(&self.maps), Arc::clone(&self.tails));
        Ok(match self.way {
            Way::Uring => {
                let mut ring = Uring::new(QUEUE_DEPTH, &files)?;
                if let Some(arena) = &self.fixed {
                    ring.register(arena)?;
                }
                Box::new(FileStation::new(ring, volumes, maps).with_tails(tails))
            }
            Way::Threads => {
                let ring = ThreadRing::new(QUEUE_DEPTH, &files)?;
                Box::new(FileStation::new(ring, volumes, maps).with_tails(tails))
            }
        })
    }

    fn buffer(&self, len: usize) -> Buffer {
        self.fixed.as_ref().and_then(|arena| arena.zeroed(len)).unwrap_or_else(|| Buffer::zeroed(len))
    }

    fn extents(&self, range: Range<Sector>, most: usize) -> io::Result<Vec<Extent>> {
        let (index, bytes) = self.place(range);
        self.maps[index].extents(&self.files[index], bytes, most)
    }

    fn extents_of_read(&self, range: Range<Sector>) -> io::Result<Vec<Extent>> {
        let (index, bytes) = self.place(range);
        self.maps[index].extents_of_read(&self.files[index], bytes)
    }
}
