//! A file server's clients over a RAID card with 64 hardware queues, before and after bfq was dispatched from one of them.

use hoistway_results::fio::Output;
use serde::Deserialize;

use super::cell::{Cell, Judgement};
use super::runs::{Setting, load, run};
use super::{Table, Unknown};
use crate::comparison::{Comparison, Devices, Profile};
use crate::error::Error;
use crate::scenarios;

pub(super) const KARA: Table = Table {
    name: "kara-dbench",
    title: "clients of a file server over a RAID card with 64 hardware queues, under bfq: ratios of times",
    source: "Jan Kara, December 2020 (patch against 5.10-rc6): dbench on XFS, a RAID card with 64 hardware queues, one rotating disk",
    story: "Only ratios of times are compared: the load is the bundled one of the name file-server, after counts of what dbench \
            replays, over the sketch of a page cache with a journal, not dbench over XFS. Stock is Linux 5.10, patched 5.12, whose \
            block layer and bfq differ here in this patch alone; the single queue is 5.10 with one. Means over seeds. The disk, its \
            cache, the host's 64 CPUs and its memory are assumed. What the patch mends seems to be this: up to 5.17 a hardware queue that \
            asked bfq in vain (it idles for somebody) had all of them run 3 ms later, those too whose worker was on its way \
            with a new request; with the patch it is only its own run that it puts off. Without that rule (BL-76) patched and \
            stock are alike for any number of clients and any device that was tried. With it few clients lose much in stock, while they \
            wait for bfq and not for the disk; from 8 on the disk is busy all the time here, and what is put off is made up for. \
            The published clients gain most at 8 and still some at 64: they leave their disk more room. Tried: the disk's own cache with flushes, and \
            none at all: patched as stock within 3 %, and the single queue 10 to 25 % slower than both with flushes (a hardware queue has a flush \
            machinery of its own), faster without a cache. A cache of 1 GB for the card: nearly all stays in it, and chance \
            decides when it is full. CPUs that send what they have fetched in their own time (0.5 to 40 us), so that commands \
            overtake each other: no difference, since a busy disk sorts them anyway.",
    device: "raid-64-queues",
    unknowns: &[Unknown("raid.command_us"), Unknown("shape.queue_depth")],
    repeats_max: 8,
    run: reproduce,
};

/// A published row: times, the less the better.
#[derive(Deserialize)]
struct Row {
    clients: u32,
    stock: f64,
    single_queue: f64,
    patched: f64,
}

fn rows() -> Vec<Row> {
    let csv = include_str!("../../published/kara_dbench.csv");
    let rows = csv::Reader::from_reader(csv.as_bytes()).into_deserialize();
    rows.map(|row| row.expect("a test reads the bundled table")).collect()
}

/// The bundled load with so many clients instead of its own number.
fn job(clients: u32) -> String {
    let scenario = scenarios::named(LOAD).expect("it is bundled");
    scenario.job.replace(CLIENTS, &format!("numjobs={clients}"))
}

const LOAD: &str = "file-server";
/// What the bundled load says of the number of its clients.
const CLIENTS: &str = "numjobs=16";

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    rows().into_iter().map(|row| of_row(&row, setting)).collect::<Result<Vec<_>, _>>().map(|cells| cells.concat())
}

fn of_row(row: &Row, setting: Setting) -> Result<Vec<Cell>, Error> {
    let many = times(row.clients, &["5.10", "5.12"], None, setting)?;
    let (stock, patched) = (many[0], many[1]);
    let single_queue = times(row.clients, &["5.10"], Some(1), setting)?[0];
    let (over_stock, over_single) = match row.clients {
        1 => (Judgement::None, Judgement::None),
        512 => (Judgement::NearOne(0.05), Judgement::None),
        _ => (Judgement::AtMost(0.9), Judgement::NearOne(0.15)),
    };
    let name = if row.clients == 1 { "1 client".to_owned() } else { format!("{} clients", row.clients) };
    let cell =
        |column, ours: f64, published: f64, judgement| Cell::new(&name, column, ours, Some(published), judgement);
    Ok(vec![
        cell("single queue over stock", single_queue / stock, row.single_queue / row.stock, Judgement::None),
        cell("patched over stock", patched / stock, row.patched / row.stock, over_stock),
        cell("patched over single queue", patched / single_queue, row.patched / row.single_queue, over_single),
    ])
}

/// How long a client takes for a read or a write in the mean under each kernel, fsyncs between them included, s.
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
        ramp_ns: Some(setting.of(3, 60)),
        runtime_ns: Some(setting.of(7, 300)),
        ..Comparison::default()
    };
    let outputs = run(comparison, &["bfq"], &[], setting)?;
    let per_second = |output: &Output| output.jobs.iter().map(|job| job.read.iops + job.write.iops).sum::<f64>();
    Ok(outputs.iter().map(|output| f64::from(clients) / per_second(output)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduction::Length;

    #[test]
    fn the_bundled_table_can_be_read_and_the_load_has_as_many_clients_as_a_row() {
        let clients: Vec<u32> = rows().iter().map(|row| row.clients).collect();
        assert_eq!(clients, [1, 2, 4, 8, 16, 32, 64, 512]);
        assert!(job(4).contains("numjobs=4\n") && !job(4).contains(CLIENTS));
    }

    #[test]
    fn the_patch_gains_what_hardware_queues_that_ask_in_vain_cost_the_others() {
        let row = rows().remove(2);
        let cells = of_row(&row, Setting { length: Length::Settled, change: None, seed: 1 }).unwrap();
        assert_eq!((&*cells[1].row, &*cells[1].column), ("4 clients", "patched over stock"));
        assert_eq!(cells[1].within, Some(true), "{}", cells[1].ours);
    }
}
