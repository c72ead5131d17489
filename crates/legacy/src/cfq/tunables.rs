//! cfq's tunables: the table of their files, and the values behind it.
//!
//! A file in milliseconds and its `_us` twin are two views of one value. Writes never fail: the leading number counts
//! (none is 0), clamped to the bounds.
//!
//! Rules: `cfq.md` 2.1.

use hoistway_blk::{CfqGeneration, Tunable, Unit};

use super::clock::Clock;

const U32_MAX: i128 = u32::MAX as i128;

const fn tunable(name: &'static str, unit: Unit, default: i128, min: i128, max: i128, doc: &'static str) -> Tunable {
    Tunable { name, unit, default, default_note: None, min, max, doc }
}

const FLASH: Option<&str> = Some("0 if the device does not rotate");

const TABLE: [Tunable; 17] = [
    tunable(
        "quantum",
        Unit::Requests,
        8,
        1,
        U32_MAX,
        "Requests that a queue may have in flight while others are busy; late in its slice half of that.",
    ),
    tunable(
        "fifo_expire_sync",
        Unit::Millis,
        125,
        1,
        U32_MAX,
        "How long a sync request may wait before a turn begins with it.",
    ),
    tunable(
        "fifo_expire_async",
        Unit::Millis,
        250,
        1,
        U32_MAX,
        "How long an async request may wait before a turn begins with it.",
    ),
    tunable(
        "back_seek_max",
        Unit::Kib,
        16_384,
        0,
        U32_MAX,
        "How far behind the head a request may lie and still count as near.",
    ),
    tunable("back_seek_penalty", Unit::Number, 2, 1, U32_MAX, "What a sector backward costs in sectors forward."),
    tunable("slice_sync", Unit::Millis, 100, 1, U32_MAX, "Slice of a sync queue of level 4."),
    tunable("slice_async", Unit::Millis, 40, 1, U32_MAX, "Slice of an async queue of level 4."),
    tunable("slice_async_rq", Unit::Requests, 2, 1, U32_MAX, "Base of the cap on async requests in a turn."),
    Tunable {
        default_note: FLASH,
        ..tunable("slice_idle", Unit::Millis, 8, 0, U32_MAX, "How long to wait for the next request of a queue.")
    },
    tunable(
        "group_idle",
        Unit::Millis,
        8,
        0,
        U32_MAX,
        "How long to wait for the next request of a cgroup where slice_idle does not apply.",
    ),
    tunable(
        "low_latency",
        Unit::Switch,
        1,
        0,
        1,
        "Whether slices shrink so that every queue gets a turn within target_latency, and async I/O is ramped up.",
    ),
    tunable("target_latency", Unit::Millis, 300, 1, U32_MAX, "Time in which every queue should get a turn."),
    tunable("slice_sync_us", Unit::Micros, 100_000, 1, U32_MAX, "slice_sync in microseconds."),
    tunable("slice_async_us", Unit::Micros, 40_000, 1, U32_MAX, "slice_async in microseconds."),
    Tunable {
        default_note: FLASH,
        ..tunable("slice_idle_us", Unit::Micros, 8_000, 0, U32_MAX, "slice_idle in microseconds.")
    },
    tunable("group_idle_us", Unit::Micros, 8_000, 0, U32_MAX, "group_idle in microseconds."),
    tunable("target_latency_us", Unit::Micros, 300_000, 1, U32_MAX, "target_latency in microseconds."),
];

/// Files that a kernel with a clock in ticks has: those in microseconds came with the nanosecond clock.
const IN_TICKS: usize = 12;

/// The table of a kernel that counts in ticks: defaults that are times are parts of a second in whole ticks.
const fn in_ticks(hz: i128) -> [Tunable; IN_TICKS] {
    let mut table = [TABLE[0]; IN_TICKS];
    let mut at = 0;
    while at < IN_TICKS {
        table[at] = TABLE[at];
        if matches!(TABLE[at].unit, Unit::Millis) {
            let ticks = TABLE[at].default * hz / 1000;
            // Shown rounded up.
            table[at].default = (ticks * 1000 + hz - 1) / hz;
        }
        at += 1;
    }
    table
}

static TICKS_100: [Tunable; IN_TICKS] = in_ticks(100);
static TICKS_250: [Tunable; IN_TICKS] = in_ticks(250);
static TICKS_300: [Tunable; IN_TICKS] = in_ticks(300);
static TICKS_1000: [Tunable; IN_TICKS] = in_ticks(1000);

/// The tunables of a kernel. The defaults are those of the tick rates that kernels are built with; another one shows those
/// of 250 Hz.
pub(super) fn table(clock: Clock) -> &'static [Tunable] {
    match (clock.generation, clock.hz.0) {
        (CfqGeneration::Nanoseconds, _) => &TABLE,
        (CfqGeneration::Ticks, 100) => &TICKS_100,
        (CfqGeneration::Ticks, 300) => &TICKS_300,
        (CfqGeneration::Ticks, 1000) => &TICKS_1000,
        (CfqGeneration::Ticks, _) => &TICKS_250,
    }
}

/// The values of the tunables. Times are in units of the clock.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Requests in flight per queue while others are busy.
    pub(super) quantum: u32,
    /// Deadline of async and of sync requests, since insertion.
    pub(super) fifo_expire: [i64; 2],
    /// How far behind the head a request may lie, KiB.
    pub(super) back_seek_max_kib: u32,
    /// Factor on distance backward.
    pub(super) back_seek_penalty: u32,
    /// Slice of an async and of a sync queue of level 4.
    pub(super) slice: [i64; 2],
    /// Base of the cap on async requests in a turn.
    pub(super) slice_async_rq: u32,
    /// How long to wait for a queue.
    pub(super) slice_idle: i64,
    /// How long to wait for a group.
    pub(super) group_idle: i64,
    /// Whether slices are scaled and async I/O is ramped up.
    pub(super) low_latency: bool,
    /// Time in which all queues should get a turn.
    pub(super) target_latency: i64,
}

impl Settings {
    /// The defaults on a device that rotates or does not.
    pub(super) fn new(clock: Clock, rotational: bool) -> Self {
        Settings {
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

    /// The value of file `index` of the [`table`].
    pub(super) fn get(&self, clock: Clock, index: usize) -> i128 {
        i128::from(match index {
            0 => i64::from(self.quantum),
            1 => clock.millis(self.fifo_expire[1]),
            2 => clock.millis(self.fifo_expire[0]),
            3 => i64::from(self.back_seek_max_kib),
            4 => i64::from(self.back_seek_penalty),
            5 => clock.millis(self.slice[1]),
            6 => clock.millis(self.slice[0]),
            7 => i64::from(self.slice_async_rq),
            8 => clock.millis(self.slice_idle),
            9 => clock.millis(self.group_idle),
            10 => i64::from(self.low_latency),
            11 => clock.millis(self.target_latency),
            12 => clock.micros(self.slice[1]),
            13 => clock.micros(self.slice[0]),
            14 => clock.micros(self.slice_idle),
            15 => clock.micros(self.group_idle),
            _ => clock.micros(self.target_latency),
        })
    }

    /// Sets file `index` to a value within its bounds.
    pub(super) fn set(&mut self, clock: Clock, index: usize, value: i128) {
        let number = value as u32;
        let span = match index {
            12.. => clock.of_micros(u64::from(number)),
            _ => clock.of_millis(u64::from(number)),
        };
        match index {
            0 => self.quantum = number,
            1 => self.fifo_expire[1] = span,
            2 => self.fifo_expire[0] = span,
            3 => self.back_seek_max_kib = number,
            4 => self.back_seek_penalty = number,
            5 | 12 => self.slice[1] = span,
            6 | 13 => self.slice[0] = span,
            7 => self.slice_async_rq = number,
            8 | 14 => self.slice_idle = span,
            9 | 15 => self.group_idle = span,
            10 => self.low_latency = number != 0,
            _ => self.target_latency = span,
        }
    }
}
