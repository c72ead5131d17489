//! The part of its device that a process works on.

use hoistway_load::{
    Amount, Direction, Distribution, Extent, LoadError, Offsets, OwnFile, Pattern, PlacedFile, Process, Random,
    Sequencer, Share, Sizes, Strided, Volume, Zone,
};

const WHOLE: u64 = 1 << 20;

fn process(volume: Volume) -> Process {
    Process::new("p", 0, Pattern { volume, ..Pattern::write(4096) })
}

/// Where it works on a device of 1 MiB: the first byte and the length; or the field that is refused.
fn region(process: &Process) -> Result<(u64, u64), &'static str> {
    let ranges = process.ranges(WHOLE);
    let is_made = process.generator(0, 1, |_| WHOLE).map(|_| ()).map_err(|error: LoadError| error.field);
    assert_eq!(is_made.err(), ranges.as_ref().err().map(|error| error.field));
    ranges.map(|ranges| ranges[0]).map_err(|error| error.field)
}

const SIZE: &str = "plan.pattern.volume.size";
const OFFSET: &str = "plan.pattern.volume.offset";

#[test]
fn it_begins_at_the_offset_and_ends_with_the_size_or_the_device() {
    let at = |offset, size| region(&process(Volume { offset, size, ..Volume::default() }));
    let (bytes, percent) = (Amount::Bytes, Amount::Percent);
    assert_eq!(at(bytes(0), None), Ok((0, WHOLE)));
    assert_eq!(at(bytes(8192), None), Ok((8192, WHOLE - 8192)));
    assert_eq!(at(bytes(8192), Some(bytes(4096))), Ok((8192, 4096)));
    assert_eq!(at(bytes(8192), Some(bytes(WHOLE - 8192))), Ok((8192, WHOLE - 8192)), "to the last byte");
    assert_eq!(at(bytes(8192), Some(bytes(WHOLE - 8191))), Err(SIZE));
    assert_eq!(at(bytes(8192), Some(percent(25))), Ok((8192, WHOLE / 4)));
    assert_eq!(at(percent(90), Some(percent(25))), Ok((946_176, WHOLE - 946_176)), "cut, and rounded up to a block");
    assert_eq!(at(bytes(WHOLE - 4096), None), Ok((WHOLE - 4096, 4096)));
    assert_eq!(at(bytes(WHOLE - 2048), None), Err(SIZE), "smaller than a block");
    assert_eq!(at(bytes(WHOLE), None), Err(OFFSET));
}

#[test]
fn each_clone_begins_an_increment_later() {
    let start_of = |increments, offset_increment| {
        let mut process = process(Volume { offset: Amount::Bytes(4096), offset_increment, ..Volume::default() });
        process.plan.increments = increments;
        region(&process).map(|(start, _)| start)
    };
    assert_eq!(start_of(0, Amount::Bytes(65_536)), Ok(4096));
    assert_eq!(start_of(3, Amount::Bytes(65_536)), Ok(4096 + 3 * 65_536));
    assert_eq!(start_of(2, Amount::Percent(25)), Ok(4096 + WHOLE / 2));
    assert_eq!(start_of(16, Amount::Bytes(65_536)), Err(OFFSET));
    assert_eq!(start_of(u32::MAX, Amount::Bytes(1 << 60)), Err(OFFSET), "more than there are numbers");
}

#[test]
fn files_lie_where_they_were_placed_and_their_size_is_divided_among_them() {
    let own = |start_bytes, bytes| PlacedFile { device: 0, own: Some(OwnFile { start_bytes, bytes }) };
    let on = |files: &[PlacedFile], volume| {
        let mut process = process(volume);
        process.plan.files = files.into();
        let found = (process.ranges(WHOLE).map_err(|error| error.field), process.plan.own_bytes(0));
        assert_eq!(process.plan.own_bytes(1), None);
        found
    };
    let two = [own(8192, 16_384), own(65_536, 8192)];
    assert_eq!(on(&two, Volume::default()), (Ok(vec![(8192, 16_384), (65_536, 8192)]), Some(8192..73_728)));
    let volume = Volume { size: Some(Amount::Bytes(8192)), ..Volume::default() };
    assert_eq!(on(&two, volume.clone()).0, Ok(vec![(8192, 4096), (65_536, 4096)]));
    assert_eq!(on(&[PlacedFile::default()], volume), (Ok(vec![(0, 8192)]), None));
    assert_eq!(on(&[own(WHOLE - 8192, 8192)], Volume::default()).0, Ok(vec![(WHOLE - 8192, 8192)]), "at the end");
    assert_eq!(on(&[own(WHOLE - 8192, 8704)], Volume::default()).0, Err(SIZE));
    // With a size of the files, a number of bytes is what is done.
    let volume = Volume { file_bytes: Some((65_536, 131_072)), size: Some(Amount::Bytes(4096)), ..Volume::default() };
    assert_eq!(on(&[PlacedFile::default()], volume.clone()).0, Ok(vec![(0, 131_072)]));
    let volume = Volume { size: Some(Amount::Percent(50)), ..volume };
    assert_eq!(on(&[PlacedFile::default()], volume).0, Ok(vec![(0, 65_536)]));
}

#[test]
fn every_direction_has_a_block_that_fits() {
    let with = |writes: u32, size| {
        let volume = Volume { size: Some(Amount::Bytes(size)), ..Volume::default() };
        let mut process = process(volume);
        process.plan.pattern_mut().direction = hoistway_load::Direction::Mixed;
        process.plan.pattern_mut().sizes[1] = Sizes::Range { min: writes, max: 2 * writes, step: writes };
        (process.plan.block_bytes_min(), process.plan.block_bytes_max(), region(&process).is_ok())
    };
    assert_eq!(with(8192, 8192), (4096, 16_384, true));
    assert_eq!(with(8192, 4096), (4096, 16_384, false));
    assert_eq!(with(512, 4096), (512, 4096, true));
}

#[test]
fn a_size_with_no_share_allows_no_io_where_only_it_would_fit() {
    let shares = [(4096, 0.0), (98_304, 100.0)].map(|(bytes, percent)| Share { bytes, percent });
    let sizes = Sizes::Split(shares.into());
    for pattern in [Pattern::read(4096), Pattern::read(4096).random()] {
        let process = Process::new("p", 0, Pattern { sizes: [(); 3].map(|()| sizes.clone()), ..pattern });
        assert_eq!((process.plan.block_bytes_min(), process.plan.block_bytes_max()), (98_304, 98_304));
        let ios: Vec<_> = process.generator(0, 1, |_| WHOLE).unwrap().collect();
        assert!(ios.iter().all(|io| io.bytes == 98_304 && io.offset_bytes + 98_304 <= WHOLE), "{ios:?}");
        assert_eq!(ios.len(), 10, "what is left over is smaller than an I/O");
    }
}

#[test]
fn zones_in_bytes_have_to_lie_in_the_region() {
    let zoned = |bytes: [u64; 2]| {
        let zones: Vec<Zone> =
            bytes.iter().map(|&bytes| Zone { access_percent: 50.0, extent: Extent::Bytes(bytes) }).collect();
        let each: [_; 3] = std::array::from_fn(|_| zones.clone().into());
        let distribution = Distribution::Zoned(each);
        let offsets = Offsets::Random(Random { distribution, ..Random::default() });
        region(&Process::new("p", 0, Pattern { offsets, ..Pattern::write(4096) }))
    };
    assert_eq!(zoned([WHOLE / 2, WHOLE / 2]), Ok((0, WHOLE)));
    assert_eq!(zoned([WHOLE / 2, WHOLE / 2 + 512]), Err("plan.pattern.offsets.distribution"));
}

/// Offsets of the first I/Os, this many, in blocks of 4 KiB.
fn blocks(process: &Process, count: usize) -> Vec<u64> {
    blocks_on(process, WHOLE, count)
}

/// The same on a device of this many bytes.
fn blocks_on(process: &Process, device_bytes: u64, count: usize) -> Vec<u64> {
    process.generator(0, 1, |_| device_bytes).unwrap().take(count).map(|io| io.offset_bytes / 4096).collect()
}

#[test]
fn strided_zones_skip_the_gaps_and_restart_after_the_last_zone() {
    let strided = |range: u64, skip: u64, zone: u64, size: u64| {
        let (range_bytes, skip_bytes, zone_bytes) = (range * 4096, skip * 4096, zone * 4096);
        let volume = Volume { size: Some(Amount::Bytes(size * 4096)), time_based: true, ..Volume::default() };
        let zones = Some(Strided { zone_bytes, range_bytes, skip_bytes });
        let mut process = process(volume);
        process.plan.pattern_mut().zones = zones;
        process
    };
    // Of the device, not of the job's region.
    let blocks = |process: &Process, count| blocks_on(process, 8 * 4096, count);
    assert_eq!(blocks_on(&strided(2, 1, 2, 8), WHOLE, 8), [0, 1, 3, 4, 6, 7, 9, 10]);
    assert_eq!(blocks(&strided(2, 1, 2, 8), 8), [0, 1, 3, 4, 6, 7, 0, 1]);
    assert_eq!(blocks(&strided(2, 1, 1, 8), 5), [0, 3, 6, 0, 3], "a zone is done before its end");
    assert_eq!(blocks(&strided(2, 1, 3, 8), 7), [0, 1, 0, 3, 4, 3, 6], "or begun again");
    assert_eq!(blocks(&strided(2, 1, 2, 7), 5)[..4], [0, 1, 3, 4], "the last one may be cut");
    let mut trims = strided(2, 1, 2, 8);
    trims.plan.pattern_mut().direction = Direction::TrimWrite;
    assert_eq!(blocks(&trims, 6), [0, 0, 3, 3, 6, 6], "a write that follows its trim counts as well");
}

/// Of a random job with this many blocks, changed by this.
fn at_random(size: u64, time_based: bool, change: impl Fn(&mut Random)) -> Process {
    let mut random = Random::default();
    change(&mut random);
    let volume = Volume { size: Some(Amount::Bytes(size * 4096)), time_based, ..Volume::default() };
    Process::new("p", 0, Pattern { volume, offsets: Offsets::Random(random), ..Pattern::read(4096) })
}

#[test]
fn a_random_job_visits_each_block_once_and_again_only_if_time_based() {
    let once = blocks(&at_random(16, false, |_| ()), 100);
    assert_eq!(once.iter().collect::<std::collections::BTreeSet<_>>().len(), 16);
    assert_eq!(once.len(), 16);
    let passes = blocks(&at_random(16, true, |_| ()), 48);
    for pass in passes.chunks(16) {
        assert_eq!(pass.iter().collect::<std::collections::BTreeSet<_>>().len(), 16, "{pass:?}");
    }
}

#[test]
fn after_each_random_offset_some_ios_follow_or_repeat_it() {
    let runs =
        |sequencer| blocks(&at_random(200, true, |random| (random.every, random.sequencer) = (4, sequencer)), 40);
    let follow = runs(Sequencer::Sequential);
    for run in follow.chunks(4).filter(|run| run[0] < 196) {
        assert_eq!(run, [run[0], run[0] + 1, run[0] + 2, run[0] + 3]);
    }
    let repeat = runs(Sequencer::Identical);
    for run in repeat.chunks(4) {
        assert_eq!(run, [run[0]; 4]);
    }
    let starts = |ios: &[u64]| ios.chunks(4).map(|run| run[0]).collect::<std::collections::BTreeSet<_>>().len();
    assert!(starts(&follow) > 7 && starts(&repeat) > 7, "{follow:?} {repeat:?}");
}

#[test]
fn a_job_that_is_random_to_a_part_follows_its_last_io_otherwise() {
    let share = |percent| {
        let ios = blocks(&at_random(250, true, |random| random.percent = [percent; 3]), 2000);
        ios.windows(2).filter(|pair| pair[1] == pair[0] + 1).count() as f64 / 2000.0
    };
    for (percent, follow) in [(0, 0.99), (30, 0.7), (70, 0.3), (100, 0.0)] {
        assert!((share(percent) - follow).abs() < 0.04, "{percent} %: {}", share(percent));
    }
}

#[test]
fn sequential_jobs_skip_forwards_and_backwards() {
    let skips = |skip_blocks: i64, size: u64, time_based| {
        let volume = Volume { size: Some(Amount::Bytes(size * 4096)), time_based, ..Volume::default() };
        let offsets = Offsets::Sequential { skip_bytes: skip_blocks * 4096 };
        let process = Process::new("p", 0, Pattern { volume, offsets, ..Pattern::read(4096) });
        // The file ends with the region.
        process.generator(0, 1, |_| size * 4096).unwrap().take(7).map(|io| io.offset_bytes / 4096).collect::<Vec<_>>()
    };
    assert_eq!(skips(0, 4, false), [0, 1, 2, 3]);
    assert_eq!(skips(0, 4, true), [0, 1, 2, 3, 0, 1, 2]);
    assert_eq!(skips(2, 8, true), [0, 3, 6, 0, 3, 6, 0]);
    assert_eq!(skips(1, 4, false), [0, 2, 0, 2], "to exactly the end: it starts over, for as many bytes as there are");
    assert_eq!(skips(2, 5, false), [0, 3, 0, 3, 0], "beyond the end: likewise");
    assert_eq!(skips(2, 4, false), [0, 3], "its last I/O ends with the region: it is done");
    assert_eq!(skips(-2, 8, false), [0, 6, 5, 4, 3, 2, 1], "backwards from the end");
}

#[test]
fn a_sequential_job_that_skips_past_its_region_is_done() {
    for size in [4, 5, 6] {
        let volume = Volume { size: Some(Amount::Bytes(size * 4096)), ..Volume::default() };
        let offsets = Offsets::Sequential { skip_bytes: 2 * 4096 };
        assert_eq!(
            blocks(&Process::new("p", 0, Pattern { volume, offsets, ..Pattern::read(4096) }), 7),
            [0, 3],
            "{size}"
        );
    }
}

#[test]
fn a_skipping_job_does_as_many_bytes_as_its_size_rounded_up() {
    let volume = Volume { size: Some(Amount::Bytes(2 << 20)), ..Volume::default() };
    for skip_bytes in [4096, -4096] {
        let pattern =
            Pattern { volume: volume.clone(), offsets: Offsets::Sequential { skip_bytes }, ..Pattern::read(12 << 10) };
        // As many as fio 3.33.
        assert_eq!(Process::new("p", 0, pattern).generator(0, 1, |_| 2 << 20).unwrap().count(), 171, "{skip_bytes}");
    }
}

#[test]
fn a_sequential_mix_ends_with_the_sum_of_both_directions() {
    let count = |size, loops| {
        let volume = Volume { size: Some(Amount::Bytes(size)), loops, ..Volume::default() };
        let mut process = process(volume);
        process.plan.pattern_mut().direction = Direction::Mixed;
        process.plan.pattern_mut().read_percent = 50;
        process.generator(0, 1, |_| WHOLE).unwrap().count()
    };
    // As many as fio 3.33.
    assert_eq!((count(64 << 10, 1), count(65 << 10, 1), count(65 << 10, 3)), (16, 17, 49));
}

#[test]
fn random_jobs_visit_each_block_of_a_strided_zone_once_and_then_the_next_zone() {
    let strided = |zone: u64, size, time_based| {
        let mut process = at_random(size, time_based, |_| ());
        let zones = Strided { zone_bytes: zone * 4096, range_bytes: 4 * 4096, skip_bytes: 2 * 4096 };
        process.plan.pattern_mut().zones = Some(zones);
        blocks_on(&process, size * 4096, 24)
    };
    let ios = strided(4, 12, true);
    for (visit, ios) in ios.chunks(4).enumerate() {
        let mut sorted = ios.to_vec();
        sorted.sort_unstable();
        let start = 6 * (visit as u64 % 2);
        assert_eq!(sorted, [start, start + 1, start + 2, start + 3], "visit {visit}");
    }
    let twice = strided(8, 12, true);
    assert!(twice[..8].iter().all(|block| *block < 4) && twice[8..16].iter().all(|block| *block >= 6), "{twice:?}");
    // The second zone is cut off by the end of the region.
    let cut = strided(4, 8, true);
    assert!(cut.iter().all(|block| matches!(block, 0..4 | 6 | 7)) && cut.contains(&7), "{cut:?}");
    assert_eq!(cut.len(), 24, "it goes on with the first");
    let goes_back = cut.windows(3).all(|ios| ios.iter().any(|block| *block < 4));
    assert!(goes_back, "at the first block that is not there: {cut:?}");
    // Without time a job ends with the first block that is not there any more.
    let ends = strided(4, 8, false);
    assert!((4..=6).contains(&ends.len()), "{ends:?}");
}

#[test]
fn reads_and_writes_share_the_blocks_unless_each_has_zones_of_its_own() {
    let visits = |writes_first: f64| {
        let zones = |first: f64| {
            let zone = |access_percent| Zone { access_percent, extent: Extent::Percent(50.0) };
            [zone(first), zone(100.0 - first)].into()
        };
        let mut process = at_random(64, true, |random| {
            random.distribution = Distribution::Zoned([zones(100.0), zones(writes_first), zones(100.0)]);
        });
        process.plan.pattern_mut().direction = hoistway_load::Direction::Mixed;
        let ios = process.generator(0, 1, |_| WHOLE).unwrap().take(400);
        let [mut reads, mut writes] = [(0u64, 0u64); 2];
        for io in ios {
            let of = if io.op == hoistway_blk::bio::Op::Read { &mut reads } else { &mut writes };
            *if io.offset_bytes < 32 * 4096 { &mut of.0 } else { &mut of.1 } += 1;
        }
        (reads, writes)
    };
    let (reads, writes) = visits(0.0);
    assert!(reads.1 == 0 && reads.0 > 100 && writes.0 == 0 && writes.1 > 100, "{reads:?} {writes:?}");
    let (reads, writes) = visits(100.0);
    assert!(reads.1 == 0 && writes.1 == 0 && writes.0 > 100, "{reads:?} {writes:?}");
}
