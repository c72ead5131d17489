//! Does the simulation reproduce what presets are calibrated on: the rows `none` of the published tables (habr)? And what
//! no number was fitted to, the longest waits?

mod table;

use hoistway_blk::ground::{Kernel, Nanos};
use table::Table;

const SATA_SSD: Table = Table {
    preset: "intel-s3520-1600gb",
    job: include_str!("../data/habr-ssd.fio"),
    // Long enough for a dozen pauses of the drive.
    runtime: Nanos::from_secs(40),
    depth: 4.0,
    mixed: "reader_20",
    published: [[3208.8, 1.245], [2543.5, 1.227], [635.2, 1.376]],
    residual_percent: 1.5,
};

const DISK: Table = Table {
    preset: "hgst-he10-8tb",
    job: include_str!("../data/habr-hdd.fio"),
    // Ten pauses of the drive.
    runtime: Nanos::from_secs(600),
    depth: 1.0,
    mixed: "reader_40",
    published: [[81.1, 12.3], [51.8, 7.1], [34.7, 18.3]],
    residual_percent: 3.0,
};

const NVME_SSD: Table = Table {
    preset: "micron-9100-1600gb",
    job: include_str!("../data/habr-nvme.fio"),
    // A million I/Os and more.
    runtime: Nanos::from_secs(10),
    depth: 8.0,
    mixed: "reader_20",
    published: [[11485.0, 0.695], [7716.8, 0.694], [1929.0, 1.367]],
    residual_percent: 2.5,
};

const ALL: [&Table; 3] = [&SATA_SSD, &DISK, &NVME_SSD];

#[test]
fn every_cell_of_the_rows_none_is_met_within_five_percent_and_as_the_presets_say() {
    for table in ALL {
        table.check(Kernel::V4_12, 1);
        table.check(Kernel::V6_18, 2);
    }
}

#[test]
fn littles_law_holds_for_every_process() {
    ALL.into_iter().for_each(|table| table.check_outstanding(Kernel::V6_18, 3));
}

#[test]
fn the_same_seed_gives_the_same_results_and_another_seed_others() {
    ALL.into_iter().for_each(Table::check_seeds);
}

/// The published rows of both have a longest wait of 2.7 s.
#[test]
fn on_4_12_requests_of_multi_queue_schedulers_wait_on_the_sata_drive_until_its_next_pause_and_no_longer() {
    for scheduler in ["mq-deadline", "bfq"] {
        let longest_s = |kernel| {
            let processes = SATA_SSD.simulate_under(scheduler, kernel, 1);
            let longest =
                processes.iter().flat_map(|process| &process.directions).filter_map(|way| way.lat.max()).max();
            longest.unwrap() as f64 / 1e9
        };
        let (then, now) = (longest_s(Kernel::V4_12), longest_s(Kernel::V6_18));
        assert!((2.0..4.0).contains(&then), "{scheduler}: {then:.3} s");
        assert!(now < 0.1, "{scheduler}: {now:.3} s");
    }
}
