//! Other people's programs that read fio's output also read ours.
//!
//! fio-plot is from PyPI; fio-histo-log-pctiles.py comes with fio, on Debian among its documentation.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::tempdir;

use crate::support::{hoistway, is_installed, succeeded};

/// A job name of the form that fio-plot expects in the names of log files.
const JOB_NAME: &str = "randread-iodepth-8-numjobs-1";

/// Runs a job whose section has no default values of fio, and returns its folder.
fn run(folder: &Path) -> std::path::PathBuf {
    let job = format!(
        "[{JOB_NAME}]\nfilename=/dev/sda\ndirect=1\nrw=randread\nioengine=libaio\niodepth=8\nruntime=2\n\
         log_avg_msec=100\nlog_hist_msec=100\n"
    );
    fs::write(folder.join("load.fio"), job).unwrap();
    let mut command = hoistway();
    succeeded(command.current_dir(folder).args(["compare", "load.fio", "--schedulers", "none", "--fio-logs", "logs"]));
    folder.join("logs/none")
}

/// Makes fio-plot draw a chart.
fn plotted(folder: &Path, arguments: &str) {
    let mut command = Command::new("fio-plot");
    command.current_dir(folder).env("MPLBACKEND", "Agg").args(arguments.split(' '));
    let output =
        command.args(["-T", "title", "-r", "randread", "-d", "8", "-n", "1", "-o", "drawn.png"]).output().unwrap();
    let picture = fs::read(folder.join("drawn.png")).unwrap_or_default();
    assert!(output.status.success() && picture.starts_with(b"\x89PNG"), "{arguments}: {output:?}");
    assert!(picture.len() > 10_000, "{arguments}: there is nothing in the picture");
    fs::remove_file(folder.join("drawn.png")).unwrap();
}

#[test]
fn fio_plot_draws_the_document_and_the_logs() {
    if !is_installed("fio-plot") {
        return;
    }
    let folder = tempdir().unwrap();
    let run = run(folder.path());
    // IOPS and latency by depth, the histogram of latencies, and the course of the run.
    plotted(folder.path(), &format!("-i {} -l", run.display()));
    plotted(folder.path(), &format!("-i {} -L -t iops", run.display()));
    plotted(folder.path(), &format!("-i {} -H", run.display()));
    plotted(folder.path(), &format!("-i {} -g -t iops lat bw", run.display()));
}

#[test]
fn fios_reader_of_histograms_finds_our_percentiles() {
    let tool = "fio-histo-log-pctiles.py";
    if !is_installed(tool) {
        return;
    }
    let folder = tempdir().unwrap();
    let run = run(folder.path());
    let mut command = Command::new(tool);
    command.args(["--log-hist-msec", "100", "--time-quantum", "1", "--percentiles", "50", "99", "--"]);
    let output = command.arg(run.join(format!("{JOB_NAME}_clat_hist.1.log"))).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    // Lines of time, I/Os, median and 99th percentile in us.
    let rows = text.lines().filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit()));
    let rows: Vec<Vec<f64>> = rows.map(|row| row.split(',').filter_map(|n| n.trim().parse().ok()).collect()).collect();
    let document: serde_json::Value = serde_json::from_str(&fs::read_to_string(run.join("fio.json")).unwrap()).unwrap();
    let read = &document["jobs"][0]["read"];
    assert!(rows.len() >= 2, "{text}");
    for row in &rows {
        for (column, name) in [(2, "50.000000"), (3, "99.000000")] {
            let told_us = read["clat_ns"]["percentile"][name].as_f64().unwrap() / 1000.0;
            assert!((row[column] / told_us - 1.0).abs() < 0.1, "{name}: {row:?}, {told_us}");
        }
    }
}
