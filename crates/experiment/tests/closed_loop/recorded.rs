//! The recorded results of a real kernel.

use hoistway_measure::Direction;
use serde::Deserialize;

/// A scenario: a job file, its device and its settings.
#[derive(Deserialize)]
pub struct Scenario {
    #[serde(rename = "scenario")]
    pub name: String,
    pub cpus: u16,
    hw_queues: u16,
    hw_queue_depth: u32,
    completion_us: u64,
    #[serde(deserialize_with = "number_or_default")]
    pub nr_requests: Option<u32>,
    #[serde(deserialize_with = "csv::invalid_option")]
    tunables: Option<String>,
}

/// `default`, or a number.
fn number_or_default<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let text = String::deserialize(deserializer)?;
    Ok(text.parse().ok())
}

/// One direction of a job of a scenario under one scheduler: the figures of one clone.
#[derive(Deserialize)]
pub struct Row {
    pub scenario: String,
    pub scheduler: String,
    pub job: String,
    pub direction: String,
    iops: f64,
    mean_us: f64,
    p99_us: f64,
}

const JOBS: &[(&str, &str)] = &[
    ("habr-qd1", include_str!("data/habr-qd1.fio")),
    ("reader-writers", include_str!("data/reader-writers.fio")),
    ("reader-writers-2cpu", include_str!("data/reader-writers-2cpu.fio")),
    ("seq-random-d1", include_str!("data/seq-random-d1.fio")),
    ("prio-classes", include_str!("data/prio-classes.fio")),
    ("weights-1-4", include_str!("data/weights-1-4.fio")),
    ("kyber-tight", include_str!("data/kyber-tight.fio")),
    ("nr-requests", include_str!("data/nr-requests.fio")),
    ("rate-background", include_str!("data/rate-background.fio")),
    ("stagger-400", include_str!("data/stagger-400.fio")),
    ("stagger-1000", include_str!("data/stagger-1000.fio")),
];

fn table<T: serde::de::DeserializeOwned>(text: &str) -> Vec<T> {
    csv::Reader::from_reader(text.as_bytes()).deserialize().collect::<Result<_, _>>().unwrap()
}

pub fn scenarios() -> Vec<Scenario> {
    table(include_str!("data/settings.csv"))
}

/// Reads and writes, without fsyncs.
pub fn rows() -> Vec<Row> {
    table(include_str!("data/kernel.csv"))
}

impl Scenario {
    /// Its job file.
    pub fn job(&self) -> String {
        let (_, job) = JOBS.iter().find(|(name, _)| *name == self.name).unwrap();
        (*job).to_owned()
    }

    /// Its device as a preset.
    pub fn device(&self) -> String {
        include_str!("data/null.device.toml")
            .replace("@hw_queues@", &self.hw_queues.to_string())
            .replace("@hw_queue_depth@", &self.hw_queue_depth.to_string())
            .replace("@completion_us@", &self.completion_us.to_string())
    }

    /// Tunables that differ from the default: scheduler, name, text.
    pub fn tunables(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let tunables = self.tunables.as_deref().unwrap_or_default().split_whitespace();
        tunables.map(|text| {
            let (scheduler, rest) = text.split_once('.').unwrap();
            let (name, value) = rest.split_once('=').unwrap();
            (scheduler, name, value)
        })
    }
}

impl Row {
    pub fn direction(&self) -> Direction {
        if self.direction == "read" { Direction::Read } else { Direction::Write }
    }

    /// In the order of `Figure::ALL`.
    pub fn figures(&self) -> [f64; 3] {
        [self.iops, self.mean_us, self.p99_us]
    }
}
