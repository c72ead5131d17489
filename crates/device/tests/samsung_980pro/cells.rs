//! The published rows with several processes, and what the drives make of the same load.

use std::collections::BTreeMap;

use hoistway_blk::bio::Op;
use hoistway_blk::ground::Nanos;
use hoistway_device::{Device, Flash, FlashParameters, Parameters, Preset};

use super::host::{App, CORES, CPU_EIGHT_NS, CPU_ONE_KYBER_NS, KERNEL_NS, run};

const INTERFERENCE: &str = include_str!("../data/interference_none_rows.csv");
const ONE_DRIVE: &str = include_str!("../data/single_drive_unthrottled_rows.csv");

/// Numbers of writers in the rows of figures 11c, 11d and 12b to which the write side was fitted.
const FITTED_WRITERS: [u16; 3] = [1, 4, 16];

/// What became of a published figure.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Use {
    /// There are no writes: the drive was fitted to these reads.
    Reads,
    /// The write side was fitted to it.
    Fitted,
    /// Held back: predicted.
    Predicted,
}

/// A published figure beside ours.
pub struct Cell {
    pub figure: String,
    pub others: u16,
    pub what: &'static str,
    pub ours: f64,
    pub published: f64,
    pub used: Use,
}

impl Cell {
    pub fn error_percent(&self) -> f64 {
        ((self.ours / self.published - 1.0) * 100.0).abs()
    }

    pub fn is_near(&self) -> bool {
        self.error_percent() <= 25.0
    }

    /// How many times one is the other, as a logarithm. More than 3.3 times is as bad as that.
    fn distance(&self) -> f64 {
        if self.ours > 0.0 { (self.ours / self.published).ln().abs().min(1.2) } else { 1.2 }
    }
}

/// The mean distance of these cells.
pub fn distance<'a>(cells: impl Iterator<Item = &'a Cell>) -> f64 {
    let all: Vec<f64> = cells.map(Cell::distance).collect();
    all.iter().sum::<f64>() / all.len() as f64
}

/// A line of a table by the names of its columns.
pub type Row<'a> = BTreeMap<&'a str, &'a str>;

pub fn rows(table: &str) -> Vec<Row<'_>> {
    let mut lines = table.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines.map(|line| head.iter().copied().zip(line.split(',')).collect()).collect()
}

pub fn number(row: &Row<'_>, column: &str) -> f64 {
    row[column].parse().unwrap()
}

/// The drives of the study: seven of them alike, and one that reads 9 % slower, which figure 1a shows beside 11b, and collects
/// slower (fit).
#[derive(Clone)]
pub struct Drives {
    pub usual: FlashParameters,
    /// How many times as long a step of collection takes on the one drive.
    pub slow_steps: f64,
}

impl Drives {
    pub fn of_preset(slow_steps: f64) -> Drives {
        let preset = Preset::builtin("samsung-980pro-1tb").unwrap();
        let Parameters::Flash(usual) = preset.parameters().clone() else { unreachable!() };
        Drives { usual: *usual, slow_steps }
    }

    fn slow(&self) -> FlashParameters {
        let mut slow = self.usual.clone();
        slow.read_mb_per_s *= 0.91;
        slow.collection.as_mut().unwrap().step_us *= self.slow_steps;
        slow
    }
}

fn flash(parameters: &FlashParameters, seed: u64) -> Box<dyn Device> {
    let shape = Preset::builtin("samsung-980pro-1tb").unwrap().shape();
    Box::new(Flash::new(shape, parameters, seed))
}

/// A reader of depth 1, and one of depth 128, beside a writer on one drive. `part` of the usual time is measured.
pub fn one_drive(drives: &Drives, seed: u64, part: f64, is_wanted: impl Fn(Use) -> bool) -> Vec<Cell> {
    let mut cells = Vec::new();
    let rows: Vec<Row<'_>> = rows(ONE_DRIVE).into_iter().filter(|row| row["workload"] == "separate").collect();
    for pair in rows.chunks(2) {
        let (depth, used) = if pair[0]["figure"] == "table3-4" { (1, Use::Fitted) } else { (128, Use::Predicted) };
        if !is_wanted(used) {
            continue;
        }
        let reader =
            App { depth, op: Op::Read, sectors: 8, core: Some(0), cpu_ns: CPU_ONE_KYBER_NS, kernel_ns: KERNEL_NS };
        let apps = [reader, App { depth: 128, op: Op::Write, core: Some(1), ..reader }];
        let seconds = 2.0 * part;
        let times = [1.0, seconds].map(|seconds| Nanos::from_micros((seconds * 1e6) as u64));
        let measured = run(vec![flash(&drives.usual, 77 + seed)], &apps, times, 7 + 1000 * seed);
        for (row, of) in pair.iter().zip(&measured) {
            let name = |read, write| if row["dir"] == "read" { read } else { write };
            let figures = [
                (name("IOPS", "others"), of.ios as f64 / seconds, "iops_mean"),
                (name("mean", "others' mean"), of.mean_us(), "lat_mean_us"),
                (name("p99", "others' p99"), of.percentile_us(0.99), "clat_p99_us_mean"),
            ];
            let figure = format!("one drive, reader at depth {depth}");
            cells.extend(figures.map(|(what, ours, column)| {
                let published = number(row, column);
                Cell { figure: figure.clone(), others: 1, what, ours, published, used }
            }));
        }
    }
    cells
}

/// Figures 11 and 12: eight drives, a reader beside others. `part` of the usual time is measured.
pub fn eight_drives(drives: &Drives, seed: u64, part: f64, is_wanted: impl Fn(Use) -> bool) -> Vec<Cell> {
    let mut cells = Vec::new();
    let slow = drives.slow();
    for row in rows(INTERFERENCE) {
        let (figure, others) = (row["figure"], number(&row, "background_apps") as u16);
        let (sectors, op) = match figure {
            "11a" => (8, Op::Read),
            "11b" | "12a" => (128, Op::Read),
            "11c" => (8, Op::Write),
            _ => (128, Op::Write),
        };
        let used = match op {
            Op::Write if FITTED_WRITERS.contains(&others) => Use::Fitted,
            Op::Write if others > 0 => Use::Predicted,
            _ => Use::Reads,
        };
        if !is_wanted(used) {
            continue;
        }
        let watched =
            App { depth: 1, op: Op::Read, sectors: 8, core: None, cpu_ns: CPU_EIGHT_NS, kernel_ns: KERNEL_NS };
        let is_deep = figure.starts_with("12");
        let watched = if is_deep { App { depth: 128, core: Some(0), ..watched } } else { watched };
        let mut apps = vec![watched];
        apps.extend((0..others).map(|number| {
            let core = Some((number + u16::from(is_deep)) % CORES as u16);
            App { depth: 128, op, sectors, core, ..watched }
        }));
        let all =
            (0..8).map(|number| flash(if number == 0 { &slow } else { &drives.usual }, 100 * (seed + 1) + number));
        // Until outstanding I/Os have piled up at the slowest drive, and long enough for processes to meet on cores.
        let (warm_up_ms, ms) = match (op, sectors) {
            (Op::Read, 8) => (50, 100),
            (Op::Read, _) if u64::from(others) < CORES => (2500, 1000),
            (Op::Read, _) => (2500, 6000),
            (_, 8) => (500, 2000),
            _ => (1000, 5000),
        };
        let seconds = f64::from(ms) / 1e3 * part;
        let times = [Nanos::from_millis(warm_up_ms), Nanos::from_micros((seconds * 1e6) as u64)];
        let measured = run(all.collect(), &apps, times, 7 + 1000 * seed);
        let rate = measured[1..].iter().map(|of| of.ios as f64).sum::<f64>() / seconds;
        let figures = [
            ("IOPS", measured[0].ios as f64 / seconds, "fg_iops"),
            ("mean", measured[0].mean_us(), "fg_lat_mean_us"),
            ("p50", measured[0].percentile_us(0.5), "fg_clat_p50_us"),
            ("p99", measured[0].percentile_us(0.99), "fg_clat_p99_us"),
            ("others", rate, "bg_iops_total"),
        ];
        for (what, ours, column) in figures {
            let published = number(&row, column);
            if published > 0.0 {
                cells.push(Cell { figure: format!("figure {figure}"), others, what, ours, published, used });
            }
        }
    }
    cells
}

/// Prints the cells, a line for each row.
pub fn print(cells: &[Cell]) {
    for row in cells.chunk_by(|one, other| (&one.figure, one.others) == (&other.figure, other.others)) {
        let figures = row.iter().map(|cell| format!("{} {:.0} ({})", cell.what, cell.ours, cell.published));
        let figures: Vec<String> = figures.collect();
        println!("{} {:2} {:?}: {}", row[0].figure, row[0].others, row[0].used, figures.join(", "));
    }
}
