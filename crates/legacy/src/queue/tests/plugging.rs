//! LQ-5 to LQ-7, LQ-14, NOOP-6: plugs.

use super::*;

#[test]
fn the_17th_request_flushes_the_plug_first() {
    let mut bench = Bench::stopped("noop");
    bench.plug();
    for n in 0..17 {
        bench.submit(&format!("W{}", n * 100));
    }
    let events = bench.events();
    assert!(events.contains("Q1600 G1600 I0 I100") && events.contains("I1500 U16 P"), "{events}");
    assert_eq!(bench.plug.as_ref().map(Plug::len), Some(1));
}

#[test]
fn a_request_of_128_kib_is_flushed_before_the_next_one_from_4_10_on() {
    for (kernel, flushed) in [(Kernel::V4_4, false), (Kernel::V4_12, true)] {
        let mut bench = Bench::with(config(kernel), "noop");
        bench.plug();
        bench.submit("W0+256 W1000");
        assert_eq!(bench.events().contains("U1"), flushed, "{kernel}");
    }
}

#[test]
fn a_plug_goes_in_by_sector_and_neighbours_merge_on_the_way() {
    let mut bench = Bench::stopped("deadline");
    bench.plug();
    bench.submit("W300 W108 W100 W500");
    bench.events();
    bench.unplug();
    assert_eq!(bench.events(), "I100 I300 I500 U3", "W108 and W100 met in the plug");
    bench.plug();
    bench.submit("W508 W308 W516");
    bench.unplug();
    assert_eq!(bench.serve(), "W100+16 W300+16 W500+24");
}

#[test]
fn an_explicit_flush_and_an_unplugged_bio_run_the_driver_in_the_submitter() {
    let mut bench = Bench::new("noop");
    bench.submit("R100");
    assert_eq!((bench.calls(), bench.take_effects()), ("R100+8".to_owned(), String::new()));
    assert_eq!(bench.events(), "Q100 G100 I100 ask:100 D100 ask:-");
    bench.plug();
    bench.submit("R200");
    assert_eq!(bench.calls(), "", "it is still in the plug");
    bench.unplug();
    assert_eq!((bench.calls(), bench.take_effects()), ("R200+8".to_owned(), String::new()));
    assert_eq!(bench.events(), "Q200 G200 P I200 U1 ask:200 D200 ask:-");
}

#[test]
fn every_plugged_request_is_a_candidate_for_merging_newest_first() {
    let mut bench = Bench::stopped("noop");
    bench.plug();
    bench.submit("W100 W300 W500 W108");
    assert_eq!(bench.plug.as_ref().map(Plug::len), Some(3));
    // Both W100+16 and W124 would take it.
    bench.submit("W124 W116");
    assert!(bench.events().ends_with("F"));
    bench.unplug();
    assert_eq!(bench.serve(), "W100+32 W300+8 W500+8", "and at insertion the two meet");
}

#[test]
fn noop_serves_a_plug_of_300_100_200_as_100_200_300() {
    let mut bench = Bench::new("noop");
    bench.plug();
    bench.submit("R300 R100 R200");
    bench.unplug();
    assert_eq!(bench.calls(), "R100+8 R200+8 R300+8");
}

#[test]
fn a_flush_type_request_is_plugged_too_and_then_goes_past_the_elevator() {
    let mut bench = Bench::stopped("deadline");
    bench.submit("W500 W600");
    bench.plug();
    let forced = Bio { flags: BioFlags::FUA, ..bio("W100") };
    bench.submit_as(1, forced);
    bench.submit("W50");
    bench.unplug();
    assert_eq!(bench.dispatch_queue(), [100]);
    assert_eq!(bench.serve(), "W100+8 W500+8 W600+8 W50+8");
}

#[test]
fn a_bio_that_is_too_long_is_split_and_every_part_goes_its_own_way() {
    let limits = Limits { max_sectors: 16, ..Limits::default() };
    let mut bench = Bench::with(LegacyConfig { limits, ..config(Kernel::V4_12) }, "noop");
    bench.submit("R0+40");
    assert_eq!(bench.calls(), "R0+16 R16+16 R32+8");
    assert_eq!(bench.serve(), "");
    bench.assert_empty();
}
