//! What every device model must keep, whatever its parameters and its load: each command ends exactly once and
//! never too early, no stage is faster than it can be, flushes are barriers, and a seed fixes every bit.

use crate::closed_loop;

use std::collections::BTreeSet;

use closed_loop::{Process, run};
use hoistway_blk::bio::{Op, Status};
use hoistway_blk::ground::{Instant, Nanos, Sector};
use hoistway_device::{
    Command, Completion, Device, GarbageCollection, Null, NullParameters, Preset, PresetFile, Refusal, Schedule, Shape,
    Ssd, SsdParameters,
};
use proptest::prelude::*;

/// A command and the time since the one before, ns.
type Timed = (u64, Command);

const CAPACITY_SECTORS: u64 = 1 << 30;

fn shape() -> Shape {
    // More commands than any load has.
    Shape {
        capacity_sectors: CAPACITY_SECTORS,
        queue_depth: 256,
        ..Preset::builtin("intel-s3520-1600gb").unwrap().shape()
    }
}

fn us(us: f64) -> u64 {
    (us * 1e3).round() as u64
}

prop_compose! {
    fn any_gc()(
        background_pages_per_s in 1.0..1e6_f64,
        threshold_pages in 1.0..1000.0_f64,
        stall_ms in 0.0..100.0_f64,
        stall_shortening_percent in 0.0..=100.0_f64,
        erased_gb in prop::option::of(0.0..0.01_f64),
    ) -> GarbageCollection {
        GarbageCollection { background_pages_per_s, threshold_pages, stall_ms, stall_shortening_percent, erased_gb }
    }
}

prop_compose! {
    fn any_ssd()(
        (host_to_device_us, device_to_host_us) in (0.0..20.0_f64, 0.0..20.0_f64),
        serial_stage_us in 0.001..100.0_f64,
        transfer_mb_per_s in 1.0..10_000.0_f64,
        acknowledge_us in 0.0..20.0_f64,
        flash_read_us in 0.0..500.0_f64,
        flash_read_jitter_percent in 0.0..=100.0_f64,
        (flush_us, discard_us) in (0.0..1e4_f64, 0.0..1e3_f64),
        gc in proptest::option::of(any_gc()),
    ) -> SsdParameters {
        SsdParameters {
            host_to_device_us, serial_stage_us, transfer_mb_per_s, acknowledge_us, flash_read_us,
            flash_read_jitter_percent, flush_us, discard_us, device_to_host_us, gc,
        }
    }
}

prop_compose! {
    fn any_null()(
        delay_ns in 1..1_000_000_u64,
        delay_jitter_percent in 0.0..=100.0_f64,
        holds_commands in proptest::option::of(1..40_u32),
    ) -> NullParameters {
        NullParameters { delay_ns, delay_jitter_percent, holds_commands }
    }
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Read),
        4 => Just(Op::Write),
        1 => Just(Op::Flush),
        1 => Just(Op::Discard),
        1 => Just(Op::WriteZeroes),
    ]
}

prop_compose! {
    fn any_command()(
        op in any_op(),
        sector in 0..CAPACITY_SECTORS - 4096,
        sectors in 1..4096_u32,
        fua in any::<bool>(),
    ) -> Command {
        let sectors = if op == Op::Flush { 0 } else { sectors };
        Command { tag: 0, queue: 0, op, sector: Sector(sector), sectors, fua: fua && op == Op::Write }
    }
}

/// Up to 200 commands, each with a tag of its own, some of them close together.
fn any_load() -> impl Strategy<Value = Vec<Timed>> {
    let gap_ns = prop_oneof![Just(0), 0..50_000_u64, 0..20_000_000_u64];
    prop::collection::vec((gap_ns, any_command()), 1..200).prop_map(|mut load| {
        for (tag, (_, command)) in load.iter_mut().enumerate() {
            command.tag = tag as u32;
        }
        load
    })
}

/// One accepted command and how it ended.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Ended {
    submitted: Instant,
    command: Command,
    completion: Completion,
}

/// Gives the load to the device and returns how each command ended, in the order of submission.
fn serve(device: &mut dyn Device, load: &[Timed]) -> Vec<Ended> {
    let mut host = Host::new(device);
    for &(gap_ns, command) in load {
        host.run_until(host.now + Nanos(gap_ns));
        host.submit_once_taken(command);
    }
    host.run_until(Instant(u64::MAX));
    host.ended
        .into_iter()
        .map(|(submitted, command, completion)| {
            let completion = completion.expect("an accepted command ends");
            Ended { submitted, command, completion }
        })
        .collect()
}

/// Plays the part of the clock, and checks that each accepted command ends exactly once and nothing in the past.
struct Host<'a> {
    device: &'a mut dyn Device,
    now: Instant,
    schedule: Schedule,
    alarms: BTreeSet<(Instant, u64, u32)>,
    order: u64,
    /// Commands with the time of their submission and, once it is known, their end.
    ended: Vec<(Instant, Command, Option<Completion>)>,
}

impl<'a> Host<'a> {
    fn new(device: &'a mut dyn Device) -> Host<'a> {
        let (now, schedule) = (Instant::ZERO, Schedule::default());
        Host { device, now, schedule, alarms: BTreeSet::new(), order: 0, ended: Vec::new() }
    }

    fn submit(&mut self, command: Command) -> Result<(), Refusal> {
        let answer = self.device.submit(self.now, command, &mut self.schedule);
        match answer {
            Ok(()) => self.ended.push((self.now, command, None)),
            Err(_) => assert!(self.schedule.completions.is_empty(), "a refused command must not end"),
        }
        self.collect();
        answer
    }

    /// Submits a command, after as many completions as the device asks for.
    fn submit_once_taken(&mut self, command: Command) {
        while let Err(refusal) = self.submit(command) {
            assert_eq!(refusal, Refusal::UntilCompletion);
            self.run_until(self.next_moment().expect("a completion that will make room"));
        }
    }

    /// Lets time pass.
    fn run_until(&mut self, to: Instant) {
        while let Some(&(at, order, alarm)) = self.alarms.first().filter(|(at, ..)| *at <= to) {
            self.alarms.remove(&(at, order, alarm));
            self.now = at;
            self.device.wake(at, alarm, &mut self.schedule);
            self.collect();
        }
        self.now = to;
    }

    /// When something will happen by itself.
    fn next_moment(&self) -> Option<Instant> {
        let completions = self.ended.iter().filter_map(|(.., end)| end.map(|end| end.at)).filter(|&at| at > self.now);
        completions.chain(self.alarms.first().map(|(at, ..)| *at)).min()
    }

    fn collect(&mut self) {
        for (at, alarm) in self.schedule.alarms.drain(..) {
            assert!(at >= self.now, "an alarm in the past");
            self.order += 1;
            self.alarms.insert((at, self.order, alarm));
        }
        for completion in self.schedule.completions.drain(..) {
            assert!(completion.at >= self.now, "a completion in the past");
            let (_, _, end) = &mut self.ended[completion.tag as usize];
            assert_eq!(*end, None, "a command ends exactly once");
            *end = Some(completion);
        }
    }
}

/// A SATA drive of each model.
const SATA: [&str; 3] = ["hgst-he10-8tb", "intel-s3520-1600gb", "Samsung_SSD_860"];

fn is_queued(command: &Command) -> bool {
    !matches!(command.op, Op::Flush | Op::Discard)
}

/// The least time that a command occupies the stage, ns.
fn least_stage_ns(parameters: &SsdParameters, command: &Command) -> u64 {
    match command.op {
        Op::Read | Op::Write => {
            let beyond_bytes = u64::from(command.sectors.saturating_sub(8)) * 512;
            // Less one: fixed point cuts.
            (us(parameters.serial_stage_us) + us(beyond_bytes as f64 / parameters.transfer_mb_per_s)).saturating_sub(1)
        }
        Op::Flush => us(parameters.flush_us),
        Op::Discard | Op::WriteZeroes => us(parameters.discard_us),
    }
}

/// The least time between the stage and the host, ns.
fn least_tail_ns(parameters: &SsdParameters, command: &Command) -> u64 {
    let after_stage_us = match command.op {
        // Less one: the bounds of the jitter are rounded.
        Op::Read => parameters.flash_read_us * (1.0 - parameters.flash_read_jitter_percent / 100.0) - 0.001,
        _ if command.fua => parameters.acknowledge_us + parameters.flush_us - 0.001,
        _ => parameters.acknowledge_us,
    };
    us(after_stage_us.max(0.0)) + us(parameters.device_to_host_us)
}

proptest! {
    #[test]
    fn no_ssd_command_ends_before_its_minimum_service(
        parameters in any_ssd(), load in any_load(), seed in any::<u64>(),
    ) {
        for e in serve(&mut Ssd::new(shape(), &parameters, seed), &load) {
            let least_ns = us(parameters.host_to_device_us)
                + least_stage_ns(&parameters, &e.command)
                + least_tail_ns(&parameters, &e.command);
            prop_assert!(e.completion.at.since(e.submitted).0 >= least_ns, "{e:?} needs {least_ns} ns");
            prop_assert_eq!(e.completion.status, Status::Ok);
        }
    }

    #[test]
    fn the_ssd_never_serves_faster_than_its_stage(
        parameters in any_ssd(), load in any_load(), seed in any::<u64>(),
    ) {
        let ended = serve(&mut Ssd::new(shape(), &parameters, seed), &load);
        // From any command on, the stage must have had time for all of them until the last.
        let last = ended.last().unwrap();
        let mut stage_ns = 0;
        for e in ended.iter().rev() {
            stage_ns += least_stage_ns(&parameters, &e.command);
            let least_ns = us(parameters.host_to_device_us) + stage_ns + least_tail_ns(&parameters, &last.command);
            prop_assert!(last.completion.at.since(e.submitted).0 >= least_ns);
        }
    }

    #[test]
    fn an_ssd_flush_waits_for_everything_before_it_and_lets_nothing_pass(
        parameters in any_ssd(), load in any_load(), seed in any::<u64>(),
    ) {
        let ended = serve(&mut Ssd::new(shape(), &parameters, seed), &load);
        for (position, flush) in ended.iter().enumerate().filter(|(_, e)| e.command.op == Op::Flush) {
            for before in &ended[..position] {
                prop_assert!(before.completion.at <= flush.completion.at, "{before:?} {flush:?}");
            }
            for after in &ended[position + 1..] {
                prop_assert!(
                    // An acknowledgement takes longer than the fastest flash read.
                    after.completion.at + Nanos(us(parameters.acknowledge_us)) >= flush.completion.at,
                    "{after:?} {flush:?}"
                );
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_bits(
        ssd in any_ssd(), null in any_null(), load in any_load(), seed in any::<u64>(),
    ) {
        let ssd = || serve(&mut Ssd::new(shape(), &ssd, seed), &load);
        let null = || serve(&mut Null::new(shape(), &null, seed), &load);
        prop_assert_eq!((ssd(), null()), (ssd(), null()));
    }

    #[test]
    fn a_null_device_takes_its_delay_within_the_jitter_and_holds_no_more_than_it_can(
        parameters in any_null(), load in any_load(), seed in any::<u64>(),
    ) {
        let ended = serve(&mut Null::new(shape(), &parameters, seed), &load);
        let side_ns = parameters.delay_ns as f64 * parameters.delay_jitter_percent / 100.0 + 0.5;
        for (position, e) in ended.iter().enumerate() {
            let off_ns = (e.completion.at.since(e.submitted).0 as f64 - parameters.delay_ns as f64).abs();
            prop_assert!(off_ns <= side_ns, "off by {off_ns} ns");
            let held = ended[..=position].iter().filter(|other| other.completion.at > e.submitted).count();
            prop_assert!(held <= parameters.holds_commands.map_or(usize::MAX, |limit| limit as usize));
        }
    }

    #[test]
    fn ssd_throughput_rises_with_depth_to_the_plateau_of_the_stage(
        stage_us in 5.0..100.0_f64, flash_read_us in 0.0..500.0_f64, read_percent in 0..=100_u64, seed in any::<u64>(),
    ) {
        let Some(preset) = s3520() else { unreachable!() };
        let parameters = SsdParameters { serial_stage_us: stage_us, flash_read_us, gc: None, ..preset };
        let iops: Vec<f64> = [1, 2, 4, 8, 16, 32]
            .map(|depth| {
                let process = Process::random(depth, read_percent);
                let mut device = Ssd::new(shape(), &parameters, seed);
                let measured = run(&mut device, &[process], Nanos::from_millis(200), seed);
                measured[0].iter().map(|cell| cell.ios as f64).sum::<f64>() / 0.2
            })
            .to_vec();
        // Of whole nanoseconds, which matters to the quickest.
        let limit = 1e9 / (stage_us * 1e3).floor();
        for pair in iops.windows(2) {
            // A hundredth, because the jitter is drawn anew.
            prop_assert!(pair[1] >= pair[0] * 0.99, "{iops:?}");
        }
        prop_assert!(iops.iter().all(|&iops| iops <= limit + 5.0), "{iops:?}, limit {limit}");
        // Enough depth to cover the longest round trip reaches the plateau.
        let round_trip_us = 11.0 + stage_us + flash_read_us * 1.15;
        if stage_us * 32.0 > round_trip_us {
            prop_assert!(iops[5] > limit * 0.98, "{iops:?}, limit {limit}");
        }
    }
}

proptest! {
    // Building a drive with a page map takes a while.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_sata_drive_flushes_and_discards_only_while_nothing_else_is_in_it(load in any_load(), seed in any::<u64>()) {
        for name in SATA {
            let ended = serve(&mut *Preset::builtin(name).unwrap().build(seed), &load);
            for (position, alone) in ended.iter().enumerate().filter(|(_, e)| !is_queued(&e.command)) {
                for before in &ended[..position] {
                    prop_assert!(before.completion.at <= alone.completion.at, "{}: {:?} {:?}", name, before, alone);
                }
                for after in &ended[position + 1..] {
                    prop_assert!(after.submitted >= alone.completion.at, "{}: {:?} {:?}", name, after, alone);
                }
            }
        }
    }

    #[test]
    fn a_sata_queue_changes_nothing_for_reads_and_writes(load in any_load(), seed in any::<u64>()) {
        let mut load: Vec<Timed> = load.into_iter().filter(|(_, command)| is_queued(command)).collect();
        prop_assume!(!load.is_empty());
        for (tag, (_, command)) in load.iter_mut().enumerate() {
            command.tag = tag as u32;
        }
        for name in SATA {
            let preset = Preset::builtin(name).unwrap();
            let mut file = PresetFile::from(preset.clone());
            file.shape.sata = false;
            let unwrapped = Preset::try_from(file).unwrap();
            prop_assert_eq!(
                serve(&mut *preset.build(seed), &load),
                serve(&mut *unwrapped.build(seed), &load), "{}", name
            );
        }
    }

    #[test]
    fn no_command_makes_a_device_panic(
        now in any::<u64>(), sector in any::<u64>(), sectors in any::<u32>(), op in any_op(), fua in any::<bool>(),
    ) {
        for name in Preset::builtin_names().take(10) {
            let mut device = Preset::builtin(name).unwrap().build(1);
            let sectors = sectors % device.shape().max_sectors;
            let expected = {
                let end = u128::from(sector) + u128::from(sectors);
                let beyond = sectors > 0 && end > u128::from(device.shape().capacity_sectors);
                if beyond { Status::IoError } else { Status::Ok }
            };
            let mut host = Host::new(&mut *device);
            host.now = Instant(now);
            for tag in 0..3 {
                let command = Command { tag, queue: 0, op, sector: Sector(sector), sectors, fua };
                host.submit_once_taken(command);
            }
            host.run_until(Instant(u64::MAX));
            prop_assert!(host.ended.iter().all(|(.., end)| end.is_some_and(|end| end.status == expected)), "{}", name);
        }
    }
}

/// The parameters of the SATA SSD preset.
fn s3520() -> Option<SsdParameters> {
    match Preset::builtin("intel-s3520-1600gb").ok()?.parameters() {
        hoistway_device::Parameters::Ssd(parameters) => Some(parameters.clone()),
        _ => None,
    }
}

#[test]
fn a_random_read_alone_takes_the_sum_of_its_stages() {
    let mut device = Preset::builtin("intel-s3520-1600gb").unwrap().build(1);
    let reader = Process::random(1, 100);
    let reads = run(&mut *device, &[reader], Nanos::from_secs(10), 1)[0][0];
    let sum_us = 1.8 + 25.5 + 120.0 + 1.8;
    assert!((reads.mean_ms() * 1e3 / sum_us - 1.0).abs() < 0.002, "{} ms", reads.mean_ms());
    assert!(reads.latency_max_ns <= us(sum_us + 120.0 * 0.15));
}

#[test]
fn a_large_transfer_is_bound_by_the_link() {
    let process = Process { sectors: 1024, ..Process::random(32, 100) };
    let mut device = Preset::builtin("intel-s3520-1600gb").unwrap().build(1);
    let reads = run(&mut *device, &[process], Nanos::from_secs(1), 1)[0][0];
    // 512 KiB: 25.5 us with the first 4 KiB, 520,192 bytes at 550 MB/s.
    let mb_per_s = reads.ios as f64 * 524_288.0 / 1e6;
    let expected = 524_288.0 / (25.5 + 520_192.0 / 550.0);
    assert!((mb_per_s / expected - 1.0).abs() < 0.005, "{mb_per_s} MB/s, expected {expected}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// Whatever reads keep coming, writes are served, and the other way round: no drive makes one direction wait for ever.
    #[test]
    fn reads_and_writes_beside_each_other_are_both_served(
        name in prop::sample::select(Preset::builtin_names().collect::<Vec<_>>()),
        depths in (1..16_u32, 1..16_u32),
        sizes in (3..12_u32, 3..12_u32),
        sequential in (any::<bool>(), any::<bool>()),
        seed in any::<u64>(),
    ) {
        let preset = Preset::builtin(name).unwrap();
        let sectors = |power: u32| (1 << power).min(preset.shape().max_sectors);
        let party = |read_percent, depth, power, sequential| Process {
            sectors: sectors(power),
            // On a disk a stream loses more than its share to seeks beside another.
            sequential: sequential && !preset.shape().rotational,
            ..Process::random(depth, read_percent)
        };
        let reader = party(100, depths.0, sizes.0, sequential.0);
        let writer = party(0, depths.1, sizes.1, sequential.1);
        let time = Nanos::from_secs(2);
        let run = |processes: &[Process]| run(&mut *preset.build(seed), processes, time, seed);
        // The mean wait by Little's law, which counts I/Os that never end, too.
        let wait_ms = |depth: u32, ios: u64| time.0 as f64 * f64::from(depth) / ios.max(1) as f64 / 1e6;
        let alone = [wait_ms(depths.0, run(&[reader])[0][0].ios), wait_ms(depths.1, run(&[writer])[0][1].ios)];
        let together = run(&[reader, writer]);
        let waits = [wait_ms(depths.0, together[0][0].ios), wait_ms(depths.1, together[1][1].ios)];
        let bound = 250.0 + 8.0 * (alone[0] + alone[1]);
        prop_assert!(waits.iter().all(|&wait| wait < bound), "{name}: {waits:.1?} ms, alone {alone:.1?}");
    }
}

#[test]
fn seeds_differ() {
    let load: Vec<Timed> = (0..50)
        .map(|tag| {
            let command = Command { tag, queue: 0, op: Op::Read, sector: Sector(8), sectors: 8, fua: false };
            (1000, command)
        })
        .collect();
    let times: BTreeSet<Vec<Instant>> = (0..20)
        .map(|seed| {
            let mut device = Preset::builtin("intel-s3520-1600gb").unwrap().build(seed);
            serve(&mut *device, &load).iter().map(|e| e.completion.at).collect()
        })
        .collect();
    assert_eq!(times.len(), 20);
}

#[test]
fn a_seed_gives_these_very_bits_on_every_machine() {
    let mut device = Preset::builtin("intel-s3520-1600gb").unwrap().build(1);
    let mut schedule = Schedule::default();
    for n in 0..100_000_u64 {
        let op = if n % 5 == 0 { Op::Read } else { Op::Write };
        let sector = Sector(n * 7919 % 1_000_000 * 8);
        let command = Command { tag: n as u32, queue: 0, op, sector, sectors: 8, fua: false };
        device.submit(Instant(n * 20_000), command, &mut schedule).unwrap();
    }
    // FNV-1a over all completion times.
    let hash = schedule
        .completions
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, completion| (hash ^ completion.at.0).wrapping_mul(0x0100_0000_01b3));
    assert_eq!(hash, 8_587_222_737_613_209, "completion times have changed: on purpose?");
}
