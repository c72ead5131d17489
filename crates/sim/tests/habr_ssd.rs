//! Does the simulation reproduce what the SATA SSD preset is calibrated on: the row `none` of its published table (habr)?

mod habr;

use habr::Table;
use hoistway_blk::{Kernel, Nanos};

const TABLE: Table = Table {
    preset: "intel-s3520-1600gb",
    job: include_str!("data/habr-ssd.fio"),
    // Long enough for a dozen pauses of the drive.
    runtime: Nanos::from_secs(40),
    depth: 4.0,
    mixed: "reader_20",
    published: [[3208.8, 1.245], [2543.5, 1.227], [635.2, 1.376]],
    residual_percent: 1.5,
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
