//! A reader and sixteen writers that begin 20 ms apart, under bfq, beside a real kernel: Linux 6.18.15 and fio 3.33 over a null block
//! device whose commands take 4 ms, 32 at a time on each of two hardware queues, in a guest of 1 ns an instruction (made with
//! `scripts/closed-loop scheduler=bfq cpus=2 hw_queues=2 depth=32 completion_us=4000`). `data/staggered.csv` has six recorded starts, in
//! half seconds since the reader's first I/O. Without a scheduler the writers reach 15,000 a second.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::support::{observe, spec, writing};
use hoistway_blk::ground::{CpuId, Kernel, Now};
use hoistway_blk::watch::{Event, Probe};
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_sim::{Host, QueueSettings, Scenario};

const WRITERS: usize = 16;
/// Windows of half a second; the first and the last are not looked at: processes begin and end in them.
const WINDOWS: usize = 7;
const SEEDS: u64 = 24;

/// How many I/Os of each process ended in each window, the reader first.
#[derive(Default)]
struct Ended([[u32; WRITERS + 1]; WINDOWS]);

impl Probe for Ended {
    fn event(&mut self, now: Now, _: CpuId, event: Event<'_>) {
        if let Event::Complete(rq, _) = event
            && let Some(window) = self.0.get_mut((now.at.0 / 500_000_000) as usize)
        {
            window[rq.io_context.0 as usize - 1] += 1;
        }
    }
}

/// What a window comes to: writes and reads a second, and the most of a writer over their median.
#[derive(Clone, Copy)]
struct Rates {
    writes: f64,
    reads: f64,
    most_over_median: f64,
}

impl Rates {
    fn from_window(window: &[u32; WRITERS + 1]) -> Rates {
        let mut writers: Vec<u32> = window[1..].to_vec();
        writers.sort_unstable();
        let most = f64::from(writers[WRITERS - 1]);
        Rates {
            writes: 2.0 * f64::from(writers.iter().sum::<u32>()),
            reads: 2.0 * f64::from(window[0]),
            most_over_median: most / f64::from(writers[WRITERS / 2].max(1)),
        }
    }
}

fn job() -> String {
    let mut job =
        "[global]\nioengine=libaio\ndirect=1\nfilename=/dev/nullb0\nrandom_generator=lfsr\ntime_based\nruntime=4\n\
                   [reader]\nrw=randread\nbs=4k\n"
            .to_owned();
    for writer in 0..WRITERS {
        let delay_ms = 20 * (writer + 1);
        write!(job, "[w{writer}]\nrw=randwrite\nbs=64k\niodepth=16\nstartdelay={delay_ms}ms\n").unwrap();
    }
    job
}

fn simulate(scheduler: &str, seed: u64) -> Vec<Rates> {
    let workload = JobFile::parse(&job(), "test.fio", &Environment::empty()).unwrap().load;
    let device =
        null(&[("capacity_gb", "1.073741824"), ("hw_queues", "2"), ("queue_depth", "32"), ("delay_ns", "4000000")]);
    let host = "name = \"guest\"\ndescription = \"1 ns an instruction\"\nsubmit_ns = 12200\ncomplete_ns = 4000\n\
                redirect_ns = 500\nwake_ns = [3000, 5000]\nworker_ns = [3000, 5000]\n";
    let queue = QueueSettings::new(Kernel::V6_18, 2);
    let spec = writing(spec(scheduler, &[], seed), "wbt_lat_usec", "0");
    let host = Host::from_toml(host, "guest.toml").unwrap();
    let scenario = Scenario { workload: &workload, devices: vec![&device], guests: None, queue, host, runtime: None };
    let (_, ended) = observe(&scenario, &spec, Ended::default()).unwrap();
    ended.0[1..].iter().map(Rates::from_window).collect()
}

/// The null block device of 1 GiB with these numbers.
fn null(numbers: &[(&str, &str)]) -> Preset {
    let line = |line: &str| {
        let key = line.split(" =").next().unwrap_or_default();
        let number = numbers.iter().find(|(name, _)| *name == key);
        number.map_or_else(|| line.to_owned(), |(name, value)| format!("{name} = {value}"))
    };
    let text: Vec<String> = Preset::builtin_toml("null").unwrap().lines().map(line).collect();
    Preset::from_toml(&text.join("\n"), "null.toml").unwrap()
}

fn recorded() -> BTreeMap<u32, Vec<Rates>> {
    let mut starts: BTreeMap<u32, Vec<Rates>> = BTreeMap::new();
    for line in include_str!("data/staggered.csv").lines().skip(1) {
        let columns: Vec<f64> = line.split(',').map(|column| column.parse().unwrap()).collect();
        let [recording, _, writes, reads, most_over_median] = columns[..] else { panic!("{line}") };
        starts.entry(recording as u32).or_default().push(Rates { writes, reads, most_over_median });
    }
    starts
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn show(name: &str, start: &[Rates]) {
    let windows: Vec<String> = start
        .iter()
        .map(|rates| format!("{:>6.0} {:>4.0} {:>5.1}", rates.writes, rates.reads, rates.most_over_median))
        .collect();
    eprintln!("{name:12} {}", windows.join(" |"));
}

/// Prints all windows, recorded and simulated: writes and reads a second, and the most of a writer over their median.
#[test]
fn staggered_writers_share_the_remaining_bandwidth_as_on_a_real_kernel() {
    let recorded: Vec<Vec<Rates>> = recorded().into_values().collect();
    recorded.iter().for_each(|start| show("recorded", start));
    let ours: Vec<Vec<Rates>> = (1..=SEEDS).map(|seed| simulate("bfq", seed)).collect();
    ours.iter().for_each(|start| show("here", start));
    // A writer ends to be raised 3.7 s after it began, and takes what it likes then.
    let median_of = |starts: &[Vec<Rates>], figure: fn(&Rates) -> f64| {
        median(starts.iter().flat_map(|start| &start[..5]).map(figure))
    };
    let within = |figure: fn(&Rates) -> f64, factor: f64, what: &str| {
        let (simulated, recorded_value) = (median_of(&ours, figure), median_of(&recorded, figure));
        assert!(
            (recorded_value / factor..=recorded_value * factor).contains(&simulated),
            "{what}: here {simulated}, recorded {recorded_value}"
        );
    };
    within(|rates| rates.writes, 1.4, "writes");
    within(|rates| rates.reads, 1.5, "reads");
    within(|rates| rates.most_over_median, 1.5, "most over median");
    // Two of the six recorded starts collapse: nearly all tags are free, and all wait for the one that their share lets them take.
    let collapsed = |starts: &[Vec<Rates>]| {
        starts.iter().filter(|start| median(start[..5].iter().map(|rates| rates.writes)) < 1000.0).count() as f64
            / starts.len() as f64
    };
    let (simulated, recorded_value) = (collapsed(&ours), collapsed(&recorded));
    assert!(
        (recorded_value / 3.0..=recorded_value * 2.0).contains(&simulated),
        "collapsed: here {simulated}, recorded {recorded_value}"
    );
    // The device is far from busy.
    let plain = simulate("none", 1);
    show("here, none", &plain);
    assert!(plain.iter().all(|rates| rates.writes > 14_000.0));
    assert!(ours.iter().flatten().all(|rates| rates.writes < 6_000.0));
}
