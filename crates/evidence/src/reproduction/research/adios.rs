//! Table `research-adios`: adios's claim, published only in words, of low latency without a loss of throughput.

use super::run_schedulers;
use crate::reproduction::Table;
use crate::reproduction::cell::{Cell, Judgement};
use crate::reproduction::runs::Setting;
use hoistway_experiment::{Comparison, Error, Load};

pub(in crate::reproduction) const ADIOS: Table = Table {
    name: "research-adios",
    title: "a desktop and a database on a SATA SSD, under adios beside mq-deadline",
    source: "README of adios: low latency on desktops, in words; no figures were published",
    story: STORY,
    device: "intel-s3520-1600gb",
    host: None,
    unknowns: &[],
    others: &[],
    repeats_max: 5,
    run: reproduce,
};

const STORY: &str = "The loads are two bundled ones. The criterion was chosen here: the p99 of reads that someone waits for is at \
                     most 95 % of that under mq-deadline.";

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    let mut cells = Vec::new();
    for (scenario, job, seconds) in [("desktop-freeze", "interactive", 10), ("database", "queries", 5)] {
        let comparison = Comparison {
            load: Load::Scenario(scenario.to_owned()),
            runtime_ns: Some(setting.duration_from_s(seconds, 30)),
            ..Comparison::default()
        };
        let runs = run_schedulers(comparison, &["mq-deadline", "adios"], setting)?;
        let (mq_deadline, adios) = (&runs[0], &runs[1]);
        let latency = adios.p99_us(job) / mq_deadline.p99_us(job);
        let throughput = adios.all_bytes_per_second() / mq_deadline.all_bytes_per_second();
        let column = format!("p99 of reads of {job} over mq-deadline's");
        cells.push(Cell::ratio(scenario, column, latency, None, Judgement::AtMost(0.95)));
        cells.push(Cell::ratio(scenario, "throughput over mq-deadline's", throughput, None, Judgement::AtLeast(0.9)));
    }
    Ok(cells)
}
