//! The search that found the write side of the preset: random steps from the best so far, judged by the mean distance of the
//! fitted cells alone. What was held back is compared at the end. A few trials are part of all tests; more of them, and what they find:
//!
//! ```sh
//! HOISTWAY_TRIALS=40 cargo test --release -p hoistway-device --test evidence no_random_step -- --nocapture
//! ```

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::SLOW_STEPS;
use super::cells::{Cell, Drives, Use, distance, eight_drives, one_drive, print};

/// How much of the usual time a trial takes.
const PART: f64 = 0.3;

/// Trials by default: each takes seconds.
const TRIALS: u32 = 2;

/// A number that is searched for, and its range.
struct Searched {
    name: &'static str,
    least: f64,
    most: f64,
    set: fn(&mut Drives, f64),
    get: fn(&Drives) -> f64,
}

/// Everything else of the write side is from the data sheet or from the flash.
const SEARCHED: [Searched; 6] = [
    Searched {
        name: "buffer_kib",
        least: 500.0,
        most: 4000.0,
        set: |drives, value| drives.usual.buffer_kib = value as u32,
        get: |drives| f64::from(drives.usual.buffer_kib),
    },
    Searched {
        name: "program_us",
        least: 600.0,
        most: 2000.0,
        set: |drives, value| drives.usual.program_us = value,
        get: |drives| drives.usual.program_us,
    },
    Searched {
        name: "collection.programs",
        least: 60.0,
        most: 2000.0,
        set: |drives, value| drives.usual.collection.as_mut().unwrap().programs = value as u32,
        get: |drives| f64::from(drives.usual.collection.as_ref().unwrap().programs),
    },
    Searched {
        name: "collection.step_us",
        least: 1000.0,
        most: 5000.0,
        set: |drives, value| drives.usual.collection.as_mut().unwrap().step_us = value,
        get: |drives| drives.usual.collection.as_ref().unwrap().step_us,
    },
    Searched {
        name: "striping.write_through_unit_kib",
        least: 8.0,
        most: 64.0,
        set: |drives, value| drives.usual.striping.as_mut().unwrap().write_through_unit_kib = value as u32,
        get: |drives| f64::from(drives.usual.striping.as_ref().unwrap().write_through_unit_kib),
    },
    Searched {
        name: "slow_steps",
        least: 1.01,
        most: 3.0,
        set: |drives, value| drives.slow_steps = value,
        get: |drives| drives.slow_steps,
    },
];

fn cells(drives: &Drives, used: Use) -> Vec<Cell> {
    let is_wanted = |of| of == used;
    let mut all = one_drive(drives, 0, PART, is_wanted);
    all.extend(eight_drives(drives, 0, PART, is_wanted));
    all
}

#[test]
fn no_random_step_from_the_preset_comes_much_nearer_to_the_fitted_cells() {
    let trials: u32 =
        std::env::var("HOISTWAY_TRIALS").map_or(TRIALS, |text| text.parse().expect("HOISTWAY_TRIALS is a number"));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut uniform = move || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let mut best = Drives::of_preset(SLOW_STEPS);
    let first = distance(cells(&best, Use::Fitted).iter());
    let mut nearest = first;
    println!("the preset: {first:.3}");
    for trial in 0..trials {
        let mut tried = best.clone();
        for of in &SEARCHED {
            if uniform() < 0.5 {
                let step = (of.most / of.least).powf((uniform() - 0.5) * 0.35);
                (of.set)(&mut tried, ((of.get)(&best) * step).clamp(of.least, of.most));
            }
        }
        let found = distance(cells(&tried, Use::Fitted).iter());
        if found < nearest {
            (best, nearest) = (tried, found);
            let numbers: Vec<String> =
                SEARCHED.iter().map(|of| format!("{} {:.1}", of.name, (of.get)(&best))).collect();
            println!("trial {trial}: {found:.3}, {}", numbers.join(", "));
        }
    }
    for used in [Use::Fitted, Use::Predicted] {
        let all = cells(&best, used);
        print(&all);
        let near = all.iter().filter(|cell| cell.is_near()).count();
        println!("{used:?}: {:.3}, {near} of {} within 25 %", distance(all.iter()), all.len());
    }
    assert!(nearest > 0.9 * first, "{nearest} instead of {first}");
}
