//! Compares replays, and priorities of single I/Os, with fio itself.

use crate::fio_run;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use hoistway_blk::bio::{IoPriority, Op};
use hoistway_blk::ground::Nanos;
use hoistway_fio::{Environment, JobFile, log_in_memory};
use hoistway_load::Process;

const VERSION_3: &str = "fio version 3 iolog\n7000 x add\n7000 y add\n7000 x open\n7000 y open\n7000 x read 0 4096\n\
    17000 y read 8192 8192\n37000 x write 20480 4096\n47000 x sync 20480 0\n57000 y read 12800 1536\n\
    40000 x read 4096 4096\n80000 x read 512 512\n90000 x close\n90000 y close\n";
const VERSION_2: &str = "fio version 2 iolog\nx add\ny add\nx open\ny open\nx read 0 4096\ny write 4096 8192\n\
    x wait 1000 0\nx read 8192 4096\nx datasync 0 0\ny read 512 512\nx close\ny close\n";

/// Offset, length and time in ms of each I/O, from fio's latency log.
fn replayed_by_fio(test: &str, log: &str, options: &str) -> Option<Vec<(u64, u32, f64)>> {
    if !fio_run::is_installed() {
        return None;
    }
    let directory = fio_run::directory(test);
    fs::write(directory.join("iolog"), log).expect("a log");
    let text = format!("[a]\nioengine=null\nread_iolog=iolog\nwrite_lat_log=l\nlog_offset=1\n{options}\n");
    let output = fio_run::run(&directory, &text, &[], &[]);
    assert!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
    let lines = fs::read_to_string(directory.join("l_lat.1.log")).expect("a latency log");
    fs::remove_dir_all(&directory).expect("the directory is there");
    let line = |line: &str| {
        let fields: Vec<&str> = line.split(", ").collect();
        Some((fields.get(4)?.parse().ok()?, fields.get(3)?.parse().ok()?, fields.first()?.parse().ok()?))
    };
    Some(lines.lines().filter_map(line).collect())
}

fn process(log: &str, options: &str) -> Process {
    let read = |_: &Path| Ok(log_in_memory(log.as_bytes()));
    let environment = Environment { log: &read, ..Environment::empty() };
    let text = format!("[a]\nioengine=libaio\ndirect=1\nread_iolog=iolog\n{options}\n");
    JobFile::parse(&text, "jobs.fio", &environment).unwrap_or_else(|e| panic!("{e}")).load.processes.remove(0)
}

/// The same on a device that takes no time. Flushes are left out, as in fio's log.
fn replayed(log: &str, options: &str) -> Vec<(u64, u32, f64)> {
    let process = process(log, options);
    let mut pacer = process.pacer(0, 1);
    let mut now = Nanos::ZERO;
    let mut generator = process.generator(0, 1, |_| 1 << 30).unwrap_or_else(|e| panic!("{e}"));
    let mut ios = Vec::new();
    while let Some(io) = generator.next() {
        if let Some(pacer) = &mut pacer {
            now = now.max(pacer.due(io.op, generator.pause()));
            pacer.issued(io.op, io.bytes, now);
        }
        if io.op != Op::Flush {
            ios.push((io.offset_bytes, io.bytes, now.0 as f64 / 1e6));
        }
    }
    ios
}

#[test]
fn replays_are_the_same_io_for_io_and_at_the_same_times() {
    for (i, (log, options)) in [
        (VERSION_3, ""),
        (VERSION_3, "replay_no_stall=1"),
        (VERSION_3, "replay_time_scale=50"),
        (VERSION_3, "replay_time_scale=200"),
        (VERSION_3, "replay_redirect=z"),
        (VERSION_3, "replay_scale=2\nreplay_align=512"),
        (VERSION_3, "replay_align=8192"),
        (VERSION_3, "loops=2\nnumber_ios=1\nsize=8k\nrw=write\nbs=8k\noffset=4k\nrate_iops=1"),
        (VERSION_3, "time_based\nruntime=10s"),
        (VERSION_2, ""),
        (VERSION_2, "replay_time_scale=50"),
        (VERSION_2, "replay_no_stall=1"),
    ]
    .into_iter()
    .enumerate()
    {
        let Some(fio) = replayed_by_fio(&format!("replay-{i}"), log, options) else { return };
        let ours = replayed(log, options);
        let places = |ios: &[(u64, u32, f64)]| ios.iter().map(|io| (io.0, io.1)).collect::<Vec<_>>();
        assert_eq!(places(&ours), places(&fio), "{options}");
        for (our, fio) in ours.iter().zip(&fio) {
            // In version 2 times count from the start of fio, some time before the job starts. A busy machine makes fio
            // late, and rounding makes it at most slightly early.
            let early = if log == VERSION_2 { 900.0 } else { 2.0 };
            assert!((our.2 - early..our.2 + 900.0).contains(&fio.2), "{options}: {our:?} against {fio:?}");
        }
    }
}

#[test]
fn clones_take_the_logs_in_turn_by_the_numbers_of_fio() {
    let read = |path: &Path| match path.to_str() {
        Some("one") => Ok(log_in_memory(VERSION_3.as_bytes())),
        _ => Ok(log_in_memory(*b"fio version 3 iolog\n0 z add\n0 z read 4096 4096\n")),
    };
    let environment = Environment { log: &read, ..Environment::empty() };
    let text = "[a]\ndirect=1\nread_iolog=one:two\nnumjobs=3\n";
    let job_file = JobFile::parse(text, "jobs.fio", &environment).unwrap();
    let counts: Vec<_> =
        job_file.load.processes.iter().map(|p| p.generator(0, 1, |_| 1 << 30).unwrap().count()).collect();
    assert_eq!(counts, [7, 7, 1]);
    assert_eq!(job_file.load.files, ["x", "y", "z"]);
    assert_eq!(*job_file.load.processes[2].files, [2]);
}

#[test]
fn log_errors_are_reported_with_their_line() {
    let refused = |log: &[u8], options: &str| {
        let read = |_: &Path| Ok(log_in_memory(log));
        let environment = Environment { log: &read, ..Environment::empty() };
        let text = format!("[a]\ndirect=1\nread_iolog=iolog\n{options}\n");
        let parsed = JobFile::parse(&text, "jobs.fio", &environment);
        match parsed {
            Ok(job_file) => job_file.load.processes[0].generator(0, 1, |_| 16384).map(|_| ()).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        }
    };
    let blktrace = [0x07, 0x74, 0x61, 0x65, 1, 0, 0, 0];
    for (log, options, message) in [
        (
            &blktrace[..],
            "",
            "iolog:1: blktrace recordings are not supported (replay it in fio with write_iolog, and use the log that this writes)",
        ),
        (b"\xff\xfe", "", "iolog:1: not text (expected an I/O log of fio, version 2 or 3)"),
        (
            b"fio version 1 iolog\n",
            "",
            "iolog:1: \"fio version 1 iolog\" is not the header of an I/O log (expected \"fio version 2 iolog\" or \"fio version 3 iolog\")",
        ),
        (
            b"fio version 3 iolog\n0 x add\nx read 0 4096\n",
            "",
            "iolog:3: \"x\" is not a number (a time in microseconds)",
        ),
        (
            b"fio version 3 iolog\n0 x jump 0 4096\n",
            "",
            "iolog:2: \"jump\" is not an action (expected read, write, trim, sync, datasync, wait, add, open or close)",
        ),
        (
            b"fio version 2 iolog\nx wait 5000\n",
            "",
            "iolog:2: \"x wait 5000\" is not a line of an I/O log (expected FILE ACTION, or FILE ACTION OFFSET LENGTH, after the time in version 3)",
        ),
        (
            b"fio version 3 iolog\n0 x read 0 100\n",
            "",
            "iolog:2: an I/O of 100 bytes at 0 is not possible (direct I/O needs whole sectors of 512 bytes, at most 1 GiB per I/O)",
        ),
        (
            b"fio version 3 iolog\n0 x read 0 512\n18446744073709551615 x read 0 512\n",
            "",
            "iolog:3: the time is more than ten years (expected less)",
        ),
        (
            b"fio version 2 iolog\nx wait 18446744073709551615 0\nx read 0 512\n",
            "",
            "iolog:2: the time is more than ten years (expected less)",
        ),
        (b"fio version 3 iolog\n0 x add\n", "", "jobs.fio:3: [a] read_iolog: the log \"iolog\" has no I/O"),
        (
            b"fio version 3 iolog\n0 x read 1024 512\n",
            "replay_scale=4",
            "jobs.fio:3: [a] read_iolog: the offset 256 is not a multiple of a sector of 512 (direct I/O needs whole sectors: align the offsets (replay_align=512))",
        ),
        (
            b"fio version 3 iolog\n0 x read 16384 512\n",
            "",
            "jobs.fio:3: [a] read_iolog: the log goes to byte 16896, but the device has 16384 (use a larger device, or scale the offsets down (replay_scale))",
        ),
    ] {
        assert_eq!(refused(log, options), message);
    }
}

#[test]
fn skipped_replay_entries_keep_their_time() {
    let times: Vec<_> = replayed(VERSION_3, "replay_skip=write,sync").into_iter().map(|io| io.2).collect();
    assert_eq!(times, [0.0, 10.0, 50.0, 50.0, 90.0]);
}

/// Share of each priority among the I/Os of a direction and size, from fio's latency log, of which priorities are a
/// part only with direct I/O.
type Shares = BTreeMap<(u32, u32, u16), f64>;

fn priorities_of_fio(test: &str, options: &str) -> Option<Shares> {
    if !fio_run::is_installed() {
        return None;
    }
    let directory = fio_run::directory(test);
    File::create(directory.join("f")).and_then(|f| f.set_len(32 << 20)).expect("a file");
    let text = format!("[a]\nioengine=libaio\nfilename=f\nwrite_lat_log=l\nlog_prio=1\n{options}\n");
    let output = fio_run::run(&directory, &text, &[], &[]);
    let lines = fs::read_to_string(directory.join("l_lat.1.log")).unwrap_or_default();
    fs::remove_dir_all(&directory).expect("the directory is there");
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        // Real-time priority needs privileges that a test may lack.
        eprintln!("skipped: fio could not run this: {errors}");
        return None;
    }
    let mut shares = Shares::new();
    for line in lines.lines() {
        let fields: Vec<&str> = line.split(", ").collect();
        let prio = u16::from_str_radix(fields[4].trim_start_matches("0x"), 16).expect("a priority");
        let key = (fields[2].parse().expect("a direction"), fields[3].parse().expect("a size"), prio);
        *shares.entry(key).or_default() += 1.0;
    }
    Some(shares)
}

fn priorities(options: &str) -> Shares {
    let text = format!("[a]\nioengine=libaio\ndirect=1\nfilename=f\n{options}\n");
    let job_file = JobFile::parse(&text, "jobs.fio", &Environment::empty()).unwrap_or_else(|e| panic!("{e}"));
    let process = &job_file.load.processes[0];
    let common = process.standing.io_priority.unwrap_or(IoPriority::UNSET);
    let mut shares = Shares::new();
    for io in process.generator(0, 1, |_| 32 << 20).unwrap_or_else(|e| panic!("{e}")) {
        let prio = if io.priority == IoPriority::UNSET { common } else { io.priority };
        *shares.entry((u32::from(io.op == Op::Write), io.bytes, prio.0)).or_default() += 1.0;
    }
    shares
}

#[test]
fn single_ios_get_the_priorities_that_fio_gives_them() {
    for (i, options) in [
        "cmdprio_percentage=20",
        "cmdprio_percentage=20,50\ncmdprio_class=3,1\ncmdprio=,5",
        "cmdprio_percentage=,50\nprio=3\ncmdprio_class=2\ncmdprio=1",
        "cmdprio_percentage=10\ncmdprio_class=2\nprioclass=1",
        "cmdprio_percentage=10,20,30",
        "cmdprio=2",
        "cmdprio_bssplit=8k/50",
        "cmdprio_bssplit=4k/50:8k",
        "bssplit=4k/50:8k/50\ncmdprio_bssplit=4k/50:8k/10",
        "bssplit=4k/50:8k/50\ncmdprio_bssplit=4k/:8k/10",
        "bssplit=4k/50:8k/50\ncmdprio_bssplit=4k/50/3/2:4k/20/1/1:8k/10/1/0,8k/100/2/7",
    ]
    .into_iter()
    .enumerate()
    {
        let options = format!("rw=randrw\nsize=32m\nnorandommap\n{options}");
        let Some(fio) = priorities_of_fio(&format!("prio-{i}"), &options) else { continue };
        let ours = priorities(&options);
        assert_eq!(ours.keys().collect::<Vec<_>>(), fio.keys().collect::<Vec<_>>(), "{options}");
        for (key, count) in &fio {
            let all = |shares: &Shares| {
                shares.iter().filter(|other| (other.0.0, other.0.1) == (key.0, key.1)).map(|other| other.1).sum::<f64>()
            };
            let (our, fio) = (ours[key] / all(&ours), count / all(&fio));
            assert!((our - fio).abs() < 0.04, "{options}: {key:?} {our} against {fio}");
        }
    }
}
