//! Table `cachyos-kyber`: the targets that CachyOS sets for kyber by class of drive, beside kyber's defaults and none.

use super::cell::{Cell, Judgement};
use super::research::{comparison_of_jobs, run_schedulers, tunable};
use super::runs::Setting;
use super::{Table, Unknown};
use hoistway_experiment::{Comparison, Error, QueueFile};

pub(super) const CACHYOS: Table = Table {
    name: "cachyos-kyber",
    title: "a reader beside writers under none, kyber, and kyber with the targets of five tiers of drives",
    source: "none published: the tiers are those of CachyOS's configuration in 2026; whether it is shipped was not checked",
    story: STORY,
    device: TIERS[2].drive,
    host: None,
    unknowns: &[Unknown("host.worker_ns")],
    others: &[],
    repeats_max: 3,
    run: reproduce,
};

const STORY: &str = "Nothing is judged, because no figures were published: the table shows what users of that \
                     distribution can choose between. Each tier runs on a preset of its class (generation 4 for \
                     generation 5); all but the 980 PRO are coarse models, not calibrated for mixed loads. Latencies \
                     are those of a process that reads 4 KiB at depth 4 beside writes at random, 4 KiB by one process \
                     or 64 KiB by two. Beside small writes the 0.5 ms of the high end cut the median of reads to a \
                     quarter, for two thirds of the writes; beside large writes the tier of Optane loses what kyber's \
                     defaults gain. The middle tier is kyber's default. On coarse models of slow drives reads wait for \
                     programs, and no target helps.";

/// A tier of drives, with its settings.
struct Tier {
    name: &'static str,
    drive: &'static str,
    read_us: u32,
    write_us: u32,
    nr_requests: u32,
}

const TIERS: [Tier; 5] = [
    Tier { name: "Optane", drive: "intel-p4800x-375gb", read_us: 50, write_us: 100, nr_requests: 128 },
    Tier { name: "generation 5", drive: "Samsung_SSD_990_PRO_2TB", read_us: 200, write_us: 2000, nr_requests: 256 },
    Tier { name: "high end", drive: "samsung-980pro-1tb", read_us: 500, write_us: 5000, nr_requests: 256 },
    Tier { name: "middle", drive: "WD_Blue_SN580_1TB", read_us: 2000, write_us: 10_000, nr_requests: 256 },
    Tier { name: "budget", drive: "CT1000P3PSSD8", read_us: 5000, write_us: 20_000, nr_requests: 128 },
];

const READER: &str = "[reader]\nrw=randread\niodepth=4\n";

/// Loads beside the reader: a name, and the writer.
const WRITERS: [(&str, &str); 2] = [
    ("16 writes of 4 KiB", "[writer]\nrw=randwrite\niodepth=16\n"),
    ("64 writes of 64 KiB", "[writer]\nrw=randwrite\nbs=64k\niodepth=32\nnumjobs=2\n"),
];

impl Tier {
    fn comparison(&self, writer: &str, setting: Setting) -> Comparison {
        Comparison {
            // Kyber of slow drives needs seconds to find its depths.
            ramp_ns: Some(setting.duration_from_ms(4000, 30_000)),
            runtime_ns: Some(setting.duration_from_ms(2000, 60_000)),
            ..comparison_of_jobs("cachyos-kyber", self.drive, &format!("{READER}{writer}"), setting)
        }
    }

    /// Kyber with the settings of this tier.
    fn with_settings(&self, writer: &str, setting: Setting) -> Comparison {
        let target = |name: &str, us: u32| tunable("kyber", name, &(1000 * us).to_string());
        Comparison {
            tunables: [target("read_lat_nsec", self.read_us), target("write_lat_nsec", self.write_us)].concat(),
            queue_files: vec![QueueFile { file: "nr_requests".to_owned(), text: self.nr_requests.to_string() }],
            ..self.comparison(writer, setting)
        }
    }
}

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    let mut cells = Vec::new();
    for tier in &TIERS {
        for (load, writer) in WRITERS {
            let mut runs = run_schedulers(tier.comparison(writer, setting), &["none", "kyber"], setting)?;
            runs.extend(run_schedulers(tier.with_settings(writer, setting), &["kyber"], setting)?);
            for (what, run) in ["none", "kyber", "kyber of the tier"].iter().zip(&runs) {
                let row = format!("{} ({}), {load}: {what}", tier.name, tier.drive);
                let over_none = |job: &str| run.iops(job) / runs[0].iops(job);
                for (column, figure) in [
                    ("median, us", run.p50_us("reader")),
                    ("p99, us", run.p99_us("reader")),
                    ("reads over none's", over_none("reader")),
                    ("writes over none's", over_none("writer")),
                ] {
                    cells.push(Cell::new(&row, column, figure, None, Judgement::None));
                }
            }
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_device::Preset;

    #[test]
    fn each_tier_has_a_drive_of_its_own_and_looser_targets_than_the_tier_above() {
        for pair in TIERS.windows(2) {
            assert_ne!(pair[0].drive, pair[1].drive);
            assert!(pair[0].read_us < pair[1].read_us && pair[0].write_us < pair[1].write_us, "{}", pair[1].name);
        }
        for tier in &TIERS {
            assert_eq!(Preset::builtin(tier.drive).unwrap().name, tier.drive);
            assert!([128, 256].contains(&tier.nr_requests), "{}", tier.name);
        }
    }
}
