//! bfq's tunables. Rules: bfq.md 5.1.

use super::Bfq;
use super::config::{BfqConfig, MS, SLICE_IDLE};
use crate::tunables::{Grammar, Tunable, Unit};

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
    /// 4.12 reads the leading number of a text.
    old_grammar: bool,
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
            old_grammar: !config.variant.modern_idling,
        }
    }

    /// How the text of a write is read.
    pub fn grammar(&self) -> Grammar {
        if self.old_grammar { Grammar::LeadingDecimal } else { Grammar::Decimal64 }
    }
}

/// The default length of a slot: an eighth of a second in whole ticks.
pub(super) fn default_timeout(config: &BfqConfig) -> i64 {
    i64::from(config.hz.0 / 8)
}

const fn tunable(
    name: &'static str,
    unit: Unit,
    default: i128,
    (min, max): (i128, i128),
    doc: &'static str,
) -> Tunable {
    Tunable { name, unit, default, default_note: None, min, max, doc }
}

/// The files in `queue/iosched/`.
static ALL: [Tunable; 10] = [
    tunable("fifo_expire_sync", Unit::Millis, 125, (1, I32_MAX), "How long a sync request may wait inside its queue."),
    tunable(
        "fifo_expire_async",
        Unit::Millis,
        250,
        (1, I32_MAX),
        "How long an async request may wait inside its queue.",
    ),
    tunable(
        "back_seek_max",
        Unit::Kib,
        16_384,
        (0, I32_MAX),
        "How far behind the last position a request may lie and still be taken for near.",
    ),
    tunable(
        "back_seek_penalty",
        Unit::Number,
        2,
        (1, I32_MAX),
        "How many steps forward a step back costs when the next request of a queue is chosen.",
    ),
    tunable(
        "slice_idle",
        Unit::Millis,
        8,
        (0, I32_MAX),
        "How long the device is kept for a process that may send its next request soon. 0: never.",
    ),
    tunable("slice_idle_us", Unit::Micros, 8000, (0, U32_MAX), "The same as slice_idle, finer; the last write wins."),
    tunable("max_budget", Unit::Sectors, 0, (0, I32_MAX), "The largest budget of a slot. 0: follows the peak rate."),
    Tunable {
        name: "timeout_sync",
        unit: Unit::Millis,
        default: 124,
        default_note: Some("an eighth of a second in whole ticks: 124 at 250 Hz, 125 at 1000 Hz"),
        min: 1,
        max: I32_MAX,
        doc: "The longest slot. Shorter: latency; longer: throughput on rotating disks.",
    },
    tunable(
        "strict_guarantees",
        Unit::Switch,
        0,
        (0, 1),
        "1: always idle, and one request in the device at a time. Exact shares, little throughput.",
    ),
    tunable("low_latency", Unit::Switch, 1, (0, 1), "1: raise the weight of interactive and soft real-time processes."),
];

/// The table of all of them.
pub(super) const TABLE: &[Tunable] = &ALL;

impl Bfq {
    pub(super) fn shown_tunable(&self, index: usize) -> i128 {
        let settings = &self.settings;
        match TABLE.get(index).map_or("", |tunable| tunable.name) {
            "fifo_expire_sync" => i128::from(settings.fifo_expire[1] / MS),
            "fifo_expire_async" => i128::from(settings.fifo_expire[0] / MS),
            "back_seek_max" => i128::from(settings.back_seek_max / 2),
            "back_seek_penalty" => i128::from(settings.back_seek_penalty),
            "slice_idle" => i128::from(settings.slice_idle / MS),
            "slice_idle_us" => i128::from(settings.slice_idle / 1000),
            "max_budget" => i128::from(settings.user_max_budget),
            "timeout_sync" => i128::from(self.config.millis(settings.timeout)),
            "strict_guarantees" => i128::from(settings.strict_guarantees),
            "low_latency" => i128::from(settings.low_latency),
            _ => 0,
        }
    }

    /// Stores a value within its range.
    pub(super) fn store_tunable(&mut self, index: usize, value: i128) {
        let number = value as u64;
        match TABLE.get(index).map_or("", |tunable| tunable.name) {
            "fifo_expire_sync" => self.settings.fifo_expire[1] = number * MS,
            "fifo_expire_async" => self.settings.fifo_expire[0] = number * MS,
            "back_seek_max" => self.settings.back_seek_max = number * 2,
            "back_seek_penalty" => self.settings.back_seek_penalty = number,
            "slice_idle" => self.settings.slice_idle = number * MS,
            "slice_idle_us" => self.settings.slice_idle = number * 1000,
            "max_budget" => {
                self.settings.user_max_budget = number;
                self.max_budget = if number == 0 { self.auto_max_budget() } else { number };
            }
            "timeout_sync" => {
                self.settings.timeout = self.config.ticks(number);
                if self.settings.user_max_budget == 0 {
                    self.max_budget = self.auto_max_budget();
                }
            }
            "strict_guarantees" => {
                if !self.settings.strict_guarantees && number == 1 {
                    self.settings.slice_idle = self.settings.slice_idle.max(SLICE_IDLE);
                }
                self.settings.strict_guarantees = number == 1;
            }
            "low_latency" => {
                if self.settings.low_latency && number == 0 {
                    self.end_all_raising();
                }
                self.settings.low_latency = number == 1;
            }
            _ => {}
        }
    }
}
