//! What the built-in presets and their models must keep beside what `conservation.rs` proves of the smallest ones: every
//! model ends each command exactly once, is bound by its stages, reaches its media rate, and rises with depth.

use crate::closed_loop;

use closed_loop::{Process, run};
use hoistway_blk::bio::{Op, Status};
use hoistway_blk::ground::{Instant, Nanos, Sector};
use hoistway_device::{Command, Completion, Device, Flash, FlashParameters, Parameters, Preset, PresetFile, Schedule};
use proptest::prelude::*;

/// Presets of every model, each with a file of its own.
const NAMES: [&str; 8] = [
    "hgst-he10-8tb",
    "intel-p4800x-375gb",
    "intel-s3520-1600gb",
    "micron-9100-1600gb",
    "null",
    "raid-64-queues",
    "samsung-980pro-1tb",
    "throttled-cloud-volume",
];

/// What each model is pushed into: features that no built-in preset uses.
const VARIANTS: [(&str, &str); 5] = [
    (
        "samsung-980pro-1tb",
        "random_write_amplification = 3\nfua_blocks_reads = true\ngc_defers = true\nwrite_page_kib = 16\n[flash.arbitration]\nurgent_queues = 1\nhigh_queues = 1\n\
         medium_queues = 1\nhigh_weight = 4\nmedium_weight = 2\nlow_weight = 1\n\
         [flash.slc_cache]\ngb = 0.001\nprogram_us = 500\nfold_mb_per_s = 100\n\
         [flash.collection]\nprograms = 2\nstep_us = 3000\nstep_programs = 2\n\
         [flash.stall]\nevery_mb = 1\nlasts_ms = 2\n",
    ),
    (
        "micron-9100-1600gb",
        "program_suspend_us = 5\ncollection_step_us = 200\nwrite_to_host_us = 1\nholds_write_kib = 64\nheat_placement = true\nwrite_page_kib = 16\n",
    ),
    ("null", "holds_commands = 3\n[throttle]\niops = 5000\nio_kib = 64\nmb_per_s = 100\n"),
    (
        "hgst-he10-8tb",
        "[tracer]\nkeeps_events = 10\n[faults]\nerrors_per_million = 100000\nstalls_per_million = 100000\n\
         stall_ms = 5\nlost_per_million = 100000\nlost_after_ms = 30\ntorn_writes_per_million = 100000\n",
    ),
    (
        "raid-64-queues",
        "[throttle]\niops = 500\nio_kib = 256\nmb_per_s = 50\n[throttle.burst]\niops = 1000\nios = 50\n\
         mb_per_s = 100\nmb = 10\n",
    ),
];

/// The preset of this name with some keys added to its model's section.
fn variant(name: &str, added: &str) -> Preset {
    let text = PresetFile::from(Preset::builtin(name).unwrap()).to_toml().unwrap();
    let model = text.lines().find_map(|line| line.strip_prefix("model = ")).unwrap().trim_matches('"').to_owned();
    let section = format!("\n[{model}]\n");
    assert!(text.contains(&section), "{text}");
    // What is there already gives way.
    let replaced: Vec<&str> = added.lines().filter(|line| line.starts_with('[')).collect();
    let mut kept = String::new();
    let mut keep = true;
    for line in text.lines() {
        if line.starts_with('[') {
            keep = !replaced.contains(&line);
        }
        if keep {
            kept += line;
            kept += "\n";
        }
    }
    let (keys, sections) = added.split_at(added.find('[').unwrap_or(added.len()));
    let text = kept.replacen(&section, &format!("{section}{keys}"), 1) + "\n" + sections;
    Preset::from_toml(&text, "variant.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn presets() -> Vec<Preset> {
    let builtin = NAMES.iter().map(|name| Preset::builtin(name).unwrap());
    builtin.chain(VARIANTS.iter().map(|(name, added)| variant(name, added))).collect()
}

/// What a device made of commands that came this many ns after each other: when and how each ended. Checks on the way that
/// each accepted one ends exactly once, and nothing in the past.
fn serve(device: &mut dyn Device, load: &[(u64, Command)]) -> Vec<(Instant, Completion)> {
    let mut schedule = Schedule::default();
    let mut alarms = std::collections::BTreeSet::new();
    let mut ends: Vec<(Instant, Option<Completion>)> = Vec::new();
    let (mut now, mut order) = (Instant::ZERO, 0);
    let mut load = load.iter().peekable();
    let mut due = Instant::ZERO;
    loop {
        let alarm = alarms.first().copied();
        let next = load.peek().map(|(gap_ns, command)| (due + Nanos(*gap_ns), *command));
        match (next, alarm) {
            (None, None) => break,
            (Some((at, command)), alarm) if alarm.is_none_or(|(alarm_at, ..)| at < alarm_at) => {
                now = at.max(now);
                match device.submit(now, command, &mut schedule) {
                    Ok(()) => {
                        ends.push((now, None));
                        due = now;
                        load.next();
                    }
                    // Later.
                    Err(_) => {
                        assert!(schedule.completions.is_empty(), "a refused command must not end");
                        let ends = ends.iter().filter_map(|(_, end)| end.map(|end: Completion| end.at));
                        let completion = ends.filter(|&at| at > now).min();
                        let alarm = alarms.first().map(|(at, ..): &(Instant, u64, u32)| *at);
                        let gap_ns = load.peek().map_or(0, |(gap_ns, _)| *gap_ns);
                        let later = completion.into_iter().chain(alarm).min().expect("something that makes room");
                        due = Instant(later.0.max(now.0).saturating_sub(gap_ns));
                    }
                }
            }
            (_, Some((at, number, alarm))) => {
                alarms.remove(&(at, number, alarm));
                now = at;
                device.wake(now, alarm, &mut schedule);
            }
            (Some(_), None) => unreachable!(),
        }
        for (at, alarm) in schedule.alarms.drain(..) {
            assert!(at >= now, "an alarm in the past");
            order += 1;
            alarms.insert((at, order, alarm));
        }
        for completion in schedule.completions.drain(..) {
            assert!(completion.at >= now, "a completion in the past");
            let (_, end) = &mut ends[completion.tag as usize];
            assert_eq!(*end, None, "a command ends exactly once");
            *end = Some(completion);
        }
    }
    ends.into_iter().map(|(at, end)| (at, end.expect("an accepted command ends"))).collect()
}

prop_compose! {
    /// Up to 32 commands on up to 4 queues, some of them next to each other.
    fn any_load()(
        commands in prop::collection::vec(
            (prop_oneof![Just(0), 0..50_000_u64, 0..20_000_000_u64], 0..10_u32, 0..1000_u64, 1..256_u32, any::<bool>(), 0..4_u16),
            1..32,
        ),
    ) -> Vec<(u64, Command)> {
        commands.into_iter().enumerate().map(|(tag, (gap_ns, op, place, sectors, fua, queue))| {
            let op = [Op::Read, Op::Write, Op::Flush, Op::Discard, Op::WriteZeroes][op.saturating_sub(5) as usize % 5];
            let op = if tag % 2 == 0 && op == Op::Read { Op::Write } else { op };
            let sectors = if op == Op::Flush { 0 } else { sectors };
            let fua = fua && op == Op::Write;
            (gap_ns, Command { tag: tag as u32, queue, op, sector: Sector(place * 997 * 8), sectors, fua })
        }).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_command_ends_exactly_once_and_a_seed_fixes_every_bit(load in any_load(), seed in any::<u64>()) {
        for preset in presets() {
            let queues = preset.shape().hw_queues;
            let load: Vec<_> = load.iter().map(|&(gap_ns, command)| {
                (gap_ns, Command { queue: command.queue % queues, ..command })
            }).collect();
            let once = serve(&mut *preset.build(seed), &load);
            prop_assert_eq!(once.len(), load.len());
            prop_assert_eq!(&once, &serve(&mut *preset.build(seed), &load), "{}", preset.name);
            let minimum_ns = match preset.parameters() {
                Parameters::Flash(p) => {
                    let back_us = p.write_to_host_us.unwrap_or(p.device_to_host_us).min(p.device_to_host_us);
                    (p.host_to_device_us + back_us + p.command_us.min(p.discard_us)) * 1e3
                }
                Parameters::Hdd(p) => p.cache_access_us * 1e3,
                Parameters::Optane(p) => {
                    (p.host_to_device_us + p.device_to_host_us + p.read_command_us.min(p.write_command_us)) * 1e3
                }
                Parameters::Raid(p, _) => p.command_us * 1e3,
                Parameters::Null(p) => p.delay_ns as f64,
                Parameters::Service(_) => 1.0,
                Parameters::Ssd(p) => (p.host_to_device_us + p.device_to_host_us) * 1e3,
            };
            for (at, end) in once {
                prop_assert!(end.at.since(at).0 as f64 >= minimum_ns - 2.0, "{}: {:?}", preset.name, end);
            }
        }
    }
}

fn iops(name: &str, process: Process, seconds: u64) -> f64 {
    let mut device = Preset::builtin(name).unwrap().build(1);
    let measured = run(&mut *device, &[process], Nanos::from_secs(seconds), 1);
    measured[0].iter().map(|cell| cell.ios as f64).sum::<f64>() / seconds as f64
}

#[test]
fn throughput_rises_with_depth_to_a_plateau() {
    // Writes of flash drives pause at random, so those are not compared here.
    for (name, seconds) in NAMES.iter().filter(|name| **name != "raid-64-queues").map(|name| match *name {
        "hgst-he10-8tb" => (name, 60),
        "throttled-cloud-volume" => (name, 4),
        _ => (name, 1),
    }) {
        let depth_max = Preset::builtin(name).unwrap().shape().queue_depth;
        let depths = [1, 2, 4, 8, 16, 32, 64, 128, 256].into_iter().filter(|&depth| depth <= depth_max);
        let iops: Vec<f64> = depths.map(|depth| iops(name, Process::random(depth, 100), seconds)).collect();
        for pair in iops.windows(2) {
            assert!(pair[1] >= pair[0] * 0.98, "{name}: {iops:?}");
        }
    }
}

#[test]
fn no_stage_is_faster_than_it_can_be() {
    for name in NAMES {
        let preset = Preset::builtin(name).unwrap();
        let (reads, bandwidth_mb_per_s) = match preset.parameters() {
            Parameters::Flash(p) => {
                let front = 1e6 / p.command_us;
                (front.min(f64::from(p.dies) / p.read_us * 1e6), p.read_mb_per_s * 1.05)
            }
            Parameters::Optane(p) => (1e6 / p.read_command_us, p.read_mb_per_s * 1.05),
            Parameters::Hdd(p) => (1e3 / p.seek_track_to_track_ms, p.outer_mb_per_s),
            _ => continue,
        };
        let depth = preset.shape().queue_depth.min(256);
        let four_kib = iops(name, Process::random(depth, 100), 2);
        assert!(four_kib <= reads * 1.001, "{name}: {four_kib} reads a second, at most {reads}");
        let large = Process { sectors: 256, sequential: true, ..Process::random(depth.min(32), 100) };
        let mb_per_s = iops(name, large, 2) * 131_072.0 / 1e6;
        assert!(mb_per_s <= bandwidth_mb_per_s, "{name}: {mb_per_s} MB/s, at most {bandwidth_mb_per_s}");
    }
}

#[test]
fn a_random_read_alone_takes_the_sum_of_its_stages() {
    for name in ["micron-9100-1600gb", "samsung-980pro-1tb", "intel-p4800x-375gb", "hgst-he10-8tb"] {
        let preset = Preset::builtin(name).unwrap();
        let sum_us = match preset.parameters() {
            Parameters::Flash(p) => p.host_to_device_us + p.command_us + p.read_us + p.device_to_host_us,
            Parameters::Optane(p) => p.host_to_device_us + p.read_command_us + p.access_us + p.device_to_host_us,
            // The mean seek, half a rotation, a little transfer.
            Parameters::Hdd(p) => {
                p.seek_average_ms * 1e3 + 30e6 / p.rotations_per_minute + p.cache_access_us + 4096.0 / p.outer_mb_per_s
            }
            _ => unreachable!(),
        };
        let seconds = if preset.shape().rotational { 300 } else { 1 };
        let mut device = preset.build(1);
        let reads = run(&mut *device, &[Process::random(1, 100)], Nanos::from_secs(seconds), 1)[0][0];
        let mean_us = reads.mean_ms() * 1e3;
        assert!((mean_us / sum_us - 1.0).abs() < 0.02, "{name}: {mean_us} us, the stages take {sum_us}");
    }
}

#[test]
fn sequential_streams_reach_the_media_rate_of_a_disk() {
    let preset = Preset::builtin("hgst-he10-8tb").unwrap();
    let Parameters::Hdd(p) = preset.parameters() else { unreachable!() };
    // While a track passes, less the switches between tracks.
    let rotation_ms = 60e3 / p.rotations_per_minute;
    let rate = p.outer_mb_per_s * rotation_ms / (rotation_ms + p.head_switch_ms);
    for (read_percent, depth) in [(100, 1), (100, 8), (0, 1), (0, 8)] {
        let stream = Process { sectors: 512, sequential: true, ..Process::random(depth, read_percent) };
        let mb_per_s = iops("hgst-he10-8tb", stream, 20) * 262_144.0 / 1e6;
        // The cache takes a part of the writes without the platters.
        let cached = if read_percent == 0 { 128.0 / 20.0 } else { 0.0 };
        let off = (mb_per_s - cached) / rate - 1.0;
        assert!(off.abs() < 0.03, "{read_percent} % reads, depth {depth}: {mb_per_s} MB/s, the media give {rate}");
    }
}

#[test]
fn random_reads_of_any_depth_do_not_stop_the_writes_of_a_disk_nor_these_the_reads() {
    let preset = Preset::builtin("hgst-he10-8tb").unwrap();
    for (readers, writers) in [(1, 8), (4, 8), (16, 1), (24, 8), (8, 24)] {
        let processes = [Process::random(readers, 100), Process::random(writers, 0)];
        let measured = run(&mut *preset.build(1), &processes, Nanos::from_secs(60), 2);
        let (reads, writes) = (measured[0][0], measured[1][1]);
        let longest = [reads.max_ms(), writes.max_ms()];
        assert!(longest.iter().all(|&ms| ms < 3000.0), "{readers} reads, {writers} writes at once: {longest:.0?} ms");
        // What never ended is in no longest latency; the first 390 writes fill the cache.
        assert!(writes.ios > 420 && reads.ios > 420, "{} reads, {} writes", reads.ios, writes.ios);
    }
}

#[test]
fn reads_that_keep_every_die_busy_do_not_hold_up_what_must_be_durable() {
    let flash = Preset::builtin_names()
        .filter(|name| matches!(Preset::builtin(name).unwrap().parameters(), Parameters::Flash(_)));
    for name in flash {
        let preset = Preset::builtin(name).unwrap();
        let sectors = preset.shape().max_sectors.min(2048);
        let stream = Process { sectors, sequential: true, ..Process::random(32, 100) };
        let commits = Process { fua: true, ..Process::random(1, 0) };
        let measured = run(&mut *preset.build(1), &[stream, commits], Nanos::from_secs(5), 2);
        let (reads, writes) = (measured[0][0], measured[1][1]);
        assert!(
            writes.ios > 10 && writes.max_ms() < 8.0 * reads.max_ms(),
            "{name}: {} commits, the longest {:.0} ms beside reads of {:.0} ms",
            writes.ios,
            writes.max_ms(),
            reads.mean_ms()
        );
    }
}

#[test]
fn a_sequential_stream_of_writes_is_not_amplified() {
    let mb_per_s = |sequential| {
        let stream = Process { sectors: 256, sequential, ..Process::random(64, 0) };
        iops("micron-9100-1600gb", stream, 40) * 131_072.0 / 1e6
    };
    let (random, sequential) = (mb_per_s(false), mb_per_s(true));
    assert!(sequential > random, "{sequential} MB/s sequential, {random} MB/s random");
}

#[test]
fn a_large_write_of_a_striped_drive_ends_when_it_is_in_the_flash_and_a_small_one_before() {
    let preset = Preset::builtin("samsung-980pro-1tb").unwrap();
    let Parameters::Flash(p) = preset.parameters() else { unreachable!() };
    let write = |sectors| {
        let command = Command { tag: 0, queue: 0, op: Op::Write, sector: Sector(0), sectors, fua: false };
        let (at, end) = serve(&mut *preset.build(1), &[(0, command)])[0];
        end.at.since(at).0 as f64 / 1e3
    };
    let least_us = p.program_us * (1.0 - p.program_jitter_percent / 100.0);
    assert!(write(128) >= least_us, "64 KiB: {} us, a program takes {least_us} us", write(128));
    assert!(write(8) < 50.0, "4 KiB: {} us", write(8));
    // A stream: the second write continues where the first one ended.
    let stream: Vec<(u64, Command)> = (0..2)
        .map(|tag| {
            (
                0,
                Command {
                    tag,
                    queue: 0,
                    op: Op::Write,
                    sector: Sector(u64::from(tag) * 128),
                    sectors: 128,
                    fua: false,
                },
            )
        })
        .collect();
    let ends = serve(&mut *preset.build(1), &stream);
    let second = ends.iter().find(|(_, end)| end.tag == 1).unwrap();
    assert!(second.1.at.since(second.0).0 < 200_000, "64 KiB of a stream: {second:?}");
}

#[test]
fn a_program_of_a_striped_drive_includes_data_that_arrived_meanwhile() {
    let preset = Preset::builtin("samsung-980pro-1tb").unwrap();
    let Parameters::Flash(p) = preset.parameters() else { unreachable!() };
    let mb_per_s = |depth| {
        let writers = [Process { sectors: 128, ..Process::random(depth, 0) }];
        run(&mut striped(small_units), &writers, Nanos::from_secs(2), 1)[0][1].ios as f64 / 2.0 * 65_536.0 / 1e6
    };
    let units = f64::from(p.dies) * f64::from(SMALL_UNIT_KIB) * 1024.0 / p.program_us;
    // With few outstanding most dies are idle; with many, each program must hold more than one unit.
    let (few, many) = (mb_per_s(8), mb_per_s(224));
    assert!(few < units / 2.0 && many > units * 2.0, "{few} and {many} MB/s, a unit in each program: {units}");
}

/// A unit of which several fit into a program.
const SMALL_UNIT_KIB: u32 = 18;

/// Large writes are dealt to dies in such units, as many as come.
fn small_units(parameters: &mut FlashParameters) {
    parameters.striping.as_mut().unwrap().write_through_unit_kib = SMALL_UNIT_KIB;
    parameters.holds_write_kib = None;
}

/// The striped drive with other parameters.
fn striped(change: impl Fn(&mut FlashParameters)) -> Flash {
    let preset = Preset::builtin("samsung-980pro-1tb").unwrap();
    let Parameters::Flash(mut parameters) = preset.parameters().clone() else { unreachable!() };
    change(&mut parameters);
    Flash::new(preset.shape(), &parameters, 1)
}

#[test]
fn a_drive_whose_dies_are_never_idle_loses_the_time_of_collection() {
    let mb_per_s = |change: fn(&mut FlashParameters)| {
        let writers = [Process { sectors: 128, ..Process::random(224, 0) }];
        run(&mut striped(change), &writers, Nanos::from_secs(2), 1)[0][1].ios as f64 / 2.0 * 65_536.0 / 1e6
    };
    let usual = mb_per_s(small_units);
    let without = mb_per_s(|parameters| {
        small_units(parameters);
        parameters.collection = None;
    });
    let preset = Preset::builtin("samsung-980pro-1tb").unwrap();
    let Parameters::Flash(p) = preset.parameters() else { unreachable!() };
    let collection = p.collection.as_ref().unwrap();
    let expected = p.program_us / (p.program_us + collection.step_us / f64::from(collection.step_programs));
    assert!((0.9..1.1).contains(&(usual / without / expected)), "{usual} of {without} MB/s, expected {expected}");
}

#[test]
fn write_to_host_us_sets_the_latency_of_a_lone_write() {
    let took_us = |op, to_host_us| {
        let command = Command { tag: 0, queue: 0, op, sector: Sector(0), sectors: 8, fua: false };
        let mut drive = striped(|parameters| parameters.write_to_host_us = to_host_us);
        let (at, end) = serve(&mut drive, &[(0, command)])[0];
        end.at.since(at).0 as f64 / 1e3
    };
    let preset = Preset::builtin("samsung-980pro-1tb").unwrap();
    let Parameters::Flash(p) = preset.parameters() else { unreachable!() };
    let given = p.write_to_host_us.unwrap();
    // 60,000 a second, less the 8 us that a host needs for each.
    assert!((took_us(Op::Write, Some(given)) - 8.7).abs() < 0.1, "{} us", took_us(Op::Write, Some(given)));
    let longer = took_us(Op::Write, None) - took_us(Op::Write, Some(given));
    assert!((longer - (p.device_to_host_us - given)).abs() < 0.01, "{longer} us");
    assert_eq!(took_us(Op::Read, Some(given)), took_us(Op::Read, None));
}

#[test]
fn a_throttled_volume_bursts_until_its_credits_are_gone() {
    let text = "[throttle]\niops = 100\nio_kib = 256\nmb_per_s = 1000\n[throttle.burst]\niops = 1000\nios = 1800\n\
                mb_per_s = 1000\nmb = 0\n";
    let preset = variant("null", text);
    let ios =
        |seconds| run(&mut *preset.build(1), &[Process::random(8, 100)], Nanos::from_secs(seconds), 1)[0][0].ios as f64;
    // Credits for 1800 I/Os go at 900 a second; then there is the base rate.
    assert!((ios(1) - 1000.0).abs() < 10.0, "{}", ios(1));
    assert!((ios(2) - 2000.0).abs() < 10.0, "{}", ios(2));
    assert!((ios(12) - 3000.0).abs() < 20.0, "{}", ios(12));
}

#[test]
fn a_throttle_that_is_generous_leaves_a_disk_as_it_is() {
    let text = "[throttle]\niops = 1000000\nio_kib = 256\nmb_per_s = 100000\n";
    let process = [Process::random(8, 70)];
    let ends = |preset: &Preset| {
        let measured = run(&mut *preset.build(1), &process, Nanos::from_secs(5), 1);
        measured[0].iter().map(|cell| cell.ios).collect::<Vec<_>>()
    };
    let disk = ends(&Preset::builtin("hgst-he10-8tb").unwrap());
    assert!(disk.iter().sum::<u64>() > 500, "{disk:?}");
    assert_eq!(ends(&variant("hgst-he10-8tb", text)), disk);
}

#[test]
fn faults_come_as_often_as_they_are_ordered() {
    let text = "[faults]\nerrors_per_million = 50000\nstalls_per_million = 0\nstall_ms = 0\nlost_per_million = 10000\n\
                lost_after_ms = 30000\ntorn_writes_per_million = 100000\n";
    let preset = variant("null", text);
    let load: Vec<_> = (0..20_000)
        .map(|tag| {
            let op = if tag % 2 == 0 { Op::Read } else { Op::Write };
            (1000, Command { tag, queue: 0, op, sector: Sector(0), sectors: 64, fua: false })
        })
        .collect();
    let ends = serve(&mut *preset.build(7), &load);
    let count = |status| ends.iter().filter(|(_, end)| end.status == status).count();
    assert!((900..1100).contains(&count(Status::Medium)), "{} errors", count(Status::Medium));
    assert!((160..240).contains(&count(Status::Timeout)), "{} lost", count(Status::Timeout));
    assert!((900..1100).contains(&count(Status::IoError)), "{} torn", count(Status::IoError));
    let lost = ends.iter().find(|(_, end)| end.status == Status::Timeout).unwrap();
    assert_eq!(lost.1.at.since(lost.0), Nanos::from_secs(30));
}

#[test]
fn a_tracer_remembers_the_last_events() {
    let preset = variant("null", "[tracer]\nkeeps_events = 3\n");
    let mut device = preset.build(1);
    let load: Vec<_> = (0..5)
        .map(|tag| (1000, Command { tag, queue: 0, op: Op::Read, sector: Sector(0), sectors: 8, fua: false }))
        .collect();
    serve(&mut *device, &load);
    let events: Vec<String> = device.traced().unwrap().iter().map(|event| format!("{event:?}")).collect();
    assert_eq!(events.len(), 3);
    assert!(
        events[0].starts_with("Ends") && events[1].starts_with("Taken") && events[2].contains("tag: 4"),
        "{events:?}"
    );
}
