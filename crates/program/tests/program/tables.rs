//! Programs inferred from tables, which have no tasks.

use std::io::Cursor;

use hoistway_load::{Pause, Record, When};
use hoistway_program::{Change, Class, Options, Program, ReplayOptions, RequestedDevice, Stretch};
use hoistway_trace::block::{Device, Input, Recording};

fn inferred(text: &str, device: Option<&str>) -> Result<Program, String> {
    let input = Input::new("test", Box::new(Cursor::new(text.to_owned()))).unwrap();
    let mut recording = Recording::read(input).unwrap();
    let options = Options { device: device.map(RequestedDevice::parse), ios_min: 1, ..Options::default() };
    Program::infer(&mut recording, "test", &options).map_err(|error| error.to_string())
}

#[test]
fn without_response_times_every_stream_is_open() {
    let lines: String =
        (0u64..100).map(|io| format!("1,R,{},4096,{}\n", io * 4096, 1_577_808_000_000_000 + io * 100)).collect();
    let program = inferred(&lines, None).unwrap();
    assert_eq!((program.streams[0].class, program.has_completions, program.streams[0].ios), (Class::Open, false, 100));
}

proptest::proptest! {
    /// Device sizes are signed 64-bit numbers.
    #[test]
    fn addresses_behind_the_end_of_the_largest_device_are_refused(bits in 1u32..=64, number in proptest::num::u64::ANY) {
        let sector = number >> (64 - bits);
        let line = format!("  8,0    0        1     0.000000000     7  Q   R {sector} + 8 [a]\n");
        match inferred(&line, None) {
            Ok(program) => proptest::prop_assert_eq!(program.end_bytes, (sector + 8) * 512),
            Err(error) => {
                proptest::prop_assert!(sector >= (1 << 54) - 8, "{sector}: {error}");
                proptest::prop_assert!(error.contains("an I/O of the device 8,0 ends at byte "), "{error}");
            }
        }
    }
}

#[test]
fn with_response_times_a_loop_is_seen_to_be_closed() {
    // Each I/O begins 10 us after the end of the previous one, which takes 1 ms.
    let line = |io: u64| format!("{},host,0,Read,{},4096,10000\n", 128_166_372_000_000_000 + io * 10_100, io * 8192);
    let lines: String = (0..100).map(line).collect();
    let program = inferred(&lines, None).unwrap();
    let stream = &program.streams[0];
    assert_eq!((stream.class, stream.evidence.depth_max, stream.ios), (Class::Closed, 1, 100));
    assert!(stream.think_ns.unwrap().abs_diff(10_000) < 700, "{:?}", stream.think_ns);
}

/// A slow loop, a fast one and another slow one: 300 I/Os each, at intervals of 1 ms, 110 us and 1 ms.
fn phases() -> impl Iterator<Item = (u64, String)> {
    let time_us = |io: u64| match io {
        0..300 => io * 1000,
        300..600 => 300_000 + (io - 300) * 110,
        _ => 333_000 + (io - 600) * 1000,
    };
    (0..900).map(move |io| {
        let time = 128_166_372_000_000_000 + time_us(io) * 10;
        (io, format!("{time},host,0,Read,{},4096,1000\n", io * 8192))
    })
}

#[test]
fn the_busiest_stretch_of_a_long_recording_is_kept_like_a_whole_one() {
    let infer = |text: String, ios_max: Option<usize>| {
        let input = Input::new("test", Box::new(Cursor::new(text))).unwrap();
        let options = Options { ios_max, ios_min: 1, ..Options::default() };
        Program::infer(&mut Recording::read(input).unwrap(), "test", &options).unwrap()
    };
    let whole: String = phases().map(|(_, line)| line).collect();
    let fast: String = phases().filter(|(io, _)| (300..600).contains(io)).map(|(_, line)| line).collect();
    let (kept, alone) = (infer(whole.clone(), Some(300)), infer(fast, None));
    let stretch = Stretch { from_ns: 300_000_000, to_ns: 332_890_000, all_ios: 900, all_ns: 632_100_000 };
    assert_eq!((kept.stretch, alone.stretch), (Some(stretch), None));
    assert_eq!((kept.streams[0].ios, kept.streams[0].class), (300, Class::Closed));
    // The last I/O completes after the stretch.
    assert_eq!((kept.unfinished, kept.span_ns), (1, 32_890_000));
    let steps = |program: &Program| program.steps(0).map(Result::unwrap).collect::<Vec<_>>();
    assert_eq!(steps(&kept), steps(&alone));
    let all = infer(whole, Some(900));
    assert_eq!((all.stretch, all.streams[0].ios), (None, 900));
}

#[test]
fn a_recording_of_several_devices_needs_a_device_name() {
    let text = "1,R,0,4096,1577808000000000\n2,R,0,4096,1577808000000100\n";
    let error = inferred(text, None).unwrap_err();
    assert_eq!(error, "test: has I/Os of several devices: 1 (259,0) and 2 (259,1) (expected one device: name it)");
    let second = Device { major: 259, minor: 1 };
    for named in ["259,1", "259:1", "2", "/dev/2"] {
        assert_eq!(inferred(text, Some(named)).unwrap().device, second, "{named}");
    }
    let none = inferred(text, Some("8:0")).unwrap_err();
    assert_eq!(none, "test: has no I/Os of the device 8,0 (expected one of 1 (259,0) and 2 (259,1))");
    let none = inferred(text, Some("sda")).unwrap_err();
    assert!(none.starts_with("test: has no I/Os of the device sda (expected one of 1 "), "{none}");
}

proptest::proptest! {
    /// A task that does not want to wait submits its I/O again.
    #[test]
    fn bios_that_were_refused_change_nothing(is_refused in proptest::collection::vec(proptest::bool::ANY, 40)) {
        let text = |refused: &[bool]| -> String {
            let lines = |(io, refused): (usize, &bool)| {
                let line = |us: usize, action: char, tail: &str| {
                    format!("  8,0 0 1 {}.{us:06}000 7 {action} R {} + 8 {tail}\n", 0, io * 8)
                };
                let at = 1000 * (io + 1);
                let before = [line(at - 9, 'Q', "[a]"), line(at - 8, 'C', "[11]")].concat();
                let its = [line(at, 'Q', "[a]"), line(at + 1, 'G', "[a]"), line(at + 2, 'D', "[a]"), line(at + 100, 'C', "[0]")];
                if *refused { before + &its.concat() } else { its.concat() }
            };
            refused.iter().enumerate().map(lines).collect()
        };
        let infer = |refused: &[bool]| inferred(&text(refused), None).unwrap();
        // The recording begins at its first event.
        let mut is_refused = is_refused;
        is_refused[0] = false;
        let (with, without) = (infer(&is_refused), infer(&[false; 40]));
        let steps = |program: &Program| program.steps(0).map(Result::unwrap).collect::<Vec<_>>();
        proptest::prop_assert_eq!(steps(&with), steps(&without));
        proptest::prop_assert_eq!(with.counts.refused, is_refused.iter().filter(|is| **is).count() as u64);
        proptest::prop_assert_eq!(with.streams[0].ios, 40);
    }
}

/// Arrivals in whole seconds, as in the tencent traces.
fn in_seconds() -> String {
    let line = |io: u64| format!("{},{},8,{},7\n", 1_538_323_200 + io / 25, io * 8, io % 2);
    (0..200).map(line).collect()
}

/// The time at which each I/O of the first process is issued, with this seed.
fn arrivals(program: &Program, options: &ReplayOptions, seed: u64) -> Vec<When> {
    let load = program.load("disk", options).unwrap();
    let records = load.processes[0].plan.replay.as_ref().unwrap().records.open(seed).unwrap();
    let when = |record: Record| match record.pause {
        Pause::Program(step) => step.when,
        other => panic!("{other:?}"),
    };
    records.map(|record| when(record.unwrap())).collect()
}

proptest::proptest! {
    #[test]
    fn arrivals_at_one_tick_are_spread_over_it_by_the_seed(seed in proptest::num::u64::ANY) {
        let program = inferred(&in_seconds(), None).unwrap();
        proptest::prop_assert_eq!(program.tick.map(|tick| tick.length_ns), Some(1_000_000_000));
        let times = |seed: u64| -> Vec<u64> {
            let time = |when| if let When::At(at) = when { at.0 } else { panic!("{when:?}") };
            arrivals(&program, &ReplayOptions::default(), seed).into_iter().map(time).collect()
        };
        let one = times(seed);
        proptest::prop_assert!(one.is_sorted());
        for (io, time_ns) in one.iter().enumerate() {
            proptest::prop_assert_eq!(time_ns / 1_000_000_000, io as u64 / 25);
        }
        proptest::prop_assert_eq!(&one, &times(seed));
        proptest::prop_assert_ne!(&one, &times(seed.wrapping_add(1)));
    }

    /// By Little's law, the stream reaches its rate on a device with this latency.
    #[test]
    fn a_stream_that_keeps_its_depth_has_its_rate_on_a_device_with_that_latency(latency_us in 1u64..2_000_000) {
        let program = inferred(&in_seconds(), None).unwrap();
        let latency_ns = latency_us * 1000;
        let changes = vec![Change::Kept { stream: 0, latency_ns }];
        let mut done: Vec<u64> = Vec::new();
        let mut queued: Vec<u64> = Vec::new();
        for when in arrivals(&program, &ReplayOptions { changes, ..ReplayOptions::default() }, 1) {
            let time_ns = match when {
                When::At(at) => at.0,
                When::AfterSubmission(gap) => queued.last().unwrap() + gap.0,
                When::AfterCompletions { own, gap, .. } => done[own as usize - 1] + gap.0,
            };
            queued.push(time_ns);
            done.push(time_ns + latency_ns);
        }
        let stream = &program.streams[0];
        let period_ns = (stream.last_ns - stream.first_ns) as f64 / (stream.ios - 1) as f64;
        let depth = (latency_ns as f64 / period_ns).ceil().max(1.0);
        // At first a full depth of I/Os is issued at once.
        let expected_ns = (200.0 - depth) * period_ns;
        let span_ns = (queued[199] - queued[0]) as f64;
        proptest::prop_assert!((span_ns - expected_ns).abs() <= depth * period_ns + 1e6, "{span_ns} {expected_ns} {depth}");
    }
}

#[test]
fn a_table_without_tasks_has_a_stream_of_the_name_of_its_device() {
    let program = inferred(&in_seconds(), None).unwrap();
    let stream = &program.streams[0];
    assert_eq!((&*stream.name, stream.pid, stream.tasks, program.streams.len()), ("259,0", None, 1, 1));
}
