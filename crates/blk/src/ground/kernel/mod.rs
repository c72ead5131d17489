//! Kernel generations: a table of the variants of each component in each Linux release.
//!
//! Used by: `schedulers`, `queue`, `tags`, `watch`, `request` and others; crates `legacy`, `experiment`, `hoistway`, `evidence`, `calibrate` and others.
//! Tests: below, `crates/blk/src/ground/kernel/release.rs`.
//!
//! A variant is a value here and a parameter of the component; no code is duplicated. Each entry names the first
//! release that it applies to, so the table covers every release. Sources: `docs/rules`, where each rule says since
//! when it applies.

mod release;

pub use release::Kernel;

use crate::ground::time::Hz;

/// Number of requests that a hardware-queue run dispatches from the scheduler before it issues them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fetch {
    /// One at a time.
    One,
    /// Up to `nr_requests` while the queue is not busy; stops at the first request that gets no driver tag only if
    /// `stop_without_tag`.
    Batch {
        /// Whether dispatching stops at the first request without a driver tag.
        stop_without_tag: bool,
    },
}

/// Whether a run continues with the scheduler after the dispatch list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterDispatchList {
    /// Only if all of the list was issued.
    AskIfSent,
    /// Only if not all of the list was issued: a bug of the first releases.
    AskIfStuck,
}

/// When a request may bypass the queues and go directly to the driver, without a scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DirectIssue {
    /// Only sync requests outside a plug, and only with several hardware queues.
    SyncManyQueues,
    /// The same, and any request if the hardware queue is not busy.
    NotBusy,
    /// All requests of a plug, which means all requests.
    Always,
}

/// The order in which an explicit flush issues a plug's requests directly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlugOrder {
    /// Submission order.
    Fifo,
    /// Reverse order of submission.
    Lifo,
    /// Sorted by software queue and sector.
    Sorted,
}

/// Which system calls open a plug around a bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlugUse {
    /// Every direct I/O on a raw device, and every `io_submit`.
    Always,
    /// Every asynchronous direct I/O on a raw device, and every `io_submit` of more than two.
    DirectAndBatches,
    /// Only an `io_submit` of more than two.
    Batches,
}

/// The meaning of a shallow depth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShallowRule {
    /// The number of usable bits of each word of the tag bitmap.
    PerWord,
    /// The number of usable bits of the whole bitmap, spread over its words.
    WholeMap,
}

/// How the files of `queue/` behave (BL-13, BL-14, BL-105, BL-107, BL-108).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SysfsGeneration {
    /// Up to 6.1: `none` is the last in the list of schedulers if another is active.
    NoneLast,
    /// 6.2 to 6.8: `none` is the first.
    NoneFirst,
    /// 6.9 and later: in addition, too large a `max_sectors_kb` is clamped, and a missing write cache cannot be turned
    /// on.
    Clamping,
}

/// How the statistics of a device are kept (BL-126 to BL-128).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DiskStatsGeneration {
    /// Up to 4.17: busy time to the nanosecond, waiting as an integral; discards are writes.
    ExactWithoutDiscards,
    /// 4.18 to 4.20: discards are counted separately.
    Exact,
    /// 5.0 to 6.9: busy time in ticks, of which each start counts one. Flushes are counted separately.
    StartsCountOne,
    /// 6.10 and later: a start counts no tick if the device was idle.
    Ticks,
}

/// The generations of mq-deadline (DD-1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DeadlineGeneration {
    /// 4.11 to 5.13, and deadline itself: one next pointer, no priorities.
    A,
    /// 5.14 and 5.15: priority classes, but a lower class runs whenever the higher has nothing queued.
    B1,
    /// 5.16 to 6.4: strict classes and ageing; a next pointer for each class and direction.
    B2,
    /// 6.5 to 6.18.0: a position instead of the pointer.
    C,
    /// 6.18 stable and later: one head list for the device.
    CPrime,
}

/// The generations of cfq (CFQ-1, CFQ-2), by the clock that they count in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CfqGeneration {
    /// Up to 4.7: timer ticks.
    Ticks,
    /// 4.8 and later: nanoseconds. (Other changes of 4.12 are in all rows here.)
    Nanoseconds,
}

/// The generations of kyber (docs/rules/kyber.md), by the control of depths and the place where requests wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum KyberGeneration {
    /// 4.12 to 4.17: mean latencies in windows; requests wait in the block layer's software queues.
    Windows,
    /// 4.18 and 4.19: the same controller; requests wait in kyber's own staging lists.
    StagedWindows,
    /// 4.20 and later: percentiles of latency histograms, and a domain for discards.
    Percentiles,
}

/// The variant of every component in one release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Generation {
    /// The release.
    pub kernel: Kernel,
    /// The tick rate of the distribution kernels that the sources ran.
    pub hz: Hz,
    /// Whether the driver's budget is taken before a request is dispatched from the scheduler.
    pub budget: bool,
    /// Number of requests that a run dispatches before it issues them.
    pub fetch: Fetch,
    /// Whether a run continues with the scheduler after the dispatch list.
    pub after_dispatch_list: AfterDispatchList,
    /// Whether unissued requests return to the head of the dispatch list instead of its tail.
    pub dispatch_list_at_head: bool,
    /// Whether hardware queues keep a busy average.
    pub busy_average: bool,
    /// When requests bypass the queues.
    pub direct_issue: DirectIssue,
    /// A plug that holds this many requests is flushed before the next one.
    pub plug_limit: u16,
    /// Whether a plug whose newest request has 128 KiB or more is flushed before the next one.
    pub plug_flushes_large: bool,
    /// Whether a bio is merged only with the newest request of the plug.
    pub plug_merges_newest_only: bool,
    /// The order of an explicit flush without a scheduler.
    pub plug_order: PlugOrder,
    /// Which system calls plug.
    pub plug_use: PlugUse,
    /// Whether a bio outside a plug runs the scheduler's queue in its submitter (as a plug of one) and not on a
    /// worker.
    pub unplugged_runs_inline: bool,
    /// Whether the nanosecond clock stands still while a plug is open.
    pub plug_stops_clock: bool,
    /// Whether only bios of equal priority merge.
    pub merge_needs_equal_priority: bool,
    /// Whether only bios of the same cgroup merge.
    pub merge_needs_equal_cgroup: bool,
    /// The meaning of a shallow depth.
    pub shallow: ShallowRule,
    /// Whether a queue whose driver tags are host-wide has one map of scheduler tags for all its hardware queues.
    pub one_scheduler_map: bool,
    /// Whether there are separate hardware queues for reads and for polled I/O.
    pub queue_types: bool,
    /// The software limit of a request in sectors, unless the user sets another.
    pub max_sectors_cap: u32,
    /// Whether "run all" of a scheduler that is not multi-queue aware runs one hardware queue.
    pub single_dispatch: bool,
    /// Whether there is write-back throttling: 4.10 and later.
    pub wbt: bool,
    /// Whether every flush-type write bypasses the scheduler, even one that needs no flush.
    pub flushes_bypass_scheduler: bool,
    /// Whether a flush command waits for in-flight sequenced data even with a scheduler.
    pub flush_always_defers: bool,
    /// How statistics are kept.
    pub disk_stats: DiskStatsGeneration,
    /// How the files in sysfs behave.
    pub sysfs: SysfsGeneration,
    /// Whether every queue has `queue/async_depth`, which replaces the schedulers' own limits of scheduler tags.
    pub queue_async_depth: bool,
    /// mq-deadline's generation.
    pub deadline: DeadlineGeneration,
    /// Whether mq-deadline limits async I/O to 3/4 of the scheduler tags by default.
    pub deadline_limits_async: bool,
    /// kyber's generation.
    pub kyber: KyberGeneration,
    /// cfq's generation; the last one for kernels without the legacy path.
    pub cfq: CfqGeneration,
}

/// A mainline release.
const fn main(major: u16, minor: u16) -> Kernel {
    Kernel::release(major, minor, 0)
}

/// A release of a stable series.
const fn stable(major: u16, minor: u16, patch: u16) -> Kernel {
    Kernel::release(major, minor, patch)
}

impl Kernel {
    /// The variants of this release. A change without a dated source applies from the first release that is known to
    /// have it.
    #[must_use]
    pub fn generation(self) -> Generation {
        let is_from = |major, minor| self.is_from(major, minor);
        Generation {
            kernel: self,
            hz: Hz(250),
            budget: is_from(4, 15),
            fetch: self.column(
                Fetch::One,
                &[
                    (Fetch::Batch { stop_without_tag: false }, &[main(5, 9)]),
                    (Fetch::Batch { stop_without_tag: true }, &[main(5, 15)]),
                ],
            ),
            after_dispatch_list: self
                .column(AfterDispatchList::AskIfStuck, &[(AfterDispatchList::AskIfSent, &[main(4, 19)])]),
            dispatch_list_at_head: !is_from(5, 0),
            busy_average: is_from(4, 19),
            direct_issue: self.column(
                DirectIssue::SyncManyQueues,
                &[(DirectIssue::NotBusy, &[main(4, 19)]), (DirectIssue::Always, &[main(5, 16)])],
            ),
            plug_limit: if is_from(5, 16) { 32 } else { 16 },
            plug_flushes_large: is_from(4, 12),
            plug_merges_newest_only: is_from(5, 16),
            plug_order: self.column(
                PlugOrder::Sorted,
                &[
                    (PlugOrder::Fifo, &[main(5, 0)]),
                    (PlugOrder::Lifo, &[main(5, 16)]),
                    // Recorded in 6.12.107; the stable release that introduced it is unknown.
                    (PlugOrder::Fifo, &[main(6, 13), stable(6, 12, 1)]),
                ],
            ),
            plug_use: self.column(
                PlugUse::Always,
                &[(PlugUse::DirectAndBatches, &[main(5, 0)]), (PlugUse::Batches, &[main(5, 16)])],
            ),
            unplugged_runs_inline: is_from(6, 10) && !is_from(7, 2),
            plug_stops_clock: is_from(6, 9),
            merge_needs_equal_priority: is_from(5, 0),
            merge_needs_equal_cgroup: is_from(5, 18),
            shallow: self.column(ShallowRule::PerWord, &[(ShallowRule::WholeMap, &[main(6, 18)])]),
            one_scheduler_map: is_from(5, 14),
            queue_types: is_from(5, 0),
            max_sectors_cap: if is_from(6, 18) { 8192 } else { 2560 },
            single_dispatch: is_from(5, 12),
            wbt: is_from(4, 10),
            flushes_bypass_scheduler: !is_from(6, 5),
            flush_always_defers: is_from(5, 10),
            disk_stats: self.column(
                DiskStatsGeneration::ExactWithoutDiscards,
                &[
                    (DiskStatsGeneration::Exact, &[main(4, 18)]),
                    (DiskStatsGeneration::StartsCountOne, &[main(5, 0)]),
                    (DiskStatsGeneration::Ticks, &[main(6, 10)]),
                ],
            ),
            sysfs: self.column(
                SysfsGeneration::NoneLast,
                &[(SysfsGeneration::NoneFirst, &[main(6, 2)]), (SysfsGeneration::Clamping, &[main(6, 9)])],
            ),
            queue_async_depth: is_from(7, 0),
            deadline: self.column(
                DeadlineGeneration::A,
                &[
                    (DeadlineGeneration::B1, &[main(5, 14)]),
                    (DeadlineGeneration::B2, &[main(5, 16)]),
                    (DeadlineGeneration::C, &[main(6, 5)]),
                    (DeadlineGeneration::CPrime, &[main(6, 19), stable(6, 18, 1)]),
                ],
            ),
            deadline_limits_async: self.column(
                false,
                &[
                    (true, &[main(5, 14)]),
                    // Changed in mid-2024, with backports to the stable series.
                    (false, &[main(6, 11), stable(6, 10, 3), stable(6, 6, 44), stable(6, 1, 103)]),
                ],
            ),
            kyber: self.column(
                KyberGeneration::Windows,
                &[(KyberGeneration::StagedWindows, &[main(4, 18)]), (KyberGeneration::Percentiles, &[main(4, 20)])],
            ),
            cfq: self.column(CfqGeneration::Ticks, &[(CfqGeneration::Nanoseconds, &[main(4, 8)])]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intermediate_kernel_releases_map_to_their_generation() {
        let deadline = |text: &str| text.parse::<Kernel>().map(|kernel| kernel.generation().deadline);
        use DeadlineGeneration::{A, B1, B2, C, CPrime};
        let of = [("5.13.19", A), ("5.15.0-91-generic", B1), ("5.19", B2), ("6.4", B2), ("6.6", C), ("6.18.0", C)];
        for (text, generation) in of.into_iter().chain([("6.18.15", CPrime), ("6.19.0", CPrime)]) {
            assert_eq!(deadline(text), Ok(generation), "{text}");
        }
        let limits = |text: &str| text.parse::<Kernel>().unwrap().generation().deadline_limits_async;
        assert_eq!(["5.13", "5.15", "6.1.102", "6.9", "6.10"].map(limits), [false, true, true, true, true]);
        assert_eq!(["6.1.103", "6.1", "6.6", "6.10.3", "6.11.0"].map(limits), [false; 5]);
    }

    #[test]
    fn plugs_are_issued_in_reverse_from_5_16_on_until_6_13_and_the_stable_releases_of_6_12() {
        let order = |text: &str| text.parse::<Kernel>().unwrap().generation().plug_order;
        assert_eq!(["5.15", "6.12.107", "6.12", "6.13.0"].map(order), [PlugOrder::Fifo; 4]);
        assert_eq!(["5.16.0", "6.11", "6.12.0"].map(order), [PlugOrder::Lifo; 3]);
    }
}
