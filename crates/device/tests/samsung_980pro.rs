//! How near is the preset `samsung-980pro-1tb` to what it is calibrated on: figure 1b (one drive, reads) and the rows `none`
//! of figures 11 and 12 (eight drives, reads beside reads or writes) of the ICPE'24 study?
//!
//! The host here is a sketch: cores that spend some CPU time on each I/O, processes that use their drives in turn as fio
//! does, no block layer. Its three numbers (2.62 us on one drive, 2.81 us on eight, 5.4 us of delays) come from the study's
//! own CPU cost of an I/O and from its depth-1 latency with and without a kernel.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use hoistway_blk::{Instant, Nanos, Op, Sector};
use hoistway_device::{Command, Device, Flash, Parameters, Preset, Schedule};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const FIGURE_1B: &str = include_str!("data/fig01b_device_qd_by_procs_1ssd.csv");
const INTERFERENCE: &str = include_str!("data/interference_none_rows.csv");

/// CPU time of an I/O on one drive and on eight, ns.
const CPU_ONE_NS: u64 = 2620;
const CPU_EIGHT_NS: u64 = 2810;
/// What else a kernel adds to the latency, ns.
const KERNEL_NS: u64 = 5400;

/// A process that keeps random I/O outstanding.
#[derive(Clone, Copy)]
struct App {
    depth: u32,
    op: Op,
    sectors: u32,
    /// The core that it is bound to; without one, it never waits for a core.
    core: Option<u16>,
    cpu_ns: u64,
    kernel_ns: u64,
}

#[derive(Clone, Default)]
struct Measured {
    ios: u64,
    latency_sum_ns: u64,
    /// Of some of the I/Os.
    latencies_ns: Vec<u64>,
}

impl Measured {
    fn mean_us(&self) -> f64 {
        self.latency_sum_ns as f64 / self.ios.max(1) as f64 / 1e3
    }

    fn percentile_us(&self, part: f64) -> f64 {
        let mut sorted = self.latencies_ns.clone();
        sorted.sort_unstable();
        sorted.get((sorted.len() as f64 * part) as usize).map_or(0.0, |&ns| ns as f64 / 1e3)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Submit(u32),
    Complete(u32),
    Reap(u32),
    Alarm(usize, u32),
}

struct Host<'a> {
    drives: Vec<Box<dyn Device>>,
    apps: &'a [App],
    /// For each I/O its process and when it was created.
    ios: Vec<(usize, u64)>,
    /// For each process which drive is next.
    turns: Vec<usize>,
    /// When each core has done what it was given.
    cores: [u64; 10],
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    random: Xoshiro256PlusPlus,
}

impl Host<'_> {
    fn push(&mut self, at: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    /// When the process has spent so much CPU time, and half of what the kernel adds has passed.
    fn spend(&mut self, app: &App, now: u64, cpu_ns: u64) -> u64 {
        let done = match app.core {
            Some(core) => {
                let core = &mut self.cores[usize::from(core)];
                *core = (*core).max(now) + cpu_ns;
                *core
            }
            None => now + cpu_ns,
        };
        done + app.kernel_ns / 2
    }

    fn begin(&mut self, io: u32, now: u64) {
        let app = self.apps[self.ios[io as usize].0];
        self.ios[io as usize].1 = now;
        let at = self.spend(&app, now, app.cpu_ns * 2 / 3);
        self.push(at, Event::Submit(io));
    }

    /// The hardware queue: that of the core. A process without one has a core for itself as long as there is one, and is
    /// elsewhere now and then.
    fn queue(&mut self, app: &App) -> u16 {
        match app.core {
            Some(core) => core,
            None if self.apps.len() <= 10 && self.random.next_u64() % 100 >= 5 => 9,
            None => (self.random.next_u64() % 10) as u16,
        }
    }

    fn collect(&mut self, drive: usize, schedule: &mut Schedule) {
        for completion in schedule.completions.drain(..) {
            self.push(completion.at.0, Event::Complete(completion.tag));
        }
        for (at, alarm) in schedule.alarms.drain(..) {
            self.push(at.0, Event::Alarm(drive, alarm));
        }
    }
}

/// Runs the processes on the drives, and measures after a while.
fn run(drives: Vec<Box<dyn Device>>, apps: &[App], warm_up: Nanos, duration: Nanos) -> Vec<Measured> {
    let ios = apps.iter().enumerate().flat_map(|(number, app)| (0..app.depth).map(move |_| (number, 0))).collect();
    let mut host = Host {
        drives,
        apps,
        ios,
        turns: (0..apps.len()).collect(),
        cores: [0; 10],
        events: BinaryHeap::new(),
        order: 0,
        random: Xoshiro256PlusPlus::seed_from_u64(7),
    };
    let mut measured = vec![Measured::default(); apps.len()];
    let mut schedule = Schedule::default();
    for io in 0..host.ios.len() as u32 {
        host.begin(io, 0);
    }
    while let Some(Reverse((now, _, event))) = host.events.pop() {
        if now > (warm_up + duration).0 {
            break;
        }
        match event {
            Event::Submit(io) => {
                let number = host.ios[io as usize].0;
                let app = apps[number];
                let drive = host.turns[number] % host.drives.len();
                host.turns[number] += 1;
                let places = host.drives[drive].shape().capacity_sectors / u64::from(app.sectors);
                let place = ((u128::from(host.random.next_u64()) * u128::from(places)) >> 64) as u64;
                let sector = Sector(place * u64::from(app.sectors));
                let queue = host.queue(&app);
                let command = Command { tag: io, queue, op: app.op, sector, sectors: app.sectors, fua: false };
                host.drives[drive].submit(Instant(now), command, &mut schedule).unwrap();
                host.collect(drive, &mut schedule);
            }
            Event::Alarm(drive, alarm) => {
                host.drives[drive].wake(Instant(now), alarm, &mut schedule);
                host.collect(drive, &mut schedule);
            }
            Event::Complete(io) => {
                let app = apps[host.ios[io as usize].0];
                let at = host.spend(&app, now, app.cpu_ns / 3);
                host.push(at, Event::Reap(io));
            }
            Event::Reap(io) => {
                let (number, created) = host.ios[io as usize];
                if now > warm_up.0 {
                    let of = &mut measured[number];
                    of.ios += 1;
                    of.latency_sum_ns += now - created;
                    // An eighth of deep queues is enough.
                    if apps[number].depth == 1 || io % 8 == 0 {
                        of.latencies_ns.push(now - created);
                    }
                }
                host.begin(io, now);
            }
        }
    }
    measured
}

/// A line of a table by the names of its columns.
type Row<'a> = BTreeMap<&'a str, &'a str>;

fn rows(table: &str) -> Vec<Row<'_>> {
    let mut lines = table.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines.map(|line| head.iter().copied().zip(line.split(',')).collect()).collect()
}

fn number(row: &Row<'_>, column: &str) -> f64 {
    row[column].parse().unwrap()
}

/// Errors by the name of what was compared, percent.
#[derive(Default)]
struct Errors(BTreeMap<String, Vec<f64>>);

impl Errors {
    fn compare(&mut self, what: &str, ours: f64, row: &Row<'_>, column: &str) {
        let theirs = number(row, column);
        if theirs > 0.0 {
            self.0.entry(what.to_owned()).or_default().push(((ours / theirs - 1.0) * 100.0).abs());
        }
    }

    fn median(&self, what: &str) -> f64 {
        let mut sorted = self.0[what].clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }
}

fn preset() -> Preset {
    Preset::builtin("samsung-980pro-1tb").unwrap()
}

/// What the preset says of one of its figures must be so, give or take some percent: pauses come by chance.
fn check_residual(what: &str, measured: f64, ours: f64, percent: f64) {
    let preset = preset();
    if let Some(residual) = preset.calibration().residuals.iter().find(|residual| residual.what == what) {
        assert!((residual.measured / measured - 1.0).abs() < 0.01, "{what}: measured {measured}");
        assert!(
            (ours / residual.model - 1.0).abs() * 100.0 < percent,
            "{what}: simulated {ours}, the preset says {}",
            residual.model
        );
    }
}

#[test]
fn reads_of_one_drive_are_within_ten_percent_of_figure_1b() {
    let mut errors = Errors::default();
    for row in rows(FIGURE_1B) {
        let (processes, depth) = (number(&row, "numjobs") as u16, number(&row, "iodepth") as u32);
        let without_kernel = row["spdk"] == "_spdk";
        let app = |core| App {
            depth,
            op: Op::Read,
            sectors: 8,
            core: (!without_kernel).then_some(core),
            cpu_ns: if without_kernel { 0 } else { CPU_ONE_NS },
            kernel_ns: if without_kernel { 0 } else { KERNEL_NS },
        };
        let apps: Vec<App> = (0..processes).map(app).collect();
        let measured = run(vec![preset().build(1)], &apps, Nanos::from_millis(5), Nanos::from_millis(60));
        let iops = measured.iter().map(|of| of.ios as f64).sum::<f64>() / 0.06;
        errors.compare("IOPS", iops, &row, "iops");
        errors.compare("mean", measured[0].mean_us(), &row, "lat_mean_us");
        errors.compare("p99", measured[0].percentile_us(0.99), &row, "clat_p99_us");
        if without_kernel && processes == 1 {
            check_residual(
                &format!("figure 1b without a kernel, depth {depth}, IOPS"),
                number(&row, "iops"),
                iops,
                2.0,
            );
        }
    }
    for what in ["IOPS", "mean", "p99"] {
        let near = errors.0[what].iter().filter(|error| **error <= 25.0).count();
        let (median, of) = (errors.median(what), errors.0[what].len());
        println!("figure 1b, {what}: median error {median:.1} %, {near} of {of} within 25 %");
        assert!(errors.median(what) < 10.0, "{what}: {:?}", errors.0[what]);
    }
}

#[test]
fn eight_drives_are_within_25_percent_of_the_rows_none_in_the_median() {
    let (mut errors, mut within, mut of) = (Errors::default(), 0, 0);
    // The drives differ: one reads 9 % slower, which figure 1a shows beside 11b, and pauses more often.
    let (shape, Parameters::Flash(usual)) = (preset().shape(), preset().parameters().clone()) else { unreachable!() };
    let mut slow = usual.clone();
    slow.read_mb_per_s *= 0.91;
    if let Some(pause) = &mut slow.drain_pause {
        pause.after_mb *= 0.2;
    }
    for row in rows(INTERFERENCE) {
        let (figure, background) = (row["figure"], number(&row, "background_apps") as u16);
        let (sectors, op) = match figure {
            "11a" => (8, Op::Read),
            "11b" | "12a" => (128, Op::Read),
            "11c" => (8, Op::Write),
            _ => (128, Op::Write),
        };
        let watched =
            App { depth: 1, op: Op::Read, sectors: 8, core: None, cpu_ns: CPU_EIGHT_NS, kernel_ns: KERNEL_NS };
        let is_deep = figure.starts_with("12");
        let watched = if is_deep { App { depth: 128, core: Some(0), ..watched } } else { watched };
        let mut apps = vec![watched];
        apps.extend((0..background).map(|number| {
            let core = Some((number + u16::from(is_deep)) % 10);
            App { depth: 128, op, sectors, core, ..watched }
        }));
        let drives = (0..8).map(|number| {
            let parameters = if number == 0 { &slow } else { &usual };
            Box::new(Flash::new(shape.clone(), parameters, 100 + number)) as Box<dyn Device>
        });
        // Until outstanding I/Os have piled up at the slowest drive.
        let (warm_up_ms, ms) = match (op, sectors) {
            (Op::Read, 8) => (50, 100),
            (Op::Read, _) => (2500, 1000),
            _ => (500, 2000),
        };
        let measured = run(drives.collect(), &apps, Nanos::from_millis(warm_up_ms), Nanos::from_millis(ms));
        let seconds = ms as f64 / 1e3;
        let iops = measured[0].ios as f64 / seconds;
        let others = measured[1..].iter().map(|of| of.ios as f64).sum::<f64>() / seconds;
        errors.compare("IOPS", iops, &row, "fg_iops");
        errors.compare("mean", measured[0].mean_us(), &row, "fg_lat_mean_us");
        errors.compare("p50", measured[0].percentile_us(0.5), &row, "fg_clat_p50_us");
        errors.compare("p99", measured[0].percentile_us(0.99), &row, "fg_clat_p99_us");
        errors.compare("background", others, &row, "bg_iops_total");
        println!(
            "{figure} {background:2}: IOPS {iops:.0} ({}), mean {:.0} ({}), p50 {:.0} ({}), p99 {:.0} ({}), others {others:.0} ({})",
            row["fg_iops"],
            measured[0].mean_us(),
            row["fg_lat_mean_us"],
            measured[0].percentile_us(0.5),
            row["fg_clat_p50_us"],
            measured[0].percentile_us(0.99),
            row["fg_clat_p99_us"],
            row["bg_iops_total"]
        );
        let name = format!("figure {figure}, {background} others, mean latency, us");
        check_residual(&name, number(&row, "fg_lat_mean_us"), measured[0].mean_us(), 20.0);
        let name = format!("figure {figure}, {background} others, their IOPS");
        if background > 0 {
            check_residual(&name, number(&row, "bg_iops_total"), others, 20.0);
        }
    }
    for what in ["IOPS", "mean", "p50", "p99", "background"] {
        let all = &errors.0[what];
        let near = all.iter().filter(|error| **error <= 25.0).count();
        println!(
            "eight drives, {what}: median error {:.1} %, {near} of {} within 25 %",
            errors.median(what),
            all.len()
        );
        (within, of) = (within + near, of + all.len());
        assert!(errors.median(what) < 25.0, "{what}: {all:?}");
    }
    println!("{within} of {of} cells within 25 %");
}
