//! Table `research-vfair`: what a client at depth 1 gets beside deep ones of the same weight, by the bound on requests at the drive.

use super::{DRIVE, RunFigures, comparison_of_jobs, run_schedulers, vary};
use crate::reproduction::Table;
use crate::reproduction::cell::{Cell, Judgement};
use crate::reproduction::runs::Setting;
use hoistway_experiment::{Comparison, Error};

pub(in crate::reproduction) const VFAIR: Table = Table {
    name: "research-vfair",
    title: "a client at depth 1 beside 256 requests of another one, under vfair, mqfq and none",
    source: "Lu, Saltaformaggio, Kompella, Xu, ACM SoCC 2015 (in words): a client at depth 1 gets its share without an idle device",
    story: STORY,
    device: DRIVE,
    host: None,
    unknowns: &[],
    others: &[],
    repeats_max: 3,
    run: reproduce,
};

const STORY: &str = "Figures of the paper are not known here; that 70 % of what the client has alone is its share is \
                     this project's. The share is reached with as many requests as the drive serves in parallel, 40, \
                     and missed with more, among which a read takes longer.";

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    const SLOTS: [u32; 5] = [16, 32, 40, 48, 64];
    let job = |name: &str, options: &str| format!("[{name}]\nrw=randread\ncgroup={name}\n{options}");
    let comparison = |jobs: String| comparison_of_jobs("research-vfair", DRIVE, &jobs, setting);
    let lone = job("lone", "iodepth=1\n");
    let both = lone.clone() + &job("deep", "iodepth=64\nnumjobs=4\n");
    let alone = run_schedulers(comparison(lone), &["none"], setting)?[0].iops("lone");
    let none = run_schedulers(comparison(both.clone()), &["none"], setting)?;
    let cells_of = |row: String, run: &RunFigures, judgement| {
        [
            Cell::new(&row, "IOPS at depth 1 over alone", run.iops("lone") / alone, None, judgement)
                .beside(none[0].iops("lone") / alone),
            Cell::new(
                &row,
                "throughput over none's",
                run.all_bytes_per_second() / none[0].all_bytes_per_second(),
                None,
                Judgement::None,
            ),
        ]
    };
    let mut cells = Vec::from(cells_of("depth 1 beside 256: none".to_owned(), &none[0], Judgement::None));
    for scheduler in ["mqfq", "vfair"] {
        let load = Comparison { vary: vary(scheduler, "slots", &SLOTS), ..comparison(both.clone()) };
        for (slots, run) in SLOTS.iter().zip(&run_schedulers(load, &[scheduler], setting)?) {
            let judgement = if scheduler == "vfair" { Judgement::AtLeast(0.7) } else { Judgement::None };
            cells.extend(cells_of(format!("depth 1 beside 256: {scheduler}, {slots} slots"), run, judgement));
        }
    }
    Ok(cells)
}
