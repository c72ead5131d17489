//! A device, what is asked of it at which times, and when that ends.

use hoistway_blk::bio::{Op, Status};
use hoistway_blk::ground::{Instant, Sector};
use hoistway_device::{Command, Device, Preset, Schedule, Shape};

/// One hardware queue so deep, and 512 MiB behind it.
pub fn shape(queue_depth: u32) -> Shape {
    Shape {
        capacity_sectors: 1 << 20,
        hw_queues: 1,
        queue_depth,
        ..Preset::builtin("intel-s3520-1600gb").unwrap().shape().clone()
    }
}

pub fn command(tag: u32, op: Op, sector: u64, sectors: u32) -> Command {
    Command { tag, queue: 0, op, sector: Sector(sector), sectors, fua: false }
}

/// Submits at these times and calls the device when it wants that. Returns when each tag ended, and how.
pub fn serve(device: &mut dyn Device, load: &[(u64, Command)]) -> Vec<(u64, u32, Status)> {
    let (mut schedule, mut ended, mut alarms) = (Schedule::default(), Vec::new(), Vec::new());
    let mut load = load.iter().peekable();
    loop {
        let alarm = alarms.iter().copied().min();
        let submits = load.next_if(|(at, _)| alarm.is_none_or(|(first, _): (Instant, u32)| Instant(*at) < first));
        match (submits, alarm) {
            (Some((at, command)), _) => device.submit(Instant(*at), *command, &mut schedule).unwrap(),
            (None, Some(first)) => {
                alarms.retain(|alarm| *alarm != first);
                device.wake(first.0, first.1, &mut schedule);
            }
            (None, None) => break,
        }
        ended.extend(schedule.completions.drain(..).map(|end| (end.at.0, end.tag, end.status)));
        alarms.append(&mut schedule.alarms);
    }
    ended.sort_unstable_by_key(|end| (end.0, end.1));
    ended
}
