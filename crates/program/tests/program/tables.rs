//! Programs of tables, which have no tasks.

use std::io::Cursor;

use hoistway_program::{Class, Options, Program, Stretch};
use hoistway_trace::block::{Device, Input, Recording};

fn inferred(text: &str, device: Option<Device>) -> Result<Program, String> {
    let input = Input::new("test", Box::new(Cursor::new(text.to_owned()))).unwrap();
    let mut recording = Recording::read(input).unwrap();
    let options = Options { device, ios_min: 1, ..Options::default() };
    Program::infer(&mut recording, "test", &options).map_err(|error| error.to_string())
}

#[test]
fn without_response_times_everything_is_open() {
    let lines: String =
        (0u64..100).map(|io| format!("1,R,{},4096,{}\n", io * 4096, 1_577_808_000_000_000 + io * 100)).collect();
    let program = inferred(&lines, None).unwrap();
    assert_eq!((program.streams[0].class, program.has_completions, program.streams[0].ios), (Class::Open, false, 100));
}

#[test]
fn with_response_times_a_loop_is_seen_to_be_closed() {
    // Each begins 10 us after the one before has ended, which takes 1 ms.
    let line = |io: u64| format!("{},host,0,Read,{},4096,10000\n", 128_166_372_000_000_000 + io * 10_100, io * 8192);
    let lines: String = (0..100).map(line).collect();
    let program = inferred(&lines, None).unwrap();
    let stream = &program.streams[0];
    assert_eq!((stream.class, stream.evidence.depth_max, stream.ios), (Class::Closed, 1, 100));
    assert!(stream.think_ns.unwrap().abs_diff(10_000) < 700, "{:?}", stream.think_ns);
}

/// A slow loop, a fast one and a slow one again: 300 I/Os each, 1 ms, 110 us and 1 ms apart.
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
fn of_a_long_recording_the_busiest_stretch_is_kept_as_if_it_were_all() {
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
fn of_several_devices_one_has_to_be_named() {
    let text = "1,R,0,4096,1577808000000000\n2,R,0,4096,1577808000000100\n";
    let error = inferred(text, None).unwrap_err();
    assert_eq!(error, "test: there are I/Os of several devices: 259,0 and 259,1 (expected one device: name it)");
    let second = Device { major: 259, minor: 1 };
    assert_eq!(inferred(text, Some(second)).unwrap().device, second);
    let none = inferred(text, Some(Device { major: 8, minor: 0 })).unwrap_err();
    assert_eq!(none, "test: there are no I/Os of the device 8,0 (expected one of 259,0 and 259,1)");
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
        // The begin of the recording is its first event.
        let mut is_refused = is_refused;
        is_refused[0] = false;
        let (with, without) = (infer(&is_refused), infer(&[false; 40]));
        let steps = |program: &Program| program.steps(0).map(Result::unwrap).collect::<Vec<_>>();
        proptest::prop_assert_eq!(steps(&with), steps(&without));
        proptest::prop_assert_eq!(with.counts.refused, is_refused.iter().filter(|is| **is).count() as u64);
        proptest::prop_assert_eq!(with.streams[0].ios, 40);
    }
}
