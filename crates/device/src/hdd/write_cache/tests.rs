//! Admission, flushes, and the indexes beside a scan of every extent.

use super::*;
use crate::hdd::geometry::Geometry;
use crate::preset::{Parameters, Preset};
use crate::random::Random;

fn mechanics() -> Mechanics {
    let preset = Preset::builtin("hgst-he10-8tb").unwrap();
    let Parameters::Hdd(parameters) = preset.parameters() else { unreachable!() };
    Mechanics::new(Geometry::new(preset.shape().capacity_sectors, parameters), parameters)
}

fn cache(extents: u32, sectors: u64) -> WriteCache {
    WriteCache::new(extents, sectors as f64 * 512.0, &mechanics())
}

#[test]
fn the_write_cache_admits_what_fits_and_rewrites_need_no_room() {
    let mechanics = mechanics();
    let mut few = cache(1, 1000);
    assert!(few.admit(100, 8, &mechanics) && few.admit(108, 8, &mechanics), "one goes on where the other ends");
    assert!(!few.admit(117, 8, &mechanics) && few.admit(101, 15, &mechanics) && !few.admit(101, 16, &mechanics));
    assert!(few.holds(100, 16) && !few.holds(100, 17) && !few.holds(99, 2));
    let mut small = cache(10, 16);
    assert!(small.admit(0, 8, &mechanics) && small.admit(100, 8, &mechanics), "just as many");
    assert!(!small.admit(200, 1, &mechanics) && small.admit(0, 8, &mechanics));
    let mut empty = cache(10, 16);
    assert!(empty.admit(0, 17, &mechanics), "more than it holds, but there is nothing to wait for");
}

#[test]
fn a_flush_waits_only_for_data_dirty_at_its_start_while_a_stream_continues() {
    let mechanics = mechanics();
    let mut cache = cache(3, 10_000);
    assert!(cache.admit(0, 3000, &mechanics));
    let flush = cache.flush();
    assert!(cache.admit(3000, 10, &mechanics) && cache.extents.len() == 2, "joins nothing that is flushed");
    let place = |sector| mechanics.geometry.position(sector);
    assert_eq!(cache.destage(Instant::ZERO, &mechanics), Some((0, place(0), DESTAGE_SECTORS_MAX)));
    assert!(!cache.is_flushed(flush));
    cache.finish_destage(&mechanics);
    assert!(!cache.is_flushed(flush) && !cache.holds(0, 1) && cache.holds(DESTAGE_SECTORS_MAX, 952));
    let rest = Some((DESTAGE_SECTORS_MAX, place(DESTAGE_SECTORS_MAX), 952));
    assert_eq!(cache.destage(Instant::ZERO, &mechanics), rest);
    cache.finish_destage(&mechanics);
    assert!(cache.is_flushed(flush) && cache.holds(3000, 10) && !cache.is_empty());
}

/// The rules without indexes: each question is answered by looking at every extent.
#[derive(Default)]
struct Plain {
    /// First sector, sectors and epoch of each.
    extents: Vec<(u64, u64, u64)>,
    moving: Option<(usize, u64)>,
    epoch: u64,
}

impl Plain {
    fn admit(&mut self, sector: u64, sectors: u64, extents_max: usize, sectors_max: u64) -> bool {
        let end = sector + sectors;
        let moving = self.moving.map(|(index, _)| index);
        let still = || self.extents.iter().enumerate().filter(|&(index, _)| Some(index) != moving);
        if still().any(|(_, &(first, long, _))| first <= sector && end <= first + long) {
            return true;
        }
        if !self.extents.is_empty() && self.extents.iter().map(|extent| extent.1).sum::<u64>() + sectors > sectors_max {
            return false;
        }
        let joins = still().rfind(|(_, extent)| extent.0 + extent.1 == sector && extent.2 == self.epoch);
        match joins.map(|(index, _)| index) {
            Some(index) => self.extents[index].1 += sectors,
            None if self.extents.len() < extents_max => self.extents.push((sector, sectors, self.epoch)),
            None => return false,
        }
        true
    }

    fn destaged(&mut self) {
        let (index, sectors) = self.moving.take().unwrap();
        if self.extents[index].1 > sectors {
            self.extents[index].0 += sectors;
            self.extents[index].1 -= sectors;
        } else {
            self.extents.swap_remove(index);
        }
    }
}

#[test]
fn the_write_cache_indexes_match_a_scan_of_every_extent() {
    const EXTENTS: u32 = 12;
    let mechanics = mechanics();
    for (seed, sectors_max) in [(1, 300), (2, 20_000)] {
        let (mut cache, mut plain) = (cache(EXTENTS, sectors_max), Plain::default());
        let (mut random, mut flush) = (Random::from_seed(seed), 0);
        let mut refused = 0;
        for step in 0..20_000 {
            match random.below(12) {
                0..6 => {
                    let long = random.below(50) == 0 && sectors_max > 300;
                    let (sector, sectors) = (random.below(400), if long { 5000 } else { 1 + random.below(30) });
                    let is_taken = plain.admit(sector, sectors, EXTENTS as usize, sectors_max);
                    assert_eq!(cache.admit(sector, sectors, &mechanics), is_taken, "{step}");
                    refused += u32::from(!is_taken);
                }
                6..10 => {
                    let (sector, sectors) = (random.below(6000), random.below(40));
                    let is_held = plain
                        .extents
                        .iter()
                        .any(|&(first, long, _)| first <= sector && sector + sectors <= first + long);
                    assert_eq!(cache.holds(sector, sectors), is_held, "{step}: {sectors} from {sector}");
                }
                10 if plain.moving.is_some() => {
                    cache.finish_destage(&mechanics);
                    plain.destaged();
                }
                10 => {
                    let begun = cache.destage(Instant(random.below(1 << 40)), &mechanics);
                    let older = |extent: &(u64, u64, u64)| extent.2 < plain.epoch;
                    let is_flushing = plain.extents.iter().any(older);
                    plain.moving = cache.destaging;
                    assert_eq!(begun.is_none(), plain.extents.is_empty(), "{step}");
                    if let Some((index, sectors)) = plain.moving {
                        let extent = &plain.extents[index];
                        let place = mechanics.geometry.position(extent.0);
                        assert_eq!(
                            (begun, sectors),
                            (Some((extent.0, place, sectors)), extent.1.min(DESTAGE_SECTORS_MAX))
                        );
                        assert!(!is_flushing || older(extent), "{step}: a flush waits");
                    }
                }
                _ if random.below(20) == 0 => {
                    plain.epoch += 1;
                    flush = cache.flush();
                }
                _ => {
                    let is_flushed = plain.extents.iter().all(|extent| extent.2 >= flush);
                    assert_eq!((cache.is_flushed(flush), cache.is_empty()), (is_flushed, plain.extents.is_empty()));
                }
            }
        }
        assert!(refused > 100, "{refused} of seed {seed}");
    }
}
