//! bfq's tunables. Rules: BFQ-13, BFQ-14.

use super::Bfq;
use super::config::{BfqConfig, MS, SLICE_IDLE};
use crate::ground::tunables::{Grammar, TunableRow, Tunables, Unit};

const I32_MAX: i128 = i32::MAX as i128;
const U32_MAX: i128 = u32::MAX as i128;

/// The tunables as the policy uses them.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// How long an async and a sync request may wait in its queue's fifo, ns.
    pub fifo_expire: [u64; 2],
    /// How far behind the last position a request may lie to be "near", sectors.
    pub back_seek_max: u64,
    /// Cost of a step back in steps forward.
    pub back_seek_penalty: u64,
    /// Length of the idle timer, ns.
    pub slice_idle: u64,
    /// The largest budget if the user fixed it, sectors; 0 otherwise.
    pub user_max_budget: u64,
    /// Length of a slot, ticks.
    pub timeout: i64,
    /// Idle always, and one request in the device at a time.
    pub strict_guarantees: bool,
    /// Weight raising.
    pub low_latency: bool,
    /// How the text of a write is read: 4.12 reads the leading number.
    grammar: Grammar,
}

impl Settings {
    /// The defaults.
    pub fn new(config: &BfqConfig) -> Self {
        Settings {
            fifo_expire: [250 * MS, 125 * MS],
            back_seek_max: 16_384 * 2,
            back_seek_penalty: 2,
            slice_idle: SLICE_IDLE,
            user_max_budget: 0,
            timeout: default_timeout(config),
            strict_guarantees: false,
            low_latency: true,
            grammar: if config.variant.modern_idling { Grammar::Decimal64 } else { Grammar::LeadingDecimal },
        }
    }

    /// The tunables.
    pub fn tunables(&self) -> Tunables<Bfq> {
        Tunables { grammar: self.grammar, rows: &ROWS }
    }
}

/// The default length of a slot: an eighth of a second in whole ticks.
pub(super) fn default_timeout(config: &BfqConfig) -> i64 {
    i64::from(config.hz.0 / 8)
}

/// The files in `queue/iosched/`.
static ROWS: [TunableRow<Bfq>; 10] = [
    TunableRow::new(
        "fifo_expire_sync",
        (Unit::Millis, 125, 1, I32_MAX),
        "How long a sync request may wait inside its queue.",
        |bfq| i128::from(bfq.settings.fifo_expire[1] / MS),
        |bfq, ms| bfq.settings.fifo_expire[1] = ms as u64 * MS,
    ),
    TunableRow::new(
        "fifo_expire_async",
        (Unit::Millis, 250, 1, I32_MAX),
        "How long an async request may wait inside its queue.",
        |bfq| i128::from(bfq.settings.fifo_expire[0] / MS),
        |bfq, ms| bfq.settings.fifo_expire[0] = ms as u64 * MS,
    ),
    TunableRow::new(
        "back_seek_max",
        (Unit::Kib, 16_384, 0, I32_MAX),
        "How far behind the last position a request may lie and still be taken for near.",
        |bfq| i128::from(bfq.settings.back_seek_max / 2),
        |bfq, kib| bfq.settings.back_seek_max = kib as u64 * 2,
    ),
    TunableRow::new(
        "back_seek_penalty",
        (Unit::Number, 2, 1, I32_MAX),
        "How many steps forward a step back costs when the next request of a queue is chosen.",
        |bfq| i128::from(bfq.settings.back_seek_penalty),
        |bfq, factor| bfq.settings.back_seek_penalty = factor as u64,
    ),
    TunableRow::new(
        "slice_idle",
        (Unit::Millis, 8, 0, I32_MAX),
        "How long the device is kept for a process that may send its next request soon. 0: never.",
        |bfq| i128::from(bfq.settings.slice_idle / MS),
        |bfq, ms| bfq.settings.slice_idle = ms as u64 * MS,
    ),
    TunableRow::new(
        "slice_idle_us",
        (Unit::Micros, 8000, 0, U32_MAX),
        "The same as slice_idle, finer; the last write wins.",
        |bfq| i128::from(bfq.settings.slice_idle / 1000),
        |bfq, us| bfq.settings.slice_idle = us as u64 * 1000,
    ),
    TunableRow::new(
        "max_budget",
        (Unit::Sectors, 0, 0, I32_MAX),
        "The largest budget of a slot. 0: follows the peak rate.",
        |bfq| i128::from(bfq.settings.user_max_budget),
        |bfq, sectors| {
            bfq.settings.user_max_budget = sectors as u64;
            bfq.max_budget = if sectors == 0 { bfq.auto_max_budget() } else { sectors as u64 };
        },
    ),
    TunableRow::<Bfq>::new(
        "timeout_sync",
        (Unit::Millis, 124, 1, I32_MAX),
        "The longest slot. Shorter: latency; longer: throughput on rotating disks.",
        |bfq| i128::from(bfq.config.millis(bfq.settings.timeout)),
        |bfq, ms| {
            bfq.settings.timeout = bfq.config.ticks(ms as u64);
            if bfq.settings.user_max_budget == 0 {
                bfq.max_budget = bfq.auto_max_budget();
            }
        },
    )
    .with_default_note("an eighth of a second in whole ticks: 124 at 250 Hz, 125 at 1000 Hz"),
    TunableRow::new(
        "strict_guarantees",
        (Unit::Switch, 0, 0, 1),
        "1: always idle, and one request in the device at a time. Exact shares, little throughput.",
        |bfq| i128::from(bfq.settings.strict_guarantees),
        |bfq, on| {
            if !bfq.settings.strict_guarantees && on == 1 {
                bfq.settings.slice_idle = bfq.settings.slice_idle.max(SLICE_IDLE);
            }
            bfq.settings.strict_guarantees = on == 1;
        },
    ),
    TunableRow::new(
        "low_latency",
        (Unit::Switch, 1, 0, 1),
        "1: raise the weight of interactive and soft real-time processes.",
        |bfq| i128::from(bfq.settings.low_latency),
        |bfq, on| {
            if bfq.settings.low_latency && on == 0 {
                bfq.end_all_raising();
            }
            bfq.settings.low_latency = on == 1;
        },
    ),
];
