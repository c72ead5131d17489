//! How fast recordings are read: from the files to events, and to the program behind them.
//!
//! ```text
//! cargo bench -p hoistway-benches --bench recordings -- set one merged blkparse ftrace program peer    # or some of them
//! cargo bench -p hoistway-benches --bench recordings -- --endless | hoistway trace info -              # until the pipe is closed
//! ```
//! The output is the median of the rounds, and the slowest and fastest. `peer` is blkparse, which prints the set of files into
//! nothing. `--ios N` sets the length and `--rounds N` how often each is read: the difference of two numbers of rounds counts instructions.

use std::collections::BinaryHeap;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hoistway_blk::bio::{IoPriority, PriorityClass};
use hoistway_program::{Options, Program};
use hoistway_trace::block::{Action, BlktraceWriter, CpuFile, Device, Event, Flags, Names, Payload, Recording};

const ROUNDS: u64 = 5;
const IOS: u64 = 300_000;
const CPUS: u32 = 2;
const TASKS: u32 = 8;
const DEVICE: Device = Device::from_number(8 << 20);

/// Events of random reads and writes of 4 KiB on two CPUs, in the order of time: 20,000 I/Os a second that take about 100 us each, every
/// fourth under a plug.
struct Events {
    ahead: BinaryHeap<std::cmp::Reverse<(u64, u64, u8)>>,
    ios: u64,
    state: u64,
    flights: Vec<Event>,
    last_ns: u64,
}

const STEPS: [(Action, u64); 7] = [
    (Action::Queue, 0),
    (Action::GetRequest, 1_300),
    (Action::Plug, 1_700),
    (Action::Unplug, 2_900),
    (Action::Insert, 3_400),
    (Action::Issue, 5_100),
    (Action::Complete, 90_000),
];

impl Events {
    fn new() -> Events {
        let flights = vec![Event::new(Action::Queue); 64];
        Events { ahead: BinaryHeap::new(), ios: 0, state: 0x9E37_79B9_7F4A_7C15, flights, last_ns: 0 }
    }

    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn submit(&mut self) {
        let (number, random) = (self.ios, self.random());
        self.ios += 1;
        let begin_ns = 1_000_000 + number * 50_000 + random % 20_000;
        let pid = 1000 + number as u32 % TASKS;
        self.flights[number as usize % 64] = Event {
            sector: (random >> 16) % (1 << 30) * 8,
            bytes: 4096,
            pid,
            device: DEVICE,
            cpu: pid % CPUS,
            flags: if random % 3 == 0 { Flags::WRITE | Flags::SYNC } else { Flags::READ },
            priority: IoPriority::new(PriorityClass::BestEffort, 4),
            ..Event::new(Action::Queue)
        };
        for (step, (action, after_ns)) in STEPS.into_iter().enumerate() {
            let is_plug = matches!(action, Action::Plug | Action::Unplug);
            if !is_plug || number.is_multiple_of(4) {
                let scatter_ns = if action == Action::Complete { random % 17_000 } else { random % 300 };
                self.ahead.push(std::cmp::Reverse((begin_ns + after_ns + scatter_ns, number, step as u8)));
            }
        }
    }
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        // No I/O begins earlier than the one before the last.
        while self.ahead.len() < 64 {
            self.submit();
        }
        let std::cmp::Reverse((time_ns, number, step)) = self.ahead.pop()?;
        let action = STEPS[usize::from(step)].0;
        let flight = self.flights[number as usize % 64];
        self.last_ns = time_ns.max(self.last_ns + 1);
        let mut event = Event { time_ns: self.last_ns, action, ..flight };
        match action {
            Action::Plug => (event.sector, event.bytes, event.flags) = (0, 0, Flags::default()),
            Action::Unplug => {
                (event.sector, event.bytes, event.flags) = (0, 0, Flags::default());
                event.payload = Payload::Requests(1);
            }
            Action::Complete => event.pid = 0,
            _ => {}
        }
        Some(event)
    }
}

fn names() -> Names {
    let mut names = Names::default();
    (0..TASKS).for_each(|task| names.learn(1000 + task, format!("reader-{task}").as_bytes()));
    names
}

/// blktrace's files, one for each CPU.
fn blktrace(folder: &Path, name: &str, records: usize, cpus: u32) -> io::Result<PathBuf> {
    let path = |cpu: u32| folder.join(format!("{name}.blktrace.{cpu}"));
    let files = (0..cpus).map(|cpu| File::create(path(cpu)).map(BufWriter::new)).collect::<io::Result<Vec<_>>>()?;
    let (mut writer, names) = (BlktraceWriter::new(files), names());
    for event in Events::new().take(records) {
        writer.write(&Event { cpu: event.cpu % cpus, ..event }, &names)?;
    }
    writer.finish()?;
    Ok(path(0))
}

/// The records of all CPUs in one stream, as `blktrace -o -` writes them.
fn merged(events: impl Iterator<Item = Event>, mut out: impl Write) -> io::Result<()> {
    let mut cpus: Vec<_> = (0..CPUS).map(|cpu| CpuFile::new(Vec::new(), cpu, DEVICE)).collect();
    for (pid, name) in names().all() {
        cpus[0].name(0, pid, name.as_bytes())?;
    }
    for event in events {
        let cpu = &mut cpus[event.cpu as usize];
        cpu.event(&event)?;
        out.write_all(cpu.get_mut())?;
        cpu.get_mut().clear();
    }
    out.flush()
}

/// Text as blkparse prints it.
fn blkparse(folder: &Path, lines: usize) -> io::Result<PathBuf> {
    let path = folder.join("blkparse.txt");
    let mut out = BufWriter::new(File::create(&path)?);
    let names = names();
    for (number, event) in Events::new().take(lines).enumerate() {
        let Event { device, cpu, pid, sector, action, .. } = event;
        let (s, ns) = (event.time_ns / 1_000_000_000, event.time_ns % 1_000_000_000);
        let (letters, flags) = (action.letters(), event.flags.letters());
        write!(out, "{device:>5} {cpu:>4} {:>8} {s:>5}.{ns:09} {pid:>5} {letters:>2} {flags:>3} ", number + 1)?;
        let (task, sectors) = (names.get(pid).unwrap_or_default(), event.bytes / 512);
        match action {
            Action::Plug => writeln!(out, "[{task}]")?,
            Action::Unplug => writeln!(out, "[{task}] 1")?,
            Action::Complete => writeln!(out, "{sector} + {sectors} [0]")?,
            _ => writeln!(out, "{sector} + {sectors} [{task}]")?,
        }
    }
    out.flush()?;
    Ok(path)
}

/// Text of ftrace.
fn ftrace(folder: &Path, lines: usize) -> io::Result<PathBuf> {
    let path = folder.join("ftrace.txt");
    let mut out = BufWriter::new(File::create(&path)?);
    let names = names();
    writeln!(out, "# tracer: nop\n#")?;
    for event in Events::new().take(lines) {
        let Event { device, cpu, pid, sector, bytes, .. } = event;
        let (s, us) = (event.time_ns / 1_000_000_000, event.time_ns % 1_000_000_000 / 1000);
        let task = names.get(pid).unwrap_or("<idle>");
        write!(out, "{task:>16}-{pid:<7} [{cpu:03}] ..... {s:>5}.{us:06}: ")?;
        let (flags, sectors) = (event.flags.letters(), bytes / 512);
        match event.action {
            Action::Plug => writeln!(out, "block_plug: [{task}]")?,
            Action::Unplug => writeln!(out, "block_unplug: [{task}] 1")?,
            Action::Queue => writeln!(out, "block_bio_queue: {device} {flags} {sector} + {sectors} [{task}]")?,
            Action::GetRequest => writeln!(out, "block_getrq: {device} {flags} {sector} + {sectors} [{task}]")?,
            Action::Complete => {
                writeln!(out, "block_rq_complete: {device} {flags} () {sector} + {sectors} be,0,4 [0]")?;
            }
            action => {
                let name = if action == Action::Insert { "insert" } else { "issue" };
                writeln!(out, "block_rq_{name}: {device} {flags} {bytes} () {sector} + {sectors} be,0,4 [{task}]")?;
            }
        }
    }
    out.flush()?;
    Ok(path)
}

fn events(path: &Path) -> u64 {
    let mut recording = Recording::open(path).expect("a recording");
    let mut count = 0;
    while let Some(event) = recording.next_event().expect("a good recording") {
        black_box(event.sector);
        count += 1;
    }
    count
}

fn program(path: &Path) {
    let mut recording = Recording::open(path).expect("a recording");
    let program = Program::infer(&mut recording, "bench", &Options::default()).expect("a program");
    assert_eq!(program.streams.len(), TASKS as usize);
}

/// CPU time of this process, and of the peers that it has waited for.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("procfs");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    // cutime and cstime, in ticks of 10 ms.
    let ticks: u64 = fields[13..15].iter().map(|field| field.parse::<u64>().expect("a number")).sum();
    let own = std::fs::read_to_string("/proc/self/schedstat").expect("a kernel with statistics of its scheduler");
    let own_ns = own.split_whitespace().next().and_then(|field| field.parse().ok()).expect("a number");
    Duration::from_nanos(own_ns) + Duration::from_millis(10 * ticks)
}

fn peer(path: &Path) {
    let name = path.with_extension("").with_extension("");
    let mut blkparse = Command::new("blkparse");
    blkparse.args(["-q", "-i"]).arg(name).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(blkparse.status().expect("blkparse is there").success());
}

type Read = fn(&Path);

/// What is measured.
struct Row {
    name: &'static str,
    read: Read,
    path: PathBuf,
    /// Elapsed and CPU time of each round.
    times: Vec<(Duration, Duration)>,
}

fn main() -> io::Result<()> {
    let mut wanted: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if wanted.iter().any(|word| word == "--endless") {
        let out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
        return match merged(Events::new(), out) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            done => done,
        };
    }
    let mut number = |option: &str, default: u64| match wanted.iter().position(|word| word == option) {
        Some(at) => {
            let number = wanted.get(at + 1).and_then(|word| word.parse().ok()).expect("a number behind the option");
            wanted.drain(at..at + 2);
            number
        }
        None => default,
    };
    let (ios, rounds) = (number("--ios", IOS), number("--rounds", ROUNDS));
    let folder = tempfile::tempdir()?;
    // An I/O has five and a half events.
    let records = (ios * 11 / 2) as usize;
    let has = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    let mut rows: Vec<Row> = Vec::new();
    let mut row = |name, read, path| rows.push(Row { name, read, path, times: Vec::new() });
    let events: Read = |path| assert!(black_box(events(path)) > 0);
    if has("set") {
        row("blktrace, a file for each of 2 CPUs", events, blktrace(folder.path(), "set", records, CPUS)?);
    }
    if has("one") {
        row("blktrace, one CPU", events, blktrace(folder.path(), "one", records, 1)?);
    }
    if has("merged") {
        let path = folder.path().join("merged.bin");
        merged(Events::new().take(records), BufWriter::new(File::create(&path)?))?;
        row("blktrace, 2 CPUs in one file", events, path);
    }
    if has("blkparse") {
        row("text of blkparse", events, blkparse(folder.path(), records)?);
    }
    if has("ftrace") {
        row("text of ftrace", events, ftrace(folder.path(), records)?);
    }
    if has("program") {
        row("blktrace, 2 files, to the program", program, blktrace(folder.path(), "program", records, CPUS)?);
    }
    if has("peer") {
        row("blkparse over 2 files", peer, blktrace(folder.path(), "peer", records, CPUS)?);
    }
    for _ in 0..rounds {
        for Row { read, path, times, .. } in &mut rows {
            let (begin, cpu_begin) = (Instant::now(), cpu_time());
            read(path);
            times.push((begin.elapsed(), cpu_time() - cpu_begin));
        }
    }
    println!("{records} records, millions of them\n\n| what | a second | a second of CPU time |\n| --- | --- | --- |");
    for Row { name, times, .. } in &rows {
        let [elapsed, cpu] = [0, 1].map(|which| {
            let mut times: Vec<Duration> =
                times.iter().map(|(all, cpu)| if which == 0 { *all } else { *cpu }).collect();
            times.sort_unstable();
            let rate = |time: Duration| records as f64 / time.as_secs_f64() / 1e6;
            let (median, fastest, slowest) = (times[times.len() / 2], times[0], times[times.len() - 1]);
            format!("{:.2} ({:.2} to {:.2})", rate(median), rate(slowest), rate(fastest))
        });
        println!("| {name} | {elapsed} | {cpu} |");
    }
    Ok(())
}
