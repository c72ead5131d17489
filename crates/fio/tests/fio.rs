//! Compares jobs with fio itself: if the order of I/Os is not random, its log must equal the I/Os generated here;
//! otherwise their counts, coverage and shares must agree.

use crate::fio_run;

use std::collections::BTreeMap;
use std::fs;

use hoistway_blk::bio::{IoPriority, Op};
use hoistway_fio::{Environment, JobFile};
use hoistway_load::{Amount, Io};

/// What a process of fio did, from its I/O log; `None` if fio is not installed.
fn logged_by_fio(test: &str, options: &str) -> Option<Vec<Io>> {
    if !fio_run::is_installed() {
        return None;
    }
    let directory = fio_run::directory(test);
    let log = directory.join("log");
    // The null engine does no I/O, but makes all decisions about it.
    let text = format!("[a]\nioengine=null\nfilename=nothing\nwrite_iolog={}\n{options}\n", log.display());
    let output = fio_run::run(&directory, &text, &[], &[]);
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
    let job_file = JobFile::parse(&text, "jobs.fio", &Environment::empty()).unwrap_or_else(|e| panic!("{e}"));
    let process = &job_file.load.processes[0];
    // Without a device fio assumes that the file ends where the job does.
    let volume = &process.plan.pattern.volume;
    let device_bytes = match (volume.file_bytes, volume.size, volume.offset) {
        (None, Some(Amount::Bytes(size)), Amount::Bytes(offset)) => size + offset,
        _ => 1 << 40,
    };
    process.generator(0, 1, |_| device_bytes).unwrap_or_else(|e| panic!("{e}")).collect()
}

fn ops(ios: &[Io]) -> Vec<Op> {
    ios.iter().map(|io| io.op).collect()
}

/// How often each block was accessed.
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
        "rw=read:8k\nsize=20k",
        "rw=read:8k\nsize=28k",
        "rw=read:12k\nsize=40k",
        "rw=read:4k\nbs=12k\nsize=64k",
        "rw=read:100k\nsize=40k\nloops=2",
        "rw=read:-8k\nsize=64k",
        "rw=read:-4k\nbs=12k\nsize=64k",
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
fn zones_are_used_one_after_the_other_io_for_io() {
    for (i, options) in [
        "rw=read\nsize=64k\nzonesize=8k\nzonerange=16k",
        "rw=write\nsize=64k\nzonesize=8k",
        "rw=read\nsize=64k\nzonesize=8k\nzoneskip=8k\nio_size=100k",
        "rw=read\nsize=64k\nzonesize=8k\nzonerange=16k\nzoneskip=8k",
        "rw=read\nsize=64k\nzonesize=16k\nzonerange=8k\nzoneskip=4k",
        "rw=read\nsize=64k\nzonesize=8k\nzonerange=4k\nzoneskip=4k",
        "rw=read\nsize=64k\nzonesize=6k\nzonerange=16k",
        "rw=read\nsize=64k\nzonesize=20k\nzonerange=10k",
        "rw=read\nsize=64k\nzonesize=8k\nzonerange=3k",
        "rw=read\nsize=50k\nzonesize=8k\nzonerange=16k",
        "rw=read\nsize=52k\nzonesize=8k\nzonerange=16k",
        "rw=read\nsize=52k\nzonesize=8k\nzonerange=16k\nio_size=200k",
        "rw=read\nsize=60k\nzonesize=8k\nzonerange=16k\nio_size=100k",
        "rw=read\nsize=64k\nzonesize=12k\nzonerange=12k\nio_size=200k",
        "rw=read\nsize=64k\nzonesize=8k\nzoneskip=512k",
        "rw=read\nsize=64k\nzonesize=8k\nzonerange=128k",
        "rw=read\nsize=64k\noffset=32k\nzonesize=8k\nzonerange=16k",
        "rw=read\nsize=64k\nnumber_ios=5\nzonesize=8k\nzonerange=16k",
        "rw=read:4k\nsize=64k\nzonesize=16k\nzonerange=16k\nzoneskip=16k",
        "rw=trimwrite\nsize=64k\nzonesize=8k\nzonerange=16k",
        "rw=write\nsize=64k\nzonesize=8k\nzonerange=16k\nfsync=3",
        "rw=randread\npercentage_random=0\nsize=64k\nzonesize=16k\nzonerange=8k\nzoneskip=4k",
        "rw=randread\nsize=64k\nbs=16k\nzonesize=32k\nzonerange=16k\nio_size=200k",
    ]
    .into_iter()
    .enumerate()
    {
        let options = format!("zonemode=strided\n{options}");
        let Some(fio) = logged_by_fio(&format!("strided-{i}"), &options) else { return };
        assert_eq!(generated(&options), fio, "{options}");
    }
}

#[test]
fn random_jobs_visit_all_blocks_of_a_zone_before_the_next_zone() {
    for (i, options) in [
        "rw=randread\nsize=1m\nzonesize=64k\nzonerange=128k",
        "rw=randread\nsize=1088k\nzonesize=128k\nzoneskip=64k\nio_size=4m",
        "rw=randwrite\nsize=1m\nzonesize=256k\nzonerange=128k\nio_size=4m",
        "rw=randrw\nsize=1m\nzonesize=128k",
        "rw=randread\nsize=1m\nzonesize=128k\nrandom_generator=lfsr",
        "rw=randread\nsize=1m\nzonesize=64k\nzonerange=128k\nnorandommap",
        "rw=randread:2\nsize=1m\nzonesize=64k\nzonerange=128k\nnorandommap",
    ]
    .into_iter()
    .enumerate()
    {
        let options = format!("zonemode=strided\n{options}");
        let Some(fio) = logged_by_fio(&format!("random-strided-{i}"), &options) else { return };
        let ours = generated(&options);
        let zones = |ios: &[Io]| ios.iter().map(|io| io.offset_bytes >> 16).map(|part| part / 2).collect::<Vec<_>>();
        if options.contains("zoneskip") {
            // Zones of 128 KiB that are 192 KiB apart.
            let starts = |ios: &[Io]| ios.iter().map(|io| io.offset_bytes / (192 << 10)).collect::<Vec<_>>();
            assert_eq!(starts(&ours), starts(&fio), "{options}");
            assert!(ours.iter().all(|io| io.offset_bytes % (192 << 10) < 128 << 10), "{options}");
        } else {
            assert_eq!(zones(&ours), zones(&fio), "{options}");
        }
        let distinct = |ios: &[Io]| visits(ios).len() as f64;
        let (ours, fio) = (distinct(&ours), distinct(&fio));
        // The order of the remaining blocks of a zone is drawn again at each visit.
        let slack = if options.contains("norandommap") || options.contains("zonesize=64k") { 0.1 } else { 0.0 };
        assert!((ours / fio - 1.0).abs() <= slack, "{options}: {ours} against {fio}");
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
        // fio scatters ranks with a hash that may map several to one block, so that single blocks can be hotter.
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
fn distributions_that_fio_refuses_are_refused() {
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
        let output = fio_run::run(&directory, &text, &[], &[]);
        assert!(!output.status.success(), "{distribution} is fine with fio");
        fs::remove_dir_all(&directory).expect("the directory is there");
        let text = format!("[a]\ndirect=1\nfilename=x\nrandom_distribution={distribution}\n");
        let error = JobFile::parse(&text, "jobs.fio", &Environment::empty()).err().map(|error| error.to_string());
        assert!(
            error.is_some_and(|error| error.starts_with("jobs.fio:4: [a] random_distribution: ")),
            "{distribution}"
        );
    }
}

/// The I/Os of a process of fio in the order of completion, from its latency log, since its I/O log omits verification
/// reads.
fn done_by_fio(test: &str, options: &str) -> Option<Vec<Io>> {
    if !fio_run::is_installed() {
        return None;
    }
    let directory = fio_run::directory(test);
    let text = format!("[a]\nioengine=psync\nfilename=data\nlog_offset=1\nwrite_lat_log=log\n{options}\n");
    let output = fio_run::run(&directory, &text, &[], &[]);
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
fn written_blocks_are_verified_when_fio_does_it() {
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
        // The random order differs between fio and us, but in both the reads repeat the order of the writes.
        let of = |ios: &[Io], op| ios.iter().filter(|io| io.op == op).map(|io| io.offset_bytes).collect::<Vec<_>>();
        for ios in [&ours, &fio] {
            let (reads, writes) = (of(ios, Op::Read), of(ios, Op::Write));
            assert!(reads == writes || reads.is_empty() || writes.is_empty(), "{options}: {ios:?}");
        }
    }
}

#[test]
fn plausible_mixed_jobs_issue_the_same_ios_as_fio() {
    for (i, options) in [
        // A database: small random writes and large reads, each with sizes of their own.
        "rw=randrw\nrwmixread=70\nbssplit=4k/60:16k/40,8k/90:64k/10\nnorandommap\nsize=64m\nio_size=32m",
        "rw=randtrimwrite\nbssplit=4k/50:8k/50,4k,16k/30:32k/70\nnorandommap\nsize=32m",
        "rw=randwrite\nsize=16m\noffset=16m\nfilesize=64m\nbs=8k\nunlink=1\nthread\nlockmem=1m",
        "rw=randread\nfilesize=32m\nsize=50%\nnorandommap",
        "rw=write\nfilesize=1m\nsize=512k\noffset=256k",
        "rw=randrw\nrwmixwrite=30\nsize=16m\nio_size=40m\nfdatasync=8",
        "rw=read\nsize=8m\nbs=1m\nio_size=3m\noffset=1m",
        "rw=randread\nsize=8m\nbsrange=512-8k\nnorandommap\nio_size=16m",
        "rw=readwrite\nsize=512m\nrwmixread=90\nbs=4k,64k\nnumber_ios=5000",
        "rw=randwrite\nsize=1m\nbs=3k\nloops=2",
        "rw=randread\nsize=8m\nba=16k\nbs=4k\nio_size=8m",
        "rw=randrw:8\nsize=16m\nrw_sequencer=identical\nnorandommap",
    ]
    .into_iter()
    .enumerate()
    {
        let Some(fio) = logged_by_fio(&format!("stranger-{i}"), options) else { return };
        let ours = generated(options);
        let near = |what: &str, ours: f64, fio: f64, slack: f64| {
            assert!((ours - fio).abs() <= slack, "{options}: {what} {ours} against {fio}");
        };
        near("count", ours.len() as f64 / fio.len() as f64, 1.0, 0.03);
        for op in [Op::Read, Op::Write, Op::Discard, Op::Flush] {
            let of = |ios: &[Io]| ios.iter().filter(|io| io.op == op).copied().collect::<Vec<_>>();
            let (ours_of, fio_of) = (of(&ours), of(&fio));
            near("share", ours_of.len() as f64 / ours.len() as f64, fio_of.len() as f64 / fio.len() as f64, 0.03);
            let mean = |ios: &[Io]| ios.iter().map(|io| f64::from(io.bytes)).sum::<f64>() / ios.len().max(1) as f64;
            near("bytes", mean(&ours_of) / mean(&fio_of).max(1.0), f64::from(u8::from(mean(&fio_of) > 0.0)), 0.1);
            if op == Op::Flush || fio_of.len() < 100 {
                continue;
            }
            let ends = |ios: &[Io]| {
                let first = ios.iter().map(|io| io.offset_bytes).min().unwrap_or(0);
                let last = ios.iter().map(|io| io.offset_bytes + u64::from(io.bytes)).max().unwrap_or(0);
                (first as f64, last as f64)
            };
            let ((first, last), (fio_first, fio_last)) = (ends(&ours_of), ends(&fio_of));
            let slack = (fio_last - fio_first) * 0.03;
            near("first", first, fio_first, slack);
            near("last", last, fio_last, slack);
        }
    }
}

#[test]
fn jobs_whose_sizes_leave_a_remainder_issue_as_many_ios_as_fio() {
    let mut wrong = Vec::new();
    for (i, options) in [
        "rw=trimwrite\nsize=64k\nnumber_ios=5",
        "rw=trimwrite\nsize=64k\nnumber_ios=20\nio_size=1m",
        "rw=trimwrite\nsize=64k\nnumber_ios=10\nloops=2",
        "rw=trimwrite\nsize=64k\nio_size=18k",
        "rw=trimwrite\nsize=16k\nio_size=34k",
        "rw=trimwrite\nsize=16k\nio_size=36k",
        "rw=trimwrite\nsize=16k\nio_size=72k",
        "rw=trimwrite\nsize=16k\nloops=2",
        "rw=randtrimwrite\nsize=64k\nnumber_ios=5",
        "rw=randtrimwrite\nsize=16k\nio_size=72k",
        "rw=randtrimwrite\nnorandommap\nsize=16k\nio_size=34k",
        "rw=read\nio_size=1026k\nsize=1m\nbs=4k",
        "rw=read\nio_size=1030k\nsize=1m\nbs=4k",
        "rw=read\nio_size=18k\nsize=1m",
        "rw=read\nio_size=19k\nsize=16k",
        "rw=read\nio_size=20k\nsize=16k",
        "rw=read\nio_size=21k\nsize=16k",
        "rw=read\nio_size=50k\nsize=16k",
        "rw=read\nio_size=22k\nsize=18k",
        "rw=read\nio_size=34k\nsize=16k\nloops=2",
        "rw=read\nio_size=18k\nsize=16k\nloops=3",
        "rw=read\nio_size=40k\nsize=16k\nloops=2",
        "rw=read\nbs=4k,16k\nsize=64k\nio_size=70k",
        "rw=read\nbs=4k,16k\nsize=64k\nio_size=84k",
        "rw=read:4k\nsize=64k\nloops=2",
        "rw=read\nnumber_ios=10\nsize=64k\nloops=2",
        "rw=randread\nio_size=18k\nsize=16k",
        "rw=randread\nio_size=22k\nsize=16k",
        "rw=randread\nio_size=34k\nsize=16k",
        "rw=randread\nrandom_generator=lfsr\nio_size=18k\nsize=16k",
        "rw=randread\nnorandommap\nrandom_generator=lfsr\nsize=14k",
        "rw=randread\nnorandommap\nio_size=18k\nsize=16k",
        "rw=randread\nnorandommap\nsize=14k",
        "rw=randread\nnorandommap\nsize=14k\nloops=3",
        "rw=randread\nnorandommap\nsize=14k\nio_size=30k",
        "rw=randread\nnorandommap\npercentage_random=50\nsize=14k",
        "rw=randread\nrandom_distribution=zipf:1.1\nsize=1030k",
        "rw=randread\nrandom_distribution=zoned:50/50:50/50\nsize=14k",
        "rw=randread\nba=512\nsize=14k",
        "rw=randread\nba=4k\nsize=14k",
        "rw=randread\nba=8k\nsize=62k",
        "rw=read\nsize=16k\nfilename=n1:n2\nio_size=22k",
        "rw=randread\nnorandommap\nsize=28k\nfilename=n1:n2",
    ]
    .into_iter()
    .enumerate()
    {
        let Some(fio) = logged_by_fio(&format!("rest-{i}"), options) else { return };
        let ours = generated(options);
        let is_exact = !options.contains("rand") && !options.contains("filename");
        if ops(&ours) != ops(&fio) || is_exact && visits(&ours) != visits(&fio) {
            wrong.push(format!("{options:?}: {} against {}", ours.len(), fio.len()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn zones_with_a_remainder_issue_as_many_ios_as_fio() {
    let mut wrong = Vec::new();
    // The range of the number of I/Os: a random job ends at the first draw of a block that extends beyond the region.
    for (i, (slack, options)) in [
        (0, "rw=read\nsize=30k\nzonesize=3k\nzonerange=8k"),
        (0, "rw=read\nsize=1030k\nzonesize=3k\nzonerange=8k"),
        (0, "rw=read\nsize=30k\nzonesize=10k\nzonerange=16k"),
        (0, "rw=read\nsize=30k\nzonesize=6k\nzonerange=8k\nzoneskip=8k"),
        (0, "rw=read\nsize=1m\nzonesize=12k\nzonerange=16k\nzoneskip=4k"),
        (0, "rw=read\nsize=1030k\nzonesize=128k\nzonerange=256k\nzoneskip=64k"),
        (0, "rw=randread\nsize=31k\nzonesize=3k\nzonerange=8k\nzoneskip=2k"),
        (0, "rw=randread\nsize=31k\nzonesize=3k\nzonerange=4k\nzoneskip=6k\nio_size=60k"),
        (0, "rw=randread\nsize=1m\nzonesize=6k\nzonerange=8k\nzoneskip=8k"),
        (0, "rw=randread\nsize=1m\nzonesize=12k\nzonerange=16k\nzoneskip=4k\nio_size=2m"),
        (1, "rw=randread\nsize=1m\nzonesize=12k\nzonerange=16k\nzoneskip=4k"),
        (8, "rw=randread\nsize=1m\nzonesize=128k\nzonerange=256k\nzoneskip=64k"),
    ]
    .into_iter()
    .enumerate()
    {
        let options = format!("zonemode=strided\n{options}");
        let Some(fio) = logged_by_fio(&format!("zone-rest-{i}"), &options) else { return };
        let ours = generated(&options);
        if ours.len().abs_diff(fio.len()) > slack {
            wrong.push(format!("{options:?}: {} against {}", ours.len(), fio.len()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
