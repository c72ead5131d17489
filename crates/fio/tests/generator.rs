//! The I/Os that a job issues.

use std::collections::{BTreeMap, BTreeSet};

use hoistway_blk::bio::Op;
use hoistway_fio::{Environment, JobFile};
use hoistway_load::{Generator, Io};
use proptest::prelude::*;

const KIB: u64 = 1024;

fn generator_on(options: &str, device_bytes: u64, seed: u64) -> Generator {
    let text = format!("[a]\nfilename=/dev/sda\ndirect=1\n{options}\n");
    let job_file = JobFile::parse(&text, "jobs.fio", &Environment::empty()).unwrap_or_else(|e| panic!("{e}"));
    job_file.load.processes[0].generator(0, seed, |_| device_bytes).unwrap_or_else(|e| panic!("{e}"))
}

fn ios(options: &str) -> Vec<Io> {
    generator_on(options, 64 << 20, 1).collect()
}

/// I/Os in the form `r0 r4 w8 s`: operation, offset in KiB, and the length if it is not 4 KiB.
fn shown(ios: &[Io]) -> String {
    let io = |io: &Io| {
        let kib = io.offset_bytes / KIB;
        let letter = match io.op {
            Op::Read => 'r',
            Op::Write => 'w',
            Op::Discard => 't',
            _ => return "s".to_owned(),
        };
        match u64::from(io.bytes) / KIB {
            4 => format!("{letter}{kib}"),
            length => format!("{letter}{kib}+{length}"),
        }
    };
    ios.iter().map(io).collect::<Vec<_>>().join(" ")
}

fn offsets(ios: &[Io]) -> Vec<u64> {
    ios.iter().map(|io| io.offset_bytes / (4 * KIB)).collect()
}

fn share_of(op: Op, ios: &[Io]) -> f64 {
    ios.iter().filter(|io| io.op == op).count() as f64 / ios.len() as f64
}

#[test]
fn sequential_jobs_cover_their_region_and_overrun_its_end_if_possible() {
    assert_eq!(shown(&ios("size=16k")), "r0 r4 r8 r12");
    assert_eq!(shown(&ios("rw=write\nsize=10k\noffset=8k")), "w8 w12 w16");
    assert_eq!(shown(&generator_on("rw=write\nsize=10k\noffset=8k", 18 * KIB, 1).collect::<Vec<_>>()), "w8 w12");
    assert_eq!(shown(&ios("rw=trim\nsize=16k\nbs=8k")), "t0+8 t8+8");
    assert_eq!(shown(&ios("size=8k\nloops=3")), "r0 r4 r0 r4 r0 r4");
    assert_eq!(shown(&ios("size=10k\nloops=2")), "r0 r4 r8 r0 r4");
    assert_eq!(shown(&generator_on("loops=2", 10 * KIB, 1).collect::<Vec<_>>()), "r0 r4 r0 r4");
    assert_eq!(shown(&ios("size=8k\nio_size=20k")), "r0 r4 r0 r4 r0");
    assert_eq!(shown(&ios("size=40k\nio_size=10k")), "r0 r4 r8");
    assert_eq!(shown(&ios("size=16k\nnumber_ios=3")), "r0 r4 r8");
}

#[test]
fn holes_and_backward_jobs_go_as_in_fio() {
    assert_eq!(shown(&ios("rw=read:8k\nsize=64k")), "r0 r12 r24 r36 r48 r60");
    assert_eq!(shown(&ios("rw=read:8k\nsize=32k\nio_size=20k")), "r0 r12 r24 r0 r12");
    assert_eq!(shown(&ios("rw=read:-8k\nsize=24k")), "r0 r16 r12 r8 r4 r0");
    assert_eq!(shown(&ios("rw=read:-12k\nsize=64k\nnumber_ios=9")), "r0 r52 r44 r36 r28 r20 r12 r4 r52");
}

#[test]
fn each_direction_of_a_sequential_mix_goes_through_the_region_by_itself() {
    let ios = ios("rw=rw\nsize=1m");
    assert_eq!(ios.len(), 256);
    for op in [Op::Read, Op::Write] {
        let own: Vec<Io> = ios.iter().copied().filter(|io| io.op == op).collect();
        assert!(offsets(&own).into_iter().eq(0..own.len() as u64));
    }
}

#[test]
fn a_time_based_job_never_ends() {
    let repeated: Vec<Io> = generator_on("size=8k\ntime_based\nruntime=1\nnumber_ios=1", 1 << 20, 1).take(5).collect();
    assert_eq!(shown(&repeated), "r0 r4 r0 r4 r0");
    let random: Vec<Io> = generator_on("rw=randread\nsize=64k\ntime_based\nruntime=1", 1 << 20, 1).take(160).collect();
    let passes: Vec<_> = random.chunks(16).map(offsets).collect();
    assert!(passes.iter().all(|pass| pass.iter().copied().collect::<BTreeSet<_>>().into_iter().eq(0..16)));
    // As in fio, each further pass of a job that runs by time has its own order.
    assert!(passes[0] != passes[1]);
}

#[test]
fn further_passes_repeat_the_order_unless_randrepeat_is_off() {
    for (options, same) in [
        ("loops=2", true),
        ("io_size=512k", true),
        ("loops=2\nrandrepeat=0", false),
        ("loops=2\nrandom_generator=lfsr", true),
    ] {
        let ios = ios(&format!("rw=randread\nsize=256k\n{options}"));
        assert_eq!(ios.len(), 128, "{options}");
        let (first, second) = (offsets(&ios[..64]), offsets(&ios[64..]));
        assert_eq!(first == second, same, "{options}");
        assert!(second.into_iter().collect::<BTreeSet<_>>().into_iter().eq(0..64));
    }
}

#[test]
fn a_random_mix_reads_or_writes_each_block_once_in_its_shares() {
    for percent in [0, 20, 40, 50, 100] {
        let ios = ios(&format!("rw=randrw\nrwmixread={percent}"));
        assert_eq!(ios.len(), 16_384);
        assert!(offsets(&ios).into_iter().collect::<BTreeSet<_>>().into_iter().eq(0..16_384));
        let share = share_of(Op::Read, &ios);
        assert!((share - f64::from(percent) / 100.0).abs() < 0.02, "{percent}: {share}");
    }
    assert!((share_of(Op::Read, &ios("rw=randrw\nrwmixread=10\nrwmixwrite=30")) - 0.7).abs() < 0.02);
}

#[test]
fn without_a_map_blocks_repeat() {
    let ios = ios("rw=randread\nnorandommap");
    assert_eq!(ios.len(), 16_384);
    let distinct = offsets(&ios).into_iter().collect::<BTreeSet<_>>().len() as f64;
    // With as many uniform draws as blocks, 1 - 1/e of the blocks are hit.
    assert!((distinct / 16_384.0 - 0.632).abs() < 0.02, "{distinct}");
}

#[test]
fn flushes_follow_every_nth_write_but_not_the_last() {
    assert_eq!(shown(&ios("rw=write\nsize=32k\nfsync=3")), "w0 w4 w8 s w12 w16 w20 s w24 w28");
    assert_eq!(shown(&ios("rw=write\nsize=16k\nfdatasync=2")), "w0 w4 s w8 w12");
    assert_eq!(shown(&ios("rw=write\nsize=16k\nfsync=2\nfdatasync=4")), "w0 w4 s w8 w12");
    assert_eq!(shown(&ios("rw=read\nsize=16k\nfsync=1")), "r0 r4 r8 r12");
}

#[test]
fn in_a_mix_the_flush_is_repeated_after_reads_as_in_fio() {
    let ios = ios("rw=randrw\nsize=1m\nfsync=4");
    let mut writes = 0;
    for pair in ios.windows(2) {
        writes += u64::from(pair[0].op == Op::Write);
        let flush_due = pair[0].op != Op::Flush && writes > 0 && writes % 4 == 0;
        assert_eq!(pair[1].op == Op::Flush, flush_due, "after {writes} writes");
    }
}

#[test]
fn trimwrite_writes_the_trimmed_blocks_and_counts_the_writes() {
    assert_eq!(shown(&ios("rw=trimwrite\nsize=12k")), "t0 w0 t4 w4 t8 w8");
    let random = ios("rw=randtrimwrite\nsize=64k\nbssplit=4k/50:8k/50");
    for pair in random.chunks(2) {
        assert_eq!((pair[0].op, pair[1].op), (Op::Discard, Op::Write));
        assert_eq!((pair[0].offset_bytes, pair[0].bytes), (pair[1].offset_bytes, pair[1].bytes));
    }
}

#[test]
fn random_runs_continue_sequentially_or_stay_at_their_offset() {
    let runs = ios("rw=randread:4");
    for run in runs.chunks(4) {
        let steps = run.windows(2).all(|pair| pair[1].offset_bytes == pair[0].offset_bytes + 4096);
        let hits_the_end = run.iter().any(|io| io.offset_bytes == (64 << 20) - 4096);
        assert!(steps || hits_the_end, "{}", shown(run));
    }
    let same = ios("rw=randread:4\nrw_sequencer=identical");
    assert!(same.chunks(4).all(|run| run.iter().all(|io| io.offset_bytes == run[0].offset_bytes)));
    let sequential = ios("rw=randread\npercentage_random=25");
    let follows = sequential.windows(2).filter(|pair| pair[1].offset_bytes == pair[0].offset_bytes + 4096).count();
    assert!((follows as f64 / sequential.len() as f64 - 0.75).abs() < 0.02, "{follows}");
}

#[test]
fn block_sizes_have_their_shares_and_lists_their_directions() {
    let split = ios("rw=randwrite\nnorandommap\nbssplit=4k/60:8k/30:16k/");
    let mut shares = BTreeMap::new();
    for io in &split {
        *shares.entry(u64::from(io.bytes) / KIB).or_insert(0.0) += 1.0 / split.len() as f64;
    }
    for (kib, share) in [(4, 0.6), (8, 0.3), (16, 0.1)] {
        assert!((shares[&kib] - share).abs() < 0.02, "{shares:?}");
    }
    let mixed = ios("rw=randrw\nbs=4k,64k");
    assert!(mixed.iter().all(|io| u64::from(io.bytes) == if io.op == Op::Read { 4 * KIB } else { 64 * KIB }));
    assert!(mixed.iter().all(|io| io.offset_bytes % u64::from(io.bytes) == 0));
    let writes: Vec<_> = mixed.iter().filter(|io| io.op == Op::Write).map(|io| io.offset_bytes).collect();
    assert_eq!(writes.iter().collect::<BTreeSet<_>>().len(), writes.len());
    let unaligned = ios("rw=write\nbsrange=512-8k\nbs_unaligned");
    assert!(unaligned.iter().any(|io| !io.bytes.is_multiple_of(1024)));
}

#[test]
fn blockalign_moves_random_blocks_off_their_grid() {
    let ios = ios("rw=randread\nbs=8k\nba=4k");
    assert!(ios.iter().any(|io| io.offset_bytes % 8192 == 4096));
    assert!(ios.iter().all(|io| io.offset_bytes % 4096 == 0));
}

#[test]
fn zipf_and_pareto_favour_some_blocks() {
    for options in ["zipf:1.2", "pareto:0.1", "zipf:1.2:0.5"] {
        let ios = ios(&format!("rw=randread\nrandom_distribution={options}"));
        let mut hits: BTreeMap<u64, usize> = BTreeMap::new();
        for block in offsets(&ios) {
            *hits.entry(block).or_default() += 1;
        }
        let hottest = hits.values().max().copied().unwrap_or(0);
        assert!(hottest > ios.len() / 20, "{options}: {hottest} of {}", ios.len());
    }
}

#[test]
fn reads_and_writes_may_have_zones_of_their_own() {
    let ios = ios("rw=randrw\nrandom_distribution=zoned:100/25,0/50:100/25");
    let range = |op| {
        let blocks = offsets(&ios.iter().copied().filter(|io| io.op == op).collect::<Vec<_>>());
        (blocks.iter().copied().min().unwrap(), blocks.into_iter().max().unwrap())
    };
    let blocks = ios.len() as u64;
    assert!(range(Op::Read).1 < blocks / 4, "{:?}", range(Op::Read));
    let (first, last) = range(Op::Write);
    assert!(first >= blocks / 2 && last < blocks * 3 / 4, "{first} {last}");
}

#[test]
fn written_blocks_are_verified_after_each_pass_or_backlog() {
    let of = |options: &str| shown(&ios(&format!("verify=crc32c\nsize=16k\n{options}")));
    assert_eq!(of("rw=write"), "w0 w4 w8 w12 r0 r4 r8 r12");
    assert_eq!(of("rw=write\nnumber_ios=2\nloops=2"), "w0 w4 r0 r4 w8 w12 r8 r12");
    assert_eq!(of("rw=write\nverify_backlog=3"), "w0 w4 w8 r0 r4 r8 w12 r12");
    assert_eq!(of("rw=write\nfsync=2"), "w0 w4 s w8 w12 r0 r4 r8 r12");
    assert_eq!(of("rw=write\ndo_verify=0"), "w0 w4 w8 w12");
    assert_eq!(of("rw=read"), "r0 r4 r8 r12");
    let endless = generator_on("verify=crc32c\nrw=write\nsize=16k\ntime_based\nruntime=1", 1 << 20, 1).take(100);
    assert!(endless.into_iter().all(|io| io.op == Op::Write));
    // In a mix only the written blocks are verified, in the same order.
    let mix = ios("verify=md5\nrw=randrw\nsize=1m");
    let (first, checks) = mix.split_at(256);
    let written: Vec<_> = first.iter().filter(|io| io.op == Op::Write).map(|io| io.offset_bytes).collect();
    assert!(checks.iter().all(|io| io.op == Op::Read));
    assert_eq!(checks.iter().map(|io| io.offset_bytes).collect::<Vec<_>>(), written);
}

#[test]
fn the_same_seed_gives_the_same_ios_and_clones_differ() {
    let options = "rw=randrw\nbssplit=4k/50:8k/50\nfsync=8";
    let sequence = |seed| generator_on(options, 1 << 30, seed).take(1000).collect::<Vec<_>>();
    assert_eq!(sequence(1), sequence(1));
    assert_ne!(sequence(1), sequence(2));
    let text = "[a]\nfilename=x\ndirect=1\nrw=randread\nnumjobs=2\n";
    let job_file = JobFile::parse(text, "jobs.fio", &Environment::empty()).unwrap();
    let clone = |i: usize| {
        job_file.load.processes[i].generator(i as u32, 1, |_| 1 << 30).unwrap().take(100).collect::<Vec<_>>()
    };
    assert_ne!(clone(0), clone(1));
}

#[test]
fn randseed_counts_only_without_randrepeat() {
    let first = |options: &str| generator_on(&format!("rw=randread\n{options}"), 1 << 30, 1).next();
    assert_eq!(first("randseed=7"), first(""));
    assert_ne!(first("randseed=7\nrandrepeat=0"), first("randseed=8\nrandrepeat=0"));
}

/// The numbers of a seed must not change, so that results that name a seed stay reproducible.
#[test]
fn the_ios_of_a_seed_never_change() {
    let first = |options: &str| shown(&generator_on(options, 1 << 20, 42).take(6).collect::<Vec<_>>());
    let jobs = [
        "rw=randrw",
        "rw=randrw\nrandom_generator=lfsr",
        "rw=randrw\nnorandommap",
        "rw=randwrite\nbssplit=4k/50:64k/50",
        "rw=randread\nrandom_distribution=zipf:1.2",
        "rw=randread\nrandom_distribution=normal:10",
        "rw=randrw\nrandom_distribution=zoned:60/10:40/90,50/50:50/50",
    ];
    assert_eq!(
        jobs.map(first),
        [
            "r468 w632 w116 r608 w28 r72",
            "r164 w80 w560 r680 w864 r756",
            "r164 w928 w740 r856 w384 r412",
            "w164 w928+64 w740+64 w856+64 w384+64 w448+64",
            "r560 r560 r92 r536 r268 r44",
            "r416 r56 r200 r476 r856 r420",
            "r88 w896 w56 r4 w460 r72",
        ]
    );
}

proptest! {
    #[test]
    fn checks_repeat_the_writes_in_their_order(
        rw in prop::sample::select(vec!["write", "write:8k", "randwrite", "trimwrite", "randtrimwrite"]),
        sizes in prop::sample::select(vec!["bs=4k", "bs=4k,8k", "bssplit=4k/50:16k/50"]),
        extra in prop::sample::select(vec!["", "loops=3", "number_ios=11", "fsync=3", "verify_backlog=5", "loops=2\nverify_backlog=7"]),
        sectors in 128u64..2000,
        seed: u64,
    ) {
        let options = format!("rw={rw}\n{sizes}\n{extra}");
        let plain: Vec<Io> = generator_on(&options, sectors * 512, seed).collect();
        let checked: Vec<Io> = generator_on(&format!("{options}\nverify=crc32c"), sectors * 512, seed).collect();
        let mut written = Vec::new();
        let mut left = plain.iter();
        for io in checked {
            // An I/O that is not the next one of the job is the next verification.
            if left.as_slice().first() == Some(&io) {
                left.next();
                written.extend((io.op == Op::Write).then_some(io));
            } else {
                prop_assert!(!written.is_empty(), "{io:?} was not written");
                prop_assert_eq!(io, Io { op: Op::Read, ..written.remove(0) });
            }
        }
        prop_assert!(left.as_slice().is_empty() && written.is_empty());
    }

    #[test]
    fn the_random_map_visits_every_block_once(blocks in 1u64..3000, seed: u64, lfsr: bool, remainder in 0u64..8) {
        let options = format!("rw=randrw\nrandom_generator={}", if lfsr { "lfsr" } else { "tausworthe" });
        let ios: Vec<Io> = generator_on(&options, blocks * 4096 + remainder * 512, seed).collect();
        prop_assert_eq!(ios.len() as u64, blocks);
        prop_assert!(offsets(&ios).into_iter().collect::<BTreeSet<_>>().into_iter().eq(0..blocks));
    }

    #[test]
    fn every_io_lies_in_the_region_on_whole_sectors(
        rw in prop::sample::select(vec!["read", "write", "rw", "randread", "randwrite", "randrw", "randrw:3", "randtrimwrite", "write:12k", "read:-20k"]),
        sizes in prop::sample::select(vec!["bs=4k", "bs=512,64k", "bsrange=2k-30k", "bssplit=4k/10:1m/", "bsrange=512-9k\nbs_unaligned", "bs=8k\nba=512", "bs=4k\nba=64k"]),
        extra in prop::sample::select(vec!["", "norandommap", "random_generator=lfsr", "percentage_random=30", "fsync=3", "loops=3", "io_size=3g", "random_distribution=zipf:0.9", "random_distribution=pareto:0.3:0.2", "random_distribution=normal:30", "random_distribution=zoned:90/5:0/50:10/45", "random_distribution=zoned:1/99:99/1,99/1:1/99", "random_distribution=zoned_abs:90/5k:10/32k"]),
        offset in 0u64..100,
        sectors in 128u64..20_000,
        seed: u64,
    ) {
        let (start, bytes) = (offset * 512, sectors * 512);
        let options = format!("rw={rw}\n{sizes}\n{extra}\noffset={start}\nsize={bytes}");
        for io in generator_on(&options, start + bytes, seed).take(2000) {
            if io.op == Op::Flush {
                prop_assert_eq!((io.offset_bytes, io.bytes), (0, 0));
                continue;
            }
            prop_assert!(io.bytes > 0 && io.bytes % 512 == 0 && io.offset_bytes % 512 == 0);
            prop_assert!(io.offset_bytes >= start && io.offset_bytes + u64::from(io.bytes) <= start + bytes);
        }
    }
}
