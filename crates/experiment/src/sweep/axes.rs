//! Numbering of points: a point's position on each axis.

use crate::comparison::{Comparison, MeasuredTime, QueueFile, Tunable, Vary};

use super::space::{Space, Value};

/// The axes of a space. Seeds vary fastest, then settings, schedulers, guest schedulers, kernels, hosts, devices and
/// loads.
#[derive(Clone, Debug)]
pub(super) struct Axes {
    loads: usize,
    devices: usize,
    hosts: usize,
    kernels: usize,
    guest_schedulers: usize,
    /// For each scheduler its settings, and the number of their combinations.
    schedulers: Vec<(Vec<Vary>, u64)>,
    /// Combinations of all schedulers in total.
    variants: u64,
    seeds: u64,
    settings: Vec<Vary>,
}

/// The position of a point. Two points of one cell differ only in the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) cell: u64,
    pub(super) load: usize,
    pub(super) devices: usize,
    pub(super) host: usize,
    pub(super) kernel: usize,
    pub(super) guest_scheduler: usize,
    pub(super) scheduler: usize,
    /// Number of the combination of its settings.
    pub(super) combination: u64,
    pub(super) seed: usize,
}

impl Axes {
    pub(super) fn of(space: &Space, seeds: usize) -> Axes {
        let named =
            space.settings.iter().flat_map(|(of, names)| names.iter().map(move |(name, values)| (of, name, values)));
        let texts = |values: &[Value]| values.iter().map(|value| value.0.clone()).collect();
        let setting = |(of, name, values): (&String, &String, &Vec<Value>)| Vary {
            of: of.clone(),
            name: name.clone(),
            texts: texts(values),
        };
        let settings: Vec<Vary> = named.map(setting).collect();
        let schedulers: Vec<_> = space
            .schedulers
            .iter()
            .map(|scheduler| {
                let own_settings: Vec<Vary> = settings
                    .iter()
                    .filter(|setting| setting.of == *scheduler || setting.of == Vary::QUEUE)
                    .cloned()
                    .collect();
                let combinations =
                    own_settings.iter().fold(1, |all: u64, setting| all.saturating_mul(setting.texts.len() as u64));
                (own_settings, combinations)
            })
            .collect();
        Axes {
            loads: space.loads.len().max(1),
            devices: space.devices.len().max(1),
            hosts: space.hosts.len().max(1),
            kernels: space.kernels.len().max(1),
            guest_schedulers: space.guest_schedulers.len().max(1),
            variants: schedulers.iter().fold(0, |all, (_, combinations)| all.saturating_add(*combinations)),
            schedulers,
            seeds: seeds as u64,
            settings,
        }
    }

    /// The number of points; [`u64::MAX`] if there are that many or more.
    pub(super) fn points(&self) -> u64 {
        let lengths = [self.loads, self.devices, self.hosts, self.kernels, self.guest_schedulers];
        lengths.into_iter().fold(self.variants.saturating_mul(self.seeds), |all, axis| all.saturating_mul(axis as u64))
    }

    /// All settings of the space, in the order of their names.
    pub(super) fn settings(&self) -> &[Vary] {
        &self.settings
    }

    /// The position of an existing point.
    pub(super) fn position(&self, point: u64) -> Position {
        let mut rest = point;
        let mut next = |length: u64| {
            let coordinate = rest % length.max(1);
            rest /= length.max(1);
            coordinate
        };
        let seed = next(self.seeds) as usize;
        let mut combination = next(self.variants);
        let mut scheduler = 0;
        while let Some((_, combinations)) = self.schedulers.get(scheduler).filter(|(_, many)| combination >= *many) {
            combination -= combinations;
            scheduler += 1;
        }
        let mut next = |length: usize| next(length as u64) as usize;
        Position {
            cell: point / self.seeds.max(1),
            seed,
            combination,
            scheduler,
            guest_scheduler: next(self.guest_schedulers),
            kernel: next(self.kernels),
            host: next(self.hosts),
            devices: next(self.devices),
            load: next(self.loads),
        }
    }

    /// The settings of a position, each with its value.
    pub(super) fn settings_of(&self, position: &Position) -> impl Iterator<Item = (&Vary, &String)> {
        let mut rest = position.combination;
        self.schedulers[position.scheduler].0.iter().map(move |setting| {
            let many = setting.texts.len() as u64;
            let value = &setting.texts[(rest % many) as usize];
            rest /= many;
            (setting, value)
        })
    }

    /// The numbers of combinations that cover each value of each setting of a scheduler: one with the first value of each, and
    /// those that differ from it in one setting.
    pub(super) fn trials(&self, scheduler: usize) -> Vec<u64> {
        let mut trials = vec![0];
        let mut step = 1;
        for setting in &self.schedulers[scheduler].0 {
            let many = setting.texts.len() as u64;
            trials.extend((1..many).map(|value| value * step));
            step *= many;
        }
        trials
    }

    /// Lengths of the axes of loads, devices, hosts, kernels, schedulers of guests and schedulers.
    pub(super) fn lengths(&self) -> [usize; 6] {
        [self.loads, self.devices, self.hosts, self.kernels, self.guest_schedulers, self.schedulers.len()]
    }

    /// The comparison of a position, without its seed.
    pub(super) fn comparison(&self, space: &Space, position: &Position) -> Comparison {
        let mut comparison = space.base.clone();
        comparison.measured = if space.from_start { MeasuredTime::AsFio } else { MeasuredTime::Together };
        fn select<T: Clone>(axis: &[T], position: usize) -> Vec<T> {
            axis.get(position).cloned().into_iter().collect()
        }
        if let Some(load) = space.loads.get(position.load) {
            comparison.load = load.clone();
        }
        comparison.devices = select(&space.devices, position.devices);
        comparison.hosts = select(&space.hosts, position.host);
        comparison.kernels = select(&space.kernels, position.kernel);
        comparison.schedulers = select(&space.schedulers, position.scheduler);
        comparison.guests.schedulers = select(&space.guest_schedulers, position.guest_scheduler);
        for (Vary { of, name, .. }, text) in self.settings_of(position) {
            let text = text.clone();
            if of == Vary::QUEUE {
                comparison.queue_files.push(QueueFile { file: name.clone(), text });
            } else {
                comparison.tunables.push(Tunable { scheduler: of.clone(), name: name.clone(), text });
            }
        }
        comparison
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn space() -> Space {
        let values = |texts: &[&str]| texts.iter().map(|text| Value((*text).to_owned())).collect::<Vec<_>>();
        let mut space = Space {
            devices: vec!["null".into(), "hgst-he10-8tb".into()],
            kernels: vec!["6.12".to_owned(), "7.2".to_owned(), "4.19".to_owned()],
            schedulers: vec!["none".to_owned(), "bfq".to_owned(), "kyber".to_owned()],
            ..Space::default()
        };
        space.settings.insert("bfq".to_owned(), [("slice_idle".to_owned(), values(&["0", "8"]))].into());
        space
            .settings
            .insert(Vary::QUEUE.to_owned(), [("nr_requests".to_owned(), values(&["32", "64", "128"]))].into());
        space
    }

    #[test]
    fn every_point_is_another_experiment_and_all_of_a_cell_stand_together() {
        let (space, seeds) = (space(), 5);
        let axes = Axes::of(&space, seeds);
        // nr_requests for all schedulers, slice_idle only for bfq.
        assert_eq!(axes.points(), 2 * 3 * (3 + 2 * 3 + 3) * 5);
        let mut seen = BTreeSet::new();
        for point in 0..axes.points() {
            let position = axes.position(point);
            assert_eq!((position.cell, position.seed), (point / 5, (point % 5) as usize));
            let comparison = axes.comparison(&space, &position);
            let about_bfq = comparison.schedulers == ["bfq"];
            assert_eq!(comparison.tunables.len(), usize::from(about_bfq));
            assert!(seen.insert((serde_json::to_string(&comparison).unwrap(), position.seed)), "{point}");
        }
    }

    #[test]
    fn trials_have_every_value_and_are_few() {
        let axes = Axes::of(&space(), 1);
        assert_eq!(axes.trials(0), [0, 1, 2]);
        assert_eq!(axes.trials(1).len(), 1 + 1 + 2);
        let position = |combination| Position { scheduler: 1, combination, ..axes.position(0) };
        let mut values = BTreeSet::new();
        for trial in axes.trials(1) {
            values.extend(axes.settings_of(&position(trial)).map(|(one, value)| (one.name.clone(), value.clone())));
        }
        assert_eq!(values.len(), 2 + 3);
    }

    #[test]
    fn a_space_may_be_larger_than_any_number() {
        let mut space = space();
        space.settings.insert(
            Vary::QUEUE.to_owned(),
            (0..40).map(|file| (file.to_string(), (0..100).map(|value| Value(value.to_string())).collect())).collect(),
        );
        assert_eq!(Axes::of(&space, 5).points(), u64::MAX);
    }
}
