//! Does the simulation reproduce what the NVMe SSD preset is calibrated on: the row `none` of its published table (habr)?

mod habr;

use habr::Table;
use hoistway_blk::{Kernel, Nanos};

const TABLE: Table = Table {
    preset: "micron-9100-1600gb",
    job: include_str!("data/habr-nvme.fio"),
    // A million I/Os and more.
    runtime: Nanos::from_secs(10),
    depth: 8.0,
    mixed: "reader_20",
    published: [[11485.0, 0.695], [7716.8, 0.694], [1929.0, 1.367]],
    residual_percent: 2.5,
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
