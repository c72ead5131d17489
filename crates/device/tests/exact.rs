//! Models without chance, to the nanosecond.

use crate::support;

use hoistway_blk::bio::{Op, Status};
use hoistway_blk::ground::Instant;
use hoistway_device::{
    Command, Device, FaultInjector, FaultParameters, Null, NullParameters, Optane, OptaneParameters, Preset, Raid,
    RaidParameters, Refusal, Schedule, Shape, Throttle, ThrottleBurst, ThrottleParameters, TraceEvent, Tracer,
    TracerParameters,
};
use support::{command, serve, shape};

#[test]
fn a_command_of_phase_change_memory_passes_the_front_end_and_then_the_channels_of_its_pages() {
    let parameters = OptaneParameters {
        host_to_device_us: 1.0,
        device_to_host_us: 2.0,
        read_command_us: 0.5,
        write_command_us: 0.7,
        // 1 ns and 2 ns a sector beyond the first page.
        read_mb_per_s: 512_000.0,
        write_mb_per_s: 256_000.0,
        channels: 2,
        access_us: 4.0,
        access_jitter_percent: 0.0,
    };
    let alone = |op, sector, sectors| {
        let mut drive = Optane::new(shape(32), &parameters, 1);
        let ended = serve(&mut drive, &[(0, command(0, op, sector, sectors))]);
        (ended[0].0, ended[0].2)
    };
    assert_eq!(alone(Op::Read, 0, 8), (7_500, Status::Ok), "1 us, 0.5, 4 and 2");
    assert_eq!(alone(Op::Write, 0, 8), (7_700, Status::Ok));
    assert_eq!(alone(Op::Read, 7, 1), (7_500, Status::Ok));
    assert_eq!(alone(Op::Read, 0, 16), (7_508, Status::Ok), "two pages, one for each channel");
    assert_eq!(alone(Op::Write, 0, 16), (7_716, Status::Ok));
    assert_eq!(alone(Op::Read, 4, 8), (7_500, Status::Ok), "two pages, by halves");
    assert_eq!(alone(Op::Read, 0, 17), (11_509, Status::Ok), "the third page is on the first channel again");
    for op in [Op::Flush, Op::Discard, Op::WriteZeroes] {
        assert_eq!(alone(op, 0, 0), (3_700, Status::Ok), "{op:?} is done in the front end");
    }
    assert_eq!(alone(Op::Read, (1 << 20) - 8, 8).1, Status::Ok);
    assert_eq!(alone(Op::Read, (1 << 20) - 7, 8), (3_700, Status::IoError), "beyond the end");
    // One after the other through the front end, side by side in the channels.
    let together = |first, second| {
        let mut drive = Optane::new(shape(32), &parameters, 1);
        serve(&mut drive, &[(0, command(0, Op::Read, first, 8)), (0, command(1, Op::Read, second, 8))])
    };
    assert_eq!(together(0, 8), [(7_500, 0, Status::Ok), (8_000, 1, Status::Ok)]);
    assert_eq!(together(0, 16), [(7_500, 0, Status::Ok), (11_500, 1, Status::Ok)], "of the same channel");
}

fn null(delay_ns: u64) -> NullParameters {
    NullParameters { delay_ns, delay_jitter_percent: 0.0, holds_commands: None }
}

/// A card that takes this many commands, before a device that holds two for 10 us each.
fn card(queue_depth: u32, holds_commands: Option<u32>) -> Raid {
    let inner = Null::new(shape(2), &NullParameters { holds_commands, ..null(10_000) }, 1);
    Raid::new(shape(queue_depth), &RaidParameters { inner: String::new(), command_us: 1.0 }, Box::new(inner))
}

#[test]
fn a_card_forwards_up_to_its_devices_depth_and_queues_the_rest_in_order() {
    let reads: Vec<(u64, Command)> = (0..5).map(|tag| (0, command(tag, Op::Read, 0, 8))).collect();
    for holds_commands in [None, Some(2), Some(1)] {
        let ended = serve(&mut card(8, holds_commands), &reads);
        let expected = match holds_commands {
            Some(1) => [11_000, 21_000, 31_000, 41_000, 51_000],
            _ => [11_000, 11_000, 21_000, 21_000, 31_000],
        };
        let expected: Vec<_> = expected.into_iter().zip(0..).map(|(at, tag)| (at, tag, Status::Ok)).collect();
        assert_eq!(ended, expected, "{holds_commands:?}");
    }
}

#[test]
fn a_card_out_of_tags_refuses_until_the_host_sees_a_completion() {
    let (mut card, mut schedule) = (card(2, None), Schedule::default());
    let mut submit = |at, tag| card.submit(Instant(at), command(tag, Op::Read, 0, 8), &mut schedule);
    assert_eq!([submit(0, 0), submit(500, 1)], [Ok(()), Ok(())]);
    assert_eq!(submit(10_999, 2), Err(Refusal::UntilCompletion), "the device is done, the host does not know yet");
    assert_eq!(submit(11_000, 2), Ok(()));
    assert_eq!(submit(11_499, 3), Err(Refusal::UntilCompletion));
    assert_eq!(submit(11_500, 3), Ok(()));
    let ends: Vec<u64> = schedule.completions.iter().map(|end| end.at.0).collect();
    assert_eq!(ends, [11_000, 11_500, 22_000, 22_500]);
}

const NO_FAULTS: FaultParameters = FaultParameters {
    errors_per_million: 0.0,
    stalls_per_million: 0.0,
    stall_ms: 0.0,
    lost_per_million: 0.0,
    lost_after_ms: 0.0,
    torn_writes_per_million: 0.0,
};

#[test]
fn a_torn_write_writes_whole_blocks_at_least_one_and_not_all() {
    let torn = FaultParameters { torn_writes_per_million: 1e6, ..NO_FAULTS };
    let blocks = Shape { logical_block_bytes: 4096, physical_block_bytes: 4096, ..shape(32) };
    let traced = Tracer::new(Box::new(Null::new(blocks, &null(1), 1)), &TracerParameters { keeps_events: 4096 });
    let mut device = FaultInjector::new(Box::new(traced), &torn, 1);
    let load: Vec<(u64, Command)> = (0..1000).map(|at| (at, command(0, Op::Write, 0, 32))).collect();
    assert!(serve(&mut device, &load).iter().all(|(_, _, status)| *status == Status::IoError));
    let mut written = [0; 4];
    for event in device.traced().unwrap() {
        let TraceEvent::Taken(_, command) = event else { continue };
        assert!(matches!(command.sectors, 8 | 16 | 24), "{command:?}");
        written[command.sectors as usize / 8] += 1;
    }
    assert!(written[1..].iter().all(|times| *times > 250), "{written:?}");
    // What has one block cannot be torn, nor a read.
    for whole in [command(0, Op::Write, 0, 8), command(0, Op::Read, 0, 32)] {
        assert_eq!(serve(&mut device, &[(2_000, whole)])[0].2, Status::Ok, "{whole:?}");
    }
}

#[test]
fn a_throttle_limits_ios_and_bytes_and_the_inner_device_is_still_traced() {
    let throttled = |iops, mb_per_s| {
        let traced =
            Tracer::new(Box::new(Null::new(shape(32), &null(1000), 1)), &TracerParameters { keeps_events: 64 });
        Throttle::new(Box::new(traced), &ThrottleParameters { iops, io_kib: 256, mb_per_s, burst: None })
    };
    let load = |sectors| (0..4).map(move |tag| (0, command(tag, Op::Read, 0, sectors))).collect::<Vec<_>>();
    let ends =
        |device: &mut Throttle, sectors| serve(device, &load(sectors)).iter().map(|end| end.0).collect::<Vec<_>>();
    let mut by_ios = throttled(1000.0, 1e6);
    assert_eq!(ends(&mut by_ios, 8), [1000, 1_001_000, 2_001_000, 3_001_000], "one in a ms");
    let taken = by_ios.traced().unwrap().iter().filter(|event| matches!(event, TraceEvent::Taken(..))).count();
    assert_eq!(taken, 4);
    assert_eq!(ends(&mut throttled(1000.0, 1e6), 1024), [1000, 2_001_000, 4_001_000, 6_001_000], "each counts as two");
    assert_eq!(ends(&mut throttled(1e9, 5.0), 8), [1000, 820_200, 1_639_400, 2_458_600], "by bytes");
    assert_eq!(ends(&mut throttled(1e9, 5.0), 16), [1000, 1_639_400, 3_277_800, 4_916_200], "twice as many");
}

#[test]
fn a_wrapper_interrupts_exactly_if_the_wrapped_device_does() {
    let throttle = "[throttle]\niops = 1000\nio_kib = 256\nmb_per_s = 100\n[calibration]";
    let faults = "[faults]\nerrors_per_million = 0\nstalls_per_million = 0\nstall_ms = 1\nlost_per_million = 0\n\
        lost_after_ms = 1\ntorn_writes_per_million = 0\n[calibration]";
    let tracer = "[tracer]\nkeeps_events = 8\n[calibration]";
    // The command queue of a SATA drive is a wrapper, too.
    let sata = "[shape]\nsata = true";
    for (name, interrupts) in [("null", false), ("intel-p4800x-375gb", true)] {
        let bare = Preset::builtin_toml(name).unwrap().replace("\nscsi = false", "\nscsi = true");
        for (header, section) in
            [("[calibration]", throttle), ("[calibration]", faults), ("[calibration]", tracer), ("[shape]", sata)]
        {
            let text = bare.replacen(header, section, 1);
            let device = Preset::from_toml(&text, name).unwrap().build(1);
            assert_eq!(device.interrupts(), interrupts, "{text}");
        }
    }
}

#[test]
fn faults_also_affect_completions_that_the_inner_device_reports_later() {
    let reads: Vec<(u64, Command)> = (0..5).map(|tag| (0, command(tag, Op::Read, 0, 8))).collect();
    let ended = |parameters| serve(&mut FaultInjector::new(Box::new(card(8, Some(1))), &parameters, 1), &reads);
    let well = ended(NO_FAULTS);
    assert!(well.iter().all(|end| end.2 == Status::Ok), "{well:?}");
    let later = |ns, status| well.iter().map(|end| (end.0 + ns, end.1, status)).collect::<Vec<_>>();
    assert_eq!(ended(FaultParameters { errors_per_million: 1e6, ..NO_FAULTS }), later(0, Status::Medium));
    let stalls = FaultParameters { stalls_per_million: 1e6, stall_ms: 3.0, ..NO_FAULTS };
    assert_eq!(ended(stalls), later(3_000_000, Status::Ok));
    let lost = FaultParameters { lost_per_million: 1e6, lost_after_ms: 7.0, ..NO_FAULTS };
    let all_at_once: Vec<_> = (0..5).map(|tag| (7_000_000, tag, Status::Timeout)).collect();
    assert_eq!(ended(lost), all_at_once);
}

#[test]
fn a_throttled_command_that_the_device_refuses_is_retried_in_order() {
    // One command at a time for 11 us behind a throttle of one a microsecond, which tries again after 20 us.
    let throttle = ThrottleParameters { iops: 1e6, io_kib: 256, mb_per_s: 1e6, burst: None };
    let mut volume = Throttle::new(Box::new(card(1, None)), &throttle);
    let reads: Vec<(u64, Command)> = (0..3).map(|tag| (0, command(tag, Op::Read, 0, 8))).collect();
    let ended = serve(&mut volume, &reads);
    let expected = [(11_000, 0, Status::Ok), (32_000, 1, Status::Ok), (52_000, 2, Status::Ok)];
    assert_eq!(ended, expected);
}

#[test]
fn a_trace_includes_completions_that_the_device_reports_later() {
    let parameters = TracerParameters { keeps_events: 64 };
    let mut traced = Tracer::new(Box::new(card(8, Some(1))), &parameters);
    let reads: Vec<(u64, Command)> = (0..5).map(|tag| (0, command(tag, Op::Read, 0, 8))).collect();
    serve(&mut traced, &reads);
    let events = traced.traced().unwrap();
    let taken = events.iter().filter(|event| matches!(event, TraceEvent::Taken(..))).count();
    assert_eq!((taken, events.len()), (5, 10), "{events:?}");
}

#[test]
fn bytes_pass_as_fast_as_a_burst_until_its_credits_are_gone() {
    // A gigabyte a second for the first megabyte, then one megabyte: 131 us and 131 ms for each read of 128 KiB.
    let burst = ThrottleBurst { iops: 1e9, ios: 1e9, mb_per_s: 1000.0, mb: 1.0 };
    let parameters = ThrottleParameters { iops: 1e9, io_kib: 256, mb_per_s: 1.0, burst: Some(burst) };
    let mut volume = Throttle::new(Box::new(Null::new(shape(32), &null(1000), 1)), &parameters);
    let reads: Vec<(u64, Command)> = (0..11).map(|tag| (0, command(tag, Op::Read, 0, 256))).collect();
    let ends: Vec<u64> = serve(&mut volume, &reads).iter().map(|end| end.0).collect();
    assert!(ends[6] < 2_000_000 && ends[8] > 50_000_000, "{ends:?}");
    assert_eq!(ends[10] - ends[9], 131_072_000, "{ends:?}");
}
