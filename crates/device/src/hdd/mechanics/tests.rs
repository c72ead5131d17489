//! Times of seeks and head switches, and the nearest of several places.

use super::*;
use crate::preset::{Parameters, Preset};
use crate::random::Random;

fn of_a_disk() -> (Mechanics, HddParameters, u64) {
    let preset = Preset::builtin("hgst-he10-8tb").unwrap();
    let Parameters::Hdd(parameters) = preset.parameters() else { unreachable!() };
    let capacity = preset.shape().capacity_sectors;
    (Mechanics::new(Geometry::new(capacity, parameters), parameters), parameters.clone(), capacity)
}

#[test]
fn seeks_go_through_the_three_figures_of_the_data_sheet() {
    let (mechanics, parameters, _) = of_a_disk();
    let cylinders = mechanics.geometry.cylinders;
    let ms = |ns: f64| ns / 1e6;
    assert_eq!(ms(mechanics.seek.ns(0) as f64), parameters.seek_track_to_track_ms);
    assert!((ms(mechanics.seek.ns(cylinders) as f64) - parameters.seek_full_stroke_ms).abs() < 1e-5);
    let mut random = Random::from_seed(1);
    let mut between = || mechanics.seek.ns(random.below(cylinders).abs_diff(random.below(cylinders))) as f64;
    let mean_ms = ms((0..100_000).map(|_| between()).sum::<f64>() / 100_000.0);
    assert!((mean_ms - parameters.seek_average_ms).abs() < 0.03, "{mean_ms} ms");
}

#[test]
fn the_head_seeks_switches_to_another_head_or_stays_and_waits_for_the_sector() {
    let (mut mechanics, _, _) = of_a_disk();
    mechanics.head_at = HeadPosition { cylinder: 1000, head: 1, angle_ns: 0, zone: 0 };
    let place = |cylinder, head, angle_ns| HeadPosition { cylinder, head, angle_ns, zone: 0 };
    assert_eq!(mechanics.seek_ns(&place(1000, 1, 5)), 0);
    assert_eq!(mechanics.seek_ns(&place(1000, 2, 5)), mechanics.geometry.head_switch_ns);
    for cylinder in [999, 1001] {
        assert_eq!(mechanics.seek_ns(&place(cylinder, 1, 5)), mechanics.seek.ns(1), "as far inwards as outwards");
    }
    let rotation = mechanics.geometry.rotation_ns;
    assert_eq!(mechanics.positioning(Instant(3 * rotation), &place(1000, 1, 50_000)), Nanos(50_000));
    assert_eq!(mechanics.positioning(Instant(60_000), &place(1000, 1, 50_000)), Nanos(rotation - 10_000), "too late");
    assert_eq!(mechanics.positioning(Instant(51_000), &place(1000, 1, 50_000)), Nanos(0), "caught: times are rounded");
}

#[test]
fn after_a_transfer_the_next_sector_follows_without_a_wait() {
    let (mut mechanics, _, capacity) = of_a_disk();
    let mut random = Random::from_seed(3);
    for _ in 0..1000 {
        let (sector, sectors) = (random.below(capacity - 10_000), 1 + random.below(9_000));
        let now = Instant(random.below(1 << 40));
        let from = mechanics.geometry.position(sector);
        let end = mechanics.pass(now, sector, &from, sectors);
        assert_eq!(mechanics.head_at, mechanics.geometry.position(sector + sectors));
        let behind = mechanics.head_at;
        let next = mechanics.pass(end, sector + sectors, &behind, 1);
        let passing = mechanics.geometry.transfer(sector + sectors, 1);
        assert!(next.since(end) <= passing + Nanos(2_000), "{sectors} from {sector}: {:?}", next.since(end));
    }
}

#[test]
fn of_two_places_reached_at_once_the_first_is_the_nearest() {
    let (mechanics, _, _) = of_a_disk();
    let [near, far] = [1_000_000, 9_000_000_000].map(|sector| mechanics.geometry.position(sector));
    let nearest = |places: &[HeadPosition]| mechanics.nearest(Instant::ZERO, places.iter().enumerate());
    assert_eq!(nearest(&[near, near, far]), Some(0));
    assert_eq!(nearest(&[]), None);
}
