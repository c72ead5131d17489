//! `hoistway compare --fio-logs`: files for tools that read fio's logs, compared with fio's own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::fio_run;
use crate::support::{hoistway, is_installed, printed, refused, succeeded};

const JOB: &str = "[global]\nfilename=/dev/sda\ndirect=1\nrw=randrw\ntime_based\nruntime=2\n\
                   [a]\nioengine=libaio\niodepth=8\n[b/../c]\nnumjobs=2\n";

/// Runs [`JOB`] with these options in its first section, and returns the folder of the logs.
fn logged(global: &str, options: &[&str]) -> TempDir {
    let folder = tempdir().unwrap();
    let job = JOB.replacen("[global]\n", &format!("[global]\n{global}"), 1);
    fs::write(folder.path().join("load.fio"), job).unwrap();
    let mut command = hoistway();
    command.current_dir(folder.path());
    let arguments = ["compare", "load.fio", "--schedulers", "none,kyber", "--fio-logs", "logs"];
    succeeded(command.args(arguments).args(options));
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The values of a log.
fn lines(file: &Path) -> Vec<Vec<u64>> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
        None => text.parse().unwrap(),
    };
    text.lines().map(|line| line.split(", ").map(number).collect()).collect()
}

#[test]
fn each_scheduler_has_a_folder_with_the_logs_of_each_process_and_fios_document() {
    let folder = logged("log_avg_msec=100\n", &["--repeat", "2"]);
    let logs = folder.path().join("logs");
    assert_eq!(names(&logs), ["kyber", "none"]);
    let mut expected = vec!["fio.json".to_owned(), "repeat-2".to_owned()];
    for (job, number) in [("a", 1), ("b_.._c", 2), ("b_.._c", 3)] {
        expected.extend(["bw", "clat", "iops", "lat", "slat"].map(|kind| format!("{job}_{kind}.{number}.log")));
    }
    expected.sort();
    assert_eq!(names(&logs.join("none")), expected);
    expected.retain(|name| name != "repeat-2");
    assert_eq!(names(&logs.join("none/repeat-2")), expected);
    assert_eq!(names(folder.path()), ["load.fio", "logs"], "nothing is left beside it");
}

#[test]
fn windows_have_means_and_without_one_each_io_has_a_line() {
    let means = logged("log_avg_msec=100\n", &[]);
    let windows = lines(&means.path().join("logs/none/a_iops.1.log"));
    assert!(windows.iter().all(|line| line.len() == 5 && line[3] == 0), "{windows:?}");
    let reads: Vec<_> = windows.iter().filter(|line| line[2] == 0).collect();
    assert!((17..=20).contains(&reads.len()), "{reads:?}");

    let each = logged("", &[]);
    let document: Value =
        serde_json::from_str(&fs::read_to_string(each.path().join("logs/none/fio.json")).unwrap()).unwrap();
    let latencies = lines(&each.path().join("logs/none/a_lat.1.log"));
    let total = |direction: &str| document["jobs"][0][direction]["total_ios"].as_u64().unwrap();
    assert_eq!(latencies.len() as u64, total("read") + total("write"));
    let of_reads: Vec<u64> = latencies.iter().filter(|line| line[2] == 0).map(|line| line[1]).collect();
    let mean = of_reads.iter().sum::<u64>() as f64 / of_reads.len() as f64;
    let shown = document["jobs"][0]["read"]["lat_ns"]["mean"].as_f64().unwrap();
    assert!((mean - shown).abs() < 1.0, "{mean} {shown}");
    // As in fio, synchronous engines have no submission latency.
    assert!(lines(&each.path().join("logs/none/b_.._c_slat.2.log")).is_empty());
    assert!(!lines(&each.path().join("logs/none/b_.._c_clat.2.log")).is_empty());
}

#[test]
fn fio_itself_writes_lines_of_the_same_form() {
    if !fio_run::is_installed() {
        return;
    }
    let folder = tempdir().unwrap();
    for options in [
        "",
        "log_avg_msec=200\n",
        "prioclass=1\nprio=3\nlog_offset=1\n",
        "log_prio=1\nprioclass=1\nprio=3\n",
        "log_avg_msec=200\nlog_prio=1\nlog_offset=1\nlog_max_value=1\n",
    ] {
        let job = format!(
            "[a]\nioengine=null\nsize=64m\nrw=randrw\ntime_based\nruntime=1\nrate_iops=100\niodepth=4\n\
             write_bw_log=fios\nwrite_lat_log=fios\nwrite_iops_log=fios\n{options}"
        );
        let output = fio_run::run(folder.path(), &job, &[], &[]);
        assert!(output.status.success(), "{output:?}");
        let ours = logged(options, &[]);
        for kind in ["bw", "iops", "lat", "clat", "slat"] {
            let theirs = lines(&folder.path().join(format!("fios_{kind}.1.log")));
            let ours = lines(&ours.path().join(format!("logs/none/a_{kind}.1.log")));
            let form = |lines: &[Vec<u64>]| -> BTreeSet<(usize, u64, u64)> {
                lines.iter().map(|line| (line.len(), line[3], line[line.len() - 1])).collect()
            };
            assert_eq!(form(&ours), form(&theirs), "{options}{kind}: columns, block size, priority");
        }
    }
}

#[test]
fn histograms_have_the_form_of_fios_and_hold_all_but_the_end() {
    let options = "log_hist_msec=100\nlog_hist_coarseness=3\n";
    let ours = logged(options, &[]);
    let rows = lines(&ours.path().join("logs/none/a_clat_hist.1.log"));
    let document: Value =
        serde_json::from_str(&fs::read_to_string(ours.path().join("logs/none/fio.json")).unwrap()).unwrap();
    for (number, direction) in [(0, "read"), (1, "write")] {
        let of_direction = rows.iter().filter(|row| row[1] == number);
        let held: u64 = of_direction.flat_map(|row| &row[3..]).sum();
        let all = document["jobs"][0][direction]["total_ios"].as_u64().unwrap();
        assert!(held <= all && held * 20 > all * 18, "{direction}: {held} of {all}");
    }
    // There are no other files than those requested.
    assert!(!logged("", &[]).path().join("logs/none/a_clat_hist.1.log").exists());
    if !fio_run::is_installed() {
        return;
    }
    let folder = tempdir().unwrap();
    let job =
        format!("[a]\nioengine=null\nsize=64m\nrw=randrw\nruntime=1\nrate_iops=500\nwrite_hist_log=fios\n{options}");
    let output = fio_run::run(folder.path(), &job, &[], &[]);
    assert!(output.status.success(), "{output:?}");
    let theirs = lines(&folder.path().join("fios_clat_hist.1.log"));
    let form = |rows: &[Vec<u64>]| rows.iter().map(|row| (row.len(), row[1], row[2])).collect::<BTreeSet<_>>();
    assert_eq!(form(&rows), form(&theirs), "columns, direction, block size");
}

#[test]
fn offsets_and_devices_are_there() {
    let folder = logged("log_offset=1\n", &[]);
    let latencies = lines(&folder.path().join("logs/none/a_lat.1.log"));
    let offsets: BTreeSet<u64> = latencies.iter().map(|line| line[4]).collect();
    assert!(offsets.len() > latencies.len() / 2 && offsets.iter().all(|offset| offset % 4096 == 0));
    let document: Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("logs/kyber/fio.json")).unwrap()).unwrap();
    let device = &document["disk_util"][0];
    assert_eq!(device["name"], "sda");
    assert!(device["read_ios"].as_u64().unwrap() > 1000 && device["util"].as_f64().unwrap() > 50.0, "{device}");
}

#[test]
fn fios_own_tool_reads_the_bins_and_finds_the_same_percentiles() {
    let tool = "fio_jsonplus_clat2csv";
    if !is_installed(tool) {
        return;
    }
    let folder = logged("", &[]);
    let json = folder.path().join("logs/kyber/fio.json");
    let output = Command::new(tool).arg(&json).arg("out.csv").current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = fs::read_to_string(folder.path().join("out_job0.csv")).unwrap();
    let mut rows = text.lines().map(|line| line.split(", ").collect::<Vec<_>>());
    let header = rows.next().unwrap();
    let column = header.iter().position(|name| *name == "read_clat_ns_percentile").unwrap();
    // The first bin up to which 99 % of the I/Os lie.
    let found = rows.find(|row| row[column].parse::<f64>().is_ok_and(|share| share >= 0.99)).unwrap();
    let document: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let shown = &document["jobs"][0]["read"]["clat_ns"]["percentile"]["99.000000"];
    assert_eq!(found[0], shown.to_string());
}

#[test]
fn fios_own_plotter_reads_the_bandwidth_logs() {
    let tool = "fio2gnuplot";
    if !is_installed(tool) {
        return;
    }
    let folder = logged("log_avg_msec=100\n", &[]);
    let logs = folder.path().join("logs/none");
    let output = Command::new(tool).args(["-b", "-o", "plotted", "-d", "."]).current_dir(&logs).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let average = fs::read_to_string(logs.join("plotted.average")).unwrap();
    // A line for each log, with its number and its average.
    let numbers = |line: &str| line.split_once(' ').and_then(|(n, mean)| Some((n.parse().ok()?, mean.parse().ok()?)));
    let averages: BTreeMap<u32, f64> = average.lines().filter_map(numbers).collect();
    assert_eq!(averages.len(), 3, "{average}");
    let ours = lines(&logs.join("a_bw.1.log"));
    let mean = ours.iter().map(|line| line[1]).sum::<u64>() as f64 / ours.len() as f64;
    assert!((averages[&0] - mean).abs() < 0.01 * mean, "{mean}\n{average}");
}

#[test]
fn a_folder_with_something_in_it_is_refused_and_stays_as_it_is() {
    let folder = tempdir().unwrap();
    fs::create_dir(folder.path().join("logs")).unwrap();
    fs::write(folder.path().join("logs/mine"), "mine").unwrap();
    fs::write(folder.path().join("file"), "mine").unwrap();
    refused(folder.path(), &["compare", "--fio-logs", "logs"], &["--fio-logs logs: is not empty"]);
    refused(folder.path(), &["compare", "--fio-logs", "file"], &["--fio-logs file: "]);
    refused(
        folder.path(),
        &["compare", "--fio-logs", "no/such/folder"],
        &["--fio-logs no/such/folder: cannot be created"],
    );
    assert_eq!(names(&folder.path().join("logs")), ["mine"]);
}

#[test]
fn an_empty_folder_is_filled() {
    let folder = tempdir().unwrap();
    let logs = folder.path().join("logs");
    fs::create_dir(&logs).unwrap();
    printed(&["compare", "--runtime", "20ms", "--schedulers", "none", "--fio-logs", logs.to_str().unwrap()]);
    assert_eq!(names(&logs), ["none"]);
}
