//! Documents with a verdict and its sentences.

use hoistway_answer::document::{JobSummary, Run};
use hoistway_answer::{Analysis, ResultsDocument};
use hoistway_measure::Direction;
use hoistway_render::text::conclusion;

use crate::support::{direction, document, run};

/// A run whose figures are those of the first run times a factor.
pub type Jobs = dyn Fn(f64) -> Vec<JobSummary>;

/// Three repeats of a job under each scheduler, which differ slightly.
pub fn three(schedulers: &[(&str, &Jobs)]) -> ResultsDocument {
    let runs = schedulers.iter().flat_map(|(name, jobs)| {
        [1.0, 1.01, 0.995].into_iter().zip(0..).map(|(factor, repeat)| Run {
            repeat,
            jobs: jobs(factor),
            ..run(name, Vec::new())
        })
    });
    document(runs.collect())
}

pub fn job(name: &str, job: u32, reads_mean_ns: f64, change: impl FnOnce(&mut JobSummary)) -> JobSummary {
    let of = vec![direction(Direction::Read, 1e9 / reads_mean_ns, reads_mean_ns)];
    let mut summary = run("", vec![(name, 1, of)]).jobs.remove(0);
    summary.job = job;
    // Enough I/Os for a p99.
    (summary.operations[0].ios, summary.operations[0].bytes) = (5000, 5000 * 4096);
    change(&mut summary);
    summary
}

pub fn conclusion_text(document: &ResultsDocument) -> String {
    conclusion(&Analysis::of(document)).join("\n")
}
