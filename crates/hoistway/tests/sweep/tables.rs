//! The content of tables.

use std::fs;

use serde_json::Value;

use crate::support::{PLAN, folder, hoistway, merged, printed};

#[test]
fn figures_are_those_that_a_comparison_has() {
    let folder = folder(PLAN);
    let at = folder.path();
    printed(at, &["sweep", "plan.toml", "-o", "runs"]);
    let table = merged(at, "runs");
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let column = |name: &str| names.iter().position(|known| *known == name).unwrap();
    let rows: Vec<_> = lines.collect();
    for (scheduler, batch) in [("none", ""), ("mq-deadline", "1"), ("mq-deadline", "16")] {
        let set = format!("mq-deadline.fifo_batch={batch}");
        let mut arguments = vec!["compare", "load.fio", "--device", "intel-s3520-1600gb", "--repeat", "4"];
        arguments.extend(["--format", "json", "--schedulers", scheduler]);
        if !batch.is_empty() {
            arguments.extend(["--set", &set]);
        }
        let document: Value = serde_json::from_str(&printed(at, &arguments)).unwrap();
        for run in document["runs"].as_array().unwrap() {
            let read = &run["jobs"][0]["operations"][0];
            let seed = run["seed"].to_string();
            let of_run: Vec<_> = rows
                .iter()
                .filter(|row| row[column("device")] == "intel-s3520-1600gb" && row[column("seed")] == seed)
                .filter(|row| row[column("scheduler")] == scheduler && row[column("mq-deadline.fifo_batch")] == batch)
                .collect();
            assert_eq!(of_run.len(), 7);
            let value = |figure: &str| {
                let row = of_run.iter().find(|row| row[column("figure")] == figure).unwrap();
                row[column("value")].parse::<f64>().unwrap()
            };
            assert_eq!(value("iops"), read["iops"].as_f64().unwrap());
            assert_eq!(value("p99"), read["lat_ns"]["p99"].as_f64().unwrap());
            assert_eq!(value("max"), read["lat_ns"]["max"].as_f64().unwrap());
        }
    }
}

#[test]
fn a_table_that_does_not_fit_the_disk_is_named() {
    let folder = folder(PLAN);
    printed(folder.path(), &["sweep", "plan.toml", "-o", "runs"]);
    std::os::unix::fs::symlink("/dev/full", folder.path().join("full.csv")).unwrap();
    let output = hoistway(folder.path(), &["merge", "runs", "-o", "full.csv"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("full.csv: cannot be written") && said.contains("No space left"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_run_that_fails_is_counted_and_ends_with_status_1() {
    let plan = "loads = [\"load.fio\"]\ndevices = [\"intel-s3520-1600gb\"]\nschedulers = [\"none\"]\nseeds = 2\n";
    let folder = folder(plan);
    let job = "[impatient]\nfilename=/dev/sda\ndirect=1\nrw=randread\nsize=10g\nnumber_ios=10\nmax_latency=1\n";
    fs::write(folder.path().join("load.fio"), job).unwrap();
    for arguments in [["sweep", "plan.toml", "-o", "runs"], ["merge", "runs", "-o", "table.csv"]] {
        let output = hoistway(folder.path(), &arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(output.stderr, b"hoistway: a process ended with an error in 2 runs\n");
    }
    let table = fs::read_to_string(folder.path().join("table.csv")).unwrap();
    assert!(table.lines().skip(1).all(|line| line.ends_with(",1")), "{table}");
}
