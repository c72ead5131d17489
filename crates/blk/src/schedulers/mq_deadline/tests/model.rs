//! Long random runs against a model that is the text of DD-11 to DD-20 over plain vectors.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;

#[derive(Clone, Copy, Debug)]
struct Waiting {
    id: u32,
    class: usize,
    direction: usize,
    sector: u64,
    expiry: i64,
}

/// The rules word by word; every search is linear.
struct Model {
    generation: DeadlineGeneration,
    expire: [i64; 2],
    writes_starved: u32,
    fifo_batch: u32,
    aging: i64,
    last_direction: usize,
    batching: u32,
    starved: u32,
    position: [[u64; 2]; 3],
    next: [[Option<u32>; 2]; 3],
    /// In order of arrival.
    waiting: Vec<Waiting>,
    /// Newest first.
    heads: Vec<Waiting>,
    exist: [u32; 3],
}

impl Model {
    fn new(generation: DeadlineGeneration) -> Self {
        Model {
            generation,
            expire: [500, 5000],
            writes_starved: 2,
            fifo_batch: 16,
            aging: 10_000,
            last_direction: 1,
            batching: 0,
            starved: 0,
            position: [[0; 2]; 3],
            next: [[None; 2]; 3],
            waiting: Vec::new(),
            heads: Vec::new(),
            exist: [0; 3],
        }
    }

    fn set(&mut self, tunable: usize, value: i128) {
        match tunable {
            0 | 1 => self.expire[tunable] = value as i64,
            2 => self.writes_starved = value as i32 as u32,
            4 => self.fifo_batch = value as u32,
            _ => self.aging = value as i64,
        }
    }

    fn class_of(&self, class: usize) -> usize {
        if self.generation == A { 1 } else { class }
    }

    fn insert(&mut self, now: i64, rq: Waiting, place: Place) {
        self.exist[rq.class] += 1;
        match place {
            Place::Head => self.heads.insert(0, Waiting { expiry: now, ..rq }),
            Place::Sorted => self.waiting.push(Waiting { expiry: now + self.expire[rq.direction], ..rq }),
        }
    }

    fn in_order(&self, class: usize, direction: usize) -> Vec<Waiting> {
        let of = |rq: &&Waiting| rq.class == class && rq.direction == direction;
        let mut list: Vec<Waiting> = self.waiting.iter().filter(of).copied().collect();
        list.sort_by_key(|rq| rq.sector);
        list
    }

    fn oldest(&self, class: usize, direction: usize) -> Option<Waiting> {
        self.waiting.iter().find(|rq| rq.class == class && rq.direction == direction).copied()
    }

    fn nxt(&self, class: usize, direction: usize) -> Option<Waiting> {
        let list = self.in_order(class, direction);
        if self.generation >= C {
            list.into_iter().find(|rq| rq.sector >= self.position[class][direction])
        } else {
            let id = self.next[class][direction]?;
            list.into_iter().find(|rq| rq.id == id)
        }
    }

    fn inserted_at(&self, rq: &Waiting) -> i64 {
        rq.expiry - self.expire[rq.direction]
    }

    fn give_head(&mut self, at: usize) -> u32 {
        let rq = self.heads.remove(at);
        self.position[rq.class][rq.direction] = rq.sector;
        rq.id
    }

    fn dispatch(&mut self, now: i64) -> Option<u32> {
        if matches!(self.generation, A | CPrime) && !self.heads.is_empty() {
            return Some(self.give_head(0));
        }
        let strict = self.generation >= B2;
        if strict && self.exist.iter().filter(|&&count| count > 0).count() >= 2 {
            for class in [1, 2] {
                if let Some(id) = self.one_class(class, now, now - self.aging) {
                    return Some(id);
                }
            }
        }
        let newest = if strict { now } else { i64::MAX };
        for class in 0..3 {
            if let Some(id) = self.one_class(class, now, newest) {
                return Some(id);
            }
            if strict && self.exist[class] > 0 {
                return None;
            }
        }
        None
    }

    fn one_class(&mut self, class: usize, now: i64, limit: i64) -> Option<u32> {
        if !matches!(self.generation, A | CPrime)
            && let Some(at) = self.heads.iter().position(|rq| rq.class == class)
        {
            return (self.inserted_at(&self.heads[at]) <= limit).then(|| self.give_head(at));
        }
        let candidate = match self.generation {
            A => self.nxt(class, 1).or(self.nxt(class, 0)),
            _ => self.nxt(class, self.last_direction),
        };
        let chosen = match candidate {
            Some(rq) if self.batching < self.fifo_batch => rq,
            _ => {
                let direction = match (self.oldest(class, 0), self.oldest(class, 1)) {
                    (None, None) => return None,
                    (Some(_), None) => 0,
                    (None, Some(_)) => 1,
                    (Some(_), Some(_)) => {
                        let writes = self.starved >= self.writes_starved;
                        self.starved += 1;
                        usize::from(writes)
                    }
                };
                if direction == 1 {
                    self.starved = 0;
                }
                let oldest = self.oldest(class, direction).unwrap();
                let start = if now >= oldest.expiry { oldest } else { self.nxt(class, direction).unwrap_or(oldest) };
                self.last_direction = direction;
                self.batching = 0;
                start
            }
        };
        if self.inserted_at(&chosen) > limit {
            return None;
        }
        self.batching += 1;
        let list = self.in_order(class, chosen.direction);
        let after = list.iter().position(|rq| rq.id == chosen.id).unwrap() + 1;
        self.next[class][chosen.direction] = list.get(after).map(|rq| rq.id);
        if self.generation == A {
            self.next[class][1 - chosen.direction] = None;
        }
        self.position[class][chosen.direction] = chosen.sector;
        self.waiting.retain(|rq| rq.id != chosen.id);
        Some(chosen.id)
    }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Insert { class: usize, read: bool, sector: u64 },
    InsertAtHead { class: usize, read: bool, sector: u64 },
    Dispatch(u8),
    Complete,
    Wait(u16),
    Set(usize, i128),
}

fn act(classes: usize) -> impl Strategy<Value = Act> {
    let what = || (0..classes, any::<bool>(), 0u64..60);
    let tunable = prop_oneof![
        (0usize..2, 0i128..60).prop_map(|(file, ms)| (file, ms)),
        (-1i128..4).prop_map(|value| (2, value)),
        (0i128..6).prop_map(|value| (4, value)),
        (0i128..60).prop_map(|ms| (6, ms)),
    ];
    // With one class it is the middle one.
    let class = move |class: usize| if classes == 1 { 1 } else { class };
    prop_oneof![
        30 => what().prop_map(move |(c, read, sector)| Act::Insert { class: class(c), read, sector }),
        1 => what().prop_map(move |(c, read, sector)| Act::InsertAtHead { class: class(c), read, sector }),
        30 => (1u8..4).prop_map(Act::Dispatch),
        20 => Just(Act::Complete),
        20 => (1u16..12).prop_map(Act::Wait),
        2 => tunable.prop_map(|(file, value)| Act::Set(file, value)),
    ]
}

fn bio_of(class: usize, read: bool, sector: u64) -> Bio {
    bio(&format!("{}/{}{sector}", ["rt", "be", "idle"][class], if read { 'R' } else { 'W' }))
}

/// Runs both and compares every decision and the state behind it; returns how many requests were given out.
fn compare(generation: DeadlineGeneration, acts: &[Act]) -> Result<u32, TestCaseError> {
    let (mut bench, mut model) = (Bench::new(generation), Model::new(generation));
    let (mut decisions, mut in_flight) = (0, VecDeque::new());
    for (file, _) in bench.policy.tunables() {
        prop_assert!(
            [
                "read_expire",
                "write_expire",
                "writes_starved",
                "front_merges",
                "fifo_batch",
                "async_depth",
                "prio_aging_expire"
            ]
            .contains(&file.name)
        );
    }
    for &act in acts {
        let now = (bench.now.0 / 1_000_000) as i64;
        match act {
            Act::Insert { class, read, sector } | Act::InsertAtHead { class, read, sector } => {
                if bench.free.is_empty() {
                    continue;
                }
                let place = if matches!(act, Act::Insert { .. }) { Place::Sorted } else { Place::Head };
                let id = bench.insert(bio_of(class, read, sector), place);
                let class = model.class_of(class);
                let rq = Waiting { id: id.0, class, direction: usize::from(!read), sector, expiry: 0 };
                model.insert(now, rq, place);
            }
            Act::Dispatch(times) => {
                for _ in 0..times {
                    let (rq, choice) = bench.dispatch();
                    prop_assert_eq!(choice.rq.map(|id| id.0), model.dispatch(now), "decision {}", decisions);
                    decisions += 1;
                    in_flight.extend(rq);
                }
                let policy = &bench.policy;
                prop_assert_eq!(policy.last_direction as usize, model.last_direction);
                prop_assert_eq!((policy.batching, policy.starved), (model.batching, model.starved));
            }
            Act::Complete => {
                if let Some(rq) = in_flight.pop_front() {
                    let class = usize::from(bench.policy.entries[rq.id().index()].class);
                    model.exist[class] -= 1;
                    bench.complete(rq);
                }
            }
            Act::Wait(ms) => bench.now += crate::ground::time::Nanos::from_millis(u64::from(ms)),
            Act::Set(file, value) => {
                if let Some((tunable, _)) = bench.policy.tunables().get(file) {
                    bench.write(tunable.name, value);
                    model.set(file, value);
                }
            }
        }
        let waiting = model.waiting.len() + model.heads.len();
        prop_assert_eq!(bench.policy.has_work(), waiting > 0);
    }
    Ok(decisions)
}

/// At least 10,000 decisions of a generation, with `classes` priority classes, equal those of the model.
fn check(generation: DeadlineGeneration, classes: usize) {
    let decisions = Cell::new(0);
    let mut runner = TestRunner::new(Config { cases: 60, ..Config::default() });
    let acts = prop::collection::vec(act(classes), 300..400);
    runner
        .run(&acts, |acts| {
            decisions.set(decisions.get() + compare(generation, &acts)?);
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{generation:?}: {failure}"));
    assert!(decisions.get() >= 10_000, "{} decisions", decisions.get());
}

#[test]
fn random_batches_of_one_class_are_dispatched_as_the_model_does() {
    GENERATIONS.into_iter().for_each(|generation| check(generation, 1));
}

#[test]
fn random_batches_of_three_classes_with_ageing_are_dispatched_as_the_model_does() {
    GENERATIONS.into_iter().for_each(|generation| check(generation, 3));
}
