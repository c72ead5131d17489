//! Rows of measurements: a load, and its figures without a scheduler. Reads them from a table.

use hoistway_blk::schedulers::NONE;
use hoistway_load::{Direction, Issue, Load, Offsets, Pattern, Process, Random};

/// An error in measurements.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct RowsError {
    /// The file name as given by the caller.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// The problem, and what was expected.
    pub problem: String,
}

/// A row of measurements.
#[derive(Clone, PartialEq, Debug)]
pub struct MeasurementRow {
    /// Its line in the file.
    pub line: u64,
    /// Whether offsets are random.
    pub is_random: bool,
    /// Share of reads, percent.
    pub reads_percent: u8,
    /// Size of an I/O, bytes.
    pub block_bytes: u32,
    /// I/Os that each process keeps in flight.
    pub depth: u32,
    /// Processes.
    pub jobs: u32,
    /// The measured figures, at least one.
    pub figures: Vec<MeasuredFigure>,
}

/// A figure of a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MeasuredFigure {
    /// The kind of figure.
    pub what: FigureKind,
    /// Its value: I/Os per second, or us.
    pub value: f64,
}

/// The kinds of figures, each of reads and writes together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum FigureKind {
    /// I/Os per second of all processes together.
    Iops,
    /// Mean of the total latency, us.
    Mean,
    /// A percentile of the total latency, us.
    Percentile(f64),
}

impl std::fmt::Display for FigureKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FigureKind::Iops => write!(f, "IOPS"),
            FigureKind::Mean => write!(f, "mean latency, us"),
            FigureKind::Percentile(percent) => write!(f, "p{percent} of latency, us"),
        }
    }
}

/// Columns of figures.
const FIGURES: [(&str, FigureKind); 5] = [
    ("iops", FigureKind::Iops),
    ("lat_mean_us", FigureKind::Mean),
    ("lat_p50_us", FigureKind::Percentile(50.0)),
    ("lat_p99_us", FigureKind::Percentile(99.0)),
    ("lat_p999_us", FigureKind::Percentile(99.9)),
];
/// Columns of loads, and whether they are required.
const LOADS: [(&str, bool); 6] =
    [("rw", true), ("bs", true), ("iodepth", true), ("numjobs", false), ("rwmixread", false), ("scheduler", false)];
const DIRECTIONS: [(&str, bool, Option<u8>); 7] = [
    ("randread", true, Some(100)),
    ("randwrite", true, Some(0)),
    ("randrw", true, None),
    ("read", false, Some(100)),
    ("write", false, Some(0)),
    ("rw", false, None),
    ("readwrite", false, None),
];
const MIX_DEFAULT: u8 = 50;
const BLOCK_MAX: u64 = 64 << 20;
const DEPTH_MAX: u32 = 4096;
const JOBS_MAX: u32 = 1024;

/// Reads a table: a header line, then one row per line; lines that begin with `#` are comments. `file_name` is only used in
/// errors.
///
/// # Errors
/// The first error.
pub fn from_csv(text: &str, file_name: &str) -> Result<Vec<MeasurementRow>, RowsError> {
    let error_at = |line: u64, problem: String| RowsError { file: file_name.to_owned(), line, problem };
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).from_reader(text.as_bytes());
    let csv_error = |error: &csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        error_at(
            line,
            match error.kind() {
                csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                    format!("has {len} values; expected {expected_len}, one for each column")
                }
                _ => error.to_string(),
            },
        )
    };
    let columns = reader.headers().map_err(|error| csv_error(&error))?.clone();
    let known = || LOADS.iter().map(|(name, _)| *name).chain(FIGURES.iter().map(|(name, _)| *name));
    if let Some(name) = columns.iter().find(|name| !known().any(|known| known == *name)) {
        let all: Vec<&str> = known().collect();
        return Err(error_at(1, format!("unknown column `{name}`; expected some of {}", all.join(", "))));
    }
    if let Some(name) = columns.iter().enumerate().find(|(index, name)| columns.iter().take(*index).any(|n| n == *name))
    {
        return Err(error_at(1, format!("the column `{}` occurs twice", name.1)));
    }
    if let Some((name, _)) =
        LOADS.iter().find(|(name, is_required)| *is_required && !columns.iter().any(|column| column == *name))
    {
        return Err(error_at(
            1,
            format!("the column `{name}` is missing; expected rw, bs, iodepth and a figure such as iops"),
        ));
    }
    if !FIGURES.iter().any(|(name, _)| columns.iter().any(|column| column == *name)) {
        let figures: Vec<&str> = FIGURES.iter().map(|(name, _)| *name).collect();
        return Err(error_at(1, format!("no column has a figure; expected at least one of {}", figures.join(", "))));
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| csv_error(&error))?;
        let line = record.position().map_or(1, |position| line_of_row(text, position));
        let value = |name: &str| {
            let value = columns.iter().position(|column| column == name).and_then(|index| record.get(index));
            value.filter(|value| !value.is_empty())
        };
        rows.push(row(line, value).map_err(|problem| error_at(line, problem))?);
    }
    if rows.is_empty() {
        return Err(error_at(1, "has no rows; expected at least one below the header".to_owned()));
    }
    Ok(rows)
}

/// The line of a row. The CSV reader's position may be that of comments and empty lines before it.
fn line_of_row(text: &str, position: &csv::Position) -> u64 {
    let rest = text.get(position.byte() as usize..).unwrap_or("");
    let skipped = rest.lines().take_while(|line| line.trim().is_empty() || line.starts_with('#')).count();
    position.line() + skipped as u64
}

/// Creates a row from its values by column name.
pub(super) fn row<'a>(line: u64, value: impl Fn(&str) -> Option<&'a str>) -> Result<MeasurementRow, String> {
    let required = |name: &str| value(name).ok_or_else(|| format!("`{name}` is missing"));
    if let Some(scheduler) = value("scheduler").filter(|name| *name != NONE.name) {
        return Err(format!(
            "`scheduler` is {scheduler}; expected none: a device is fitted to runs without a scheduler"
        ));
    }
    let rw = required("rw")?;
    let Some((_, is_random, reads)) = DIRECTIONS.iter().find(|(name, ..)| *name == rw) else {
        let all: Vec<&str> = DIRECTIONS.iter().map(|(name, ..)| *name).collect();
        return Err(format!("`rw` is {rw}; expected one of {}", all.join(", ")));
    };
    let reads_percent = match (reads, value("rwmixread")) {
        (Some(reads), None) => *reads,
        (Some(reads), Some(text)) if text == reads.to_string() => *reads,
        (Some(_), Some(text)) => {
            return Err(format!("`rwmixread` is {text}, but `rw` is {rw}; expected rwmixread only with randrw and rw"));
        }
        (None, None) => MIX_DEFAULT,
        (None, Some(text)) => number(text, "rwmixread", 1, 99)? as u8,
    };
    let bs = required("bs")?;
    let block = bytes(bs).filter(|bytes| (512..=BLOCK_MAX).contains(bytes) && bytes.is_multiple_of(512));
    let block_bytes = block
        .ok_or_else(|| format!("`bs` is {bs}; expected a multiple of 512 bytes up to 64m, such as 4096 or 4k"))?
        as u32;
    let mut figures = Vec::new();
    for (name, what) in FIGURES {
        let Some(text) = value(name) else { continue };
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
        let value = number.ok_or_else(|| format!("`{name}` is {text}; expected a number above 0"))?;
        figures.push(MeasuredFigure { what, value });
    }
    if figures.is_empty() {
        return Err("has no figure; expected at least one, such as iops".to_owned());
    }
    let depth = number(required("iodepth")?, "iodepth", 1, DEPTH_MAX)?;
    let jobs = value("numjobs").map_or(Ok(1), |text| number(text, "numjobs", 1, JOBS_MAX))?;
    let row = MeasurementRow { line, is_random: *is_random, reads_percent, block_bytes, depth, jobs, figures };
    row.check_by_littles_law()?;
    row.check_percentiles()?;
    Ok(row)
}

/// Whether this value of `rw` mixes reads and writes.
pub(super) fn mixes(rw: &str) -> bool {
    DIRECTIONS.iter().any(|(name, _, reads)| *name == rw && reads.is_none())
}

fn number(text: &str, name: &str, min: u32, max: u32) -> Result<u32, String> {
    let number = text.parse::<u32>().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| format!("`{name}` is {text}; expected a whole number from {min} to {max}"))
}

/// Parses bytes with fio's suffixes.
fn bytes(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &lower[digits.len()..] {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

impl MeasurementRow {
    /// I/Os in flight in all processes.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.depth * self.jobs
    }

    /// A description of the load, for messages.
    #[must_use]
    pub fn load_text(&self) -> String {
        let order = if self.is_random { "random" } else { "sequential" };
        let mix = match self.reads_percent {
            100 => "reads".to_owned(),
            0 => "writes".to_owned(),
            percent => format!("{percent} % reads"),
        };
        format!("{order} {mix} of {} bytes, {} x {} outstanding", self.block_bytes, self.jobs, self.depth)
    }

    /// Detects wrong units: by Little's law, the figures cannot imply more I/Os in flight than the load keeps.
    fn check_by_littles_law(&self) -> Result<(), String> {
        let value =
            |kind: FigureKind| self.figures.iter().find(|figure| figure.what == kind).map(|figure| figure.value);
        let (Some(iops), Some(mean_us)) = (value(FigureKind::Iops), value(FigureKind::Mean)) else { return Ok(()) };
        let in_flight = iops * mean_us / 1e6;
        if in_flight > 1.25 * f64::from(self.outstanding()) {
            return Err(format!(
                "{iops} I/Os per second of {mean_us} us each would be {in_flight:.1} in flight, but iodepth x numjobs is {}; \
                 expected iops of all processes together, and latencies in us",
                self.outstanding()
            ));
        }
        Ok(())
    }

    /// Detects mixed-up columns: a percentile is at least as large as lower ones.
    fn check_percentiles(&self) -> Result<(), String> {
        let percentiles = self.figures.iter().filter(|figure| matches!(figure.what, FigureKind::Percentile(_)));
        let percentiles: Vec<&MeasuredFigure> = percentiles.collect();
        match percentiles.windows(2).find(|pair| pair[0].value > pair[1].value) {
            Some([lower, higher]) => Err(format!(
                "{} is {}, but {} is {}; expected at least as much",
                lower.what, lower.value, higher.what, higher.value
            )),
            _ => Ok(()),
        }
    }

    /// The load of the row; its processes run until the caller stops them.
    pub(super) fn load(&self) -> Load {
        let direction = match self.reads_percent {
            100 => Direction::Read,
            0 => Direction::Write,
            _ => Direction::Mixed,
        };
        let mut pattern = Pattern { read_percent: self.reads_percent, ..Pattern::new(direction, self.block_bytes) };
        if self.is_random {
            pattern.offsets = Offsets::Random(Random { map: false, ..Random::default() });
        }
        let mut load = Load::new();
        let file = load.file("device");
        let mut process = Process::new("row", file, pattern);
        process.issue = Issue::asynchronous(self.depth);
        load.add_clones(process, self.jobs);
        load
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: &str = "rw,bs,iodepth,numjobs,rwmixread,iops,lat_mean_us,lat_p99_us\n\
                         # a comment\n\
                         randread,4k,1,,100,12000,82.1,99\n\
                         randrw,65536,32,4,70,30000,4000,\n";

    #[test]
    fn a_table_gives_a_row_for_each_line_with_the_figures_that_are_there() {
        let rows = from_csv(RIGHT, "m.csv").unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (rows[0].line, rows[0].block_bytes, rows[0].outstanding(), rows[0].reads_percent),
            (3, 4096, 1, 100)
        );
        assert_eq!(rows[0].figures.len(), 3);
        assert_eq!((rows[1].jobs, rows[1].depth, rows[1].reads_percent, rows[1].figures.len()), (4, 32, 70, 2));
        assert_eq!(rows[1].load_text(), "random 70 % reads of 65536 bytes, 4 x 32 outstanding");
        assert!(rows.iter().all(|row| row.load().check().is_ok()));
    }

    #[test]
    fn table_errors_are_reported_with_their_line() {
        let cases = [
            ("", "m.csv:1: the column `rw` is missing"),
            ("rw,bs,iodepth,iops", "m.csv:1: has no rows"),
            ("rw,bs,iops\nread,4k,1", "m.csv:1: the column `iodepth` is missing"),
            ("rw,bs,iodepth\nread,4k,1", "m.csv:1: no column has a figure; expected at least one of iops"),
            ("rw,bs,iodepth,speed\nread,4k,1,1", "m.csv:1: unknown column `speed`; expected some of rw, bs"),
            ("rw,bs,iodepth,iops,iops\nread,4k,1,1,1", "m.csv:1: the column `iops` occurs twice"),
            ("rw,bs,iodepth,iops\nrandreed,4k,1,1", "m.csv:2: `rw` is randreed; expected one of randread"),
            ("rw,bs,iodepth,iops\nread,4097,1,1", "m.csv:2: `bs` is 4097; expected a multiple of 512"),
            ("rw,bs,iodepth,iops\nread,4k,0,1", "m.csv:2: `iodepth` is 0; expected a whole number from 1 to 4096"),
            ("rw,bs,iodepth,iops\nread,4k,1,-3", "m.csv:2: `iops` is -3; expected a number above 0"),
            ("rw,bs,iodepth,iops\nread,4k,1,nan", "m.csv:2: `iops` is nan; expected a number above 0"),
            ("rw,bs,iodepth,iops\n\n# a comment\nread,4k,1,-3", "m.csv:4: `iops` is -3"),
            ("rw,bs,iodepth,rwmixread,iops\nread,4k,1,30,9", "m.csv:2: `rwmixread` is 30, but `rw` is read; expected"),
            (
                "rw,bs,iodepth,lat_p50_us,lat_p999_us\nread,4k,1,90,80",
                "m.csv:2: p50 of latency, us is 90, but p99.9 of latency, us is 80; expected at least as much",
            ),
            ("rw,bs,iodepth,iops\nread,4k,1,", "m.csv:2: has no figure"),
            ("rw,bs,iodepth,iops\nread,4k,1", "m.csv:2: has 3 values; expected 4"),
            ("rw,bs,iodepth,scheduler,iops\nread,4k,1,bfq,9", "m.csv:2: `scheduler` is bfq; expected none"),
            (
                "rw,bs,iodepth,iops,lat_mean_us\nread,4k,1,1000,20000",
                "m.csv:2: 1000 I/Os per second of 20000 us each would be 20.0",
            ),
        ];
        for (text, expected) in cases {
            let error = from_csv(text, "m.csv").unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}\nexpected: {expected}");
        }
    }
}
