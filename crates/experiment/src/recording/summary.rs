//! The contents of a recording for the document, and a comparison with its replay under its own scheduler (RP25).

use hoistway_answer::ResultsDocument;
use hoistway_answer::document::{JobSummary, RecordedStream, RecordingSummary, SelfCheck};
use hoistway_measure::Operation;
use hoistway_program::{Class, Latency, Mode, Stream};

use super::Recorded;

impl Recorded {
    /// The contents of the recording.
    pub(crate) fn summary(&self) -> RecordingSummary {
        let mut streams: Vec<RecordedStream> = Vec::new();
        for name in self.job_names() {
            let its: Vec<&Stream> = self.program.streams.iter().filter(|stream| stream.name == name).collect();
            let sum = |figure: fn(&Stream) -> u64| its.iter().map(|stream| figure(stream)).sum::<u64>();
            let (reads, writes) = (sum(|stream| stream.reads.0), sum(|stream| stream.writes.0));
            let bytes = sum(|stream| stream.reads.1 + stream.writes.1);
            let mut waits_for: Vec<String> = its
                .iter()
                .flat_map(|stream| &stream.waits)
                .map(|wait| self.program.streams[wait.on].name.clone())
                .collect();
            waits_for.sort();
            waits_for.dedup();
            let all = |class: Class| its.iter().all(|stream| stream.class == class);
            let arrival = match () {
                () if all(Class::Closed) => "closed",
                () if all(Class::Open) => "open",
                () => "undecided",
            };
            let mut thinks: Vec<u64> = its.iter().filter_map(|stream| stream.think_ns).collect();
            thinks.sort_unstable();
            streams.push(RecordedStream {
                name: name.to_owned(),
                tasks: sum(|stream| stream.tasks),
                ios: sum(|stream| stream.ios),
                reads,
                writes,
                durable: sum(|stream| stream.flushes + stream.durable_writes),
                mean_bytes: bytes as f64 / (reads + writes).max(1) as f64,
                arrival: arrival.to_owned(),
                think_ns: thinks.get(thinks.len() / 2).copied(),
                hidden_depth: its.iter().filter_map(|stream| stream.hidden_depth).max(),
                waits_for,
            });
        }
        RecordingSummary {
            format: self.format.clone(),
            device: self.program.device.to_string(),
            seconds: self.program.span_ns as f64 / 1e9,
            ios: self.program.streams.iter().map(|stream| stream.ios).sum(),
            mode: match self.replay.mode {
                Mode::RecordedProgram => "recorded-program",
                Mode::Timed => "timed",
                Mode::Fast => "fast",
            }
            .to_owned(),
            speed: self.replay.speed,
            copies: self.replay.copies,
            streams,
            ..RecordingSummary::default()
        }
    }

    /// The names of the replayed streams, in the order of the program.
    fn job_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for stream in &self.program.streams {
            let is_wanted = self.replay.streams.is_empty() || self.replay.streams.contains(&stream.name);
            if is_wanted && !names.contains(&&*stream.name) {
                names.push(&stream.name);
            }
        }
        names
    }

    /// Compares the recording with the runs of its replay under `label`. None if the recording lacks completions, or was replayed
    /// faster or more than once.
    pub(crate) fn self_check(&self, replayed: &ResultsDocument, label: &str) -> Vec<SelfCheck> {
        let is_itself =
            self.replay.speed == 1.0 && self.replay.copies <= 1 && self.replay.mode == Mode::RecordedProgram;
        if !is_itself || !self.program.has_completions {
            return Vec::new();
        }
        let mut rows = Vec::new();
        for name in self.job_names() {
            let jobs: Vec<&JobSummary> = replayed
                .runs
                .iter()
                .filter(|run| run.variant.label == label)
                .flat_map(|run| run.jobs.iter().filter(|job| job.name == name))
                .collect();
            for (operation, latency) in [
                (Operation::Read, (|stream| stream.read_latency) as fn(&Stream) -> Latency),
                (Operation::Write, |stream| stream.write_latency),
            ] {
                let (mut ios, mut sum_ns, mut recorded_iops) = (0, 0.0, 0.0);
                for stream in self.program.streams.iter().filter(|stream| stream.name == name) {
                    let of = latency(stream);
                    ios += of.ios;
                    sum_ns += of.mean_ns * of.ios as f64;
                    let seconds = (stream.last_ns - stream.first_ns).max(1) as f64 / 1e9;
                    recorded_iops += of.ios as f64 / seconds;
                }
                let Some((replayed_ns, replayed_iops)) = measured(&jobs, operation).filter(|_| ios > 0) else {
                    continue;
                };
                let recorded_ns = sum_ns / ios as f64;
                let job = name.to_owned();
                rows.push(SelfCheck { job, operation, ios, recorded_ns, replayed_ns, recorded_iops, replayed_iops });
            }
        }
        rows
    }
}

/// Mean latency and rate of an operation in the runs of a job: flushes and trims count as writes, as in the recording.
fn measured(jobs: &[&JobSummary], operation: Operation) -> Option<(f64, f64)> {
    let (mut ios, mut sum_ns, mut iops) = (0.0, 0.0, 0.0);
    let mut add = |count: u64, mean_ns: f64, rate: f64| {
        ios += count as f64;
        sum_ns += mean_ns * count as f64;
        iops += rate;
    };
    for job in jobs {
        for summary in &job.operations {
            if (summary.operation == Operation::Read) == (operation == Operation::Read) {
                add(summary.ios, summary.lat_ns.mean, summary.iops);
            }
        }
    }
    (ios > 0.0).then(|| (sum_ns / ios, iops / jobs.len() as f64))
}
