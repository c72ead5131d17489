//! Devices known by their service times: what is estimated from commands that a device served has to serve them alike.

use std::collections::BinaryHeap;

use hoistway_blk::bio::Op;
use hoistway_blk::ground::{Instant, Sector};
use hoistway_device::{
    Command, Device, Parameters, Preset, PresetFile, Schedule, ServedCommand, ServedOperation, Service, ServiceKind,
    ServiceParameters, Shape, estimate, trial,
};
use proptest::prelude::*;

fn shape() -> Shape {
    Shape { queue_depth: 1024, hw_queues: 1, ..Preset::builtin("null").unwrap().shape() }
}

/// Numbers that follow from a seed.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// What a device serves for `depth` processes that each wait for their last command.
fn served(
    device: &mut dyn Device,
    depth: usize,
    count: usize,
    drawn: &mut Drawn,
    ops: &[(Op, u32)],
) -> Vec<ServedCommand> {
    let mut schedule = Schedule::default();
    let mut commands = vec![];
    let mut events: BinaryHeap<std::cmp::Reverse<(Instant, bool, u32)>> = BinaryHeap::new();
    let mut of_tag = vec![0; depth];
    let mut issue = |now: Instant,
                     tag: u32,
                     commands: &mut Vec<ServedCommand>,
                     device: &mut dyn Device,
                     schedule: &mut Schedule| {
        let (op, sectors) = ops[drawn.below(ops.len() as u64) as usize];
        let sector = Sector(drawn.below(1 << 22) * 8);
        let command = Command { tag, queue: 0, op, sector, sectors, fua: false };
        device.submit(now, command, schedule).unwrap();
        of_tag[tag as usize] = commands.len();
        commands.push(ServedCommand { issued: now, ended: Instant::NEVER, op, sector, sectors });
        of_tag.clone()
    };
    let mut numbers = vec![];
    for tag in 0..depth as u32 {
        numbers = issue(Instant(u64::from(tag)), tag, &mut commands, device, &mut schedule);
    }
    loop {
        events.extend(schedule.completions.drain(..).map(|end| std::cmp::Reverse((end.at, true, end.tag))));
        events.extend(schedule.alarms.drain(..).map(|(at, alarm)| std::cmp::Reverse((at, false, alarm))));
        let Some(std::cmp::Reverse((now, is_end, id))) = events.pop() else { return commands };
        if !is_end {
            device.wake(now, id, &mut schedule);
            continue;
        }
        commands[numbers[id as usize]].ended = now;
        if commands.len() < count {
            numbers = issue(now, id, &mut commands, device, &mut schedule);
        }
    }
}

fn kind(operation: ServedOperation, kib: f64, at_a_time: u32, us: f64) -> ServiceKind {
    let times_us = (0..20).map(|step| us * (0.8 + 0.02 * f64::from(step))).collect();
    ServiceKind { operation, sequential: false, kib, share_percent: 100.0 / f64::from(at_a_time), times_us }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn what_is_estimated_serves_as_the_device_did_and_as_many_at_a_time(
        at_a_time in 1..=16_u32, us in 20.0..5000.0_f64, writes in 1..=16_u32, depth in 1..64_usize, seed in any::<u64>(),
    ) {
        let kinds = vec![kind(ServedOperation::Read, 4.0, at_a_time, us), kind(ServedOperation::Write, 64.0, writes, 2.0 * us)];
        let parameters = ServiceParameters { kib_ns: 0.0, kinds };
        let mut device = Service::new(shape(), &parameters, seed);
        let commands = served(&mut device, depth, 3000, &mut Drawn(seed), &[(Op::Read, 8), (Op::Write, 128)]);
        let estimated = estimate(&commands, 1).unwrap();
        prop_assert_eq!(estimated.in_flight_max as usize, depth);
        let mut again = Service::new(shape(), &estimated.parameters, seed ^ 1);
        let fit = trial(&mut again, &commands, 0);
        prop_assert!(fit.factor() < 1.15, "{} {:?} {:?}", fit.factor(), estimated, fit);
    }

    #[test]
    fn a_preset_of_any_estimate_is_a_preset_file_that_reads_the_same(seed in any::<u64>(), depth in 1..20_usize) {
        let base = Preset::builtin("intel-s3520-1600gb").unwrap();
        let commands = served(&mut *base.build(seed), depth, 400, &mut Drawn(seed), &[(Op::Read, 8), (Op::Write, 64)]);
        let service = estimate(&commands, 4).unwrap().parameters;
        let mut file = PresetFile::from(base);
        (file.model, file.ssd, file.flash, file.service) = (hoistway_device::Model::Service, None, None, Some(service));
        file.calibration.sources.clear();
        let preset = Preset::try_from(file.clone()).unwrap();
        prop_assert!(matches!(preset.parameters(), Parameters::Service(_)));
        prop_assert_eq!(PresetFile::from(preset), file);
    }
}

#[test]
fn too_few_commands_say_nothing_and_depths_that_were_not_slower_show_no_limit() {
    let mut device = Preset::builtin("null").unwrap().build(1);
    let commands = served(&mut *device, 4, 1000, &mut Drawn(1), &[(Op::Read, 8)]);
    assert_eq!(estimate(&commands[..49], 8), None);
    let estimated = estimate(&commands, 8).unwrap();
    assert!(estimated.has_room);
    assert!((estimated.parameters.kinds[0].share_percent - 12.5).abs() < 1e-6, "{estimated:?}");
    assert!(!estimate(&commands, 2).unwrap().has_room);
}

#[test]
fn models_of_real_drives_are_met_by_their_estimates_on_commands_that_were_left_out() {
    // The name of a preset, and the most that its estimate may be off, as a factor.
    for (name, most) in
        [("samsung-980pro-1tb", 1.6), ("intel-s3520-1600gb", 1.35), ("emmc", 1.6), ("intel-p4800x-375gb", 1.2)]
    {
        let mut factors = vec![];
        for depth in [1, 3, 8, 24] {
            let preset = Preset::builtin(name).unwrap();
            let ops = [(Op::Read, 8), (Op::Read, 8), (Op::Read, 32), (Op::Write, 8)];
            let commands = served(&mut *preset.build(7), depth, 6000, &mut Drawn(3), &ops);
            let estimated = estimate(&commands[..4000], 1).unwrap();
            let mut device = Service::new(Shape { queue_depth: 1024, ..preset.shape() }, &estimated.parameters, 1);
            factors.push(trial(&mut device, &commands, 4000).factor());
        }
        println!("{name} {factors:?}");
        assert!(factors.iter().all(|factor| *factor < most), "{name}: {factors:?}");
    }
}
