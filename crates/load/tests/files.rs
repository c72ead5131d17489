//! A process with several files: whose turn it is, and when it is done.

use std::collections::{BTreeMap, BTreeSet};

use hoistway_blk::bio::{IoPriority, PriorityClass};
use hoistway_load::{
    Amount, Direction, FileService, OwnFile, Pattern, PlacedFile, Popularity, PriorityRule, Process, Volume,
};

const BLOCK: u64 = 4096;
const APART: u64 = 1 << 20;

/// On files a, b, c ... of this many blocks.
fn process(blocks: &[u64], service: FileService, pattern: Pattern) -> Process {
    let mut process = Process::new("p", 0, Pattern { service, ..pattern });
    let file = |(number, blocks): (u64, &u64)| {
        let own = OwnFile { start_bytes: number * APART, bytes: blocks * BLOCK };
        PlacedFile { device: 0, own: Some(own) }
    };
    process.plan.files = (0..).zip(blocks).map(file).collect();
    process
}

/// Its first I/Os: the file's letter and the block within it.
fn ios(process: &Process, most: usize) -> Vec<String> {
    let generator = process.generator(0, 1, |_| 16 * APART).unwrap();
    let named = generator.take(most).map(|io| {
        let file = char::from(b'a' + (io.offset_bytes / APART) as u8);
        format!("{file}{}", io.offset_bytes % APART / BLOCK)
    });
    named.collect()
}

fn turns(blocks: &[u64], service: FileService, pattern: Pattern) -> String {
    ios(&process(blocks, service, pattern), 100).join(" ")
}

const EACH: FileService = FileService::RoundRobin { ios: 1 };
const TWO: FileService = FileService::RoundRobin { ios: 2 };
const ONE_BY_ONE: FileService = FileService::Sequential;

fn reads() -> Pattern {
    Pattern::read(4096)
}

#[test]
fn files_take_turns_or_come_one_after_the_other() {
    assert_eq!(turns(&[2, 2, 2], EACH, reads()), "a0 b0 c0 a1 b1 c1");
    assert_eq!(turns(&[4, 4], TWO, reads()), "a0 a1 b0 b1 a2 a3 b2 b3");
    assert_eq!(turns(&[2, 2, 2], ONE_BY_ONE, reads()), "a0 a1 b0 b1 c0 c1");
    assert_eq!(turns(&[1, 3, 2], EACH, reads()), "a0 b0 c0 b1 c1 b2", "who is done is left out");
    let open = |open_files| turns(&[2, 2, 2], EACH, Pattern { open_files, ..reads() });
    assert_eq!(open(2), "a0 b0 a1 b1 c0 c1", "the third is opened when another is done");
    assert_eq!(open(1), turns(&[2, 2, 2], ONE_BY_ONE, reads()));
    assert_eq!(open(9), open(0));
}

#[test]
fn each_pass_covers_all_files_and_turns_resume_from_the_last() {
    let passes =
        |service, loops| turns(&[2, 2], service, Pattern { volume: Volume { loops, ..Volume::default() }, ..reads() });
    assert_eq!(passes(ONE_BY_ONE, 2), "a0 a1 b0 b1 a0 a1 b0 b1");
    assert_eq!(passes(EACH, 3), "a0 b0 a1 b1 a0 b0 a1 b1 a0 b0 a1 b1");
    assert_eq!(passes(TWO, 2), "a0 a1 b0 b1 a0 a1 b0 b1");
    let amount = |io_size| {
        turns(&[2, 2], EACH, Pattern { volume: Volume { io_size: Some(io_size), ..Volume::default() }, ..reads() })
    };
    assert_eq!(amount(Amount::Bytes(5 * BLOCK)), "a0 b0 a1 b1 a0");
    assert_eq!(amount(Amount::Percent(50)), "a0 b0", "of all files");
    assert_eq!(amount(Amount::Percent(100)), "a0 b0 a1 b1");
}

#[test]
fn random_turns_visit_all_of_every_file_in_runs() {
    let service = FileService::Random { ios: 2 };
    let ios = ios(&process(&[8, 8, 8], service, reads().random()), 100);
    assert_eq!(ios.len(), 24);
    assert_eq!(ios.iter().collect::<BTreeSet<_>>().len(), 24, "each block once: {ios:?}");
    let files: Vec<&str> = ios.iter().map(|io| &io[..1]).collect();
    assert!(files.chunks(2).all(|run| run[0] == run[1]), "{files:?}");
    assert_ne!(files, [["a", "a", "b", "b", "c", "c"]; 4].concat(), "by chance");
}

/// The share of the I/Os that each of seven files has.
fn shares(popularity: Popularity, process_number: u32) -> Vec<f64> {
    let mut process = process(&[8; 7], FileService::Skewed(popularity), reads().random());
    process.plan.pattern_mut().volume.time_based = true;
    let mut counts = BTreeMap::from_iter((0..7).map(|file| (file, 0.0)));
    for io in process.generator(process_number, 1, |_| 16 * APART).unwrap().take(20_000) {
        *counts.get_mut(&(io.offset_bytes / APART)).unwrap() += 1.0 / 20_000.0;
    }
    counts.into_values().collect()
}

#[test]
fn popular_files_are_at_the_centre_of_a_bell_and_anywhere_else_at_random() {
    let bell = shares(Popularity::Normal { spread_percent: 0.0 }, 0);
    assert!(bell[3] > 0.5 && (bell[2] - bell[4]).abs() < 0.02 && bell[0] < 0.001 && bell[6] < 0.001, "{bell:?}");
    let mut hottest = BTreeSet::new();
    for number in 0..20 {
        let zipf = shares(Popularity::Zipf { theta: 2.0 }, number);
        let first = (0..7).max_by(|a, b| zipf[*a].total_cmp(&zipf[*b])).unwrap();
        hottest.insert(first);
        // Ranks follow each other from there on, round and round.
        assert!(zipf[first] > 0.9 && zipf[first] > zipf[(first + 1) % 7], "{zipf:?}");
        assert!(zipf[(first + 1) % 7] >= zipf[(first + 6) % 7], "{zipf:?}");
    }
    assert!(hottest.len() > 3, "{hottest:?}");
    let pareto = shares(Popularity::Pareto { h: 0.1 }, 0);
    let most = pareto.iter().copied().fold(0.0, f64::max);
    assert!((0.85..0.95).contains(&most), "a seventh of the files has nine tenths or so: {pareto:?}");
}

#[test]
fn single_ios_have_the_priorities_of_the_rules_in_one_file_and_in_several() {
    let urgent = IoPriority::new(PriorityClass::RealTime, 1);
    let idle = IoPriority::new(PriorityClass::Idle, 0);
    let rules = [
        PriorityRule { lane: 0, bytes: 4096, percent: 30, priority: urgent },
        PriorityRule { lane: 0, bytes: 0, percent: 20, priority: idle },
        PriorityRule { lane: 1, bytes: 8192, percent: 100, priority: urgent },
    ];
    for files in [&[2000][..], &[1000, 1000]] {
        let mixed = Pattern { direction: Direction::Mixed, priorities: rules.into(), ..reads() };
        let process = process(files, EACH, mixed);
        assert!(process.plan.has_priorities());
        let mut counts: BTreeMap<(bool, u16), u32> = BTreeMap::new();
        for io in process.generator(0, 1, |_| 16 * APART).unwrap().take(2000) {
            *counts.entry((io.op == hoistway_blk::bio::Op::Read, io.priority.0)).or_default() += 1;
        }
        let count_of =
            |is_read, priority: IoPriority| f64::from(counts.get(&(is_read, priority.0)).copied().unwrap_or(0));
        let reads = count_of(true, urgent) + count_of(true, idle) + count_of(true, IoPriority::UNSET);
        assert!((count_of(true, urgent) / reads - 0.3).abs() < 0.05, "{counts:?}");
        assert!((count_of(true, idle) / reads - 0.2).abs() < 0.05, "{counts:?}");
        assert_eq!(count_of(false, urgent) + count_of(false, idle), 0.0, "writes of another size: {counts:?}");
    }
    assert!(!process(&[1], EACH, reads()).plan.has_priorities());
}

#[test]
fn an_own_seed_changes_a_process_independently_of_the_run_seed() {
    let first = |own: Option<i64>, seed| {
        let pattern = Pattern { seed: own, ..reads().random() };
        let ios = process(&[200], EACH, pattern).generator(0, seed, |_| 16 * APART).unwrap();
        ios.map(|io| io.offset_bytes).take(20).collect::<Vec<_>>()
    };
    let all = [first(None, 1), first(None, 2), first(Some(1), 1), first(Some(2), 1), first(Some(1), 2)];
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 5, "{all:?}");
    // Seeds that differ in one bit only.
    let many: BTreeSet<_> = (0..64).map(|own| first(Some(own), 1)).collect();
    assert_eq!(many.len(), 64);
    assert_eq!(first(Some(7), 3), first(Some(7), 3));
}

#[test]
fn the_properties_of_a_plan_match_its_pattern() {
    let plan = |pattern: Pattern| process(&[8], EACH, pattern).plan;
    let (sequential, random) = (plan(reads()), plan(reads().random()));
    assert!(!sequential.is_random() && random.is_random() && !sequential.is_replay());
    assert!(!sequential.modifies() && !sequential.flushes());
    for (direction, modifies) in [
        (Direction::Read, false),
        (Direction::Write, true),
        (Direction::Trim, true),
        (Direction::Mixed, true),
        (Direction::TrimWrite, true),
    ] {
        assert_eq!(plan(Pattern::new(direction, 4096)).modifies(), modifies, "{direction:?}");
    }
    for (sync_every, flushes) in [([0, 0], false), ([1, 0], true), ([0, 3], true)] {
        assert_eq!(plan(Pattern { sync_every, ..Pattern::write(4096) }).flushes(), flushes, "{sync_every:?}");
    }
}

#[test]
fn a_time_based_process_repeats_random_files_singly_and_others_in_passes() {
    let endless = |pattern| Pattern { volume: Volume { time_based: true, ..Volume::default() }, ..pattern };
    let first = |service, pattern| ios(&process(&[1, 3], service, endless(pattern)), 10).join(" ");
    assert_eq!(first(EACH, reads()), "a0 b0 b1 b2 a0 b0 b1 b2 a0 b0", "all begin again when all are done");
    let random = first(EACH, reads().random());
    assert_eq!(random.matches('a').count(), 5, "each begins again by itself: {random}");
}
