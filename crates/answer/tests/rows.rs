//! Result documents as rows.

use hoistway_answer::rows::RunRow;
use hoistway_answer::{Figure, ResultsDocument};
use hoistway_measure::Operation;
use serde_json::{Value, json};

fn latency(p99: u64) -> Value {
    json!({"min": 1, "mean": 5.5, "stddev": 1.0, "p50": 5, "p99": p99, "p99_9": 9, "max": 10})
}

fn run(scheduler: &str, setup: u32, repeat: u32) -> Value {
    json!({
        "scheduler": scheduler, "front": "mq", "tunables": {"fifo_batch": 4, "writes_starved": 2},
        "variant": {"label": format!("{scheduler} kernel=6.12"), "settings": {"kernel": "6.12"}},
        "setup": setup, "repeat": repeat, "seed": 7 + repeat, "simulated_seconds": 1.0, "simulated_ios": 12,
        "wall_seconds": 0.1, "cpu_us_per_io": null,
        "jobs": [
            {"name": "idle", "job": 0, "processes": 1, "operations": []},
            {"name": "db", "job": 1, "processes": 2, "failed": [{"errno": 5, "processes": 1}], "operations": [{
                "operation": "read", "ios": 10, "bytes": 40960, "iops": 10.0, "bytes_per_second": 40960.0,
                "lat_ns": latency(8),
                "series": {"interval_seconds": 0.5, "ios": [10, 0], "mean_lat_ns": [5, 0]},
            }, {
                "operation": "sync", "ios": 2, "bytes": 0, "iops": 2.0, "bytes_per_second": 0.0, "lat_ns": latency(80),
            }]},
        ],
    })
}

fn document() -> ResultsDocument {
    let setup = |kernel| {
        json!({"device": [{"name": "ssd"}, {"name": "ssd"}], "kernel": kernel, "cpus": 4, "hw_queues": 1,
               "nr_requests": 64, "host": {"name": "server"}})
    };
    let document = json!({
        "format": "hoistway-results/2", "version": "0.1.0", "command": "", "job_file": "a.fio", "job_text": "",
        "device": {"name": "ssd"}, "kernel": "7.2", "cpus": 4, "hw_queues": 1, "nr_requests": 64, "host": "vm",
        "seed": 7, "wall_seconds": 0.0, "simulated_ios": 24, "partial": false,
        "setups": [setup("7.2"), setup("6.12")],
        "runs": [run("mq-deadline", 1, 0), run("mq-deadline", 1, 1)],
    });
    ResultsDocument::from_json(&document.to_string()).unwrap()
}

#[test]
fn there_is_a_row_for_each_figure_that_an_operation_has_and_it_says_of_which_run() {
    let document = document();
    let rows: Vec<_> = document.figure_rows().collect();
    // Reads have all figures, syncs no bandwidth, and a job without I/O has none.
    assert_eq!(rows.len(), 2 * (Figure::ALL.len() + Figure::ALL.len() - 1));
    let first = &rows[0].run;
    assert_eq!((&*first.scheduler, &*first.label), ("mq-deadline", "mq-deadline kernel=6.12"));
    assert_eq!((&*first.kernel, &*first.device, &*first.host), ("6.12", "2 x ssd", "server"));
    assert_eq!((&*first.settings, first.seed, first.repeat), ("fifo_batch=4, writes_starved=2", 7, 0));
    assert!(rows.iter().all(|row| row.job == "db" && row.failed_processes == 1));
    let value = |operation, figure, repeat| {
        let is_it = |row: &&_| {
            let row: &hoistway_answer::rows::FigureRow<'_> = row;
            (row.operation, row.figure, row.run.repeat) == (operation, figure, repeat)
        };
        rows.iter().find(is_it).map(|row| (row.value, row.unit, row.ios))
    };
    assert_eq!(value(Operation::Read, Figure::P99, 1), Some((8.0, "ns", 10)));
    assert_eq!(value(Operation::Read, Figure::Bandwidth, 0), Some((40960.0, "B/s", 10)));
    assert_eq!(value(Operation::Sync, Figure::P99, 0), Some((80.0, "ns", 2)));
    assert_eq!(value(Operation::Sync, Figure::Iops, 0), Some((2.0, "1/s", 2)));
    assert_eq!(value(Operation::Sync, Figure::Bandwidth, 0), None);
}

#[test]
fn an_interval_without_io_has_no_mean_latency() {
    let document = document();
    let rows: Vec<_> = document.interval_rows().collect();
    assert_eq!(rows.len(), 4);
    let row_of = |row: usize| (rows[row].start_seconds, rows[row].length_seconds, rows[row].ios, rows[row].mean_lat_ns);
    assert_eq!(row_of(0), (0.0, 0.5, 10, Some(5)));
    assert_eq!(row_of(1), (0.5, 0.5, 0, None));
    assert_eq!(rows[2].run.repeat, 1);
}

#[test]
fn a_row_is_flat_and_reads_back() {
    let document = document();
    let row = serde_json::to_value(document.figure_rows().next()).unwrap();
    let keys: Vec<&String> = row.as_object().unwrap().keys().collect();
    let expected = "scheduler label block_layer kernel device host settings seed repeat \
                    job operation figure unit value ios failed_processes";
    let mut wanted: Vec<&str> = expected.split(' ').collect();
    wanted.sort_unstable();
    let mut keys: Vec<&str> = keys.into_iter().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, wanted);
    let run = RunRow::of(&document, &document.runs[0]);
    let text = serde_json::to_string(&run).unwrap();
    assert_eq!(serde_json::from_str::<RunRow<'static>>(&text).unwrap(), run);
}
