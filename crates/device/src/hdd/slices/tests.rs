//! The slices find the place that a scan of all places finds, and examine few.

use super::*;
use crate::hdd::HddParameters;
use crate::preset::{Parameters, Preset};
use crate::random::Random;

/// A built-in disk with some numbers changed, and its sectors.
fn disk(change: impl FnOnce(&mut HddParameters)) -> (Mechanics, u64) {
    let preset = Preset::builtin("hgst-he10-8tb").unwrap();
    let Parameters::Hdd(mut parameters) = preset.parameters().clone() else { unreachable!() };
    change(&mut parameters);
    let capacity = preset.shape().capacity_sectors;
    (Mechanics::new(Geometry::new(capacity, &parameters), &parameters), capacity)
}

/// Looks for the nearest of 300 places in both ways, with the head anywhere and at any time.
fn compare(mut mechanics: Mechanics, capacity: u64, rounds: u32) {
    let mut random = Random::from_seed(1);
    let mut caught = 0;
    for round in 0..rounds {
        // Here and there some that are close to each other, and to the head.
        let span = [100_000, 30_000_000, capacity][round as usize % 3];
        let places: Vec<HeadPosition> = (0..300).map(|_| mechanics.geometry.position(random.below(span))).collect();
        let beside = random.below(300) as usize;
        mechanics.head_at =
            if round % 4 == 0 { places[beside] } else { mechanics.geometry.position(random.below(span)) };
        let mut slices = Slices::new(300, &mechanics);
        places.iter().enumerate().for_each(|(number, place)| slices.add(place, number));
        let wanted = |number: usize| (round % 5 > 1 || !number.is_multiple_of(7)).then_some(&places[number]);
        // Just as one passes the head, or has passed it.
        let turns = random.below(1 << 20) * mechanics.geometry.rotation_ns;
        let passing = Instant(turns + places[beside].angle_ns + random.below(2 * PASSED_TOLERANCE_NS));
        let now = if round % 2 == 0 { passing } else { Instant(random.below(1 << 40)) };
        let all = (0..300).filter_map(|number| Some((number, wanted(number)?)));
        let nearest = mechanics.nearest(now, all);
        assert_eq!(slices.nearest(now, &mechanics, wanted), nearest, "round {round}");
        caught += u32::from(nearest == Some(beside) && mechanics.positioning(now, &places[beside]).0 == 0);
    }
    assert!(caught > rounds / 40, "{caught} of {rounds} had just passed");
}

#[test]
fn slices_find_the_same_nearest_place_as_a_full_scan() {
    let (mechanics, capacity) = disk(|_| {});
    compare(mechanics, capacity, 2000);
}

#[test]
fn slices_match_a_full_scan_on_disks_of_unusual_geometry() {
    for (rotations_per_minute, zones, heads) in [(60.0, 3, 1), (1e6, 20, 8), (3e8, 1, 16), (15_000.0, 1, 2)] {
        let (mechanics, capacity) = disk(|parameters| {
            (parameters.rotations_per_minute, parameters.zones, parameters.heads) =
                (rotations_per_minute, zones, heads);
        });
        let slices = Slices::new(1, &mechanics);
        assert!(slices.slices.len() as u64 <= SLICES_MIN, "{slices:?}");
        assert!(slices.reach.len() as u64 <= 2 * SLICES_OF_A_STROKE_MAX, "{slices:?}");
        compare(mechanics, capacity, 300);
    }
}

#[test]
fn of_places_reached_at_once_the_slices_return_the_lowest_number() {
    let (mechanics, _) = disk(|_| {});
    let place = mechanics.geometry.position(1_000_000);
    let nearest = |numbers: &[usize]| {
        let mut slices = Slices::new(8, &mechanics);
        numbers.iter().for_each(|&number| slices.add(&place, number));
        slices.nearest(Instant::ZERO, &mechanics, |_| Some(&place))
    };
    assert_eq!((nearest(&[5, 2]), nearest(&[2, 5]), nearest(&[])), (Some(2), Some(2), None));
}

#[test]
fn slices_examine_only_one_or_two_of_hundreds_of_places() {
    let (mechanics, capacity) = disk(|_| {});
    let mut random = Random::from_seed(1);
    let looks = std::cell::Cell::new(0);
    for _ in 0..1000 {
        let places: Vec<HeadPosition> = (0..390).map(|_| mechanics.geometry.position(random.below(capacity))).collect();
        let mut slices = Slices::new(390, &mechanics);
        places.iter().enumerate().for_each(|(number, place)| slices.add(place, number));
        let looked = |number: usize| {
            looks.set(looks.get() + 1);
            Some(&places[number])
        };
        slices.nearest(Instant(random.below(1 << 40)), &mechanics, looked).unwrap();
    }
    assert!(looks.get() < 2_000, "{} looks in 1,000 searches", looks.get());
}
