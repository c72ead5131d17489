//! When fio starts processes that have a `startdelay`. Its main thread looks only now and then which of them are due, makes those, and
//! lets them go together.
//!
//! Source: block traces of fio 3.33 in a guest of 1 ns an instruction, and its logs on two CPUs. Sixteen processes 20 ms apart begin as
//! eleven and five, 224 and 439 ms after one without a delay; 5 ms apart all at 223 ms; 50 ms apart in fives, 220 ms apart; 200 ms apart
//! each by itself, 3 to 21 ms late.

use hoistway_blk::ground::Nanos;

use crate::Schedule;

/// For how long fio's main thread sleeps after it has made processes, and after it has let them go or found none to make.
const SLEEP: Nanos = Nanos::from_millis(100);

/// What fio does before it makes the first process takes as long as making this many. Fitted to the recorded guest, where the first look
/// after the beginning found processes with delays up to 220 ms, and none of 240.
const PREPARATION: usize = 6;

/// When each of some processes starts that are waited for from the same moment on: after the first of them without a delay has been
/// let go, or if each has a delay after the beginning of fio. Making a process takes fio's main thread `creation`.
///
/// Where the delay is exact, or there is none, that is the delay itself.
#[must_use]
pub fn start_times<'a>(schedules: impl IntoIterator<Item = &'a Schedule>, creation: Nanos) -> Vec<Nanos> {
    let schedules: Vec<&Schedule> = schedules.into_iter().collect();
    let mut starts: Vec<Nanos> = schedules.iter().map(|schedule| schedule.start_delay).collect();
    let mut polled: Vec<usize> = (0..starts.len()).filter(|&at| schedules[at].is_polled()).collect();
    polled.sort_by_key(|&at| starts[at]);
    let making = |count: usize| creation.0.saturating_mul(count as u64);
    let at_once = starts.iter().filter(|&&start| start == Nanos::ZERO).count();
    // Delays count from fio's beginning, which lies before the moment that starts count from.
    let (before, mut look) = match at_once {
        0 => (0, making(PREPARATION)),
        _ => (making(PREPARATION + at_once) + SLEEP.0, SLEEP.0),
    };
    let mut rest = polled.as_slice();
    while let Some(&first) = rest.first() {
        let early = starts[first].0.saturating_sub(look.saturating_add(before));
        look = look.saturating_add(early.div_ceil(SLEEP.0).saturating_mul(SLEEP.0));
        let (due, later) = rest.split_at(rest.partition_point(|&at| starts[at].0 <= look.saturating_add(before)));
        let start = look.saturating_add(making(due.len())).saturating_add(SLEEP.0);
        for &at in due {
            starts[at] = Nanos(start);
        }
        (rest, look) = (later, start.saturating_add(SLEEP.0));
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

    /// Those that begin together: when, and how many.
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
