//! What sleeps in the block layer, and whose a bio is. The block layer knows both by numbers of the caller's choice; the
//! upper bits of these say what kind of number it is.

use hoistway_blk::bio::Bio;
use hoistway_blk::ground::Waiter;

/// Bits of a number below its kind.
const NUMBER_BITS: u32 = 29;
const NUMBER_MASK: u32 = (1 << NUMBER_BITS) - 1;

const FLUSHER: u32 = 1;
const LIMITS: u32 = 2;
const IO_THREAD: u32 = 3;
const JOURNAL: u32 = 4;

/// What sleeps for a tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sleeper {
    /// A process, by its number.
    Task(u32),
    /// What writes the dirty pages of a disk back.
    Flusher(u32),
    /// The worker that sends what limits of cgroups have kept from a disk.
    Limits(u32),
    /// The thread behind a virtual disk.
    IoThread(u32),
    /// What writes the journal of a disk's file system.
    Journal(u32),
}

impl Sleeper {
    pub(crate) fn waiter(self) -> Waiter {
        let (kind, number) = match self {
            Sleeper::Task(number) => (0, number),
            Sleeper::Flusher(disk) => (FLUSHER, disk),
            Sleeper::Limits(disk) => (LIMITS, disk),
            Sleeper::IoThread(disk) => (IO_THREAD, disk),
            Sleeper::Journal(disk) => (JOURNAL, disk),
        };
        Waiter(kind << NUMBER_BITS | number)
    }

    pub(crate) fn of(waiter: Waiter) -> Sleeper {
        let number = waiter.0 & NUMBER_MASK;
        match waiter.0 >> NUMBER_BITS {
            FLUSHER => Sleeper::Flusher(number),
            LIMITS => Sleeper::Limits(number),
            IO_THREAD => Sleeper::IoThread(number),
            JOURNAL => Sleeper::Journal(number),
            _ => Sleeper::Task(number),
        }
    }
}

/// Bits of an owner below the number of the task or disk.
const PLACE_BITS: u32 = 32;
const OF_PAGE_CACHE: u64 = 1 << 62;
const OF_IO_THREAD: u64 = 2 << 62;

/// The owner of a bio of a task, about this slot.
#[inline]
pub(crate) fn owner_task(task: u32, slot: u32) -> u64 {
    u64::from(task) << PLACE_BITS | u64::from(slot)
}

/// The owner of a bio of the page cache.
pub(crate) fn owner_page_cache(flight: u32) -> u64 {
    OF_PAGE_CACHE | u64::from(flight)
}

/// The owner of a bio of the thread behind a virtual disk, about this command of the guest.
pub(crate) fn owner_io_thread(disk: u32, tag: u32) -> u64 {
    OF_IO_THREAD | u64::from(disk) << PLACE_BITS | u64::from(tag)
}

/// Whether a task has submitted it itself.
#[inline]
pub(crate) fn is_of_task(bio: &Bio) -> bool {
    bio.owner < OF_PAGE_CACHE
}

/// The virtual disk whose thread has submitted it, if it was one.
pub(crate) fn virtual_disk_of(bio: &Bio) -> Option<u32> {
    (bio.owner & OF_IO_THREAD != 0).then_some((bio.owner >> PLACE_BITS) as u32 & NUMBER_MASK)
}

/// The task that has submitted it, if it was one.
#[inline]
pub(crate) fn task_of(bio: &Bio) -> u32 {
    (bio.owner >> PLACE_BITS) as u32
}

/// The slot, flight or command that it is about.
#[inline]
pub(crate) fn place_of(bio: &Bio) -> u32 {
    bio.owner as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_blk::bio::Op;
    use hoistway_blk::ground::Sector;

    #[test]
    fn a_sleeper_is_recognised_by_its_waiter_number() {
        for sleeper in
            [Sleeper::Task(7), Sleeper::Flusher(0), Sleeper::Limits(3), Sleeper::IoThread(12), Sleeper::Journal(1)]
        {
            assert_eq!(Sleeper::of(sleeper.waiter()), sleeper);
        }
        assert_eq!(Sleeper::Task(7).waiter(), Waiter(7), "a trace shows the number of the process");
    }

    #[test]
    fn the_owner_of_a_bio_is_recognised() {
        let bio = |owner| Bio { owner, ..Bio::new(Op::Read, Sector(0), 8) };
        let (task, cache, thread) = (bio(owner_task(5, 9)), bio(owner_page_cache(9)), bio(owner_io_thread(2, 9)));
        assert_eq!([&task, &cache, &thread].map(is_of_task), [true, false, false]);
        assert_eq!([&task, &cache, &thread].map(virtual_disk_of), [None, None, Some(2)]);
        assert_eq!([&task, &cache, &thread].map(place_of), [9, 9, 9]);
        assert_eq!(task_of(&task), 5);
    }
}
