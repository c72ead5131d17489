//! Disks where nothing is left to chance, to the nanosecond.

use crate::support;

use std::collections::BTreeSet;

use hoistway_blk::bio::{Op, Status};
use hoistway_blk::ground::Instant;
use hoistway_device::{
    Command, Device, Hdd, HddParameters, Parameters, Preset, Schedule, Ssd, SsdParameters, WriteCacheParameters,
};
use support::{command, serve, shape};

/// A disk with 30 us for a command and 1 us for each sector over the link.
fn disk(change: impl FnOnce(&mut HddParameters)) -> Hdd {
    let preset = Preset::builtin("hgst-he10-8tb").unwrap();
    let Parameters::Hdd(parameters) = preset.parameters() else { unreachable!() };
    let mut parameters =
        HddParameters { cache_access_us: 30.0, link_mb_per_s: 512.0, pause: None, ..parameters.clone() };
    change(&mut parameters);
    Hdd::new(preset.shape(), &parameters, 1)
}

#[test]
fn a_write_into_the_cache_of_a_disk_takes_its_access_and_the_link() {
    for (sectors, ns) in [(8, 38_000), (64, 94_000)] {
        let ended = serve(&mut disk(|_| {}), &[(0, command(0, Op::Write, 4096, sectors))]);
        assert_eq!(ended[0].0, ns, "{sectors} sectors of 1 us");
    }
}

#[test]
fn commands_without_platter_access_take_an_access_and_their_transfer() {
    let beyond = disk(|_| {}).shape().capacity_sectors;
    for (what, expected, status) in [
        (command(1, Op::Discard, 0, 800), 30_000, Status::Ok),
        (command(1, Op::Write, 0, 0), 30_000, Status::Ok),
        (command(1, Op::Flush, 0, 0), 30_000, Status::Ok),
        (command(1, Op::Read, beyond, 8), 30_000, Status::IoError),
        // It is still dirty.
        (command(1, Op::Read, 4096, 8), 38_000, Status::Ok),
        (command(1, Op::Read, 4100, 4), 34_000, Status::Ok),
    ] {
        let mut disk = disk(|_| {});
        let load = match what.op {
            Op::Read => vec![(0, command(0, Op::Write, 4096, 8)), (1000, what)],
            _ => vec![(1000, what)],
        };
        let ended = serve(&mut disk, &load);
        assert_eq!(ended.iter().find(|end| end.1 == 1), Some(&(1000 + expected, 1, status)), "{what:?}");
    }
}

#[test]
fn commands_on_the_platters_end_one_access_after_the_head_is_free() {
    let through = Command { fua: true, ..command(0, Op::Write, 1 << 30, 8) };
    for what in [command(0, Op::Read, 1 << 30, 8), through] {
        let (mut disk, mut schedule) = (disk(|_| {}), Schedule::default());
        disk.submit(Instant(5_000), what, &mut schedule).unwrap();
        assert!(schedule.alarms[0].0.0 > 1_000_000, "the head has to move");
        assert_eq!(schedule.completions[0].at.0, schedule.alarms[0].0.0 + 30_000, "{what:?}");
        // What was read is in the cache, what was written is not.
        let end = schedule.alarms[0].0;
        disk.wake(end, schedule.alarms[0].1, &mut schedule);
        schedule.completions.clear();
        disk.submit(end, command(1, Op::Read, 1 << 30, 8), &mut schedule).unwrap();
        let is_at_once = schedule.completions[0].at.0 == end.0 + 38_000;
        assert_eq!(is_at_once, what.op == Op::Read, "{what:?}");
    }
}

/// When a write was acknowledged that found the cache full, in ms, while four reads were always outstanding.
fn write_beside_reads_ms(queue_age_limit_ms: f64) -> u64 {
    let mut disk = disk(|parameters| {
        parameters.queue_age_limit_ms = queue_age_limit_ms;
        let cache = WriteCacheParameters { extents: 1, mb: 1.0, read_waits_ms: 0.0, pressure_lasts_ms: None };
        parameters.write_cache = Some(cache);
    });
    let (mut schedule, mut reads) = (Schedule::default(), 0_u64);
    let mut read = |disk: &mut Hdd, now, tag, schedule: &mut Schedule| {
        reads += 1;
        disk.submit(now, command(tag, Op::Read, reads * 7_919_123 % 1_900_000_000 * 8, 8), schedule).unwrap();
    };
    (0..4).for_each(|tag| read(&mut disk, Instant::ZERO, tag, &mut schedule));
    for (tag, sector) in [(8, 1_000_000), (9, 9_000_000_000)] {
        disk.submit(Instant::ZERO, command(tag, Op::Write, sector, 8), &mut schedule).unwrap();
    }
    loop {
        let (at, alarm) = schedule.alarms.remove(0);
        let ended: Vec<_> = schedule.completions.drain(..).collect();
        if let Some(end) = ended.iter().find(|end| end.tag == 9) {
            return end.at.0 / 1_000_000;
        }
        disk.wake(at, alarm, &mut schedule);
        ended.iter().filter(|end| end.tag < 4).for_each(|end| read(&mut disk, at, end.tag, &mut schedule));
    }
}

#[test]
fn reads_go_ahead_of_a_destage_until_a_write_has_waited_for_it_too_long() {
    for limit_ms in [100, 300] {
        let waited_ms = write_beside_reads_ms(limit_ms as f64);
        assert!((limit_ms..limit_ms + 60).contains(&waited_ms), "{waited_ms} of {limit_ms} ms");
    }
}

/// How many reads and random writes a disk with a full cache ends in 20 s, with `depth` reads and four writes always outstanding.
fn reads_and_writes_in_20_s(depth: u32) -> (u64, u64) {
    let mut disk = disk(|parameters| {
        let cache = WriteCacheParameters { extents: 100, mb: 1.0, read_waits_ms: 2.8, pressure_lasts_ms: None };
        parameters.write_cache = Some(cache);
    });
    let (mut schedule, mut submitted, mut ended) = (Schedule::default(), 0_u64, [0, 0]);
    let mut submit = |disk: &mut Hdd, now, tag, schedule: &mut Schedule| {
        submitted += 1;
        let op = if tag < 4 { Op::Write } else { Op::Read };
        let random = submitted.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        disk.submit(now, command(tag, op, random % 1_900_000_000 * 8, 8), schedule).unwrap();
    };
    (0..4 + depth).for_each(|tag| submit(&mut disk, Instant::ZERO, tag, &mut schedule));
    let mut events: BTreeSet<(Instant, bool, u32)> = BTreeSet::new();
    loop {
        events.extend(schedule.alarms.drain(..).map(|(at, alarm)| (at, false, alarm)));
        events.extend(schedule.completions.drain(..).map(|end| (end.at, true, end.tag)));
        let (at, is_end, number) = events.pop_first().unwrap();
        if at.0 > 20_000_000_000 {
            return (ended[0], ended[1]);
        }
        if is_end {
            ended[usize::from(number < 4)] += 1;
            submit(&mut disk, at, number, &mut schedule);
        } else {
            disk.wake(at, number, &mut schedule);
        }
    }
}

#[test]
fn writes_have_their_turn_however_many_reads_are_outstanding() {
    let by_depth = [1, 2, 8, 28].map(reads_and_writes_in_20_s);
    for (reads, writes) in by_depth {
        // A turn of 2.8 ms is one destage of 2 to 4 ms, or two.
        assert!((reads..=2 * reads + 200).contains(&writes), "{by_depth:?}");
    }
    assert!(by_depth.is_sorted_by_key(|&(reads, _)| reads), "a drive reads more of a longer queue: {by_depth:?}");
}

/// When a random read ended that came while eight reads of 1 MiB of one run were always outstanding, in ms.
fn read_beside_a_run_ms(run_limit_ms: Option<f64>) -> u64 {
    let mut disk = disk(|parameters| parameters.run_limit_ms = run_limit_ms);
    let (mut schedule, mut reads) = (Schedule::default(), 0_u64);
    let mut read = |disk: &mut Hdd, now, tag, schedule: &mut Schedule| {
        reads += 1;
        disk.submit(now, command(tag, Op::Read, reads * 2048, 2048), schedule).unwrap();
    };
    (0..8).for_each(|tag| read(&mut disk, Instant::ZERO, tag, &mut schedule));
    disk.submit(Instant(1), command(8, Op::Read, 9_000_000_000, 8), &mut schedule).unwrap();
    let mut events: BTreeSet<(Instant, bool, u32)> = BTreeSet::new();
    loop {
        events.extend(schedule.alarms.drain(..).map(|(at, alarm)| (at, false, alarm)));
        events.extend(schedule.completions.drain(..).map(|end| (end.at, true, end.tag)));
        let (at, is_end, number) = events.pop_first().unwrap();
        match (is_end, number) {
            (true, 8) => return at.0 / 1_000_000,
            (true, tag) => read(&mut disk, at, tag, &mut schedule),
            (false, alarm) => disk.wake(at, alarm, &mut schedule),
        }
    }
}

#[test]
fn a_random_read_waits_beside_a_run_for_its_limit_and_not_for_that_of_the_queue() {
    for limit_ms in [40_u32, 80, 200] {
        let waited_ms = read_beside_a_run_ms(Some(f64::from(limit_ms)));
        assert!((u64::from(limit_ms)..u64::from(limit_ms) + 50).contains(&waited_ms), "{waited_ms} of {limit_ms} ms");
    }
    let waited_ms = read_beside_a_run_ms(None);
    assert!((1000..1060).contains(&waited_ms), "{waited_ms} ms: the limit of the queue");
}

#[test]
fn a_command_of_a_solid_state_disk_passes_its_stage_and_then_the_flash_or_the_buffer() {
    let parameters = SsdParameters {
        host_to_device_us: 1.0,
        serial_stage_us: 20.0,
        // 1 ns a sector beyond the first eight.
        transfer_mb_per_s: 512_000.0,
        acknowledge_us: 3.0,
        flash_read_us: 100.0,
        flash_read_jitter_percent: 0.0,
        flush_us: 500.0,
        discard_us: 30.0,
        device_to_host_us: 2.0,
        gc: None,
    };
    let served = |commands: &[Command]| {
        let load: Vec<(u64, Command)> = commands.iter().map(|&command| (0, command)).collect();
        let ended = serve(&mut Ssd::new(shape(32), &parameters, 1), &load);
        ended.into_iter().map(|(at, _, status)| (at, status)).collect::<Vec<_>>()
    };
    let alone = |command| served(&[command])[0];
    assert_eq!(alone(command(0, Op::Read, 0, 8)), (123_000, Status::Ok), "1 us, 20, 100 and 2");
    assert_eq!(alone(command(0, Op::Read, 0, 1)), (123_000, Status::Ok));
    assert_eq!(alone(command(0, Op::Read, 0, 108)), (123_100, Status::Ok));
    assert_eq!(alone(command(0, Op::Write, 0, 8)), (26_000, Status::Ok), "1 us, 20, 3 and 2");
    assert_eq!(alone(command(0, Op::Write, 0, 108)), (26_100, Status::Ok));
    assert_eq!(alone(Command { fua: true, ..command(0, Op::Write, 0, 8) }), (526_000, Status::Ok));
    for op in [Op::Discard, Op::WriteZeroes] {
        assert_eq!(alone(command(0, op, 0, 800)), (36_000, Status::Ok), "{op:?}");
    }
    assert_eq!(alone(command(0, Op::Flush, 0, 0)), (506_000, Status::Ok));
    assert_eq!(alone(command(0, Op::Read, 1 << 20, 8)), (26_000, Status::IoError), "beyond the end");
    // The stage takes one after the other, and a flush when all before it is done.
    let reads = [command(0, Op::Read, 0, 8), command(1, Op::Read, 8, 8)];
    assert_eq!(served(&reads), [(123_000, Status::Ok), (143_000, Status::Ok)]);
    let flushed = [command(0, Op::Read, 0, 8), command(1, Op::Flush, 0, 0), command(2, Op::Write, 8, 8)];
    assert_eq!(served(&flushed), [(123_000, Status::Ok), (626_000, Status::Ok), (646_000, Status::Ok)]);
}
