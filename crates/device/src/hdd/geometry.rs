//! The position of sectors on the platters: zones, cylinders, tracks, and angles.
//!
//! Zones have the same number of cylinders, and the media rate falls linearly from the outermost to the innermost.
//! Addresses fill all tracks of a cylinder before the next cylinder. Each track starts later by the time of the switch
//! from the previous one (skew), so that a stream loses no rotation.

use hoistway_blk::ground::{Nanos, SECTOR_BYTES};

use super::HddParameters;
use crate::random::{from_ms, from_us};

/// A sector that passed the head at most this long ago can still be read: times are rounded.
pub(super) const PASSED_TOLERANCE_NS: u64 = 2_000;

/// A position of head and platter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct HeadPosition {
    pub(super) cylinder: u64,
    pub(super) head: u64,
    /// When in a rotation the sector passes the head, ns after the index mark.
    pub(super) angle_ns: u64,
    /// The number of its zone.
    pub(super) zone: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Geometry {
    /// Zones by their first sector.
    zones: Vec<Zone>,
    /// Tracks in a cylinder.
    heads: u64,
    /// One rotation, ns.
    pub(super) rotation_ns: u64,
    /// Time to switch to the next track of a cylinder, ns.
    pub(super) head_switch_ns: u64,
    /// Time to switch to the next cylinder, ns.
    cylinder_switch_ns: u64,
    /// Cylinders in all.
    pub(super) cylinders: u64,
}

#[derive(Clone, Debug)]
struct Zone {
    first_sector: u64,
    first_cylinder: u64,
    sectors_per_track: u64,
}

impl Geometry {
    pub(super) fn new(capacity_sectors: u64, parameters: &HddParameters) -> Geometry {
        let rotation_ns = from_us(60e6 / parameters.rotations_per_minute).0.max(1);
        let (zones, heads) = (u64::from(parameters.zones), u64::from(parameters.heads));
        let sectors_per_track = |zone: u64| {
            let inward = if zones == 1 { 0.0 } else { zone as f64 / (zones - 1) as f64 };
            let (outer, inner) = (parameters.outer_mb_per_s, parameters.inner_mb_per_s);
            let bytes = (outer + (inner - outer) * inward) * rotation_ns as f64 / 1e3;
            ((bytes / SECTOR_BYTES as f64).round() as u64).max(1)
        };
        // The number of cylinders per zone that gives the capacity.
        let ring_sectors: u64 = (0..zones).map(|zone| sectors_per_track(zone) * heads).sum();
        let zone_cylinders = capacity_sectors.div_ceil(ring_sectors).max(1);
        let mut first_sector = 0;
        let zones: Vec<Zone> = (0..zones)
            .map(|number| {
                let sectors_per_track = sectors_per_track(number);
                let zone = Zone { first_sector, first_cylinder: number * zone_cylinders, sectors_per_track };
                first_sector += sectors_per_track * heads * zone_cylinders;
                zone
            })
            .collect();
        Geometry {
            cylinders: zones.len() as u64 * zone_cylinders,
            zones,
            heads,
            rotation_ns,
            head_switch_ns: from_ms(parameters.head_switch_ms).0,
            cylinder_switch_ns: from_ms(parameters.seek_track_to_track_ms).0,
        }
    }

    /// The number of the zone of a sector.
    #[inline]
    fn zone_number(&self, sector: u64) -> usize {
        self.zones.partition_point(|zone| zone.first_sector <= sector).max(1) - 1
    }

    /// The number of the zone of a sector in this zone or a later one; usually it is this one.
    #[inline]
    fn zone_after(&self, mut zone: usize, sector: u64) -> usize {
        while self.zones.get(zone + 1).is_some_and(|next| next.first_sector <= sector) {
            zone += 1;
        }
        zone
    }

    /// The zone, cylinder and head of a sector of a zone, and its number on the track.
    #[inline]
    fn track(&self, zone_number: usize, sector: u64) -> (&Zone, u64, u64, u64) {
        let zone = &self.zones[zone_number];
        let in_zone = sector - zone.first_sector;
        let (track, in_track) = (in_zone / zone.sectors_per_track, in_zone % zone.sectors_per_track);
        (zone, zone.first_cylinder + track / self.heads, track % self.heads, in_track)
    }

    /// The position of a sector.
    pub(super) fn position(&self, sector: u64) -> HeadPosition {
        self.position_in_zone(self.zone_number(sector), sector)
    }

    /// The position of a later sector than that of `from`.
    #[inline]
    pub(super) fn position_after(&self, from: &HeadPosition, sector: u64) -> HeadPosition {
        self.position_in_zone(self.zone_after(from.zone, sector), sector)
    }

    fn position_in_zone(&self, zone_number: usize, sector: u64) -> HeadPosition {
        let (zone, cylinder, head, in_track) = self.track(zone_number, sector);
        let skew_ns = self.skew_ns(cylinder, head);
        // Nearly always it fits into a word, and one division does.
        let skew_ns = match u64::try_from(skew_ns) {
            Ok(skew_ns) => skew_ns % self.rotation_ns,
            Err(_) => (skew_ns % u128::from(self.rotation_ns)) as u64,
        };
        let angle_ns = in_track * self.rotation_ns / zone.sectors_per_track + skew_ns;
        let turns = if angle_ns < self.rotation_ns { 0 } else { self.rotation_ns };
        HeadPosition { cylinder, head, angle_ns: angle_ns - turns, zone: zone_number }
    }

    /// The total skew from the first track to this one, ns.
    #[inline]
    fn skew_ns(&self, cylinder: u64, head: u64) -> u128 {
        let cylinder_ns = self.cylinder_switch_ns + (self.heads - 1) * self.head_switch_ns;
        u128::from(cylinder) * u128::from(cylinder_ns) + u128::from(head * self.head_switch_ns)
    }

    /// The same of the track of a sector of a zone.
    #[inline]
    fn skew_ns_at(&self, zone_number: usize, sector: u64) -> u128 {
        let (_, cylinder, head, _) = self.track(zone_number, sector);
        self.skew_ns(cylinder, head)
    }

    /// The time in which these sectors pass the head, including track switches. The next sector follows without a wait.
    pub(super) fn transfer(&self, sector: u64, sectors: u64) -> Nanos {
        let (zone, end) = (self.zone_number(sector), sector + sectors);
        let skew_ns = self.skew_ns_at(self.zone_after(zone, end), end) - self.skew_ns_at(zone, sector);
        Nanos(self.passing_ns(zone, sector, end) + skew_ns as u64)
    }

    /// The same from one sector to a later one; both positions are known.
    pub(super) fn transfer_between(
        &self,
        (first, first_at): (u64, &HeadPosition),
        (end, end_at): (u64, &HeadPosition),
    ) -> Nanos {
        let skew_ns = |position: &HeadPosition| self.skew_ns(position.cylinder, position.head);
        Nanos(self.passing_ns(first_at.zone, first, end) + (skew_ns(end_at) - skew_ns(first_at)) as u64)
    }

    /// The same without track switches. `zone` is that of the first sector.
    #[inline]
    fn passing_ns(&self, mut zone: usize, first: u64, end: u64) -> u64 {
        let mut passing_ns = 0;
        let mut from = first;
        while from < end {
            let sectors = self.zones.get(zone + 1).map_or(end, |next| next.first_sector.min(end)) - from;
            passing_ns += sectors * self.rotation_ns / self.zones[zone].sectors_per_track;
            (zone, from) = (zone + 1, from + sectors);
        }
        passing_ns
    }

    /// The number of sectors from `sector` on that pass in `time`, including track switches, rounded down.
    pub(super) fn sectors_in(&self, sector: u64, time: Nanos) -> u64 {
        let zone_number = self.zone_number(sector);
        let (zone, cylinder, head, _) = self.track(zone_number, sector);
        let skew_ns = self.skew_ns(cylinder, head);
        let transfer_ns = |end: u64| {
            let end_skew_ns = self.skew_ns_at(self.zone_after(zone_number, end), end);
            self.passing_ns(zone_number, sector, end) + (end_skew_ns - skew_ns) as u64
        };
        // Start with the mean over a cylinder, then reduce until it fits.
        let track_ns = self.rotation_ns + self.head_switch_ns;
        let passing = u128::from(time.0) * u128::from(zone.sectors_per_track);
        let mut sectors = match u64::try_from(passing) {
            Ok(passing) => passing / track_ns,
            Err(_) => (passing / u128::from(track_ns)) as u64,
        };
        while sectors > 0 && transfer_ns(sector + sectors) > time.0 {
            sectors -= sectors.div_ceil(16);
        }
        sectors
    }

    /// The head arrives at a track at this time, ns.
    #[inline]
    pub(super) fn arrival(&self, at_ns: u64) -> Arrival {
        Arrival { angle_ns: at_ns % self.rotation_ns, rotation_ns: self.rotation_ns }
    }
}

/// The rotation of the platters when the head has arrived.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    angle_ns: u64,
    rotation_ns: u64,
}

impl Arrival {
    /// Time until the sector of `position` passes the head, ns.
    #[inline]
    pub(super) fn wait_ns(self, position: &HeadPosition) -> u64 {
        let turns = if position.angle_ns >= self.angle_ns { 0 } else { self.rotation_ns };
        let wait_ns = position.angle_ns + turns - self.angle_ns;
        if wait_ns + PASSED_TOLERANCE_NS >= self.rotation_ns { 0 } else { wait_ns }
    }
}

#[cfg(test)]
mod tests;
