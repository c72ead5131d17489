//! cfq's tunables: the table of their files, and their values.
//!
//! A file in milliseconds and its `_us` twin show the same value. Writes never fail: the leading number counts (0 if
//! there is none), clamped to the bounds.
//!
//! Rules: CFQ-3, CFQ-4.

use hoistway_blk::ground::{CfqGeneration, Grammar, TunableRow, Tunables, Unit};

use super::clock::Clock;

const U32_MAX: i128 = u32::MAX as i128;

const FLASH: &str = "0 if the device does not rotate";

const ROWS: [TunableRow<Settings>; 17] = [
    TunableRow::new(
        "quantum",
        (Unit::Requests, 8, 1, U32_MAX),
        "Requests that a queue may have in flight while others are busy; late in its slice half of that.",
        |settings| i128::from(settings.quantum),
        |settings, requests| settings.quantum = requests as u32,
    ),
    TunableRow::new(
        "fifo_expire_sync",
        (Unit::Millis, 125, 1, U32_MAX),
        "How long a sync request may wait before a turn begins with it.",
        |settings| settings.millis(settings.fifo_expire[1]),
        |settings, ms| settings.fifo_expire[1] = settings.span_from_millis(ms),
    ),
    TunableRow::new(
        "fifo_expire_async",
        (Unit::Millis, 250, 1, U32_MAX),
        "How long an async request may wait before a turn begins with it.",
        |settings| settings.millis(settings.fifo_expire[0]),
        |settings, ms| settings.fifo_expire[0] = settings.span_from_millis(ms),
    ),
    TunableRow::new(
        "back_seek_max",
        (Unit::Kib, 16_384, 0, U32_MAX),
        "How far behind the head a request may lie and still count as near.",
        |settings| i128::from(settings.back_seek_max_kib),
        |settings, kib| settings.back_seek_max_kib = kib as u32,
    ),
    TunableRow::new(
        "back_seek_penalty",
        (Unit::Number, 2, 1, U32_MAX),
        "What a sector backward costs in sectors forward.",
        |settings| i128::from(settings.back_seek_penalty),
        |settings, factor| settings.back_seek_penalty = factor as u32,
    ),
    TunableRow::new(
        "slice_sync",
        (Unit::Millis, 100, 1, U32_MAX),
        "Slice of a sync queue of level 4.",
        |settings| settings.millis(settings.slice[1]),
        |settings, ms| settings.slice[1] = settings.span_from_millis(ms),
    ),
    TunableRow::new(
        "slice_async",
        (Unit::Millis, 40, 1, U32_MAX),
        "Slice of an async queue of level 4.",
        |settings| settings.millis(settings.slice[0]),
        |settings, ms| settings.slice[0] = settings.span_from_millis(ms),
    ),
    TunableRow::new(
        "slice_async_rq",
        (Unit::Requests, 2, 1, U32_MAX),
        "Base of the cap on async requests in a turn.",
        |settings| i128::from(settings.slice_async_rq),
        |settings, requests| settings.slice_async_rq = requests as u32,
    ),
    TunableRow::<Settings>::new(
        "slice_idle",
        (Unit::Millis, 8, 0, U32_MAX),
        "How long to wait for the next request of a queue.",
        |settings| settings.millis(settings.slice_idle),
        |settings, ms| settings.slice_idle = settings.span_from_millis(ms),
    )
    .with_default_note(FLASH),
    TunableRow::new(
        "group_idle",
        (Unit::Millis, 8, 0, U32_MAX),
        "How long to wait for the next request of a cgroup where slice_idle does not apply.",
        |settings| settings.millis(settings.group_idle),
        |settings, ms| settings.group_idle = settings.span_from_millis(ms),
    ),
    TunableRow::new(
        "low_latency",
        (Unit::Switch, 1, 0, 1),
        "Whether slices shrink so that every queue gets a turn within target_latency, and async I/O is ramped up.",
        |settings| i128::from(settings.low_latency),
        |settings, on| settings.low_latency = on != 0,
    ),
    TunableRow::new(
        "target_latency",
        (Unit::Millis, 300, 1, U32_MAX),
        "Time in which every queue should get a turn.",
        |settings| settings.millis(settings.target_latency),
        |settings, ms| settings.target_latency = settings.span_from_millis(ms),
    ),
    TunableRow::new(
        "slice_sync_us",
        (Unit::Micros, 100_000, 1, U32_MAX),
        "slice_sync in microseconds.",
        |settings| settings.micros(settings.slice[1]),
        |settings, us| settings.slice[1] = settings.span_from_micros(us),
    ),
    TunableRow::new(
        "slice_async_us",
        (Unit::Micros, 40_000, 1, U32_MAX),
        "slice_async in microseconds.",
        |settings| settings.micros(settings.slice[0]),
        |settings, us| settings.slice[0] = settings.span_from_micros(us),
    ),
    TunableRow::<Settings>::new(
        "slice_idle_us",
        (Unit::Micros, 8_000, 0, U32_MAX),
        "slice_idle in microseconds.",
        |settings| settings.micros(settings.slice_idle),
        |settings, us| settings.slice_idle = settings.span_from_micros(us),
    )
    .with_default_note(FLASH),
    TunableRow::new(
        "group_idle_us",
        (Unit::Micros, 8_000, 0, U32_MAX),
        "group_idle in microseconds.",
        |settings| settings.micros(settings.group_idle),
        |settings, us| settings.group_idle = settings.span_from_micros(us),
    ),
    TunableRow::new(
        "target_latency_us",
        (Unit::Micros, 300_000, 1, U32_MAX),
        "target_latency in microseconds.",
        |settings| settings.micros(settings.target_latency),
        |settings, us| settings.target_latency = settings.span_from_micros(us),
    ),
];

/// Files of a kernel with a clock in ticks: those in microseconds came with the nanosecond clock.
const IN_TICKS: usize = 12;

/// The table of a kernel that counts in ticks: default times are fractions of a second in whole ticks.
const fn in_ticks(hz: i128) -> [TunableRow<Settings>; IN_TICKS] {
    let mut rows = [ROWS[0]; IN_TICKS];
    let mut index = 0;
    while index < IN_TICKS {
        rows[index] = ROWS[index];
        let tunable = &mut rows[index].tunable;
        if matches!(tunable.unit, Unit::Millis) {
            let ticks = tunable.default * hz / 1000;
            // The shown value is rounded up.
            tunable.default = (ticks * 1000 + hz - 1) / hz;
        }
        index += 1;
    }
    rows
}

static NANOSECONDS: [TunableRow<Settings>; 17] = ROWS;
static TICKS_100: [TunableRow<Settings>; IN_TICKS] = in_ticks(100);
static TICKS_250: [TunableRow<Settings>; IN_TICKS] = in_ticks(250);
static TICKS_300: [TunableRow<Settings>; IN_TICKS] = in_ticks(300);
static TICKS_1000: [TunableRow<Settings>; IN_TICKS] = in_ticks(1000);

/// The values of the tunables. Times are in the clock's unit.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) clock: Clock,
    /// Requests in flight per queue while others are busy.
    pub(super) quantum: u32,
    /// Deadline of async and of sync requests, from insertion.
    pub(super) fifo_expire: [i64; 2],
    /// Maximum distance of a request behind the head, KiB.
    pub(super) back_seek_max_kib: u32,
    /// Factor for backward distances.
    pub(super) back_seek_penalty: u32,
    /// Slice of an async and of a sync queue of level 4.
    pub(super) slice: [i64; 2],
    /// Base of the cap on async requests in a turn.
    pub(super) slice_async_rq: u32,
    /// Idle time for a queue.
    pub(super) slice_idle: i64,
    /// Idle time for a group.
    pub(super) group_idle: i64,
    /// Whether slices are scaled and async I/O is ramped up.
    pub(super) low_latency: bool,
    /// Target time for a turn of every queue.
    pub(super) target_latency: i64,
}

impl Settings {
    /// The defaults for a device that rotates or not.
    pub(super) fn new(clock: Clock, rotational: bool) -> Self {
        Settings {
            clock,
            quantum: 8,
            fifo_expire: [clock.second_over(4), clock.second_over(8)],
            back_seek_max_kib: 16 * 1024,
            back_seek_penalty: 2,
            slice: [clock.second_over(25), clock.second_over(10)],
            slice_async_rq: 2,
            slice_idle: if rotational { clock.second_over(125) } else { 0 },
            group_idle: clock.second_over(125),
            low_latency: true,
            target_latency: clock.second() * 3 / 10,
        }
    }

    /// The tunables of a kernel. Defaults are those of the usual tick rates; any other rate has those of 250 Hz.
    pub(super) fn tunables(&self) -> Tunables<Settings> {
        let rows: &[TunableRow<Settings>] = match (self.clock.generation, self.clock.hz.0) {
            (CfqGeneration::Nanoseconds, _) => &NANOSECONDS,
            (CfqGeneration::Ticks, 100) => &TICKS_100,
            (CfqGeneration::Ticks, 300) => &TICKS_300,
            (CfqGeneration::Ticks, 1000) => &TICKS_1000,
            (CfqGeneration::Ticks, _) => &TICKS_250,
        };
        Tunables { grammar: Grammar::LeadingDecimal, rows }
    }

    fn millis(&self, span: i64) -> i128 {
        i128::from(self.clock.millis(span))
    }

    fn micros(&self, span: i64) -> i128 {
        i128::from(self.clock.micros(span))
    }

    fn span_from_millis(&self, ms: i128) -> i64 {
        self.clock.span_from_millis(ms as u64)
    }

    fn span_from_micros(&self, us: i128) -> i64 {
        self.clock.span_from_micros(us as u64)
    }
}
