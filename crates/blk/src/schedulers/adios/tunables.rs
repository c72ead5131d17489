//! The tunables of adios (ADIOS-20).

use super::latency_model::{Decay, SLOPE_MAX_NS_PER_KIB};
use super::{Adios, DISCARD, READ, WRITE};
use crate::ground::tunables::{Grammar, TunableRow, Tunables, Unit};

/// The values of the files, except those of the models.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Predicted latency, ns, that may be in a batch and at the device together.
    pub(super) window_ns: u64,
    /// The part of the window, in percent, below which a new batch is filled.
    pub(super) refill_percent: u64,
    /// Maximum number of requests of a kind in a batch.
    pub(super) batch_limit: [u32; 3],
    /// How long an async request of a kind may wait, ns.
    pub(super) target_ns: [u64; 3],
    /// Latencies above this are ignored, ns.
    pub(super) sample_limit_ns: u64,
    /// Whether the predicted latency of an async request is added to its deadline.
    pub(super) adds_prediction: bool,
    /// Steps of 125 us by which deadlines of reads count as earlier.
    pub(super) read_priority: i64,
    pub(super) decay: Decay,
}

impl Settings {
    pub(super) fn new(is_rotational: bool) -> Self {
        Settings {
            window_ns: if is_rotational { 22_000_000 } else { 16_000_000 },
            refill_percent: 20,
            batch_limit: [64, 32, 8],
            target_ns: [10_000_000, 500_000_000, 5_000_000_000],
            sample_limit_ns: 500_000_000,
            adds_prediction: false,
            read_priority: 7,
            decay: Decay { kreqs: 5000, gbytes: 50, resist: 2 },
        }
    }
}

const LATENCY_MAX_NS: i128 = super::latency_model::LATENCY_MAX_NS as i128;

macro_rules! batch_limit {
    ($name:literal, $kind:ident, $default:literal) => {
        TunableRow::new(
            $name,
            (Unit::Requests, $default, 1, 65_535),
            "Most requests of this kind in a batch.",
            |adios: &Adios| i128::from(adios.settings.batch_limit[$kind]),
            |adios: &mut Adios, requests| adios.settings.batch_limit[$kind] = requests as u32,
        )
    };
}

macro_rules! target {
    ($name:literal, $kind:ident, $default:literal) => {
        TunableRow::new(
            $name,
            (Unit::Nanos, $default, 0, 100 * LATENCY_MAX_NS),
            "How long an async request of this kind may wait.",
            |adios: &Adios| i128::from(adios.settings.target_ns[$kind]),
            |adios: &mut Adios, ns| adios.settings.target_ns[$kind] = ns as u64,
        )
    };
}

macro_rules! base {
    ($name:literal, $kind:ident) => {
        TunableRow::new(
            $name,
            (Unit::Nanos, 0, 0, LATENCY_MAX_NS),
            "What a request of this kind of up to 4 KiB is expected to take.",
            |adios: &Adios| i128::from(adios.models[$kind].base_ns()),
            |adios: &mut Adios, ns| adios.models[$kind].set_base_ns(ns as u64),
        )
        .with_default_note("learned from completions")
    };
}

macro_rules! slope {
    ($name:literal, $kind:ident) => {
        TunableRow::new(
            $name,
            (Unit::Nanos, 0, 0, SLOPE_MAX_NS_PER_KIB as i128),
            "What each KiB of a request of this kind beyond 4 KiB is expected to add.",
            |adios: &Adios| i128::from(adios.models[$kind].slope_ns_per_kib()),
            |adios: &mut Adios, ns| adios.models[$kind].set_slope_ns_per_kib(ns as u64),
        )
        .with_default_note("learned from completions")
    };
}

pub(super) static TUNABLES: Tunables<Adios> = Tunables {
    grammar: Grammar::InRange,
    rows: &[
        TunableRow::new(
            "global_latency_window",
            (Unit::Nanos, 16_000_000, 0, LATENCY_MAX_NS),
            "Predicted latency that a batch and the requests at the device may sum up to.",
            |adios: &Adios| i128::from(adios.settings.window_ns),
            |adios: &mut Adios, ns| adios.settings.window_ns = ns as u64,
        )
        .with_default_note("22000000 on a rotating device"),
        TunableRow::new(
            "bq_refill_below_ratio",
            (Unit::Number, 20, 0, 100),
            "Percent of the window below which the next batch is filled.",
            |adios: &Adios| i128::from(adios.settings.refill_percent),
            |adios: &mut Adios, percent| adios.settings.refill_percent = percent as u64,
        ),
        batch_limit!("batch_limit_read", READ, 64),
        batch_limit!("batch_limit_write", WRITE, 32),
        batch_limit!("batch_limit_discard", DISCARD, 8),
        target!("lat_target_read", READ, 10_000_000),
        target!("lat_target_write", WRITE, 500_000_000),
        target!("lat_target_discard", DISCARD, 5_000_000_000),
        base!("lat_model_read_base", READ),
        slope!("lat_model_read_slope", READ),
        base!("lat_model_write_base", WRITE),
        slope!("lat_model_write_slope", WRITE),
        base!("lat_model_discard_base", DISCARD),
        slope!("lat_model_discard_slope", DISCARD),
        TunableRow::new(
            "lat_model_latency_limit",
            (Unit::Nanos, 500_000_000, 1, 100 * LATENCY_MAX_NS),
            "Completions that took longer are not learned from.",
            |adios: &Adios| i128::from(adios.settings.sample_limit_ns),
            |adios: &mut Adios, ns| adios.settings.sample_limit_ns = ns as u64,
        ),
        TunableRow::new(
            "place_deadline_pred_lat",
            (Unit::Switch, 0, 0, 1),
            "Whether the deadline of an async request is later by what it is expected to take.",
            |adios: &Adios| i128::from(adios.settings.adds_prediction),
            |adios: &mut Adios, on| adios.settings.adds_prediction = on != 0,
        ),
        TunableRow::new(
            "read_priority",
            (Unit::Number, 7, -20, 19),
            "Steps of 125 us by which a read goes before another request of an earlier deadline.",
            |adios: &Adios| i128::from(adios.settings.read_priority),
            |adios: &mut Adios, steps| adios.settings.read_priority = steps as i64,
        ),
        TunableRow::new(
            "shrink_at_kreqs",
            (Unit::Number, 5000, 1, 1_000_000),
            "Thousands of requests of a kind after which its model forgets a part of the past.",
            |adios: &Adios| i128::from(adios.settings.decay.kreqs),
            |adios: &mut Adios, thousands| adios.settings.decay.kreqs = thousands as u64,
        ),
        TunableRow::new(
            "shrink_at_gbytes",
            (Unit::Number, 50, 1, 1_000_000),
            "GB of a kind after which its model forgets a part of the past.",
            |adios: &Adios| i128::from(adios.settings.decay.gbytes),
            |adios: &mut Adios, gigabytes| adios.settings.decay.gbytes = gigabytes as u64,
        ),
        TunableRow::new(
            "shrink_resist",
            (Unit::Number, 2, 1, 100),
            "The fraction that is forgotten then is 1 / this: 1 all, 2 half.",
            |adios: &Adios| i128::from(adios.settings.decay.resist),
            |adios: &mut Adios, part| adios.settings.decay.resist = part as u64,
        ),
        TunableRow::new(
            "reset_lat_model",
            (Unit::Switch, 0, 0, 1),
            "Writing 1 forgets all that was learned.",
            |_: &Adios| 0,
            |adios: &mut Adios, reset| {
                if reset != 0 {
                    adios.models = Default::default();
                }
            },
        ),
    ],
};
