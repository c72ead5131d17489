//! Output of `iostat -x`, as text and as JSON.

use serde::Deserialize;

use super::{Disk, RECORDING_HINT, Summary, Unusable};

/// A field of iostat, whose name differs between versions.
#[derive(Clone, Copy)]
enum Field {
    Reads,
    Writes,
    Discards,
    Flushes,
    /// Bytes read a second, with the column's unit in bytes.
    ReadBytes(f64),
    WriteBytes(f64),
    DiscardBytes(f64),
    ReadAwait,
    WriteAwait,
    DiscardAwait,
    /// The common latency of reads and writes, in old versions.
    Await,
    Utilisation,
}

fn field(name: &str) -> Option<Field> {
    const SECTOR: f64 = 512.0;
    const KIB: f64 = 1024.0;
    const MIB: f64 = 1_048_576.0;
    Some(match name {
        "r/s" => Field::Reads,
        "w/s" => Field::Writes,
        "d/s" => Field::Discards,
        "f/s" => Field::Flushes,
        "rsec/s" => Field::ReadBytes(SECTOR),
        "rkB/s" => Field::ReadBytes(KIB),
        "rMB/s" => Field::ReadBytes(MIB),
        "wsec/s" => Field::WriteBytes(SECTOR),
        "wkB/s" => Field::WriteBytes(KIB),
        "wMB/s" => Field::WriteBytes(MIB),
        "dsec/s" => Field::DiscardBytes(SECTOR),
        "dkB/s" => Field::DiscardBytes(KIB),
        "dMB/s" => Field::DiscardBytes(MIB),
        "r_await" => Field::ReadAwait,
        "w_await" => Field::WriteAwait,
        "d_await" => Field::DiscardAwait,
        "await" => Field::Await,
        "%util" | "util" => Field::Utilisation,
        _ => return None,
    })
}

/// Sums of a disk over all reports.
#[derive(Default)]
struct Sums {
    name: String,
    /// For reads, writes and discards: I/Os a second, bytes a second, and milliseconds of all I/Os a second.
    by_direction: [[f64; 3]; 3],
    flushes: f64,
    /// In percent.
    utilisation: Option<f64>,
    has_one_await: bool,
}

impl Sums {
    fn add(&mut self, values: impl Iterator<Item = (Field, f64)>) {
        let (mut rates, mut bytes, mut awaits) = ([0.0; 3], [0.0; 3], [0.0; 3]);
        for (field, value) in values {
            match field {
                Field::Reads => rates[0] = value,
                Field::Writes => rates[1] = value,
                Field::Discards => rates[2] = value,
                Field::Flushes => self.flushes += value,
                Field::Utilisation => *self.utilisation.get_or_insert(0.0) += value,
                Field::ReadBytes(unit) => bytes[0] = value * unit,
                Field::WriteBytes(unit) => bytes[1] = value * unit,
                Field::DiscardBytes(unit) => bytes[2] = value * unit,
                Field::ReadAwait => awaits[0] = value,
                Field::WriteAwait => awaits[1] = value,
                Field::DiscardAwait => awaits[2] = value,
                Field::Await => {
                    self.has_one_await = true;
                    awaits = awaits.map(|direction_await| if direction_await == 0.0 { value } else { direction_await })
                }
            }
        }
        for (index, direction) in self.by_direction.iter_mut().enumerate() {
            direction[0] += rates[index];
            direction[1] += bytes[index];
            direction[2] += rates[index] * awaits[index];
        }
    }

    fn disk(self, reports: f64) -> Disk {
        let [reads, writes, discards] = self.by_direction.map(|[ios, bytes, ms]| super::DirectionRates {
            per_second: ios / reports,
            bytes: if ios > 0.0 { bytes / ios } else { 0.0 },
            await_ms: if ios > 0.0 { ms / ios } else { 0.0 },
        });
        Disk {
            name: self.name,
            reads,
            writes,
            discards,
            flushes_per_second: self.flushes / reports,
            utilisation: self.utilisation.map(|percent| percent / reports / 100.0),
            has_one_await: self.has_one_await,
        }
    }
}

/// Reports, each with the values of its disks.
type Reports = Vec<Vec<(String, Vec<(Field, f64)>)>>;

fn summary(mut reports: Reports) -> Summary {
    // The first report is the mean since boot, unless -y omitted it, which the output does not show.
    let period = if reports.len() > 1 {
        reports.remove(0);
        format!("{} reports, without the first", reports.len())
    } else {
        "one report, which without -y is the mean since the machine started".to_owned()
    };
    let count = reports.len() as f64;
    let mut all: Vec<Sums> = Vec::new();
    for (name, values) in reports.into_iter().flatten() {
        let index = all.iter().position(|sums| sums.name == name).unwrap_or_else(|| {
            all.push(Sums { name, ..Sums::default() });
            all.len() - 1
        });
        all[index].add(values.into_iter());
    }
    Summary::new("iostat -x", period, all.into_iter().map(|sums| sums.disk(count)).collect())
}

pub(super) fn recognise(text: &str) -> Option<Result<Summary, Unusable>> {
    if text.trim_start().starts_with('{') {
        return text.contains("\"sysstat\"").then(|| from_json(text));
    }
    let is_header_line = |line: &str| {
        let mut words = line.split_whitespace();
        words.next().is_some_and(|word| matches!(word, "Device" | "Device:")) && words.any(|word| word.contains("/s"))
    };
    text.lines().any(is_header_line).then(|| from_text(text, is_header_line))
}

fn without_directions() -> Unusable {
    Unusable::new(
        "this is output of iostat without -x: it has no rates of reads and writes",
        "output of iostat -x -y 10 6",
    )
}

fn from_text(text: &str, is_header_line: impl Fn(&str) -> bool) -> Result<Summary, Unusable> {
    let mut reports: Reports = Vec::new();
    let mut columns: Option<Vec<Option<Field>>> = None;
    for (number, line) in (1..).zip(text.lines()) {
        if is_header_line(line) {
            let found: Vec<Option<Field>> = line.split_whitespace().skip(1).map(field).collect();
            if !found.iter().flatten().any(|field| matches!(field, Field::Reads)) {
                return Err(without_directions());
            }
            columns = Some(found);
            reports.push(Vec::new());
            continue;
        }
        let mut words = line.split_whitespace();
        let (Some(name), Some(fields)) = (words.next(), &columns) else {
            columns = None;
            continue;
        };
        let mut values = Vec::new();
        let mut parsed = 0;
        for (word, field) in words.zip(fields) {
            // Some languages write decimals with a comma.
            let value = word.replace(',', ".").parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
            let Some(value) = value else {
                let message = format!("{word:?} is not a figure of iostat");
                return Err(Unusable {
                    line: Some(number),
                    message,
                    expected: "a number that is not negative".to_owned(),
                });
            };
            values.extend(field.map(|field| (field, value)));
            parsed += 1;
        }
        if parsed < fields.len() {
            let (message, expected) = (format!("{parsed} figures"), format!("the {} of the line above", fields.len()));
            return Err(Unusable { line: Some(number), message, expected });
        }
        if let Some(report) = reports.last_mut() {
            report.push((name.to_owned(), values));
        }
    }
    Ok(summary(reports))
}

#[derive(Deserialize)]
struct Document {
    sysstat: Sysstat,
}

#[derive(Deserialize)]
struct Sysstat {
    hosts: Vec<Host>,
}

#[derive(Deserialize)]
struct Host {
    statistics: Vec<Statistics>,
}

#[derive(Deserialize)]
struct Statistics {
    #[serde(default)]
    disk: Vec<serde_json::Map<String, serde_json::Value>>,
}

fn from_json(text: &str) -> Result<Summary, Unusable> {
    let document: Document = serde_json::from_str(text).map_err(|error| Unusable {
        line: Some(error.line()),
        message: format!("this is not the JSON output of iostat: {error}"),
        expected: "output of iostat -x -o JSON".to_owned(),
    })?;
    let statistics = document.sysstat.hosts.into_iter().flat_map(|host| host.statistics);
    let mut reports: Reports = Vec::new();
    for report in statistics.filter(|report| !report.disk.is_empty()) {
        let mut disks = Vec::new();
        for values in report.disk {
            let name = values.get("disk_device").and_then(|name| name.as_str()).unwrap_or_default().to_owned();
            let known = values.iter().filter_map(|(key, value)| Some((field(key)?, value.as_f64()?.max(0.0))));
            let known: Vec<_> = known.collect();
            if !known.iter().any(|(field, _)| matches!(field, Field::Reads)) {
                return Err(without_directions());
            }
            disks.push((name, known));
        }
        reports.push(disks);
    }
    if reports.is_empty() {
        Err(Unusable::new("this JSON output of iostat has no disks", RECORDING_HINT))
    } else {
        Ok(summary(reports))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DirectionRates, recognise};

    const HEAD: &str = "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz     d/s     dkB/s   drqm/s  %drqm d_await dareq-sz     f/s f_await  aqu-sz  %util";

    fn row(name: &str, reads: f64, writes: f64) -> String {
        format!(
            "{name} {reads:.2} {:.2} 0.00 0.00 5.00 8.00 {writes:.2} {:.2} 3.37 22.37 1.50 64.00 0 0 0 0 0 0 2.00 0.50 0.02 0.15\n",
            reads * 8.0,
            writes * 64.0
        )
    }

    #[test]
    fn means_leave_out_the_first_of_several_reports() {
        let report = |reads| format!("\navg-cpu: %user\n 6.84\n\n{HEAD}\n{}", row("sda", reads, 10.0));
        let summary = recognise(&(report(999.0) + &report(10.0) + &report(30.0))).unwrap().unwrap();
        assert_eq!(summary.period, "2 reports, without the first");
        let [disk] = &summary.disks[..] else { panic!("{summary:?}") };
        assert_eq!(disk.reads, DirectionRates { per_second: 20.0, bytes: 8192.0, await_ms: 5.0 });
        assert_eq!(disk.writes, DirectionRates { per_second: 10.0, bytes: 65_536.0, await_ms: 1.5 });
        assert_eq!(disk.flushes_per_second, 2.0);
        let alone = recognise(&report(40.0).replace('.', ",")).unwrap().unwrap();
        assert_eq!(alone.disks[0].reads.per_second, 40.0);
        assert!(alone.period.starts_with("one report"));
    }

    #[test]
    fn figures_with_decimal_commas_are_no_devices_of_a_recording() {
        // `3,12 0,00` begins like the device and the CPU of blkparse's lines.
        for first in ["3,12", "8,0", "253,00"] {
            let text = format!("\navg-cpu: %user\n {first} 0,00 1,88\n\n{HEAD}\n{}", row("sda", 40.0, 10.0));
            let text = text.replace('.', ",");
            let input =
                crate::block::Input::new("iostat.txt", Box::new(std::io::Cursor::new(text.clone().into_bytes())))
                    .unwrap();
            let found = crate::block::Recording::read_if_any(input);
            assert!(matches!(found, Ok(Err(_))), "{text}");
            assert_eq!(recognise(&text).unwrap().unwrap().disks[0].reads.per_second, 40.0);
        }
    }

    #[test]
    fn old_versions_and_json_have_the_same_fields_by_other_names() {
        let old = "Device:  rrqm/s wrqm/s r/s w/s rMB/s wMB/s avgrq-sz avgqu-sz await svctm %util\n\
                   sda 0.0 0.0 100.0 50.0 1.0 2.0 40.0 1.0 7.5 1.0 90.0\n";
        let disk = recognise(old).unwrap().unwrap().disks.remove(0);
        assert_eq!(disk.reads, DirectionRates { per_second: 100.0, bytes: 10_485.76, await_ms: 7.5 });
        let json = r#"{"sysstat": {"hosts": [{"statistics": [{"disk": [
            {"disk_device": "sda", "r/s": 100.0, "rkB/s": 1024.0, "w/s": 0.0, "r_await": 7.5}]}]}]}}"#;
        assert_eq!(recognise(json).unwrap().unwrap().disks[0].reads, disk.reads);
    }

    #[test]
    fn iostat_errors_are_refused_with_their_line() {
        let cut = format!("{HEAD}\nsda 1.0 2.0\n");
        assert_eq!(
            recognise(&cut).unwrap().unwrap_err().to_string(),
            "line 2: 2 figures (expected the 22 of the line above)"
        );
        let odd = format!("{HEAD}\n{}", row("sda", 1.0, 1.0).replacen("5.00", "-5", 1));
        assert!(recognise(&odd).unwrap().unwrap_err().to_string().starts_with("line 2: \"-5\" is not a figure"));
        let plain = "Device             tps    kB_read/s    kB_wrtn/s\nsda 1 2 3\n";
        assert!(recognise(plain).unwrap().unwrap_err().to_string().contains("without -x"));
        assert!(recognise("{\"sysstat\": {}}").unwrap().unwrap_err().to_string().starts_with("line 1: "));
    }
}
