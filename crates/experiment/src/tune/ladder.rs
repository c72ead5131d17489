//! Candidate values of tunables for which none are given.

use hoistway_answer::tuning::Candidates;
use hoistway_blk::drive::Effects;
use hoistway_blk::ground::{Instant, Local, Tunable};
use hoistway_legacy::AnyQueue;
use hoistway_sim::DiskIoCost;

use crate::comparison::error::{About as _, Error};
use crate::comparison::fields::Field;
use crate::plan::schedulers::queue_under;
use crate::plan::setup::Setup;

/// A range narrower than this is tried completely.
const WHOLE_RANGE_MAX: i128 = 8;
/// Factors applied to the default value, as numerator and denominator.
const STEPS: [(i128, i128); 6] = [(1, 16), (1, 4), (1, 2), (2, 1), (4, 1), (16, 1)];
/// Candidates if the default is 0.
const FROM_ZERO: [i128; 4] = [1, 8, 64, 512];

/// All tunables of a scheduler that are not fixed, each with candidate values as the kernel shows them, except its default. A
/// tunable that only shows another tunable in a different unit is left out.
pub(super) fn ladders(setup: &Setup, scheduler: &str) -> Result<Vec<Candidates>, Error> {
    let fixed = setup.fixed(scheduler);
    let new_queue = || -> Result<AnyQueue<Local>, Error> {
        let queue = queue_under(scheduler, &setup.config).about(Field::Schedulers)?;
        for (name, text) in fixed.tunables() {
            set(&queue, name, text).about(Field::Tunables)?;
        }
        Ok(queue)
    };
    let default_queue = new_queue()?;
    let shown = |queue: &AnyQueue<Local>, name: &str| queue.tunable(name).unwrap_or_default();
    let mut tunables: Vec<Candidates> = Vec::new();
    for tunable in default_queue.tunables() {
        if fixed.tunables().any(|(name, _)| name == tunable.name) {
            continue;
        }
        let mut texts: Vec<String> = Vec::new();
        let mut is_alias = false;
        for value in values(tunable, shown(&default_queue, tunable.name)) {
            let queue = new_queue()?;
            if set(&queue, tunable.name, &value.to_string()).is_err() {
                continue;
            }
            let text = shown(&queue, tunable.name).to_string();
            if text != shown(&default_queue, tunable.name).to_string() && !texts.contains(&text) {
                texts.push(text);
            }
            is_alias |=
                tunables.iter().any(|tunable| shown(&queue, &tunable.name) != shown(&default_queue, &tunable.name));
        }
        if !texts.is_empty() && !is_alias {
            let (scheduler, name) = (scheduler.to_owned(), tunable.name.to_owned());
            tunables.push(Candidates { scheduler, name, is_queue_file: false, texts });
        }
    }
    Ok(tunables)
}

fn set(queue: &AnyQueue<Local>, name: &str, text: &str) -> Result<(), hoistway_blk::ground::StoreError> {
    let now = queue.generation().hz.now(Instant::ZERO);
    queue.set_tunable(now, name, text, &mut Effects::new())
}

fn values(tunable: &Tunable, default: i128) -> Vec<i128> {
    let range = tunable.min..=tunable.max;
    if tunable.max - tunable.min < WHOLE_RANGE_MAX {
        return range.collect();
    }
    // A minimum of 0 or 1 often turns something off.
    let least = Some(tunable.min).filter(|least| (0..=1).contains(least));
    let steps: Vec<i128> = if default == 0 {
        FROM_ZERO.to_vec()
    } else {
        STEPS.map(|(numerator, denominator)| default * numerator / denominator).to_vec()
    };
    least.into_iter().chain(steps).filter(|value| range.contains(value)).collect()
}

/// Settings of `io.cost.qos` that are searched together.
pub(super) const QOS_KEYS: [&str; 6] = ["rpct", "rlat", "wpct", "wlat", "min", "max"];

/// Candidate values of a setting of `io.cost.qos` for these devices; empty if it has none. Latencies: from an I/O of an SSD under load to
/// a third of the documentation's example (IC-5). Percentiles: not looked at, or stricter than the example's 95 (IC-4). Rates: below the
/// example's 50 to 150 %, as only a slower device holds more back (IC-7, IC-14), with every minimum below every maximum.
pub(super) fn qos(disks: &[Option<DiskIoCost>], key: &str) -> Vec<String> {
    let values: &[u32] = match key {
        "enable" => &[0, 1],
        "rlat" | "wlat" => &[1000, 5000, 25_000],
        "rpct" | "wpct" => &[0, 99],
        "min" => &[10, 25],
        "max" => &[50, 100],
        _ => &[],
    };
    let is_possible = |value: u32| {
        disks.iter().flatten().all(|disk| match key {
            "min" => value * 100 <= disk.qos.rate_max.0,
            "max" => value * 100 >= disk.qos.rate_min.0,
            _ => true,
        })
    };
    values.iter().filter(|&&value| is_possible(value)).map(ToString::to_string).collect()
}

/// Candidate numbers of requests, except the queue's own.
pub(super) fn requests(default: u32) -> Vec<String> {
    let candidates = [default / 8, default / 4, default / 2, default.saturating_mul(2), default.saturating_mul(4)];
    candidates.into_iter().filter(|requests| *requests >= 4).map(|requests| requests.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use hoistway_cgroup::{CostModel, IoCostSettings};

    use super::*;

    #[test]
    fn bounds_of_the_rate_that_contradict_the_given_ones_are_left_out() {
        let model = CostModel { rbps: 1, rseqiops: 1, rrandiops: 1, wbps: 1, wseqiops: 1, wrandiops: 1 };
        let values = |text: &str, key: &str| {
            let mut settings = IoCostSettings::default();
            settings.update(text).unwrap();
            qos(&[None, Some(DiskIoCost { qos: settings.qos, model })], key)
        };
        assert_eq!(values("enable=1", "min"), ["10", "25"]);
        assert_eq!(values("enable=1", "max"), ["50", "100"]);
        assert_eq!(values("enable=1 min=60", "max"), ["100"]);
        assert_eq!(values("enable=1 min=5 max=20", "min"), ["10"]);
        assert_eq!(values("enable=1", "rlat"), ["1000", "5000", "25000"]);
        assert!(values("enable=1", "rbps").is_empty());
    }
}
