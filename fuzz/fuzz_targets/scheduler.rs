//! No calls make a scheduler that Linux does not have lose a request or break its bounds, on a whole queue over a device that fails, refuses
//! and takes too long: the loads of the property tests, in which the input says what happens next.

#![no_main]

use hoistway_blk::ground::Kernel;
use hoistway_blk::schedulers::OUTSIDE_LINUX;
use libfuzzer_sys::fuzz_target;
use properties::world::World;
use support::{Context, Random};

// The tests use more of them.
#[allow(dead_code)]
#[path = "../../crates/legacy/tests/support/mod.rs"]
mod support;

#[allow(dead_code)]
#[path = "../../crates/legacy/tests/properties"]
mod properties {
    pub mod device;
    pub mod world;
}

fuzz_target!(|input: (u8, u8, u64, &[u8])| {
    let (scheduler, kernel, seed, acts) = input;
    let scheduler = OUTSIDE_LINUX[usize::from(scheduler) % OUTSIDE_LINUX.len()].name;
    let kernel = Kernel::EXAMPLES[usize::from(kernel) % Kernel::EXAMPLES.len()];
    let mut world = World::new(seed, kernel, scheduler);
    let _context = Context(format!("{scheduler} on {kernel}, seed {seed}, {:?}, {:?}", world.habits, world.config));
    for act in acts.chunks(2) {
        // An act depends on its own bytes alone, so that a change of one leaves the others as they are.
        world.random = Random(act.iter().fold(seed, |seed, &byte| seed << 8 | u64::from(byte)));
        world.act();
    }
    world.finish();
    world.check_end();
});
