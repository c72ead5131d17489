//! How many scheduler tags everything but sync reads may use (DD-22, DD-23).

use proptest::prelude::*;

use super::*;
use crate::bio::BioFlags;
use crate::ground::ids::CpuId;
use crate::ground::kernel::Kernel;
use crate::ground::meter::NoMeter;
use crate::ground::time::Now;
use crate::ground::tunables::value_of;
use crate::policy::{ElevatorCx, SchedulerEvent, Serialized};
use crate::tags::{Depth, TagBitmap};

const SIZES: [u32; 4] = [32, 64, 128, 256];

struct Limited {
    scheduler: Serialized<MqDeadline, Local>,
    kernel: Kernel,
    tags: u32,
}

impl Limited {
    fn new(kernel: Kernel, tags: u32) -> Self {
        let config = MqDeadlineConfig::new(&kernel.generation(), tags);
        Limited { scheduler: Serialized::new(MqDeadline::new(config, tags), tags), kernel, tags }
    }

    fn with_async_depth(self, async_depth: u32) -> Self {
        let text = async_depth.to_string();
        ElevatorCx::alone(Now::default(), |cx| self.scheduler.set_tunable(&NoMeter, cx, "async_depth", &text)).unwrap();
        self
    }

    fn resize(&self, nr_requests: u32) {
        ElevatorCx::alone(Now::default(), |cx| {
            self.scheduler.notify(&NoMeter, cx, SchedulerEvent::Depths { nr_requests, async_depth: None })
        });
    }

    fn limit(&self, op: Op, flags: BioFlags) -> Depth {
        let bio = Bio { flags, ..Bio::new(op, Sector(0), 8) };
        ElevatorCx::alone(Now::default(), |cx| self.scheduler.limit_depth(&NoMeter, cx, &bio))
    }

    /// How many requests of this kind get a tag.
    fn admitted(&self, op: Op, flags: BioFlags) -> u32 {
        let bitmap: TagBitmap<Local> = TagBitmap::new(self.tags, 1, self.kernel.generation().shallow);
        let depth = self.limit(op, flags);
        std::iter::from_fn(|| bitmap.try_take(CpuId(0), depth)).count() as u32
    }

    fn writes(&self) -> u32 {
        self.admitted(Op::Write, BioFlags::NONE)
    }
}

#[test]
fn up_to_5_13_there_is_no_limit() {
    for tags in SIZES {
        assert_eq!(Limited::new(Kernel::V5_10, tags).writes(), tags);
    }
}

#[test]
fn a_limit_of_each_word_takes_effect_only_below_the_size_of_a_word() {
    for tags in SIZES {
        assert_eq!(Limited::new(Kernel::V6_3, tags).writes(), tags, "the default of 3/4 limits nothing");
        let admitted = [1, tags / 8, tags / 4, 3 * tags / 4, tags]
            .map(|depth| Limited::new(Kernel::V6_3, tags).with_async_depth(depth).writes());
        assert_eq!(admitted, [4, tags / 2, tags, tags, tags], "{tags} tags in 4 words");
    }
}

#[test]
fn the_fix_of_2024_scales_the_limit_to_the_size_of_a_word() {
    for tags in SIZES {
        assert_eq!(Limited::new(Kernel::V6_12, tags).writes(), tags, "no limit by default");
        let admitted = [1, tags / 4, 3 * tags / 4, tags]
            .map(|depth| Limited::new(Kernel::V6_12, tags).with_async_depth(depth).writes());
        assert_eq!(admitted, [4, tags / 4, 3 * tags / 4, tags], "rounded up in each of 4 words");
    }
    let limited = Limited::new(Kernel::V6_12, 256).with_async_depth(48);
    assert_eq!(limited.limit(Op::Write, BioFlags::NONE), Depth::Shallow(12));
    assert_eq!(limited.writes(), 48);
}

#[test]
fn since_6_18_the_limit_is_a_number_of_tags() {
    for tags in SIZES {
        assert_eq!(Limited::new(Kernel::V6_18, tags).writes(), tags, "no limit by default");
        for depth in [1, 5, tags / 4, 3 * tags / 4, tags] {
            assert_eq!(Limited::new(Kernel::V6_18, tags).with_async_depth(depth).writes(), depth);
        }
    }
}

#[test]
fn sync_reads_are_unlimited_and_everything_else_is_limited() {
    for kernel in [Kernel::V6_3, Kernel::V6_12, Kernel::V6_18] {
        let limited = Limited::new(kernel, 64).with_async_depth(1);
        assert_eq!(limited.limit(Op::Read, BioFlags::NONE), Depth::Full);
        for (op, flags) in [
            (Op::Write, BioFlags::NONE),
            (Op::Write, BioFlags::SYNC),
            (Op::Discard, BioFlags::NONE),
            (Op::WriteZeroes, BioFlags::SYNC),
        ] {
            assert!(matches!(limited.limit(op, flags), Depth::Shallow(_)), "{kernel} {op:?} {flags:?}");
        }
    }
}

#[test]
fn a_change_of_nr_requests_resets_the_limit() {
    let limited = Limited::new(Kernel::V6_18, 256).with_async_depth(10);
    limited.resize(64);
    assert_eq!(value_of(&limited.scheduler.tunables(), "async_depth"), Ok(64));
    assert_eq!(limited.limit(Op::Write, BioFlags::NONE), Depth::Full);
    let limited = Limited::new(Kernel::V6_3, 256);
    limited.resize(64);
    assert_eq!(value_of(&limited.scheduler.tunables(), "async_depth"), Ok(48), "3/4 of it, from 5.14 to 2024");
}

/// How many sleepers are woken at once with `tags` scheduler tags, everything at its default.
fn wake_batch(kernel: Kernel, tags: u32) -> u32 {
    let bitmap: TagBitmap<Local> = TagBitmap::new(tags, 1, kernel.generation().shallow);
    bitmap.wake_batch(Limited::new(kernel, tags).scheduler.min_shallow())
}

#[test]
fn sleepers_wake_one_by_one_from_the_fix_of_2024_until_7_0() {
    let batch = |text: &str| wake_batch(text.parse().unwrap(), 64);
    for text in ["4.19", "5.13", "5.14", "5.15", "6.1.102", "6.6.43", "6.8", "6.10.2", "7.0", "7.3"] {
        assert_eq!(batch(text), 8, "{text}");
    }
    for text in ["6.1.103", "6.1", "6.6.44", "6.10.3", "6.11", "6.12.107", "6.17", "6.18", "6.19.14"] {
        assert_eq!(batch(text), 1, "{text}");
    }
}

#[test]
fn a_written_depth_below_the_default_shrinks_the_batch_in_releases_that_announce_the_default() {
    let bitmap: TagBitmap<Local> = TagBitmap::new(64, 1, Kernel::V6_3.generation().shallow);
    let batch =
        |depth| bitmap.wake_batch(Limited::new(Kernel::V6_3, 64).with_async_depth(depth).scheduler.min_shallow());
    assert_eq!([1, 4, 48, 64].map(batch), [1, 2, 8, 8]);
}

proptest! {
    /// Only the releases whose async depth is all tags *and* a tunable of mq-deadline announce a single tag.
    #[test]
    fn wake_batches_shrink_in_those_releases_only(
        release in prop_oneof![(Just(4u16), 12u16..21), (Just(5u16), 0u16..20), (Just(6u16), 0u16..20), (Just(7u16), 0u16..4)],
        patch in 0u16..200,
        tags in 8u32..=256,
    ) {
        let kernel = Kernel::release(release.0, release.1, patch);
        let mended = [Kernel::release(6, 11, 0), Kernel::release(6, 10, 3), Kernel::release(6, 6, 44), Kernel::release(6, 1, 103)];
        let run_sequentially = kernel.has(&mended) && !kernel.is_from(7, 0);
        let expected = if run_sequentially { 1 } else { (tags / 8).min(8) };
        prop_assert_eq!(wake_batch(kernel, tags), expected, "{} with {} tags", kernel, tags);
    }
}
