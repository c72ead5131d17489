//! Table `research-tournament`: every scheduler under the same loads, with shares, latencies and costs.

use super::{DRIVE, RunFigures, comparison_of_jobs, run_schedulers};
use crate::reproduction::Table;
use crate::reproduction::cell::{Cell, Judgement};
use crate::reproduction::runs::Setting;
use hoistway_experiment::{Comparison, Error};

pub(in crate::reproduction) const TOURNAMENT: Table = Table {
    name: "research-tournament",
    title: "seven schedulers under six loads on an NVMe drive",
    source: "none: the loads are those of vFair, CFFQ, K2 and MQFQ, and what tenants complain of",
    story: STORY,
    device: DRIVE,
    host: None,
    unknowns: &[],
    others: &[],
    repeats_max: 3,
    run: reproduce,
};

const STORY: &str = "Nothing is judged. Jain's index is that of bytes over what is due to each job: 1 if each has its share, 1/n if one of n \
                     has everything; the worst share is that of the job that is furthest below what is due to it. Latencies are those of the \
                     job that waits. Throughput and CPU time of an I/O are those of all jobs over none's. mqfq gives weights and levels \
                     their shares within 0.1 % at none's throughput, where bfq loses 42 %; a process at depth 1 it cannot give more than its \
                     one request takes, but that waits little more than a third as long. Beside large writes no scheduler shortens the tail of reads, \
                     which is the flash's own; bfq, which lets the drive idle, gives each of the two half of a fifth of none's throughput. adios and \
                     k2 hold back more than this drive needs at their defaults, and lose a quarter to a third of reads alone; where write-back \
                     floods the drive, commits wait for 3 ms under adios and bfq and for 17 to 82 ms under all others.";

const SCHEDULERS: [&str; 7] = ["none", "mq-deadline", "bfq", "kyber", "k2", "adios", "mqfq"];

/// A load of the tournament.
struct Contest {
    name: &'static str,
    jobs: &'static str,
    /// Jobs, and the relative share of each.
    due: &'static [(&'static str, f64)],
    /// The job whose latency matters.
    latency_job: &'static str,
}

const CONTESTS: [Contest; 6] = [
    Contest {
        name: "noisy neighbour: reads at depth 4 beside large writes",
        jobs: "[quiet]\nrw=randread\niodepth=4\ncgroup=quiet\n[noisy]\nrw=randwrite\nbs=64k\niodepth=64\ncgroup=noisy\n",
        due: &[("quiet", 1.0), ("noisy", 1.0)],
        latency_job: "quiet",
    },
    Contest {
        name: "weights 1 : 2 : 4 : 8",
        jobs: "[w1]\nrw=randread\niodepth=64\nnumjobs=2\ncgroup=w1\ncgroup_weight=100\n\
               [w2]\nrw=randread\niodepth=64\nnumjobs=2\ncgroup=w2\ncgroup_weight=200\n\
               [w4]\nrw=randread\niodepth=64\nnumjobs=2\ncgroup=w4\ncgroup_weight=400\n\
               [w8]\nrw=randread\niodepth=64\nnumjobs=2\ncgroup=w8\ncgroup_weight=800\n",
        due: &[("w1", 1.0), ("w2", 2.0), ("w4", 4.0), ("w8", 8.0)],
        latency_job: "w8",
    },
    Contest {
        name: "deep neighbour: depth 1 beside four of depth 64",
        jobs: "[lone]\nrw=randread\niodepth=1\ncgroup=lone\n[deep]\nrw=randread\niodepth=64\nnumjobs=4\ncgroup=deep\n",
        due: &[("lone", 1.0), ("deep", 1.0)],
        latency_job: "lone",
    },
    Contest {
        name: "priorities: best-effort levels 0, 4 and 7",
        jobs: "[b0]\nrw=randread\niodepth=64\nnumjobs=2\nprioclass=2\nprio=0\n\
               [b4]\nrw=randread\niodepth=64\nnumjobs=2\nprioclass=2\nprio=4\n\
               [b7]\nrw=randread\niodepth=64\nnumjobs=2\nprioclass=2\nprio=7\n",
        due: &[("b0", 8.0), ("b4", 4.0), ("b7", 1.0)],
        latency_job: "b0",
    },
    Contest {
        name: "real-time reads beside reads and writes",
        jobs: "[urgent]\nrw=randread\nprioclass=1\nprio=0\niodepth=1\n[bulk]\nrw=randrw\nrwmixread=50\niodepth=32\nnumjobs=3\n",
        due: &[("urgent", 1.0), ("bulk", 3.0)],
        latency_job: "urgent",
    },
    Contest {
        name: "commits: sync writes beside write-back",
        jobs: "[commits]\nrw=randwrite\niodepth=1\nnumjobs=4\nsync=1\n[writeback]\nrw=write\nbs=256k\ndirect=0\niodepth=1\n",
        due: &[("commits", 1.0), ("writeback", 1.0)],
        latency_job: "commits",
    },
];

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    let mut cells = Vec::new();
    for contest in &CONTESTS {
        let comparison = Comparison {
            runtime_ns: Some(setting.duration_from_ms(500, 30_000)),
            ..comparison_of_jobs("research-tournament", DRIVE, contest.jobs, setting)
        };
        let runs = run_schedulers(comparison, &SCHEDULERS, setting)?;
        for (scheduler, run) in SCHEDULERS.iter().zip(&runs) {
            let row = format!("{}: {scheduler}", contest.name);
            let columns = contest.figures(run, &runs[0]);
            cells.extend(columns.map(|(column, figure)| Cell::new(&row, column, figure, None, Judgement::None)));
        }
    }
    Ok(cells)
}

impl Contest {
    fn figures(&self, run: &RunFigures, none: &RunFigures) -> [(&'static str, f64); 6] {
        let over_due: Vec<f64> = self.due.iter().map(|&(job, due)| run.bytes_per_second(job) / due).collect();
        let (sum, squares) = (over_due.iter().sum::<f64>(), over_due.iter().map(|share| share * share).sum::<f64>());
        let due: f64 = self.due.iter().map(|&(_, due)| due).sum();
        let worst = over_due.iter().copied().fold(f64::INFINITY, f64::min) * due / run.all_bytes_per_second();
        [
            ("Jain's index", sum * sum / (over_due.len() as f64 * squares)),
            ("worst share over due", worst),
            ("p99, us", run.p99_us(self.latency_job)),
            ("p99.9, us", run.p99_9_us(self.latency_job)),
            ("throughput", run.all_bytes_per_second() / none.all_bytes_per_second()),
            ("CPU time", run.cpu_us_per_io() / none.cpu_us_per_io()),
        ]
    }
}
