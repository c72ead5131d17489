//! Encoding of waiters and bio owners. The block layer identifies both by numbers that the caller chooses; their upper
//! bits hold the kind.
//!
//! Used by: `simulation`, `page_cache`, `io_thread`, `task`, `stacks`.
//! Tests: below.

use hoistway_blk::bio::Bio;
use hoistway_blk::ground::Waiter;

/// Bits of a number below its kind.
const NUMBER_BITS: u32 = 29;
const NUMBER_MASK: u32 = (1 << NUMBER_BITS) - 1;

const FLUSHER: u32 = 1;
const LIMITS: u32 = 2;
const IO_THREAD: u32 = 3;
const JOURNAL: u32 = 4;
const STACK_THREAD: u32 = 5;
const CRYPT_WORK: u32 = 6;

/// A sleeper that waits for a tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sleeper {
    /// A process.
    Task(u32),
    /// The flusher of a disk.
    Flusher(u32),
    /// The worker that submits a disk's throttled bios (`io.max`).
    Limits(u32),
    /// The I/O thread of a virtual disk.
    IoThread(u32),
    /// The journal thread of a disk's file system.
    Journal(u32),
    /// The thread of a stacked device.
    StackThread(u32),
    /// A CPU that encrypts or decrypts: the number of the work.
    CryptWork(u32),
}

impl Sleeper {
    pub(crate) fn waiter(self) -> Waiter {
        let (kind, number) = match self {
            Sleeper::Task(number) => (0, number),
            Sleeper::Flusher(disk) => (FLUSHER, disk),
            Sleeper::Limits(disk) => (LIMITS, disk),
            Sleeper::IoThread(disk) => (IO_THREAD, disk),
            Sleeper::Journal(disk) => (JOURNAL, disk),
            Sleeper::StackThread(layer) => (STACK_THREAD, layer),
            Sleeper::CryptWork(work) => (CRYPT_WORK, work),
        };
        Waiter(kind << NUMBER_BITS | number)
    }

    pub(crate) fn from_waiter(waiter: Waiter) -> Sleeper {
        let number = waiter.0 & NUMBER_MASK;
        match waiter.0 >> NUMBER_BITS {
            FLUSHER => Sleeper::Flusher(number),
            LIMITS => Sleeper::Limits(number),
            IO_THREAD => Sleeper::IoThread(number),
            JOURNAL => Sleeper::Journal(number),
            STACK_THREAD => Sleeper::StackThread(number),
            CRYPT_WORK => Sleeper::CryptWork(number),
            _ => Sleeper::Task(number),
        }
    }
}

/// Bits of an owner below the number of the task or disk.
const LOCAL_ID_BITS: u32 = 32;
const PAGE_CACHE_OWNER: u64 = 1 << 62;
const IO_THREAD_OWNER: u64 = 2 << 62;
const STACK_OWNER: u64 = 3 << 62;

/// The owner of a bio of a task, with the slot of its I/O.
#[inline]
pub(crate) fn owner_task(task: u32, slot: u32) -> u64 {
    u64::from(task) << LOCAL_ID_BITS | u64::from(slot)
}

/// The owner of a bio of the page cache.
pub(crate) fn owner_page_cache(number: u32) -> u64 {
    PAGE_CACHE_OWNER | u64::from(number)
}

/// The owner of a bio of a virtual disk's I/O thread, with the tag of the guest's command.
pub(crate) fn owner_io_thread(disk: u32, tag: u32) -> u64 {
    IO_THREAD_OWNER | u64::from(disk) << LOCAL_ID_BITS | u64::from(tag)
}

/// In the owner of a bio below a stacked device: no task submitted it.
const NO_TASK: u32 = (1 << 30) - 1;

/// The owner of a bio for a disk below a stacked device, with the number of its join, and the task that submits it, if one does.
pub(crate) fn owner_stack(join: u32, task: Option<u32>) -> u64 {
    STACK_OWNER | u64::from(task.unwrap_or(NO_TASK)) << LOCAL_ID_BITS | u64::from(join)
}

/// The task that submitted the bio, itself or through stacked devices.
#[inline]
pub(crate) fn submitting_task(bio: &Bio) -> Option<u32> {
    if is_from_task(bio) { Some(task_of(bio)) } else { task_above(bio) }
}

#[cold]
fn task_above(bio: &Bio) -> Option<u32> {
    let task = (bio.owner >> LOCAL_ID_BITS) as u32 & NO_TASK;
    (is_from_stack(bio) && task != NO_TASK).then_some(task)
}

/// Whether the bio is for a disk below a stacked device.
pub(crate) fn is_from_stack(bio: &Bio) -> bool {
    bio.owner >= STACK_OWNER
}

/// Whether a task submitted the bio itself.
#[inline]
pub(crate) fn is_from_task(bio: &Bio) -> bool {
    bio.owner < PAGE_CACHE_OWNER
}

/// The virtual disk whose I/O thread submitted the bio, if any.
pub(crate) fn virtual_disk_of(bio: &Bio) -> Option<u32> {
    (bio.owner & STACK_OWNER == IO_THREAD_OWNER).then_some((bio.owner >> LOCAL_ID_BITS) as u32 & NUMBER_MASK)
}

/// The task that submitted the bio; meaningful only for bios of tasks.
#[inline]
pub(crate) fn task_of(bio: &Bio) -> u32 {
    (bio.owner >> LOCAL_ID_BITS) as u32
}

/// The slot, in-flight number or command tag in the owner.
#[inline]
pub(crate) fn local_id_of(bio: &Bio) -> u32 {
    bio.owner as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_blk::bio::Op;
    use hoistway_blk::ground::Sector;

    #[test]
    fn a_sleeper_is_recognised_by_its_waiter_number() {
        for sleeper in [
            Sleeper::Task(7),
            Sleeper::Flusher(0),
            Sleeper::Limits(3),
            Sleeper::IoThread(12),
            Sleeper::Journal(1),
            Sleeper::StackThread(2),
            Sleeper::CryptWork(4),
        ] {
            assert_eq!(Sleeper::from_waiter(sleeper.waiter()), sleeper);
        }
        assert_eq!(Sleeper::Task(7).waiter(), Waiter(7), "a trace shows the number of the process");
    }

    #[test]
    fn the_owner_of_a_bio_is_recognised() {
        let bio = |owner| Bio { owner, ..Bio::new(Op::Read, Sector(0), 8) };
        let (task, cache, thread) = (bio(owner_task(5, 9)), bio(owner_page_cache(9)), bio(owner_io_thread(2, 9)));
        let all = [&task, &cache, &thread, &bio(owner_stack(9, Some(5)))];
        assert_eq!(all.map(is_from_task), [true, false, false, false]);
        assert_eq!(all.map(virtual_disk_of), [None, None, Some(2), None]);
        assert_eq!(all.map(is_from_stack), [false, false, false, true]);
        assert_eq!(all.map(local_id_of), [9, 9, 9, 9]);
        assert_eq!(task_of(&task), 5);
        assert_eq!(all.map(submitting_task), [Some(5), None, None, Some(5)]);
        assert_eq!(submitting_task(&bio(owner_stack(9, None))), None);
    }
}
