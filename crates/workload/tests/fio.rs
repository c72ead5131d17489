//! The same jobs with fio itself: what it logs must be what is generated here, number for number where the
//! order is not random, and in counts, coverage and shares where it is.

mod fio_run;

use std::collections::BTreeMap;
use std::fs;

use hoistway_blk::{IoPriority, Op};
use hoistway_workload::{Environment, Io, Workload};

/// What a process of fio did, from its I/O log; `None` if fio is not installed.
fn logged_by_fio(test: &str, options: &str) -> Option<Vec<Io>> {
    if !fio_run::is_installed() {
        return None;
    }
    let directory = fio_run::directory(test);
    let log = directory.join("log");
    // The null engine does no I/O, but goes through everything that decides about it.
    let text = format!("[a]\nioengine=null\nfilename=nothing\nwrite_iolog={}\n{options}\n", log.display());
    let output = fio_run::run(&directory, &text);
    assert!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
    let log = fs::read_to_string(&log).expect("an I/O log");
    fs::remove_dir_all(&directory).expect("the directory is there");
    Some(log.lines().filter_map(io_of).collect())
}

/// The I/O of a line `TIME FILE ACTION OFFSET LENGTH` of fio's log, or of one without the time.
fn io_of(line: &str) -> Option<Io> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [.., action, offset, length] = fields[..] else { return None };
    let op = match action {
        "read" => Op::Read,
        "write" => Op::Write,
        "trim" => Op::Discard,
        "sync" | "datasync" => return Some(io(Op::Flush, 0, 0)),
        _ => return None,
    };
    Some(io(op, offset.parse().ok()?, length.parse().ok()?))
}

fn io(op: Op, offset_bytes: u64, bytes: u32) -> Io {
    Io { op, file: 0, priority: IoPriority::UNSET, bytes, offset_bytes }
}

fn generated(options: &str) -> Vec<Io> {
    let text = format!("[a]\nioengine=libaio\ndirect=1\nfilename=nothing\n{options}\n");
    let workload = Workload::parse(&text, "jobs.fio", &Environment::empty()).unwrap_or_else(|e| panic!("{e}"));
    workload.processes[0].plan.generator(1, 1 << 40).unwrap_or_else(|e| panic!("{e}")).collect()
}

fn ops(ios: &[Io]) -> Vec<Op> {
    ios.iter().map(|io| io.op).collect()
}

/// How often each block was touched.
fn visits(ios: &[Io]) -> BTreeMap<(u64, u32), usize> {
    let mut visits = BTreeMap::new();
    for io in ios.iter().filter(|io| io.op != Op::Flush) {
        *visits.entry((io.offset_bytes, io.bytes)).or_default() += 1;
    }
    visits
}

fn share(ios: &[Io], of: impl Fn(&Io) -> bool) -> f64 {
    ios.iter().filter(|io| of(io)).count() as f64 / ios.len().max(1) as f64
}

#[test]
fn jobs_without_chance_are_the_same_io_for_io() {
    for (i, options) in [
        "rw=read\nsize=64k",
        "rw=write\nsize=10k",
        "rw=write\nsize=10k\nloops=3",
        "rw=read\nsize=40k\nio_size=10k",
        "rw=read\nsize=32k\nio_size=100k",
        "rw=read\nsize=32k\noffset=64k\nbs=8k",
        "rw=read\nsize=64k\nnumber_ios=5",
        "rw=read\nsize=64k\nnumber_ios=5\nloops=2",
        "rw=write\nsize=64k\nfsync=4",
        "rw=write\nsize=64k\nfsync=3\nfdatasync=2",
        "rw=read:8k\nsize=64k",
        "rw=read:8k\nsize=64k\nio_size=100k",
        "rw=read:-8k\nsize=64k",
        "rw=read:-12k\nsize=64k",
        "rw=trim\nsize=32k",
        "rw=trimwrite\nsize=32k",
        "rw=randread\nsize=64k\npercentage_random=0",
        "rw=rw\nrwmixread=100\nsize=64k",
        "rw=write\nbs=4k,16k\nsize=128k",
        "rw=write\nbs=,8k\nsize=128k",
    ]
    .into_iter()
    .enumerate()
    {
        let Some(fio) = logged_by_fio(&format!("exact-{i}"), options) else { return };
        assert_eq!(generated(options), fio, "{options}");
    }
}

#[test]
fn random_maps_cover_the_same_blocks_equally_often() {
    for (i, options) in [
        "rw=randread\nsize=1m",
        "rw=randwrite\nsize=1m\nloops=2",
        "rw=randread\nsize=1m\nio_size=3m",
        "rw=randwrite\nsize=1m\nrandom_generator=lfsr",
        "rw=randread\nsize=1000k\nbs=8k\noffset=512k",
        "rw=randwrite\nsize=1m\nrandrepeat=0\nloops=2",
        "rw=randtrimwrite\nsize=1m",
    ]
    .into_iter()
    .enumerate()
    {
        let Some(fio) = logged_by_fio(&format!("map-{i}"), options) else { return };
        let ours = generated(options);
        assert_eq!(visits(&ours), visits(&fio), "{options}");
        assert_eq!(ops(&ours), ops(&fio), "{options}");
    }
}

#[test]
fn mixes_and_sizes_have_the_same_shares() {
    for (i, options) in [
        "rw=randrw\nrwmixread=40\nsize=32m",
        "rw=rw\nrwmixread=20\nsize=32m",
        "rw=randrw\nrwmixread=40\nsize=32m\nfsync=4",
        "rw=randwrite\nnorandommap\nbssplit=4k/60:8k/30:16k/\nsize=64m",
        "rw=randwrite\nnorandommap\nbsrange=4k-16k\nsize=64m",
        "rw=write\nbsrange=4k-10k\nsize=64m",
        "rw=randread\nnorandommap\nsize=32m",
        "rw=randread\npercentage_random=30\nnorandommap\nsize=32m",
        "rw=randread:4\nnorandommap\nsize=32m",
    ]
    .into_iter()
    .enumerate()
    {
        let Some(fio) = logged_by_fio(&format!("share-{i}"), options) else { return };
        let ours = generated(options);
        let count = ours.len() as f64 / fio.len() as f64;
        assert!((count - 1.0).abs() < 0.02, "{options}: {} against {}", ours.len(), fio.len());
        let same = |what: &str, ours: f64, fio: f64| {
            assert!((ours - fio).abs() < 0.02, "{options}: {what} {ours} against {fio}");
        };
        for op in [Op::Read, Op::Write, Op::Flush] {
            same("share", share(&ours, |io| io.op == op), share(&fio, |io| io.op == op));
        }
        for kib in [4, 8, 10, 12, 16] {
            same("size", share(&ours, |io| io.bytes == kib << 10), share(&fio, |io| io.bytes == kib << 10));
        }
        let follows = |ios: &[Io]| {
            let next = |pair: &&[Io]| pair[1].offset_bytes == pair[0].offset_bytes + u64::from(pair[0].bytes);
            ios.windows(2).filter(next).count() as f64 / ios.len() as f64
        };
        same("sequential", follows(&ours), follows(&fio));
        let distinct = |ios: &[Io]| visits(ios).len() as f64 / ios.len() as f64;
        same("distinct", distinct(&ours), distinct(&fio));
    }
}

#[test]
fn skewed_distributions_are_as_steep() {
    let distributions = [
        "zipf:1.2",
        "zipf:0.8",
        "zipf:2.5",
        "pareto:0.2",
        "pareto:0.05",
        "normal:0",
        "normal:20",
        "normal:90",
        "normal:10:0.2",
    ];
    for (i, distribution) in distributions.into_iter().enumerate() {
        let options = format!("rw=randread\nrandom_distribution={distribution}\nsize=1m\nio_size=32m");
        let Some(fio) = logged_by_fio(&format!("skew-{i}"), &options) else { return };
        let ours = generated(&options);
        // fio scatters ranks by a hash that may put several on one block, so that single blocks can be hotter.
        for hottest in [16, 64] {
            let top = |ios: &[Io]| {
                let mut counts: Vec<usize> = visits(ios).into_values().collect();
                counts.sort_unstable_by(|a, b| b.cmp(a));
                counts.iter().take(hottest).sum::<usize>() as f64 / ios.len() as f64
            };
            let (ours, fio) = (top(&ours), top(&fio));
            assert!((ours - fio).abs() < 0.12, "{distribution}: {hottest} blocks get {ours} against {fio}");
        }
    }
}

#[test]
fn zones_have_the_same_shares_and_the_same_borders() {
    const PARTS: usize = 40;
    for (i, distribution) in [
        "zoned:60/10:30/20:8/30:2/40",
        "zoned:50/10:50/10",
        "zoned:60/10:40/",
        "zoned:60/:40/20",
        "zoned:0/10:100/20",
        "zoned:60/:40/",
        "zoned_abs:60/4m:40/6m",
        "zoned_abs:50/5k:50/4m",
    ]
    .into_iter()
    .enumerate()
    {
        let options = format!("rw=randrw\nrandom_distribution={distribution}\nsize=16m\nio_size=64m");
        let Some(fio) = logged_by_fio(&format!("zones-{i}"), &options) else { return };
        let ours = generated(&options);
        for op in [Op::Read, Op::Write] {
            let shares = |ios: &[Io]| {
                let mut shares = [0.0; PARTS];
                let ios: Vec<_> = ios.iter().filter(|io| io.op == op).collect();
                for io in &ios {
                    shares[io.offset_bytes as usize * PARTS / (16 << 20)] += 1.0 / ios.len() as f64;
                }
                shares
            };
            let (ours, fio) = (shares(&ours), shares(&fio));
            let is_near = |(ours, fio): (&f64, &f64)| (ours - fio).abs() < 0.015;
            assert!(ours.iter().zip(&fio).all(is_near), "{distribution}: {op:?}\n{ours:?}\n{fio:?}");
        }
    }
}

#[test]
fn what_fio_refuses_of_a_distribution_is_refused() {
    if !fio_run::is_installed() {
        return;
    }
    for distribution in [
        "zoned:50/50",
        "zoned:60/50:40/70",
        "zoned:60/10:50/10",
        "zoned",
        "zoned_abs:60/4m",
        "zoned:/10:/90",
        "zoned_abs:60/:40/4m",
        "normal:100",
        "pareto:1",
        "zipf:1",
        "gaussian",
    ] {
        let text = format!("[a]\nioengine=null\nfilename=x\nsize=1m\nrandom_distribution={distribution}\n");
        let directory = fio_run::directory("refused-distributions");
        assert!(!fio_run::run(&directory, &text).status.success(), "{distribution} is fine with fio");
        fs::remove_dir_all(&directory).expect("the directory is there");
        let text = format!("[a]\ndirect=1\nfilename=x\nrandom_distribution={distribution}\n");
        let error = Workload::parse(&text, "jobs.fio", &Environment::empty()).err().map(|error| error.to_string());
        assert!(
            error.is_some_and(|error| error.starts_with("jobs.fio:4: [a] random_distribution: ")),
            "{distribution}"
        );
    }
}

/// The I/Os of a process of fio in the order of their ends, from its log of latencies: that of I/Os has no checks.
fn done_by_fio(test: &str, options: &str) -> Option<Vec<Io>> {
    if !fio_run::is_installed() {
        return None;
    }
    let directory = fio_run::directory(test);
    let text = format!("[a]\nioengine=psync\nfilename=data\nlog_offset=1\nwrite_lat_log=log\n{options}\n");
    let output = fio_run::run(&directory, &text);
    assert!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
    let log = fs::read_to_string(directory.join("log_lat.1.log")).expect("a log");
    fs::remove_dir_all(&directory).expect("the directory is there");
    let line = |line: &str| {
        let numbers: Vec<u64> = line.split(", ").map(|number| number.parse().expect("a number")).collect();
        io(if numbers[2] == 0 { Op::Read } else { Op::Write }, numbers[4], numbers[3] as u32)
    };
    Some(log.lines().map(line).collect())
}

#[test]
fn what_was_written_is_read_again_when_fio_does_it() {
    for (i, options) in [
        "rw=write\nsize=64k",
        "rw=write\nsize=64k\nloops=2",
        "rw=write\nsize=64k\nnumber_ios=5",
        "rw=write\nsize=64k\nverify_backlog=4",
        "rw=write\nsize=64k\nverify_backlog=5",
        "rw=write\nsize=64k\ndo_verify=0",
        "rw=randwrite\nsize=64k",
        "rw=randwrite\nsize=64k\nloops=3",
        "rw=randwrite\nsize=64k\nfsync=4",
        "rw=randwrite\nsize=64k\nverify_backlog=4",
    ]
    .into_iter()
    .enumerate()
    {
        let options = format!("{options}\nverify=crc32c");
        let Some(fio) = done_by_fio(&format!("verify-{i}"), &options) else { return };
        let ours: Vec<Io> = generated(&options).into_iter().filter(|io| io.op != Op::Flush).collect();
        assert_eq!(ops(&ours), ops(&fio), "{options}");
        assert_eq!(visits(&ours), visits(&fio), "{options}");
        // The order of random offsets differs, but in each the reads repeat that of the writes.
        let of = |ios: &[Io], op| ios.iter().filter(|io| io.op == op).map(|io| io.offset_bytes).collect::<Vec<_>>();
        for ios in [&ours, &fio] {
            let (reads, writes) = (of(ios, Op::Read), of(ios, Op::Write));
            assert!(reads == writes || reads.is_empty() || writes.is_empty(), "{options}: {ios:?}");
        }
    }
}
