//! Kernel generations: one table that says which variant of every part a Linux release has.
//!
//! A variant is a value here and a parameter there; no file of this crate exists twice. Sources of the rows:
//! `block-layer.md` 30 and the "generations" sections of the schedulers' specifications.

use std::fmt;
use std::str::FromStr;

use crate::time::Hz;

/// A Linux release whose behaviour can be chosen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kernel {
    /// 4.4 (openSUSE Leap 42.2).
    V4_4,
    /// 4.12 and 4.13: the first multi-queue schedulers.
    V4_12,
    /// 4.19 and 4.20: the last with the legacy single queue.
    V4_19,
    /// 5.10: before the single-dispatch rule.
    V5_10,
    /// 6.3.
    V6_3,
    /// 6.12.
    V6_12,
    /// 6.18.
    V6_18,
}

/// How many requests a hardware-queue run draws from the scheduler before it sends them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fetch {
    /// One at a time.
    One,
    /// Up to `nr_requests` while the queue is not busy; stops at the first request that gets no driver tag only if
    /// `stop_without_tag`.
    Batch {
        /// Whether drawing stops at the first request without a driver tag.
        stop_without_tag: bool,
    },
}

/// Whether a run goes on to the scheduler after it has dealt with left-overs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterLeftovers {
    /// Only if all of them were sent.
    AskIfSent,
    /// Only if *not* all of them were sent, a mistake of the first releases.
    AskIfStuck,
}

/// When a request without a scheduler may go to the driver without being queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DirectIssue {
    /// Only sync requests outside a plug, and only with several hardware queues.
    SyncManyQueues,
    /// Those, and whatever finds the hardware queue not busy.
    NotBusy,
    /// Whatever leaves a plug, which everything does.
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

/// What a shallow depth bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShallowRule {
    /// So many bits of each word of the tag bitmap.
    PerWord,
    /// So many bits of the whole bitmap, spread over its words.
    WholeMap,
}

/// How the files of `queue/` behave (`block-layer.md` 4, 22.3, 23).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SysfsGeneration {
    /// Up to 6.1: `none` is the last in the list of schedulers if another is active.
    NoneLast,
    /// 6.2 to 6.8: `none` is the first.
    NoneFirst,
    /// Later: besides, too large a `max_sectors_kb` is cut, and a write cache that is not there stays off.
    Clamping,
}

/// How the statistics of a device are kept (`block-layer.md` 27.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DiskStatsGeneration {
    /// Up to 4.17: busy time to the nanosecond, waiting as an integral; discards are writes.
    ExactWithoutDiscards,
    /// 4.18 to 4.20: discards apart.
    Exact,
    /// 5.0 to 6.9: busy time in ticks; a start counts one of them. Flushes apart.
    StartsCountOne,
    /// Later: a start counts nothing if the device was idle.
    Ticks,
}

/// The generations of mq-deadline (`mq-deadline.md` 1).
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

/// The generations of cfq (`cfq.md` 1), by the clock that they count in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CfqGeneration {
    /// Up to 4.7: timer ticks.
    Ticks,
    /// 4.8 and later: nanoseconds. (What 4.12 changed besides is in all rows here.)
    Nanoseconds,
}

/// The generations of kyber (`kyber.md`), by how they steer the depths and where requests wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum KyberGeneration {
    /// 4.12 to 4.17: mean latencies in windows; requests wait in the block layer's software queues.
    Windows,
    /// 4.18 and 4.19: the same controller; requests wait in staging lists of kyber's own.
    StagedWindows,
    /// 4.20 and later: percentiles of latency histograms, and a domain for discards.
    Percentiles,
}

/// The variant of every part in one release.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Generation {
    /// The release.
    pub kernel: Kernel,
    /// The tick rate of the distribution kernels that the sources ran.
    pub hz: Hz,
    /// Whether the driver's budget is taken before a request is drawn from the scheduler.
    pub budget: bool,
    /// How many requests a run draws before it sends them.
    pub fetch: Fetch,
    /// Whether the scheduler is asked after left-overs.
    pub after_leftovers: AfterLeftovers,
    /// Whether left-overs go back to the head of the dispatch list instead of its tail.
    pub leftovers_at_head: bool,
    /// Whether hardware queues keep a busy average.
    pub busy_average: bool,
    /// When requests by-pass the queues.
    pub direct_issue: DirectIssue,
    /// A plug that holds so many requests is flushed before the next one.
    pub plug_limit: u16,
    /// Whether a plug whose newest request has 128 KiB or more is flushed before the next one.
    pub plug_flushes_large: bool,
    /// Whether a bio is merged only with the newest request of the plug.
    pub plug_merges_newest_only: bool,
    /// The order of an explicit flush without a scheduler.
    pub plug_order: PlugOrder,
    /// Who plugs.
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
    /// What a shallow depth means.
    pub shallow: ShallowRule,
    /// Whether a queue whose driver tags are host-wide has one map of scheduler tags for all its hardware queues.
    pub one_scheduler_map: bool,
    /// Whether there are hardware queues for reads alone and for polled I/O.
    pub queue_types: bool,
    /// The software limit of a request in sectors, unless the user sets another.
    pub max_sectors_cap: u32,
    /// Whether "run all" of a scheduler that is not multi-queue aware runs one hardware queue.
    pub single_dispatch: bool,
    /// Whether there is write-back throttling: 4.10 and later.
    pub wbt: bool,
    /// Whether every flush-type write by-passes the scheduler, even one that needs no flush.
    pub flushes_bypass_scheduler: bool,
    /// Whether a flush command waits for sequenced data in flight also with a scheduler.
    pub flush_always_defers: bool,
    /// How statistics are kept.
    pub disk_stats: DiskStatsGeneration,
    /// How the files in sysfs behave.
    pub sysfs: SysfsGeneration,
    /// Whether devices whose driver takes bios have a file `queue/scheduler`.
    pub bio_based_scheduler_file: bool,
    /// mq-deadline's generation.
    pub deadline: DeadlineGeneration,
    /// Whether mq-deadline limits async I/O to 3/4 of the scheduler tags by default.
    pub deadline_limits_async: bool,
    /// kyber's generation.
    pub kyber: KyberGeneration,
    /// cfq's generation. Kernels without the legacy path run its last form.
    pub cfq: CfqGeneration,
}

static GENERATIONS: [Generation; 7] = {
    const V4_12: Generation = Generation {
        kernel: Kernel::V4_12,
        hz: Hz(250),
        budget: false,
        fetch: Fetch::One,
        after_leftovers: AfterLeftovers::AskIfStuck,
        leftovers_at_head: true,
        busy_average: false,
        direct_issue: DirectIssue::SyncManyQueues,
        plug_limit: 16,
        plug_flushes_large: true,
        plug_merges_newest_only: false,
        plug_order: PlugOrder::Sorted,
        plug_use: PlugUse::Always,
        unplugged_runs_inline: false,
        plug_stops_clock: false,
        merge_needs_equal_priority: false,
        merge_needs_equal_cgroup: false,
        shallow: ShallowRule::PerWord,
        one_scheduler_map: false,
        queue_types: false,
        max_sectors_cap: 2560,
        single_dispatch: false,
        wbt: true,
        flushes_bypass_scheduler: true,
        flush_always_defers: false,
        disk_stats: DiskStatsGeneration::ExactWithoutDiscards,
        sysfs: SysfsGeneration::NoneLast,
        bio_based_scheduler_file: true,
        deadline: DeadlineGeneration::A,
        deadline_limits_async: false,
        kyber: KyberGeneration::Windows,
        cfq: CfqGeneration::Nanoseconds,
    };
    const V4_4: Generation =
        Generation { kernel: Kernel::V4_4, plug_flushes_large: false, wbt: false, cfq: CfqGeneration::Ticks, ..V4_12 };
    const V4_19: Generation = Generation {
        kernel: Kernel::V4_19,
        disk_stats: DiskStatsGeneration::Exact,
        budget: true,
        after_leftovers: AfterLeftovers::AskIfSent,
        busy_average: true,
        direct_issue: DirectIssue::NotBusy,
        kyber: KyberGeneration::StagedWindows,
        ..V4_12
    };
    const V5_10: Generation = Generation {
        kernel: Kernel::V5_10,
        disk_stats: DiskStatsGeneration::StartsCountOne,
        queue_types: true,
        fetch: Fetch::Batch { stop_without_tag: false },
        leftovers_at_head: false,
        plug_order: PlugOrder::Fifo,
        plug_use: PlugUse::DirectAndBatches,
        flush_always_defers: true,
        merge_needs_equal_priority: true,
        kyber: KyberGeneration::Percentiles,
        ..V4_19
    };
    const V6_3: Generation = Generation {
        kernel: Kernel::V6_3,
        one_scheduler_map: true,
        fetch: Fetch::Batch { stop_without_tag: true },
        direct_issue: DirectIssue::Always,
        plug_limit: 32,
        plug_merges_newest_only: true,
        plug_order: PlugOrder::Lifo,
        plug_use: PlugUse::Batches,
        sysfs: SysfsGeneration::NoneFirst,
        bio_based_scheduler_file: false,
        merge_needs_equal_cgroup: true,
        single_dispatch: true,
        deadline: DeadlineGeneration::B2,
        deadline_limits_async: true,
        ..V5_10
    };
    const V6_12: Generation = Generation {
        kernel: Kernel::V6_12,
        disk_stats: DiskStatsGeneration::Ticks,
        unplugged_runs_inline: true,
        plug_stops_clock: true,
        flushes_bypass_scheduler: false,
        sysfs: SysfsGeneration::Clamping,
        deadline: DeadlineGeneration::C,
        deadline_limits_async: false,
        ..V6_3
    };
    const V6_18: Generation = Generation {
        kernel: Kernel::V6_18,
        plug_order: PlugOrder::Fifo,
        shallow: ShallowRule::WholeMap,
        max_sectors_cap: 8192,
        deadline: DeadlineGeneration::CPrime,
        ..V6_12
    };
    [V4_4, V4_12, V4_19, V5_10, V6_3, V6_12, V6_18]
};

impl Kernel {
    /// All releases, oldest first.
    pub const ALL: [Kernel; 7] =
        [Kernel::V4_4, Kernel::V4_12, Kernel::V4_19, Kernel::V5_10, Kernel::V6_3, Kernel::V6_12, Kernel::V6_18];

    /// The newest one.
    pub const DEFAULT: Kernel = Kernel::V6_18;

    /// The variants of this release.
    #[must_use]
    pub fn generation(self) -> &'static Generation {
        &GENERATIONS[self as usize]
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kernel::V4_4 => "4.4",
            Kernel::V4_12 => "4.12",
            Kernel::V4_19 => "4.19",
            Kernel::V5_10 => "5.10",
            Kernel::V6_3 => "6.3",
            Kernel::V6_12 => "6.12",
            Kernel::V6_18 => "6.18",
        })
    }
}

impl FromStr for Kernel {
    type Err = String;

    fn from_str(text: &str) -> Result<Kernel, String> {
        Kernel::ALL.into_iter().find(|kernel| kernel.to_string() == text).ok_or_else(|| {
            let all: Vec<String> = Kernel::ALL.iter().map(Kernel::to_string).collect();
            format!("unknown kernel \"{text}\" (expected one of {})", all.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_has_its_own_row_and_its_name_reads_back() {
        for kernel in Kernel::ALL {
            assert_eq!(kernel.generation().kernel, kernel);
            assert_eq!(kernel.to_string().parse(), Ok(kernel));
        }
        assert!("6.19".parse::<Kernel>().is_err());
    }
}
