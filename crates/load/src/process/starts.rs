//! Actual start times of processes with `startdelay`. fio's main thread only checks periodically which of them are due, creates those,
//! and releases them together.
//!
//! Source: block traces of fio 3.33 in a guest of 1 ns an instruction, and its logs on two CPUs. Sixteen processes with delays 20 ms
//! apart started in groups of eleven and five, 224 and 439 ms after one without a delay; 5 ms apart, all at 223 ms; 50 ms apart, in
//! groups of five every 220 ms; 200 ms apart, each separately, 3 to 21 ms late.

use hoistway_blk::ground::Nanos;

use crate::Schedule;

/// Sleep of fio's main thread after creating processes, and after releasing them or finding none due.
const SLEEP: Nanos = Nanos::from_millis(100);

/// Time of fio's preparations before the first process, in units of process creations. Fitted to the recorded guest, where the first
/// check found processes with delays of up to 220 ms, but not of 240 ms.
const PREPARATION: usize = 6;

/// Start times of processes whose delays count from the same moment: from the release of the first process without a delay, or from the
/// start of fio if all have one. Creating a process takes fio's main thread `creation`.
///
/// If the delay is exact or there is none, the start time is the delay itself.
#[must_use]
pub fn start_times<'a>(schedules: impl IntoIterator<Item = &'a Schedule>, creation: Nanos) -> Vec<Nanos> {
    let schedules: Vec<&Schedule> = schedules.into_iter().collect();
    let mut starts: Vec<Nanos> = schedules.iter().map(|schedule| schedule.start_delay).collect();
    let mut polled: Vec<usize> = (0..starts.len()).filter(|&index| schedules[index].is_polled()).collect();
    polled.sort_by_key(|&index| starts[index]);
    let creation_ns = |count: usize| creation.0.saturating_mul(count as u64);
    let undelayed = starts.iter().filter(|&&start| start == Nanos::ZERO).count();
    // Delays count from fio's start, which is before the moment that start times count from.
    let (lead_ns, mut check_ns) = match undelayed {
        0 => (0, creation_ns(PREPARATION)),
        _ => (creation_ns(PREPARATION + undelayed) + SLEEP.0, SLEEP.0),
    };
    let mut rest = polled.as_slice();
    while let Some(&first) = rest.first() {
        let early = starts[first].0.saturating_sub(check_ns.saturating_add(lead_ns));
        check_ns = check_ns.saturating_add(early.div_ceil(SLEEP.0).saturating_mul(SLEEP.0));
        let (due, later) =
            rest.split_at(rest.partition_point(|&index| starts[index].0 <= check_ns.saturating_add(lead_ns)));
        let start = check_ns.saturating_add(creation_ns(due.len())).saturating_add(SLEEP.0);
        for &index in due {
            starts[index] = Nanos(start);
        }
        (rest, check_ns) = (later, start.saturating_add(SLEEP.0));
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pattern, Process};

    const CREATION: Nanos = Nanos::from_millis(3);

    fn starts(polled: bool, delays_ms: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let schedules: Vec<Schedule> = delays_ms
            .into_iter()
            .map(|ms| {
                let mut schedule = Process::new("a", 0, Pattern::read(4096)).schedule;
                (schedule.start_delay, schedule.polled_start) = (Nanos::from_millis(ms), polled);
                schedule
            })
            .collect();
        start_times(&schedules, CREATION).iter().map(|start| start.0 / 1_000_000).collect()
    }

    /// Groups that start together: the time, and the number of processes.
    fn batches(delays_ms: impl IntoIterator<Item = u64>) -> Vec<(u64, usize)> {
        let starts = starts(true, delays_ms);
        starts.chunk_by(|one, other| one == other).map(|batch| (batch[0], batch.len())).collect()
    }

    #[test]
    fn delayed_processes_begin_in_the_batches_that_were_recorded() {
        // Recorded: 223 to 226, and 439 to 443 ms.
        assert_eq!(batches((0..17).map(|k| 20 * k)), [(0, 1), (233, 11), (448, 5)]);
        assert_eq!(batches((0..17).map(|k| 5 * k)), [(0, 1), (248, 16)]);
        // Recorded with short preparations: 209, 411, 613, 818, 1020, 1221 ms.
        assert_eq!(
            batches((0..7).map(|k| 200 * k)),
            [(0, 1), (203, 1), (406, 1), (609, 1), (812, 1), (1015, 1), (1218, 1)]
        );
    }

    #[test]
    fn exact_delays_and_none_are_kept() {
        assert_eq!(starts(false, [0, 20, 40, 7]), [0, 20, 40, 7]);
        assert_eq!(starts(true, [0, 0, 0]), [0, 0, 0]);
    }

    #[test]
    fn no_process_begins_before_it_is_due_nor_long_after() {
        for (apart, count) in [(1, 40), (7, 60), (33, 50), (100, 12), (99, 30), (101, 30), (250, 9), (10_000, 3)] {
            for first in [0, 1] {
                let delays: Vec<u64> = (0..count).map(|k| first + apart * k).collect();
                let starts = starts(true, delays.iter().copied());
                let making = CREATION.0 / 1_000_000 * (count + 6);
                for (delay, start) in delays.iter().zip(&starts).skip(1) {
                    assert!(*start + making + 100 >= *delay && *start <= delay + 300 + 2 * making, "{delay} {start}");
                }
                assert!(starts.is_sorted());
            }
        }
        let endless = starts(true, [0, u64::MAX / 1_000_000]);
        assert!(endless[1] > 1_000_000_000);
    }
}
