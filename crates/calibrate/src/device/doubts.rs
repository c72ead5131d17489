//! Doubts: signs that measured figures are not those of the device alone.

use std::time::Duration;

use super::{DeviceObserver, DevicePlan, MeasuredRow, median};

/// The device must be idle for this long before the measurement.
const IDLE_TIME: Duration = Duration::from_millis(300);
/// Sectors that other programs may transfer in that time: a file system occasionally writes its journal.
const TOLERATED_SECTORS: u64 = 2048;
/// I/O of other programs that is tolerated during a load, as a fraction of the load's I/O.
const TOLERATED_SHARE: f64 = 0.05;
/// If the rate falls below this fraction of the first round's, the first round ran on burst credits.
const BURST_RATIO_MAX: f64 = 0.7;
/// Maximum random reads per second of a rotating disk at depth 1.
const SEEKS_MAX: f64 = 1000.0;

/// Why figures are not trusted.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Doubt {
    /// The device is in use.
    #[error("other programs moved {kib} KiB on the device in {ms} ms (expected a device that no other program uses)")]
    InUse {
        /// KiB transferred by other programs.
        kib: u64,
        /// During this time, ms.
        ms: u128,
    },
    /// Others used the device during a load.
    #[error(
        "the device moved {moved_kib} KiB while the load moved {ours_kib} (expected a device that no other program uses)"
    )]
    Beside {
        /// KiB according to the disk's statistics.
        moved_kib: u64,
        /// KiB according to the load.
        ours_kib: u64,
    },
    /// The device has used up its burst credits.
    #[error(
        "the rate fell to {percent:.0} % of the first round's under a constant load: burst credits are used up, or the drive is hot \
         (expected a steady rate: measure again later, or use a volume without burst credits)"
    )]
    Burst {
        /// The last round's rate, percent of the first one's.
        percent: f64,
    },
    /// The device serves reads from a cache.
    #[error(
        "{iops:.0} random reads per second at depth 1 are more than a disk can seek, so a cache serves them (expected a larger device, or --like with a drive that does not seek)"
    )]
    Cached {
        /// The measured rate, I/Os per second.
        iops: f64,
    },
}

/// Fails if other programs use the device while it should be idle.
pub(super) fn check_idle(observer: &dyn DeviceObserver) -> Result<(), Doubt> {
    let Some(before) = observer.sectors() else { return Ok(()) };
    std::thread::sleep(IDLE_TIME);
    let moved = observer.sectors().unwrap_or(before).saturating_sub(before);
    if moved > TOLERATED_SECTORS {
        return Err(Doubt::InUse { kib: moved / 2, ms: IDLE_TIME.as_millis() });
    }
    Ok(())
}

/// Fails if other programs used the device during a load that transferred this many bytes. Below a file system, the
/// device may transfer slightly more than the load.
pub(super) fn check_load(moved_sectors: Option<u64>, bytes: u64) -> Result<(), Doubt> {
    let Some(moved) = moved_sectors else { return Ok(()) };
    let sectors_max = (bytes / 512) as f64 * (1.0 + TOLERATED_SHARE) + TOLERATED_SECTORS as f64;
    if moved as f64 > sectors_max {
        return Err(Doubt::Beside { moved_kib: moved / 2, ours_kib: bytes / 1024 });
    }
    Ok(())
}

/// Checks the rows of all rounds.
pub(super) fn check_rows(plan: &DevicePlan, rows: &[MeasuredRow]) -> Result<(), Doubt> {
    let last_to_first = |row: &MeasuredRow| Some(row.iops.last()? / row.iops.first().filter(|_| row.iops.len() > 1)?);
    let ratios: Vec<f64> = rows.iter().filter_map(last_to_first).collect();
    // Two rounds do not show a trend.
    if plan.rounds > 2 && median(&ratios) < BURST_RATIO_MAX && rows.iter().all(is_first_fastest) {
        return Err(Doubt::Burst { percent: 100.0 * median(&ratios) });
    }
    let first = rows.first().map_or(0.0, |row| median(&row.iops));
    if plan.is_rotating && first > SEEKS_MAX {
        return Err(Doubt::Cached { iops: first });
    }
    Ok(())
}

/// Whether the first round was the fastest.
fn is_first_fastest(row: &MeasuredRow) -> bool {
    row.iops.iter().all(|rate| row.iops.first().is_some_and(|first| rate <= first))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::device::loads;

    struct Disk {
        sectors: Cell<u64>,
        by_others: u64,
    }

    impl DeviceObserver for Disk {
        fn goes_on(&self) -> bool {
            true
        }
        fn sectors(&self) -> Option<u64> {
            self.sectors.set(self.sectors.get() + self.by_others);
            Some(self.sectors.get())
        }
        fn ended(&self, _: usize) {}
    }

    fn rows(rates: &[f64]) -> Vec<MeasuredRow> {
        let row = |load: loads::CalibrationLoad| MeasuredRow { row: load.row(1, Vec::new()), iops: rates.to_vec() };
        loads::all(false).map(row).collect()
    }

    fn plan(is_rotating: bool) -> DevicePlan {
        DevicePlan { target: "x".into(), writes: false, rounds: 4, time: Duration::from_secs(1), is_rotating }
    }

    #[test]
    fn a_device_that_others_use_is_refused_and_a_journal_that_is_written_is_not() {
        let disk = |by_others| Disk { sectors: Cell::new(1 << 30), by_others };
        assert_eq!(check_idle(&disk(8)), Ok(()));
        assert!(matches!(check_idle(&disk(1 << 14)), Err(Doubt::InUse { kib: 8192, .. })));
        let bytes = 100 << 20;
        assert_eq!(check_load(Some(bytes / 512 + 1000), bytes), Ok(()));
        assert!(check_load(Some(bytes / 512 * 2), bytes).is_err());
        assert_eq!(check_load(None, bytes), Ok(()));
    }

    #[test]
    fn rates_that_fall_in_every_load_were_a_burst_and_rates_that_scatter_were_not() {
        assert!(matches!(check_rows(&plan(false), &rows(&[3000.0, 3000.0, 900.0, 800.0])), Err(Doubt::Burst { .. })));
        assert_eq!(check_rows(&plan(false), &rows(&[3000.0, 2000.0, 3500.0, 1900.0])), Ok(()));
        assert_eq!(check_rows(&plan(false), &rows(&[3000.0, 2900.0, 2800.0, 2700.0])), Ok(()));
    }

    #[test]
    fn a_disk_that_rotates_does_not_read_faster_than_it_seeks() {
        assert!(matches!(check_rows(&plan(true), &rows(&[5000.0; 4])), Err(Doubt::Cached { .. })));
        assert_eq!(check_rows(&plan(true), &rows(&[150.0; 4])), Ok(()));
        assert_eq!(check_rows(&plan(false), &rows(&[5000.0; 4])), Ok(()));
    }
}
