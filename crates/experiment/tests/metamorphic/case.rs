//! Random cases: a job file with its device, kernel and scheduler, each derived from a number.

use hoistway_answer::document::Run;
use hoistway_experiment::{Alone, Comparison, Devices, FioOutputs, Load, Profile};
use hoistway_measure::fio::{DirectionStats, Job, Output};

/// SplitMix64: small, and the same on every platform.
pub struct Random(pub u64);

impl Random {
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut drawn = self.0;
        drawn = (drawn ^ drawn >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ drawn >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        drawn ^ drawn >> 31
    }

    pub fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.number() % of.len() as u64) as usize]
    }
}

/// A section of a job file.
#[derive(Clone, PartialEq, Eq)]
pub struct Section {
    pub name: String,
    pub rw: &'static str,
    pub block_kib: u32,
    pub depth: u32,
    pub numjobs: u32,
    pub disk: &'static str,
    /// Further lines.
    pub more: Vec<String>,
}

/// A device, and the time in which it does about a thousand I/Os, ms.
const DEVICES: [(&str, u64); 8] = [
    ("hgst-he10-8tb", 4000),
    ("emmc", 200),
    ("usb-stick", 400),
    ("intel-s3520-1600gb", 30),
    ("micron-9100-1600gb", 8),
    ("samsung-980pro-1tb", 8),
    ("intel-p4800x-375gb", 8),
    ("throttled-cloud-volume", 400),
];

#[derive(Clone)]
pub struct Case {
    pub sections: Vec<Section>,
    pub device: &'static str,
    /// Its description, instead of a built-in one.
    pub device_text: Option<String>,
    pub scheduler: &'static str,
    pub kernel: &'static str,
    pub cpus: u16,
    pub runtime_ms: u64,
    pub ramp_ms: u64,
}

impl Case {
    /// The case with this number.
    pub fn new(number: u64) -> Case {
        let mut random = Random(number);
        let (device, runtime_ms) = random.one_of(&DEVICES);
        let sections = 1 + random.number() % 3;
        Case {
            sections: (0..sections).map(|index| section(&format!("job{index}"), &mut random)).collect(),
            device,
            device_text: None,
            scheduler: random.one_of(&["none", "mq-deadline", "kyber", "bfq"]),
            kernel: random.one_of(&["5.4", "5.15", "6.6", "6.18", "7.2"]),
            cpus: random.one_of(&[1, 2, 4, 8]),
            runtime_ms,
            ramp_ms: 0,
        }
    }

    /// The case on a device that takes `command_us` for each of up to `depth` concurrent commands.
    pub fn on_null(mut self, command_us: u64, depth: u32, hw_queues: u16) -> Case {
        let text = include_str!("../closed_loop/data/null.device.toml")
            .replace("@hw_queues@", &hw_queues.to_string())
            .replace("@hw_queue_depth@", &depth.to_string())
            .replace("@completion_us@", &command_us.to_string());
        self.runtime_ms = (2 * command_us / u64::from(depth)).max(20);
        self.device_text = Some(text);
        self
    }

    pub fn job_file(&self) -> String {
        let mut text =
            format!("[global]\nioengine=libaio\ndirect=1\nsize=256m\ntime_based\nruntime={}ms\n", self.runtime_ms);
        if self.ramp_ms > 0 {
            text += &format!("ramp_time={}ms\n", self.ramp_ms);
        }
        for Section { name, rw, block_kib, depth, numjobs, disk, more } in &self.sections {
            // Not in [global], as a section's own value would be added to it.
            text += &format!(
                "[{name}]\nfilename=/dev/{disk}\nrw={rw}\nbs={block_kib}k\niodepth={depth}\nnumjobs={numjobs}\n"
            );
            more.iter().for_each(|line| text += &format!("{line}\n"));
        }
        text
    }

    /// Everything needed to reproduce a failure.
    pub fn in_words(&self) -> String {
        let Case { device, scheduler, kernel, cpus, .. } = self;
        let device = self.device_text.as_deref().unwrap_or(device);
        format!("{scheduler} on {device}, Linux {kernel}, {cpus} CPUs:\n{}", self.job_file())
    }

    pub fn run(&self, seed: u64, repeats: u32) -> Vec<Simulated> {
        self.run_text(self.job_file(), seed, repeats)
    }

    pub fn run_text(&self, text: String, seed: u64, repeats: u32) -> Vec<Simulated> {
        let profile = match &self.device_text {
            Some(text) => Profile::Text { name: "null.device.toml".to_owned(), text: text.clone() },
            None => Profile::Named(self.device.to_owned()),
        };
        let outputs = FioOutputs::default();
        let document = Comparison {
            load: Load::Text { name: "case.fio".to_owned(), text },
            devices: vec![Devices { common: Some(profile), ..Devices::default() }],
            kernels: vec![self.kernel.to_owned()],
            cpus: Some(self.cpus),
            schedulers: vec![self.scheduler.to_owned()],
            seed,
            repeats,
            ..Comparison::default()
        }
        .run_observed(&Alone, &outputs)
        .unwrap_or_else(|error| panic!("{error}\n{}", self.in_words()));
        let outputs = outputs.of_runs(&document);
        document.runs.into_iter().zip(outputs).map(|(run, fio)| Simulated { run, fio }).collect()
    }
}

/// A run, with its fio output, which has the figures of single processes.
pub struct Simulated {
    pub run: Run,
    pub fio: Output,
}

fn section(name: &str, random: &mut Random) -> Section {
    let more = match random.number() % 8 {
        0 => vec!["rate_iops=200".to_owned()],
        1 => vec!["thinktime=500us".to_owned()],
        2 => vec!["prioclass=1".to_owned()],
        3 => vec!["nice=10".to_owned()],
        _ => Vec::new(),
    };
    Section {
        name: name.to_owned(),
        rw: random.one_of(&["randread", "randread", "randwrite", "read", "write", "randrw"]),
        block_kib: random.one_of(&[4, 4, 16, 64]),
        depth: random.one_of(&[1, 1, 4, 16, 32]),
        numjobs: random.one_of(&[1, 1, 2]),
        disk: "sda",
        more,
    }
}

/// Reads and writes of a process.
pub fn directions(job: &Job) -> [&DirectionStats; 2] {
    [&job.read, &job.write]
}

/// I/Os of the processes of a section in a run.
pub fn ios(run: &Simulated, section: &str) -> u64 {
    let jobs = run.fio.jobs.iter().filter(|job| job.jobname == section);
    jobs.flat_map(directions).map(|direction| direction.total_ios).sum()
}

/// I/Os of each process of a section in a run.
pub fn ios_of_each(run: &Simulated) -> Vec<u64> {
    let of = |job: &Job| directions(job).iter().map(|direction| direction.total_ios).sum();
    run.fio.jobs.iter().map(of).collect()
}
