//! Output of `sar -d` and `sadf -d -- -d`: one size, one latency and one rate for all I/Os of a disk, with the bytes of each direction.

use super::{DirectionRates, Disk, Summary, Unusable};

/// A column after the disk's name.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Column {
    PerSecond,
    /// Bytes of a direction a second, with the column's unit in bytes.
    Bytes(usize, f64),
    Await,
    Utilisation,
    Other,
}

fn column(name: &str) -> Column {
    const SECTOR: f64 = 512.0;
    const KIB: f64 = 1024.0;
    match name {
        "tps" => Column::PerSecond,
        "rd_sec/s" => Column::Bytes(0, SECTOR),
        "wr_sec/s" => Column::Bytes(1, SECTOR),
        "rkB/s" => Column::Bytes(0, KIB),
        "wkB/s" => Column::Bytes(1, KIB),
        "dkB/s" => Column::Bytes(2, KIB),
        "await" => Column::Await,
        "%util" => Column::Utilisation,
        _ => Column::Other,
    }
}

/// Sums of a disk over all its lines.
#[derive(Default)]
struct Sums {
    name: String,
    lines: f64,
    ios: f64,
    bytes: [f64; 3],
    /// Milliseconds of all I/Os.
    waited_ms: f64,
    /// In percent.
    utilisation: f64,
}

impl Sums {
    /// Reads, writes and discards have one size: no column tells them apart but by their bytes.
    fn disk(self) -> Disk {
        let all: f64 = self.bytes.iter().sum();
        let [reads, writes, discards] = self.bytes.map(|bytes| DirectionRates {
            per_second: if all > 0.0 { self.ios * bytes / all / self.lines } else { 0.0 },
            bytes: if self.ios > 0.0 && bytes > 0.0 { all / self.ios } else { 0.0 },
            await_ms: if self.ios > 0.0 { self.waited_ms / self.ios } else { 0.0 },
        });
        let utilisation = Some(self.utilisation / self.lines / 100.0);
        Disk { name: self.name, reads, writes, discards, flushes_per_second: 0.0, utilisation, has_one_await: true }
    }
}

/// The fields of a line, which sadf separates by semicolons.
fn fields(line: &str) -> Vec<&str> {
    if line.contains(';') {
        line.trim_start_matches("# ").split(';').map(str::trim).collect()
    } else {
        line.split_whitespace().collect()
    }
}

fn is_header(line: &str) -> bool {
    let fields = fields(line);
    fields.contains(&"DEV") && fields.contains(&"tps")
}

pub(super) fn recognise(text: &str) -> Option<Result<Summary, Unusable>> {
    text.lines().any(is_header).then(|| read(text))
}

fn read(text: &str) -> Result<Summary, Unusable> {
    // Where the disk's name stands, and the columns after it.
    let mut layout: Option<(usize, Vec<Column>)> = None;
    let mut disks: Vec<Sums> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line_error = |message: String, expected: String| Unusable { line: Some(number), message, expected };
        let fields = fields(line);
        if let Some(at) = fields.iter().position(|field| *field == "DEV") {
            layout = Some((at, fields[at + 1..].iter().map(|name| column(name)).collect()));
            continue;
        }
        let Some((at, columns)) = &layout else { continue };
        // The averages repeat what the lines above say.
        if fields.is_empty() || fields[0] == "Average:" || fields.contains(&"LINUX-RESTART") {
            continue;
        }
        if fields.len() != at + 1 + columns.len() {
            let expected = format!("the {} of the header", at + 1 + columns.len());
            return Err(line_error(format!("{} fields", fields.len()), expected));
        }
        let (mut ios, mut await_ms) = (0.0, 0.0);
        let name = disk_name(fields[*at]);
        let index = disks.iter().position(|sums| sums.name == name).unwrap_or_else(|| {
            disks.push(Sums { name, ..Sums::default() });
            disks.len() - 1
        });
        let sums = &mut disks[index];
        for (column, text) in columns.iter().zip(&fields[at + 1..]) {
            // Some languages write decimals with a comma.
            let value = text.replace(',', ".").parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
            let Some(value) = value else {
                return Err(line_error(
                    format!("{text:?} is not a figure of sar"),
                    "a number that is not negative".to_owned(),
                ));
            };
            match column {
                Column::PerSecond => ios = value,
                Column::Bytes(direction, unit) => sums.bytes[*direction] += value * unit,
                Column::Await => await_ms = value,
                Column::Utilisation => sums.utilisation += value,
                Column::Other => {}
            }
        }
        sums.lines += 1.0;
        sums.ios += ios;
        sums.waited_ms += ios * await_ms;
    }
    let lines = disks.iter().map(|sums| sums.lines).fold(0.0, f64::max);
    if lines == 0.0 {
        return Err(Unusable::new("this output of sar has no lines of disks", "output of sar -dp 10 6"));
    }
    let period = format!("{lines} reports; reads and writes have one size and one latency in it");
    Ok(Summary::new("sar -d", period, disks.into_iter().map(Sums::disk).collect()))
}

/// Without `-p` a disk is `dev8-16`, which is sdb.
fn disk_name(name: &str) -> String {
    let minor = name.strip_prefix("dev8-").and_then(|minor| minor.parse::<u8>().ok());
    match minor {
        Some(minor) if minor % 16 == 0 => format!("sd{}", char::from(b'a' + minor / 16)),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::recognise;

    const TEXT: &str = "Linux 6.12.48 (db1) \t11/28/2026 \t_x86_64_\t(16 CPU)\n\
        \n\
        12:00:01 AM       DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util\n\
        12:10:01 AM    dev8-0    100.00    800.00   2400.00      0.00     32.00      1.00     10.00     80.00\n\
        12:10:01 AM   nvme0n1   5000.00  20000.00      0.00      0.00      4.00      0.50      0.10     12.00\n\
        12:20:01 AM    dev8-0    200.00   1600.00   4800.00      0.00     32.00      4.00     20.00    100.00\n\
        Average:          DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util\n\
        Average:       dev8-0    150.00   1200.00   3600.00      0.00     32.00      2.50     16.67     90.00\n";

    #[test]
    fn reports_are_means_and_bytes_tell_reads_and_writes_apart() {
        for text in [TEXT.to_owned(), TEXT.replace('.', ",")] {
            let summary = recognise(&text).unwrap().unwrap();
            let disk = &summary.disks[0];
            assert_eq!((&*disk.name, disk.utilisation), ("sda", Some(0.9)));
            assert_eq!((disk.reads.per_second, disk.writes.per_second), (37.5, 112.5));
            assert_eq!((disk.reads.bytes, disk.writes.bytes), (32_768.0, 32_768.0));
            assert!((disk.reads.await_ms - 50.0 / 3.0).abs() < 1e-9);
        }
        let sadf = "# hostname;interval;timestamp;DEV;tps;rd_sec/s;wr_sec/s;avgrq-sz;avgqu-sz;await;svctm;%util\n\
                    db1;600;2026-11-28 00:10:01 UTC;sdb;10.0;160.0;0.0;16.0;0.1;5.0;1.0;1.0\n";
        let disk = recognise(sadf).unwrap().unwrap().disks.remove(0);
        assert_eq!((&*disk.name, disk.reads.per_second, disk.reads.bytes), ("sdb", 10.0, 8192.0));
    }

    #[test]
    fn lines_that_are_cut_off_or_odd_are_refused_with_their_number() {
        let refused = |text: &str| recognise(text).unwrap().unwrap_err().to_string();
        let cut = TEXT.replace("    100.00\n", "\n");
        assert_eq!(refused(&cut), "line 6: 10 fields (expected the 11 of the header)");
        let odd = TEXT.replace(" 5000.00", " x");
        assert!(refused(&odd).starts_with("line 5: \"x\" is not a figure of sar"));
        assert!(refused("00:00:01 DEV tps rkB/s\n").contains("no lines of disks"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(12:00:01 |AM |DEV |tps |rkB/s |sda |1[.,]5 |;|\n){0,40}") {
            let _ = recognise(&text);
        }
    }
}
