//! Table `kara-dbench`: clients of a file server over a RAID card with 64 hardware queues, before and after the patch
//! that lets bfq dispatch from one of them only.

use hoistway_measure::fio::Output;
use serde::Deserialize;

use super::cell::{Cell, Judgement};
use super::runs::{Setting, load, run};
use super::{Table, Unknown};
use hoistway_experiment::Error;
use hoistway_experiment::scenarios;
use hoistway_experiment::{Comparison, Devices, Profile};

pub(super) const KARA: Table = Table {
    name: "kara-dbench",
    title: "clients of a file server over a RAID card with 64 hardware queues, under bfq: ratios of times",
    source: "Jan Kara, December 2020 (patch against 5.10-rc6): dbench on XFS, a RAID card with 64 hardware queues, one rotating disk",
    story: "Only ratios of times are compared, since the load is the bundled file-server, made from counts of what \
            dbench replays, over a simplified page cache with a journal. Stock is Linux 5.10, patched 5.12; the single \
            queue is 5.10 with one hardware queue. The disk, the card's cache, the host's 64 CPUs and its memory are \
            assumed, and nothing is calibrated. Half of the effect of the patch is claimed, and missed: patched, stock \
            and the single queue are alike. Neither the order of commands, the cache nor the lock explains the \
            published 12 to 41 %. What seems to be missing lies in the file system (XFS writes its log from other \
            processes, for which bfq waits) and in the host (waking 64 CPUs).",
    device: "raid-64-queues",
    host: None,
    unknowns: &[Unknown("raid.command_us"), Unknown("shape.queue_depth")],
    others: &[],
    repeats_max: 8,
    run: reproduce,
};

/// A published row: times, less is better.
#[derive(Deserialize)]
struct DbenchRow {
    clients: u32,
    stock: f64,
    single_queue: f64,
    patched: f64,
}

fn rows() -> Vec<DbenchRow> {
    let csv = include_str!("../../published/kara_dbench.csv");
    let rows = csv::Reader::from_reader(csv.as_bytes()).into_deserialize();
    rows.map(|row| row.expect("a test reads the bundled table")).collect()
}

/// The bundled load with this number of clients.
fn job(clients: u32) -> String {
    let scenario = scenarios::named(LOAD).expect("it is bundled");
    scenario.job.replace(CLIENTS, &format!("numjobs={clients}"))
}

const LOAD: &str = "file-server";
/// The line of the bundled load with the number of clients.
const CLIENTS: &str = "numjobs=16";

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    rows()
        .into_iter()
        .map(|row| reproduce_row(&row, setting))
        .collect::<Result<Vec<_>, _>>()
        .map(|cells| cells.concat())
}

fn reproduce_row(row: &DbenchRow, setting: Setting) -> Result<Vec<Cell>, Error> {
    let many = times(row.clients, &["5.10", "5.12"], None, setting)?;
    let (stock, patched) = (many[0], many[1]);
    let single_queue = times(row.clients, &["5.10"], Some(1), setting)?[0];
    let over_stock = match row.clients {
        1 | 512 => Judgement::None,
        _ => Judgement::half_of(row.patched / row.stock),
    };
    let name = if row.clients == 1 { "1 client".to_owned() } else { format!("{} clients", row.clients) };
    let cell =
        |column, ours: f64, published: f64, judgement| Cell::ratio(&name, column, ours, Some(published), judgement);
    Ok(vec![
        cell("single queue over stock", single_queue / stock, row.single_queue / row.stock, Judgement::None),
        cell("patched over stock", patched / stock, row.patched / row.stock, over_stock),
        cell("patched over single queue", patched / single_queue, row.patched / row.single_queue, Judgement::None),
    ])
}

/// Mean time of a client's read or write under each kernel, including fsyncs in between, s.
fn times(clients: u32, kernels: &[&str], hw_queues: Option<u16>, setting: Setting) -> Result<Vec<f64>, Error> {
    let device = include_str!("../../published/devices/raid-with-battery.toml");
    let device = Profile::Text { name: "raid-with-battery.toml".to_owned(), text: device.to_owned() };
    let comparison = Comparison {
        load: load("file-server.fio", &job(clients)),
        journal: true,
        devices: vec![Devices { common: Some(device), ..Devices::default() }],
        kernels: kernels.iter().map(|&kernel| kernel.to_owned()).collect(),
        hw_queues,
        cpus: Some(64),
        ramp_ns: Some(setting.duration_from_s(3, 60)),
        runtime_ns: Some(setting.duration_from_s(7, 300)),
        ..Comparison::default()
    };
    let outputs = run(comparison, &["bfq"], &[], setting)?;
    let per_second = |output: &Output| output.jobs.iter().map(|job| job.read.iops + job.write.iops).sum::<f64>();
    Ok(outputs.iter().map(|output| f64::from(clients) / per_second(output)).collect())
}

#[cfg(test)]
mod tests {
    use hoistway_blk::ground::{Generation, Kernel};

    use super::*;
    use crate::reproduction::Length;

    #[test]
    fn the_bundled_table_can_be_read_and_the_load_has_as_many_clients_as_a_row() {
        let clients: Vec<u32> = rows().iter().map(|row| row.clients).collect();
        assert_eq!(clients, [1, 2, 4, 8, 16, 32, 64, 512]);
        assert!(job(4).contains("numjobs=4\n") && !job(4).contains(CLIENTS));
    }

    #[test]
    fn a_row_compares_the_patch_with_stock_and_with_a_single_queue() {
        let row = rows().remove(0);
        let cells = reproduce_row(&row, Setting { length: Length::Settled, change: None, seed: 1 }).unwrap();
        let columns: Vec<&str> = cells.iter().map(|cell| cell.column.as_str()).collect();
        assert_eq!(columns, ["single queue over stock", "patched over stock", "patched over single queue"]);
        let is_near_one = |cell: &Cell| cell.row == "1 client" && (cell.ours - 1.0).abs() < 0.15;
        assert!(cells.iter().all(is_near_one), "one client has one hardware queue at a time: {cells:?}");
    }

    #[test]
    fn stock_and_patched_differ_in_this_patch_alone() {
        let generation = |text: &str| text.parse::<Kernel>().unwrap().generation();
        let (stock, patched) = (generation("5.10"), generation("5.12"));
        assert!(!stock.single_dispatch);
        assert_eq!(Generation { kernel: patched.kernel, single_dispatch: true, ..stock }, patched);
    }
}
