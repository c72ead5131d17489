//! Programs of tables, which have no tasks.

use std::io::Cursor;

use hoistway_program::{Class, Options, Program};
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
