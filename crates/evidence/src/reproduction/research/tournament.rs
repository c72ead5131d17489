//! Table `research-tournament`: every scheduler under the same loads, with shares, latencies and costs.

use super::{DRIVE, RunFigures, comparison_of_jobs, run_schedulers, tunable};
use crate::reproduction::Table;
use crate::reproduction::cell::{Cell, Judgement};
use crate::reproduction::runs::{Setting, load};
use hoistway_experiment::{Comparison, Devices, Error, scenarios};

pub(in crate::reproduction) const TOURNAMENT: Table = Table {
    name: "research-tournament",
    title: "ten to eleven schedulers under the loads of the papers, on 1 to 10 cores, on a drive of low latency, on one that arbitrates and behind a transport",
    source: "none: the loads are those of vFair, TABS, CFFQ, HIOS, K2, blk-switch and MQFQ, and what tenants complain of",
    story: STORY,
    device: DRIVE,
    host: None,
    unknowns: &[],
    others: &[],
    repeats_max: 3,
    run: reproduce,
};

const STORY: &str = "Nothing is judged. What no kernel has is unverified: its rules were compared with none. Jain's \
                     index is that of bytes over what is due to each job: a share by weight or level, in the loads of \
                     TABS, HIOS, K2 and blk-switch the same part of what each job has alone under none; the worst \
                     share is that of the job furthest below it. Latencies are those of the job that waits. Throughput \
                     and CPU time of an I/O are those of all jobs over none's. mqfq gives weights and levels their \
                     shares within 0.2 % at none's throughput, where bfq loses 41 %. Beside large writes of a noisy \
                     neighbour no scheduler shortens the tail of reads, which is the flash's own. Where writes fill \
                     the drive (collection-deadline), kyber alone keeps the p99.9 of reads below 5 ms, at 94 % of \
                     none's throughput. mq-deadline and bfq serve a real-time class alone, at 4 to 16 % of none's \
                     throughput; k2 keeps 56 to 100 % of it. On ten cores kyber alone has none's throughput. On \
                     Optane, where a kernel worker dispatches, every scheduler costs a quarter of the throughput or \
                     more. On a drive that arbitrates, mqfq has exact shares at 91 % of none's throughput, d2fq keeps \
                     the throughput with shares between equal and due. Behind a transport, blk-switch in mode 2 \
                     shortens the p99 of what is waited for to a fifth at 85 % of none's throughput; mq-deadline and \
                     bfq do better for it, and leave the others 3 to 4 %.";

/// Those that run on any drive.
const SCHEDULERS: [&str; 10] = ["none", "mq-deadline", "bfq", "kyber", "k2", "adios", "mqfq", "tabs", "vfair", "cffq"];

/// Those of them whose decisions were compared with a kernel's.
const OF_LINUX: [&str; 4] = ["none", "mq-deadline", "bfq", "kyber"];

/// The drive of the loads with many cores: faster than one core.
const FAST_DRIVE: &str = "samsung-980pro-1tb";
const LOW_LATENCY_DRIVE: &str = "intel-p4800x-375gb";
/// The drive that d2fq needs, and the device that blk-switch needs.
const ARBITRATING_DRIVE: &str = "nvme-wrr";
const BEHIND_TRANSPORT: &str = "nvme-over-tcp";

/// A load of the tournament.
struct Contest {
    name: String,
    jobs: Jobs,
    due: Due,
    /// The job whose latency matters.
    latency_job: &'static str,
}

enum Jobs {
    /// These jobs on this drive.
    OnDrive(&'static str, String),
    /// A bundled load on its own drive.
    Scenario(&'static str),
}

/// What is due to each job.
enum Due {
    /// A share in proportion to these numbers.
    Shares(Vec<(String, f64)>),
    /// The same part for each of these jobs of what it has alone under none.
    PartOfAlone(&'static [&'static str]),
}

fn shares(of: &[(&str, f64)]) -> Due {
    Due::Shares(of.iter().map(|&(job, due)| (job.to_owned(), due)).collect())
}

fn scenario(name: &'static str, due: Due, latency_job: &'static str) -> Contest {
    Contest { name: name.to_owned(), jobs: Jobs::Scenario(name), due, latency_job }
}

/// A process at depth 128 on each of some cores.
fn cores(count: usize) -> Contest {
    let names = (0..count).map(|core| format!("p{core}"));
    let jobs = names
        .clone()
        .enumerate()
        .map(|(core, name)| format!("[{name}]\nrw=randread\niodepth=128\ncpus_allowed={core}\n"));
    Contest {
        name: format!("a process at depth 128 on each of {count} cores").replace("each of 1 cores", "one core"),
        jobs: Jobs::OnDrive(FAST_DRIVE, jobs.collect()),
        due: Due::Shares(names.map(|name| (name, 1.0)).collect()),
        latency_job: "p0",
    }
}

fn contests() -> Vec<Contest> {
    let mut contests = vec![
        Contest {
            name: "noisy neighbour: reads at depth 4 beside large writes".to_owned(),
            jobs: Jobs::OnDrive(
                DRIVE,
                "[quiet]\nrw=randread\niodepth=4\ncgroup=quiet\n\
                 [noisy]\nrw=randwrite\nbs=64k\niodepth=64\ncgroup=noisy\n"
                    .to_owned(),
            ),
            due: shares(&[("quiet", 1.0), ("noisy", 1.0)]),
            latency_job: "quiet",
        },
        Contest {
            name: "weights 1 : 2 : 4 : 8".to_owned(),
            jobs: Jobs::OnDrive(
                DRIVE,
                "[w1]\nrw=randread\niodepth=64\nnumjobs=2\ncgroup=w1\ncgroup_weight=100\n\
                 [w2]\nrw=randread\niodepth=64\nnumjobs=2\ncgroup=w2\ncgroup_weight=200\n\
                 [w4]\nrw=randread\niodepth=64\nnumjobs=2\ncgroup=w4\ncgroup_weight=400\n\
                 [w8]\nrw=randread\niodepth=64\nnumjobs=2\ncgroup=w8\ncgroup_weight=800\n"
                    .to_owned(),
            ),
            due: shares(&[("w1", 1.0), ("w2", 2.0), ("w4", 4.0), ("w8", 8.0)]),
            latency_job: "w8",
        },
        scenario("deep-neighbour", shares(&[("lone", 1.0), ("deep", 1.0)]), "lone"),
        scenario("fua-writer", Due::PartOfAlone(&["reader", "fua-writer"]), "reader"),
        scenario("priority-shares", shares(&[("level-0", 8.0), ("level-4", 4.0), ("level-7", 1.0)]), "level-0"),
        scenario("collection-deadline", Due::PartOfAlone(&["reads", "overwriting"]), "reads"),
        scenario("real-time-read", Due::PartOfAlone(&["urgent", "background"]), "urgent"),
        scenario("l-and-t-apps", Due::PartOfAlone(&["l-apps", "t-apps"]), "l-apps"),
    ];
    contests.extend([1, 2, 5, 10].map(cores));
    contests.push(Contest {
        name: "low-latency drive: a reader and a writer at depth 1".to_owned(),
        jobs: Jobs::OnDrive(
            LOW_LATENCY_DRIVE,
            "[reader]\nrw=randread\niodepth=1\ncgroup=reader\n[writer]\nrw=randwrite\niodepth=1\ncgroup=writer\n"
                .to_owned(),
        ),
        due: shares(&[("reader", 1.0), ("writer", 1.0)]),
        latency_job: "reader",
    });
    contests.push(Contest {
        name: "drive with weighted round robin: levels 0, 4 and 7".to_owned(),
        jobs: Jobs::OnDrive(
            ARBITRATING_DRIVE,
            [0, 4, 7]
                .map(|level| {
                    format!("[level-{level}]\nrw=randread\niodepth=64\nnumjobs=2\nprioclass=2\nprio={level}\n")
                })
                .concat(),
        ),
        due: shares(&[("level-0", 8.0), ("level-4", 4.0), ("level-7", 1.0)]),
        latency_job: "level-0",
    });
    contests.push(Contest {
        name: "behind a transport: reads of 4 KiB that are waited for beside reads of 64 KiB".to_owned(),
        jobs: Jobs::OnDrive(
            BEHIND_TRANSPORT,
            "[l-apps]\nrw=randread\nprioclass=1\nprio=4\niodepth=1\nnumjobs=6\n\
             [t-apps]\nrw=randread\nbs=64k\niodepth=16\nnumjobs=6\n"
                .to_owned(),
        ),
        due: Due::PartOfAlone(&["l-apps", "t-apps"]),
        latency_job: "l-apps",
    });
    contests
}

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    let mut cells = Vec::new();
    for contest in &contests() {
        let due = contest.due(setting)?;
        let schedulers = contest.schedulers();
        let mut comparison = contest.comparison(None, setting);
        if schedulers.contains(&"blk-switch") {
            // All that it has: by default it only sorts.
            comparison.tunables = tunable("blk-switch", "mode", "2");
        }
        let runs = run_schedulers(comparison, &schedulers, setting)?;
        for (scheduler, run) in schedulers.iter().zip(&runs) {
            let mark = if OF_LINUX.contains(scheduler) { "" } else { " (unverified)" };
            let row = format!("{}: {scheduler}{mark}", contest.name);
            let columns = contest.figures(&due, run, &runs[0]);
            cells.extend(columns.map(|(column, figure)| Cell::new(&row, column, figure, None, Judgement::None)));
        }
    }
    Ok(cells)
}

impl Contest {
    /// The schedulers that run on its drive.
    fn schedulers(&self) -> Vec<&'static str> {
        let more = match self.jobs {
            Jobs::OnDrive(ARBITRATING_DRIVE, _) => Some("d2fq"),
            Jobs::OnDrive(BEHIND_TRANSPORT, _) => Some("blk-switch"),
            _ => None,
        };
        SCHEDULERS.into_iter().chain(more).collect()
    }

    /// The load, or only one of its jobs.
    fn comparison(&self, only: Option<&str>, setting: Setting) -> Comparison {
        let select = |text: &str| only.map_or_else(|| text.to_owned(), |job| only_job(text, job));
        let comparison = match &self.jobs {
            Jobs::OnDrive(drive, jobs) => Comparison {
                cpus: match *drive {
                    FAST_DRIVE => Some(10),
                    ARBITRATING_DRIVE => Some(8),
                    BEHIND_TRANSPORT => Some(6),
                    _ => None,
                },
                ..comparison_of_jobs("research-tournament", drive, &select(jobs), setting)
            },
            Jobs::Scenario(name) => {
                let scenario = scenarios::named(name).expect("a test looks for the loads of the tournament");
                Comparison {
                    load: load(&format!("{name}.fio"), &select(scenario.job)),
                    devices: vec![Devices { common: Some(scenario.page.device_profile()), ..Devices::default() }],
                    // Half a second later the last of its jobs has begun.
                    ramp_ns: Some(setting.duration_from_ms(500, 5000)),
                    ..Comparison::default()
                }
            }
        };
        Comparison { runtime_ns: Some(setting.duration_from_ms(400, 30_000)), ..comparison }
    }

    /// What is due to each job.
    fn due(&self, setting: Setting) -> Result<Vec<(String, f64)>, Error> {
        let jobs = match &self.due {
            Due::Shares(shares) => return Ok(shares.clone()),
            Due::PartOfAlone(jobs) => jobs,
        };
        let alone = |&job: &&str| {
            let runs = run_schedulers(self.comparison(Some(job), setting), &["none"], setting)?;
            Ok((job.to_owned(), runs[0].bytes_per_second(job)))
        };
        jobs.iter().map(alone).collect()
    }

    fn figures(&self, due: &[(String, f64)], run: &RunFigures, none: &RunFigures) -> [(&'static str, f64); 6] {
        let over_due: Vec<f64> = due.iter().map(|(job, due)| run.bytes_per_second(job) / due).collect();
        let (sum, squares) = (over_due.iter().sum::<f64>(), over_due.iter().map(|share| share * share).sum::<f64>());
        let all_due: f64 = due.iter().map(|(_, due)| due).sum();
        let worst = over_due.iter().copied().fold(f64::INFINITY, f64::min) * all_due / run.all_bytes_per_second();
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

/// A job file with only this job and what is global.
fn only_job(text: &str, job: &str) -> String {
    let mut is_kept = true;
    let mut kept = String::new();
    for line in text.lines() {
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_kept = section == "global" || section == job;
        }
        if is_kept {
            kept += line;
            kept.push('\n');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tournament_has_every_load_and_knows_its_jobs() {
        let contests = contests();
        let names: Vec<&str> = contests.iter().map(|contest| contest.name.as_str()).collect();
        let loads = [
            "noisy neighbour",
            "weights 1 : 2 : 4 : 8",
            "deep-neighbour",
            "fua-writer",
            "priority-shares",
            "collection-deadline",
            "real-time-read",
            "l-and-t-apps",
            "a process at depth 128 on one core",
            "a process at depth 128 on each of 10 cores",
            "low-latency drive",
            "drive with weighted round robin",
            "behind a transport",
        ];
        for load in loads {
            assert_eq!(names.iter().filter(|name| name.starts_with(load)).count(), 1, "{load}: {names:?}");
        }
        for contest in &contests {
            let text = match &contest.jobs {
                Jobs::OnDrive(_, jobs) => jobs.as_str(),
                Jobs::Scenario(name) => scenarios::named(name).unwrap().job,
            };
            let due: Vec<&str> = match &contest.due {
                Due::Shares(shares) => shares.iter().map(|(job, _)| job.as_str()).collect(),
                Due::PartOfAlone(jobs) => jobs.to_vec(),
            };
            let jobs: Vec<&str> = text
                .lines()
                .filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'))
                .filter(|section| *section != "global")
                .collect();
            assert_eq!(due, jobs, "{}", contest.name);
            assert!(jobs.contains(&contest.latency_job), "{}", contest.name);
        }
        let of_all = contests.iter().flat_map(Contest::schedulers);
        let of_all: std::collections::BTreeSet<&str> = of_all.collect();
        assert_eq!(of_all.len(), SCHEDULERS.len() + 2, "d2fq and blk-switch have a load each: {of_all:?}");
    }

    #[test]
    fn one_job_is_cut_out_with_what_is_global() {
        let text = "; a comment\n[global]\nbs=4k\n[a]\nrw=read\n[b]\nrw=write\n";
        assert_eq!(only_job(text, "b"), "; a comment\n[global]\nbs=4k\n[b]\nrw=write\n");
    }
}
