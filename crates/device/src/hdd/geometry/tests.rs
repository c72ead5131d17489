//! Positions and transfer rates from zone to zone.

use super::*;
use crate::preset::{Parameters, Preset};

fn parameters() -> HddParameters {
    let preset = Preset::builtin("hgst-he10-8tb").unwrap();
    let Parameters::Hdd(parameters) = preset.parameters() else { unreachable!() };
    // 10 ms a rotation.
    HddParameters {
        rotations_per_minute: 6000.0,
        heads: 2,
        outer_mb_per_s: 204.8,
        inner_mb_per_s: 102.4,
        head_switch_ms: 1.0,
        seek_track_to_track_ms: 2.0,
        zones: 3,
        ..parameters.clone()
    }
}

const ROTATION: u64 = 10_000_000;

#[test]
fn rates_fall_evenly_from_the_outermost_to_the_innermost_zone() {
    // Two tracks of 4000, 3000 and 2000 sectors, ten of such cylinders in each zone.
    let geometry = Geometry::new(180_000, &parameters());
    let zones: Vec<_> =
        geometry.zones.iter().map(|zone| (zone.first_sector, zone.first_cylinder, zone.sectors_per_track)).collect();
    assert_eq!(zones, [(0, 0, 4000), (80_000, 10, 3000), (140_000, 20, 2000)]);
    assert_eq!((geometry.cylinders, geometry.rotation_ns), (30, ROTATION));
    let one = Geometry::new(180_001, &HddParameters { zones: 1, ..parameters() });
    assert_eq!((one.zones[0].sectors_per_track, one.cylinders), (4000, 23), "one zone is the outermost");
    assert_eq!(Geometry::new(180_001, &parameters()).cylinders, 33, "what does not fit has a cylinder in each zone");
}

#[test]
fn addresses_fill_the_tracks_of_a_cylinder_with_the_skew_of_each_switch() {
    let geometry = Geometry::new(180_000, &parameters());
    let ms = 1_000_000;
    for (sector, cylinder, head, angle_ns) in [
        (0, 0, 0, 0),
        (1000, 0, 0, ROTATION / 4),
        (3999, 0, 0, ROTATION * 3999 / 4000),
        (4000, 0, 1, ms),
        (8000, 1, 0, 3 * ms),
        (9000, 1, 0, 3 * ms + ROTATION / 4),
        (12_000, 1, 1, 4 * ms),
        // Ten cylinders on: whole rotations.
        (80_000, 10, 0, 0),
        (81_500, 10, 0, ROTATION / 2),
        (83_000, 10, 1, ms),
        (179_999, 29, 1, (29 * 3 * ms + ms + ROTATION * 1999 / 2000) % ROTATION),
    ] {
        let position = geometry.position(sector);
        assert_eq!((position.cylinder, position.head, position.angle_ns), (cylinder, head, angle_ns), "{sector}");
    }
}

#[test]
fn a_stream_passes_at_the_rate_of_its_zones_and_loses_no_rotation_between_tracks() {
    let geometry = Geometry::new(180_000, &parameters());
    let ms = 1_000_000;
    for (sector, sectors, ns) in [
        (0, 0, 0),
        (0, 1000, ROTATION / 4),
        (3000, 1000, ROTATION / 4 + ms),
        (0, 8000, 2 * ROTATION + 3 * ms),
        (80_000, 1500, ROTATION / 2),
        // Half of it in the one zone and half in the next: the last track of 4000, then one of 3000.
        (78_000, 3500, ROTATION / 2 + 2 * ms + ROTATION / 2),
    ] {
        assert_eq!(geometry.transfer(sector, sectors), Nanos(ns), "{sectors} from {sector}");
    }
    // The next sector is there when the head is.
    for (sector, sectors) in [(0, 4000), (3000, 9000), (79_000, 5000), (139_990, 20)] {
        let (from, to) = (geometry.position(sector), geometry.position(sector + sectors));
        let arrives = geometry.arrival(from.angle_ns + geometry.transfer(sector, sectors).0);
        assert!(arrives.wait_ns(&to) <= 1, "{sectors} from {sector}");
        assert_eq!(geometry.position_after(&from, sector + sectors), to, "{sectors} from {sector}");
    }
}

#[test]
fn the_sectors_that_fit_a_time_take_no_longer_and_hardly_less() {
    let geometry = Geometry::new(180_000, &parameters());
    for sector in [0, 3999, 79_000, 150_000] {
        for us in [0, 1, 3, 100, 2_500, 9_999, 25_000, 180_000] {
            let time = Nanos(us * 1000);
            let sectors = geometry.sectors_in(sector, time);
            assert!(sectors == 0 || geometry.transfer(sector, sectors) <= time, "{sectors} in {us} us from {sector}");
            // The mean over a cylinder, less a sixteenth at a time; a track may begin at once.
            let most = geometry.transfer(sector, sectors + sectors / 4 + 600);
            assert!(most > time, "{sectors} in {us} us from {sector}");
        }
    }
    assert_eq!(geometry.sectors_in(0, Nanos(ROTATION / 4)), 909, "of 1000: a switch of tracks is reckoned in");
}

#[test]
fn a_sector_that_passes_just_now_is_caught_and_any_other_waited_for() {
    let geometry = Geometry::new(180_000, &parameters());
    let wait = |at_ns, angle_ns| geometry.arrival(at_ns).wait_ns(&HeadPosition { angle_ns, ..HeadPosition::default() });
    assert_eq!(wait(0, 5_000_000), 5_000_000);
    assert_eq!(wait(3 * ROTATION + 1, 5_000_000), 4_999_999);
    assert_eq!(wait(5_000_000, 5_000_000), 0);
    assert_eq!(wait(5_002_000, 5_000_000), 0);
    assert_eq!(wait(5_002_001, 5_000_000), ROTATION - 2_001);
}
