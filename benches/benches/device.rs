//! The cost of a command: `cargo bench -p hoistway-benches --bench device`. The budget is 40 ns.

use std::hint::black_box;
use std::time::Instant as Clock;

use hoistway_blk::bio::Op;
use hoistway_blk::ground::{Instant, Sector};
use hoistway_device::{Command, Preset, Schedule};

const COMMANDS: u64 = 20_000_000;

/// Presets of models that know every completion at submission. The cost of the other models shows in a whole
/// simulation: `cargo run --release -p hoistway-sim --example speed`.
const PRESETS: [&str; 3] = ["intel-p4800x-375gb", "intel-s3520-1600gb", "null"];

fn main() {
    for name in PRESETS {
        let preset = Preset::builtin(name).expect("a built-in preset");
        for (load, reads_of_ten) in [("writes", 0), ("reads", 10), ("20 % reads", 2)] {
            let best = (0..5).map(|seed| ns_per_command(&preset, seed, reads_of_ten)).fold(f64::INFINITY, f64::min);
            println!("{name}, {load}: {best:.1} ns a command (best of 5)");
        }
    }
}

/// Submits random addresses at the rate of the device, and removes each completion at once.
fn ns_per_command(preset: &Preset, seed: u64, reads_of_ten: u64) -> f64 {
    let mut device = preset.build(seed);
    let blocks = device.shape().capacity_sectors / 8;
    let mut schedule = Schedule::default();
    let mut random = seed | 1;
    let mut sum = 0_u64;
    let start = Clock::now();
    for n in 0..COMMANDS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let block = ((u128::from(random) * u128::from(blocks)) >> 64) as u64;
        let op = if n % 10 < reads_of_ten { Op::Read } else { Op::Write };
        let command = Command { tag: (n % 32) as u32, queue: 0, op, sector: Sector(block * 8), sectors: 8, fua: false };
        device.submit(Instant(n * 26_000), black_box(command), &mut schedule).expect("no limit");
        for completion in schedule.completions.drain(..) {
            sum = sum.wrapping_add(completion.at.0);
        }
    }
    let ns = start.elapsed().as_nanos() as f64;
    black_box(sum);
    ns / COMMANDS as f64
}
