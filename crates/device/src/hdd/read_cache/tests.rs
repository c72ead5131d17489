//! What stays cached, and how far the head reads ahead.

use hoistway_blk::ground::Nanos;

use super::*;
use crate::preset::{Parameters, Preset};

const CAPACITY: u64 = 1 << 20;

fn geometry() -> Geometry {
    let preset = Preset::builtin("hgst-he10-8tb").unwrap();
    let Parameters::Hdd(parameters) = preset.parameters() else { unreachable!() };
    Geometry::new(CAPACITY, parameters)
}

/// A cache of two segments that reads 512 KB ahead, which is 1000 sectors.
fn cache() -> ReadCache {
    ReadCache::new(2, 512.0, CAPACITY)
}

const NOW: Instant = Instant(1_000_000);

#[test]
fn read_data_stays_cached_until_two_other_places_have_been_read() {
    let mut cache = cache();
    cache.record_read(NOW, 100, 8);
    for (sector, sectors, is_there) in
        [(100, 8, true), (101, 3, true), (99, 8, false), (100, 9, false), (107, 1, true), (108, 1, false)]
    {
        assert_eq!(cache.holds(sector, sectors), is_there, "{sectors} from {sector}");
    }
    cache.record_read(NOW, 5000, 8);
    assert!(cache.holds(100, 8) && cache.holds(5000, 8));
    cache.record_read(NOW, 9000, 8);
    assert!(!cache.holds(100, 8) && cache.holds(5000, 8) && cache.holds(9000, 8), "the oldest is replaced");
}

#[test]
fn the_head_reads_ahead_and_a_sector_it_will_reach_is_waited_for() {
    let (mut cache, geometry) = (cache(), geometry());
    let after = |sectors| NOW + geometry.transfer(108, sectors);
    assert_eq!(cache.look_up(NOW, 108, 8, &geometry), Lookup::Miss, "nothing was read yet");
    cache.record_read(NOW, 100, 8);
    assert_eq!(cache.look_up(NOW, 100, 8, &geometry), Lookup::Hit);
    assert_eq!(cache.look_up(NOW, 99, 2, &geometry), Lookup::Miss, "before what is read");
    assert_eq!(cache.look_up(NOW, 1109, 8, &geometry), Lookup::Miss, "further than it will read");
    assert_eq!(cache.look_up(NOW, 108, 100, &geometry), Lookup::Coming(after(100)));
    assert_eq!(cache.look_up(after(300), 208, 200, &geometry), Lookup::Hit, "it has come by meanwhile");
    // Each of these made it read on for a thousand sectors more.
    assert_eq!(cache.look_up(after(300), 1408, 100, &geometry), Lookup::Coming(after(1400)));
    assert_eq!(cache.stop_read_ahead(after(1400), &geometry), Some(108 + 1400));
    assert_eq!(cache.stop_read_ahead(after(1400), &geometry), None, "it has stopped");
    assert!(cache.holds(100, 1408));
}

#[test]
fn a_head_that_has_read_as_far_ahead_as_it_does_has_stopped() {
    let (mut cache, geometry) = (cache(), geometry());
    let ends = NOW + geometry.transfer(108, 1000);
    cache.record_read(NOW, 100, 8);
    assert_eq!(cache.look_up(ends, 1000, 109, &geometry), Lookup::Miss, "one sector further");
    assert_eq!(cache.look_up(ends, 1000, 108, &geometry), Lookup::Hit);
    let mut again = self::cache();
    again.record_read(NOW, 100, 8);
    assert_eq!(again.stop_read_ahead(ends + Nanos::from_millis(9), &geometry), Some(1108), "and no further");
    assert!(again.holds(100, 1008) && !again.holds(100, 1009));
}

#[test]
fn the_head_does_not_read_beyond_the_last_sector() {
    let (mut cache, geometry) = (cache(), geometry());
    cache.record_read(NOW, CAPACITY - 108, 8);
    assert_eq!(cache.look_up(NOW, CAPACITY - 100, 101, &geometry), Lookup::Miss);
    let there = NOW + geometry.transfer(CAPACITY - 100, 100);
    assert_eq!(cache.look_up(NOW, CAPACITY - 100, 100, &geometry), Lookup::Coming(there));
    assert_eq!(cache.stop_read_ahead(there, &geometry), Some(CAPACITY));
}

#[test]
fn a_head_called_away_has_cached_the_sectors_that_passed() {
    let (mut cache, geometry) = (cache(), geometry());
    cache.record_read(NOW, 100, 8);
    let end = cache.stop_read_ahead(NOW + geometry.transfer(108, 400), &geometry).unwrap();
    assert!((400..=508).contains(&end), "{end}");
    assert!(cache.holds(100, end - 100) && !cache.holds(100, end - 99));
}

#[test]
fn a_write_invalidates_the_cached_range_it_touches_and_no_other() {
    for (sector, sectors, is_there) in
        [(92, 8, true), (92, 9, false), (100, 1, false), (103, 1, false), (107, 50, false), (108, 50, true)]
    {
        let mut cache = cache();
        cache.record_read(NOW, 100, 8);
        cache.record_read(NOW, 5000, 8);
        cache.invalidate(sector, sectors);
        assert_eq!((cache.holds(100, 8), cache.holds(5000, 8)), (is_there, true), "{sectors} from {sector}");
    }
}

#[test]
fn without_segments_the_read_cache_keeps_nothing() {
    let mut cache = ReadCache::new(0, 512.0, CAPACITY);
    cache.record_read(NOW, 100, 8);
    assert!(!cache.holds(100, 8));
    assert_eq!(cache.look_up(NOW, 108, 8, &geometry()), Lookup::Miss);
}

#[test]
fn a_write_into_what_is_read_ahead_leaves_only_what_is_read_after_it() {
    let (mut cache, geometry) = (cache(), geometry());
    let after = |sectors| NOW + geometry.transfer(5008, sectors);
    cache.record_read(NOW, 5000, 8);
    assert_eq!(cache.look_up(after(100), 5050, 50, &geometry), Lookup::Hit);
    cache.invalidate(5000, 8);
    assert!(!cache.holds(5050, 8));
    assert_eq!(cache.look_up(after(200), 5150, 50, &geometry), Lookup::Hit, "the head is still there");
    assert!(cache.stop_read_ahead(after(300), &geometry).is_some_and(|end| end > 5200));
    assert!(cache.holds(5150, 50) && !cache.holds(5050, 8) && !cache.holds(0, 8));
}
