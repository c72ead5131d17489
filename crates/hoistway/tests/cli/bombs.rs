//! Small inputs that ask for hundreds of times their size: compressed files are read as a stream, and a depth takes memory only for
//! what is in flight.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../trace/tests/block/data");
/// Bytes that a part expands to.
const PART_BYTES: usize = 1 << 20;
/// Parts of a bomb: together 512 MiB, which an unoptimised build unpacks in two seconds. More only takes longer.
const PARTS: usize = 512;
/// Memory that a run may take, far below what a bomb expands to.
const PEAK_KIB_MAX: u64 = 64 << 10;

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// How a run over a bomb ended.
struct Run {
    status: Option<i32>,
    text: String,
    peak_kib: u64,
}

/// Reads a beginning, which may be compressed, and behind it many times the same part.
fn read(begin: &[u8], part: &[u8]) -> Run {
    let part = packed(part);
    assert!(part.len() * PARTS < 1 << 20, "the bomb is not small");
    let mut child = Command::new(env!("CARGO_BIN_EXE_hoistway"))
        .args(["trace", "info", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, begin) = (child.stdin.take().unwrap(), begin.to_vec());
    let feeder = thread::spawn(move || {
        // What is refused is not read to its end.
        let _ = input.write_all(&begin).and_then(|()| (0..PARTS).try_for_each(|_| input.write_all(&part)));
    });
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
        peak_kib = peak_kib.max(peak.unwrap_or(0));
        thread::sleep(Duration::from_millis(2));
    }
    feeder.join().unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    Run { status: output.status.code(), text, peak_kib }
}

/// A message of blktrace, as long as one can be.
fn message() -> Vec<u8> {
    const HEADER_BYTES: usize = 48;
    const PAYLOAD_BYTES: u16 = u16::MAX - 47;
    let mut record = vec![0; HEADER_BYTES + usize::from(PAYLOAD_BYTES)];
    record[..4].copy_from_slice(&0x6561_7407u32.to_le_bytes());
    record[28..32].copy_from_slice(&0x0400_0002u32.to_le_bytes());
    record[46..48].copy_from_slice(&PAYLOAD_BYTES.to_le_bytes());
    record
}

#[test]
fn a_bomb_is_read_with_little_memory_and_ends_with_an_answer() {
    let messages = message().repeat(PART_BYTES / message().len());
    let run = read(&fs::read(format!("{DATA}/smp.merged.bin.gz")).unwrap(), &messages);
    assert_eq!(run.status, Some(0), "{}", run.text);
    assert!((1..PEAK_KIB_MAX).contains(&run.peak_kib), "{} KiB", run.peak_kib);
}

#[test]
fn a_bomb_without_lines_is_refused_with_its_line() {
    let run =
        read(&packed(b"fio-1 [000] ..... 1.000000: block_bio_queue: 8,0 R 8 + 8 [fio]\n"), &vec![b'x'; PART_BYTES]);
    assert_eq!(run.status, Some(2), "{}", run.text);
    assert!(run.text.contains("line 2: the line is longer than 65536 bytes"), "{}", run.text);
    assert!(run.peak_kib < PEAK_KIB_MAX, "{} KiB", run.peak_kib);
}

#[test]
fn a_million_outstanding_reads_of_each_of_a_hundred_processes_take_memory_for_those_in_flight() {
    let folder = tempfile::tempdir().unwrap();
    let job = "[a]\nfilename=/dev/sda\ndirect=1\ntime_based\nruntime=10ms\nsize=4g\nioengine=libaio\nrw=randread\niodepth=1048576\n\
               numjobs=100\n";
    fs::write(folder.path().join("deep.fio"), job).unwrap();
    let limited = Command::new("bash")
        .args(["-c", "ulimit -v 1048576; exec \"$@\"", "bash", env!("CARGO_BIN_EXE_hoistway"), "compare", "deep.fio"])
        .args(["--schedulers", "none", "--repeat", "1"])
        .env("RAYON_NUM_THREADS", "1")
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(limited.status.success(), "{}", String::from_utf8_lossy(&limited.stderr));
}
