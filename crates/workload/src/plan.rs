//! Which I/Os a process issues: everything about them but the size of the device.

use std::sync::Arc;

use hoistway_blk::Op;

use crate::JobFileError;
use crate::generator::{Distribution, Extent, Generator, PriorityRule, RandomGenerator, Sizes, Strided};
use crate::replay::Replay;
use crate::service::FileService;
use crate::settings::{Direction, Modifier, Sequencer};
use crate::values::Amount;

/// Which I/Os a process issues. It becomes a [`Generator`] when the size of the device is known.
#[derive(Clone, Debug)]
pub struct IoPlan {
    pub(crate) job: Arc<JobPlan>,
    /// Position of the process in the workload.
    pub(crate) process: u32,
    /// Which clone of its job it is, by fio's numbers: see `clone_number`.
    pub(crate) clone: u32,
    /// Its files, in the order in which it uses them.
    pub(crate) files: Arc<[PlacedFile]>,
    /// What it does instead of all that its job says.
    pub(crate) replay: Option<Arc<Replay>>,
}

/// A file of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacedFile {
    /// Which of the process's devices it is on.
    pub(crate) device: u8,
    /// A file of its own, if it is not a file or device that has a name.
    pub(crate) own: Option<OwnFile>,
}

/// Where a file of a process without `filename` lies on the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnFile {
    pub(crate) start_bytes: u64,
    pub(crate) bytes: u64,
}

/// What all clones of a job have in common.
#[derive(Clone, Debug)]
pub(crate) struct JobPlan {
    pub(crate) origin: Origin,
    /// Zones that are used one after the other.
    pub(crate) strided: Option<Strided>,
    pub(crate) direction: Direction,
    pub(crate) random: bool,
    pub(crate) modifier: Modifier,
    pub(crate) sequencer: Sequencer,
    pub(crate) read_percent: u8,
    /// For reads, writes and trims.
    pub(crate) sizes: [Sizes; 3],
    /// Alignment of random offsets in bytes, for reads, writes and trims.
    pub(crate) align: [u64; 3],
    pub(crate) percent_random: [u8; 3],
    /// Whether each block is visited once in a pass.
    pub(crate) random_map: bool,
    pub(crate) random_generator: RandomGenerator,
    pub(crate) distribution: Distribution,
    /// Mixed into the seed of the run.
    pub(crate) rand_seed: Option<i64>,
    /// Whether each pass repeats the order of the first.
    pub(crate) rand_repeat: bool,
    pub(crate) size: Option<Amount>,
    pub(crate) io_size: Option<Amount>,
    pub(crate) offset: Amount,
    pub(crate) offset_increment: Amount,
    /// Size of each file, if it is given; the least and the most.
    pub(crate) file_bytes: Option<(u64, u64)>,
    /// How many files `size` is divided among.
    pub(crate) files: u64,
    /// 0 for all.
    pub(crate) open_files: u64,
    pub(crate) service: FileService,
    /// Shares of I/Os that have a priority of their own.
    pub(crate) priorities: Option<Arc<[PriorityRule]>>,
    /// 0 for no limit.
    pub(crate) number_ios: u64,
    pub(crate) loops: u64,
    pub(crate) time_based: bool,
    /// What was written is read again at the end of each pass, or when there are so many writes to check.
    pub(crate) verify_backlog: Option<u64>,
    /// A flush after each so many writes (`fsync`, `fdatasync`); 0 for none.
    pub(crate) sync_every: [u32; 2],
}

/// The places of the options that may turn out not to fit the device.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) section: Arc<str>,
    pub(crate) size: (Arc<str>, u32),
    pub(crate) offset: (Arc<str>, u32),
    pub(crate) random_distribution: (Arc<str>, u32),
}

/// The part of a file that a process uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Region {
    /// First byte on the device.
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    /// Bytes of the whole file or device, of which percentages are taken.
    pub(crate) whole: u64,
    /// Which of the process's devices it is on.
    pub(crate) device: u8,
}

impl IoPlan {
    /// The I/Os of this plan on devices of `device_bytes` each. The same `seed` gives the same I/Os, on any
    /// machine; each process of a workload has random numbers of its own.
    ///
    /// # Errors
    /// As for [`IoPlan::generator_on`].
    pub fn generator(&self, seed: u64, device_bytes: u64) -> Result<Generator, JobFileError> {
        self.generator_on(seed, |_| device_bytes)
    }

    /// The I/Os of this plan on devices whose sizes are known by their places in
    /// [`Process::files`](crate::Process::files).
    ///
    /// # Errors
    /// If the region of the job does not fit a device, or is smaller than the smallest block of a direction.
    pub fn generator_on(&self, seed: u64, device_bytes: impl Fn(usize) -> u64) -> Result<Generator, JobFileError> {
        if let Some(replay) = &self.replay {
            replay.check(&device_bytes)?;
            return Ok(Generator::new(self, &[], seed));
        }
        // One file, as almost always, needs no list.
        if let [file] = *self.files {
            return Ok(Generator::new(self, &[self.region(file, &device_bytes)?], seed));
        }
        let regions: Result<Vec<_>, _> = self.files.iter().map(|file| self.region(*file, &device_bytes)).collect();
        Ok(Generator::new(self, &regions?, seed))
    }

    /// What of a device, by its place in [`Process::files`](crate::Process::files), its files without a name take, in bytes;
    /// none if it uses the device itself.
    #[must_use]
    pub fn own_bytes(&self, device: usize) -> Option<std::ops::Range<u64>> {
        let on_it = self.files.iter().filter(|file| usize::from(file.device) == device);
        let own = on_it.filter_map(|file| file.own).map(|own| (own.start_bytes, own.start_bytes + own.bytes));
        own.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).map(|(start, end)| start..end)
    }

    /// The smallest block that it reads, writes or trims, in bytes.
    #[must_use]
    pub fn block_bytes_min(&self) -> u32 {
        match &self.replay {
            Some(replay) => replay.sizes().min().unwrap_or(0),
            None => self.active_sizes().map(Sizes::min).min().unwrap_or(0),
        }
    }

    /// The largest block that it reads, writes or trims, in bytes.
    #[must_use]
    pub fn block_bytes_max(&self) -> u32 {
        match &self.replay {
            Some(replay) => replay.sizes().max().unwrap_or(0),
            None => self.active_sizes().map(Sizes::max).max().unwrap_or(0),
        }
    }

    /// Whether it writes or trims.
    #[must_use]
    pub fn modifies(&self) -> bool {
        match &self.replay {
            Some(replay) => replay.has(|op| matches!(op, Op::Write | Op::Discard)),
            None => self.job.direction != Direction::Read,
        }
    }

    /// Whether it goes over its region at random, not from one end to the other.
    #[must_use]
    pub fn is_random(&self) -> bool {
        self.replay.as_ref().map_or(self.job.random, |replay| replay.is_random())
    }

    /// Whether some of its I/Os have a priority of their own (`cmdprio_percentage`).
    #[must_use]
    pub fn has_priorities(&self) -> bool {
        self.job.priorities.is_some()
    }

    /// Whether its I/Os come from a log (`read_iolog`).
    #[must_use]
    pub fn is_replay(&self) -> bool {
        self.replay.is_some()
    }

    /// Whether it asks for flushes (`fsync`, `fdatasync`).
    #[must_use]
    pub fn flushes(&self) -> bool {
        match &self.replay {
            Some(replay) => replay.has(|op| op == Op::Flush),
            None => self.job.sync_every.iter().any(|every| *every > 0),
        }
    }

    /// Where it works on devices of `device_bytes` each: for each of its files the first byte and the length. Nothing
    /// for a replay.
    ///
    /// # Errors
    /// As for [`IoPlan::generator`].
    pub fn ranges(&self, device_bytes: u64) -> Result<Vec<(u64, u64)>, JobFileError> {
        let range =
            |file: &PlacedFile| self.region(*file, &|_| device_bytes).map(|region| (region.start, region.bytes));
        self.files.iter().map(range).collect()
    }

    fn active_sizes(&self) -> impl Iterator<Item = &Sizes> {
        self.job.direction.lanes().iter().map(|&lane| &self.job.sizes[lane])
    }

    fn region(&self, file: PlacedFile, device_bytes: &dyn Fn(usize) -> u64) -> Result<Region, JobFileError> {
        let job = &*self.job;
        let device_bytes = device_bytes(usize::from(file.device));
        let (base, whole) = match (file.own, job.file_bytes) {
            (Some(own), _) => (own.start_bytes, own.bytes),
            (None, Some((_, most))) => (0, most),
            (None, None) => (0, device_bytes),
        };
        if base.saturating_add(whole) > device_bytes {
            let message = format!("the files of the jobs need {} bytes, the device has {device_bytes}", base + whole);
            return Err(self.size_error(&message).hinting("use a larger device, or a smaller size"));
        }
        let increment = job.offset_increment.of(whole).checked_mul(u64::from(self.clone));
        let offset = increment.and_then(|i| i.checked_add(job.offset.of(whole))).and_then(|offset| job.aligned(offset));
        let Some(offset) = offset.filter(|&offset| offset < whole) else {
            let message = format!("the job starts behind the end of the device, which has {device_bytes} bytes");
            let error = self.error("offset", &job.origin.offset, &message);
            return Err(error.hinting("use a larger device, or a smaller offset"));
        };
        let room = whole - offset;
        // With a size of the files, size in bytes is only how much is done; without one it is divided among them.
        let is_region = |size: &Amount| job.file_bytes.is_none() || matches!(size, Amount::Percent(_));
        let size = job.size.filter(is_region).map(|size| size.part_of(job.files));
        let bytes = match size {
            None => room,
            Some(Amount::Percent(percent)) => Amount::Percent(percent).of(whole).min(room),
            Some(Amount::Bytes(bytes)) if bytes <= room => bytes,
            Some(Amount::Bytes(bytes)) => {
                let end = offset.saturating_add(bytes);
                let message = format!("the job ends at byte {end}, but the device has {device_bytes}");
                return Err(self.size_error(&message).hinting("use size=100%, or a larger device"));
            }
        };
        // Every direction has a block that fits.
        let block = self.active_sizes().map(Sizes::min).max().unwrap_or(0);
        if bytes < u64::from(block) {
            let message = format!("the region of {bytes} bytes is smaller than a block of {block}");
            return Err(self.size_error(&message).hinting("use a larger device or size, or a smaller bs"));
        }
        self.zones_fit(bytes)?;
        Ok(Region { start: base + offset, bytes, whole, device: file.device })
    }

    /// Zones that are given in bytes have to lie in the region.
    fn zones_fit(&self, region_bytes: u64) -> Result<(), JobFileError> {
        let Distribution::Zoned(zones) = &self.job.distribution else { return Ok(()) };
        if !self.job.random {
            return Ok(());
        }
        for &lane in self.job.direction.lanes() {
            let bytes = zones[lane].iter().fold(0, |sum: u64, zone| match zone.extent {
                Extent::Bytes(bytes) => sum.saturating_add(bytes),
                Extent::Percent(_) => sum,
            });
            if bytes > region_bytes {
                let message = format!("the zones end at byte {bytes}, the region has {region_bytes}");
                let error = self.error("random_distribution", &self.job.origin.random_distribution, &message);
                return Err(error.hinting("use smaller zones, or a larger device or size"));
            }
        }
        Ok(())
    }

    fn size_error(&self, message: &str) -> JobFileError {
        self.error("size", &self.job.origin.size, message)
    }

    fn error(&self, option: &str, (file, line): &(Arc<str>, u32), message: &str) -> JobFileError {
        let error = JobFileError::new(file, message).at_line(*line).in_section(Some(&self.job.origin.section));
        error.on_option(option)
    }
}

impl JobPlan {
    /// Where a region starts that `offset` and `offset_increment` place there. Tried with fio 3.33: if one of them is a
    /// percentage, the sum is rounded up to the smallest block of all directions, those that do not occur too.
    fn aligned(&self, offset: u64) -> Option<u64> {
        let is_percent = |amount: &Amount| matches!(amount, Amount::Percent(_));
        if !is_percent(&self.offset) && !is_percent(&self.offset_increment) {
            return Some(offset & !511);
        }
        let block = self.sizes.iter().map(Sizes::min).min().unwrap_or(0);
        offset.checked_next_multiple_of(u64::from(block).max(512))
    }
}

impl Direction {
    /// The directions that occur: 0 for reads, 1 for writes, 2 for trims.
    pub(crate) fn lanes(self) -> &'static [usize] {
        match self {
            Direction::Read => &[0],
            Direction::Write => &[1],
            Direction::Trim => &[2],
            Direction::Mixed => &[0, 1],
            // The write repeats the range of the trim.
            Direction::TrimWrite => &[2],
        }
    }
}
