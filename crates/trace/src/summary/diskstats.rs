//! Two snapshots of `/proc/diskstats`, each preceded by a line with the time in seconds.

use super::{DirectionRates, Disk, Summary, Unusable};

const EXPECTED: &str = "two snapshots, each preceded by its time: (date +%s.%N; cat /proc/diskstats; sleep 60; date +%s.%N; cat \
                        /proc/diskstats)";

/// The counters of a disk: for reads, writes and discards the I/Os, sectors and milliseconds; and the number of
/// flushes.
struct Counters {
    name: String,
    by_direction: [[u64; 3]; 3],
    flushes: u64,
    /// Time with I/O in flight.
    busy_ms: u64,
}

/// Parses `MAJOR MINOR NAME` and 11, 15 or 17 counters.
fn counters(line: &str) -> Option<Counters> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if !matches!(words.len(), 14 | 18 | 20) {
        return None;
    }
    let parse = |index: usize| words.get(index).map_or(Some(0), |word| word.parse::<u64>().ok());
    parse(0).and(parse(1))?;
    let all: Vec<u64> = (3..20).map(parse).collect::<Option<_>>()?;
    let direction = |first: usize| [all[first], all[first + 2], all[first + 3]];
    Some(Counters {
        name: words[2].to_owned(),
        by_direction: [direction(0), direction(4), direction(11)],
        flushes: all[15],
        busy_ms: all[9],
    })
}

pub(super) fn recognise(text: &str) -> Option<Result<Summary, Unusable>> {
    let has_counters =
        text.lines().take(50).filter(|line| !line.trim().is_empty()).take(3).any(|line| counters(line).is_some());
    has_counters.then(|| read(text))
}

fn read(text: &str) -> Result<Summary, Unusable> {
    let mut snapshots: Vec<(f64, Vec<Counters>)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let line_error =
            |message: &str| Unusable { line: Some(number), message: message.to_owned(), expected: EXPECTED.to_owned() };
        if let Some(seconds) = line.trim().parse::<f64>().ok().filter(|seconds| seconds.is_finite()) {
            snapshots.push((seconds, Vec::new()));
            continue;
        }
        let Some(disk) = counters(line) else { return Err(line_error("this is not a line of /proc/diskstats")) };
        let Some((_, disks)) = snapshots.last_mut() else {
            return Err(line_error("this is /proc/diskstats without the time of the snapshot"));
        };
        disks.push(disk);
    }
    let (Some((from, before)), Some((to, after)), true) = (snapshots.first(), snapshots.last(), snapshots.len() > 1)
    else {
        return Err(Unusable::new(
            "this is one snapshot of /proc/diskstats: counters since the machine started",
            EXPECTED,
        ));
    };
    let seconds = to - from;
    if seconds <= 0.0 {
        return Err(Unusable::new(
            format!("the snapshots are {seconds} s apart"),
            "the later snapshot after the earlier one",
        ));
    }
    let rates_of_disk = |after: &Counters| {
        let before = before.iter().find(|before| before.name == after.name)?;
        // Counters can wrap.
        let difference = |later: u64, earlier: u64| later.wrapping_sub(earlier) as f64;
        let [reads, writes, discards] = [0, 1, 2].map(|direction| {
            let [ios, sectors, ms] = [0, 1, 2].map(|counter| {
                difference(after.by_direction[direction][counter], before.by_direction[direction][counter])
            });
            let mean = |sum: f64| if ios > 0.0 { sum / ios } else { 0.0 };
            DirectionRates { per_second: ios / seconds, bytes: mean(sectors * 512.0), await_ms: mean(ms) }
        });
        let flushes_per_second = difference(after.flushes, before.flushes) / seconds;
        let utilisation = Some(difference(after.busy_ms, before.busy_ms) / 1e3 / seconds);
        Some(Disk {
            name: after.name.clone(),
            reads,
            writes,
            discards,
            flushes_per_second,
            utilisation,
            has_one_await: false,
        })
    };
    let disks = after.iter().filter_map(rates_of_disk).collect();
    Ok(Summary::new("/proc/diskstats", format!("{seconds:.0} s between the snapshots"), disks))
}

#[cfg(test)]
mod tests {
    use super::super::{DirectionRates, recognise};

    const FIRST: &str = "   8       0 sda 100 0 1600 500 10 0 80 20 0 44 502 0 0 0 0 0 0\n";
    const SECOND: &str = "   8       0 sda 300 0 4800 1500 10 0 80 20 0 44 502 0 0 0 0 20 0\n";

    #[test]
    fn two_snapshots_with_their_times_are_rates() {
        let summary = recognise(&format!("1000.5\n{FIRST}\n1010.5\n{SECOND}")).unwrap().unwrap();
        let disk = &summary.disks[0];
        assert_eq!(disk.reads, DirectionRates { per_second: 20.0, bytes: 8192.0, await_ms: 5.0 });
        assert_eq!((disk.writes.per_second, disk.flushes_per_second), (0.0, 2.0));
        assert_eq!(summary.period, "10 s between the snapshots");
    }

    #[test]
    fn snapshots_without_times_are_refused_with_how_to_make_them() {
        for (text, words) in [
            (format!("{FIRST}{SECOND}"), "line 1: this is /proc/diskstats without the time"),
            (format!("1000\n{FIRST}"), "one snapshot"),
            (format!("1000\n{FIRST}1000\n{SECOND}"), "0 s apart"),
            (format!("1000\n{FIRST}1001\n{SECOND}x\n"), "line 5: this is not a line of /proc/diskstats"),
        ] {
            let error = recognise(&text).unwrap().unwrap_err().to_string();
            assert!(error.starts_with(words) || error.contains(words), "{error}");
        }
    }
}
