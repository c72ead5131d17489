//! Does the simulation reproduce what the rotating disk preset is calibrated on: the row `none` of its published table (habr)?

mod habr;

use habr::Table;
use hoistway_blk::{Kernel, Nanos};

const TABLE: Table = Table {
    preset: "hgst-he10-8tb",
    job: include_str!("data/habr-hdd.fio"),
    // Ten pauses of the drive.
    runtime: Nanos::from_secs(600),
    depth: 1.0,
    mixed: "reader_40",
    published: [[81.1, 12.3], [51.8, 7.1], [34.7, 18.3]],
    residual_percent: 3.0,
};

#[test]
fn every_cell_of_the_row_none_is_met_within_five_percent_and_as_the_preset_says() {
    TABLE.check(Kernel::V4_12, 1);
    TABLE.check(Kernel::V6_18, 2);
}

#[test]
fn littles_law_holds_for_every_process() {
    TABLE.check_outstanding(Kernel::V6_18, 3);
}

#[test]
fn the_same_seed_gives_the_same_results_and_another_seed_others() {
    TABLE.check_seeds();
}
