//! `hoistway compare --format`: the other formats of its results.

use std::fs;

use serde_json::Value;
use tempfile::tempdir;

use crate::support::{ended_with, hoistway, printed, succeeded};

const SHORT: [&str; 5] = ["compare", "--runtime", "50ms", "--schedulers", "none,kyber"];

fn formatted(format: &str, options: &[&str]) -> String {
    printed(&[&SHORT[..], &["--format", format], options].concat())
}

#[test]
fn csv_has_a_line_for_each_scheduler_job_and_direction() {
    let text = formatted("csv", &["--repeat", "2"]);
    let lines: Vec<&str> = text.lines().collect();
    // Jobs `writers` and `mixed`, which reads and writes, under two schedulers.
    assert_eq!(lines.len(), 1 + 3 * 2, "{text}");
    assert!(lines[0].starts_with("job_file,device,kernel,scheduler,block_layer,tunables,job,"), "{}", lines[0]);
    assert!(lines[0].contains(",lat_p99_ns,lat_p99_ns_half_width,lat_p99_ns_vs_baseline,lat_p99_ns_significant,"));
    let columns = lines[0].split(',').count();
    assert!(lines.iter().all(|line| line.split(',').count() == columns), "{text}");
    assert!(lines[2].contains(",kyber,mq,,writers,10,write,2,"), "{}", lines[2]);
}

#[test]
fn markdown_has_a_table_for_each_job() {
    let text = formatted("markdown", &[]);
    assert_eq!(text.matches("| scheduler | | IOPS | vs none |").count(), 2, "{text}");
    assert!(text.contains("\n**writers, 10 processes**\n"), "{text}");
}

#[test]
fn failed_processes_appear_in_every_format_and_in_the_exit_status() {
    let folder = tempdir().unwrap();
    let job = "[global]\nfilename=/dev/sda\ndirect=1\nrw=randread\ntime_based\nruntime=50ms\n\
               [impatient]\nmax_latency=1\nnumjobs=2\n[patient]\n";
    fs::write(folder.path().join("job.fio"), job).unwrap();
    let failing = |schedulers: &str, format: &str| {
        let mut command = hoistway();
        let arguments = ["compare", "job.fio", "--schedulers", schedulers, "--format", format];
        ended_with(1, command.current_dir(folder.path()).args(arguments))
    };
    let output = |format: &str| failing("none,bfq", format);
    let shown = ": impatient under all schedulers (2 of 2 processes, ETIMEDOUT).\n";
    for format in ["table", "markdown"] {
        let text = output(format).replace("\n  ", " ");
        assert!(text.contains(shown) && text.contains("processes failed"), "{text}");
    }
    let document: Value = serde_json::from_str(&output("json")).unwrap();
    let jobs = &document["runs"][1]["jobs"];
    assert_eq!(jobs[0]["failed"], serde_json::json!([{"errno": 110, "processes": 2}]));
    assert!(jobs[1].get("failed").is_none());
    let csv = output("csv");
    let ends: Vec<_> = csv.lines().skip(1).map(|line| line.ends_with(",2,110")).collect();
    assert_eq!(ends, [true, true, false, false], "{csv}");
    for format in ["fio-json", "fio-json+"] {
        let document: Value = serde_json::from_str(&failing("none", format)).unwrap();
        let errors: Vec<_> = document["jobs"].as_array().unwrap().iter().map(|job| &job["error"]).collect();
        assert_eq!(errors, [110, 110, 0], "{format}");
    }
}

#[test]
fn every_format_fits_into_a_file() {
    let folder = tempdir().unwrap();
    for format in ["table", "json", "csv", "markdown"] {
        let file = folder.path().join(format);
        assert_eq!(formatted(format, &["-o", file.to_str().unwrap()]), "");
        assert!(fs::metadata(&file).unwrap().len() > 100, "{format}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
}

#[test]
fn the_documents_of_fio_are_of_one_run_and_differ_by_their_bins() {
    let document = |format: &str| -> Value {
        let arguments = ["compare", "--runtime", "50ms", "--schedulers", "none", "--format", format];
        serde_json::from_str(&printed(&arguments)).unwrap()
    };
    let (json, plus) = (document("fio-json"), document("fio-json+"));
    assert_eq!(json["jobs"][0]["jobname"], "writers");
    let bins = |document: &Value| document["jobs"][0]["write"]["clat_ns"]["bins"].clone();
    assert!(bins(&json).is_null());
    let counts: u64 = bins(&plus).as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(counts, plus["jobs"][0]["write"]["total_ios"]);
    assert_eq!(json["jobs"][0]["write"]["iops"], plus["jobs"][0]["write"]["iops"]);
}

#[test]
fn hardware_queues_and_requests_have_options_of_their_own() {
    let with = |options: &[&str]| -> Value { serde_json::from_str(&formatted("json", options)).unwrap() };
    let document = with(&["--hw-queues", "4", "--nr-requests", "16"]);
    assert_eq!((&document["hw_queues"], &document["nr_requests"]), (&4.into(), &16.into()));
    assert_eq!(document["device"]["shape"]["hw_queues"], 4);
    let same = with(&["--queue", "nr_requests=16"]);
    assert_eq!(same["runs"][0]["jobs"], with(&["--nr-requests", "16"])["runs"][0]["jobs"]);
}

#[test]
fn options_ignored_by_some_schedulers_get_a_notice() {
    let job = "[low]\nfilename=/dev/sda\ndirect=1\nrw=randread\nprioclass=3\ntime_based\nruntime=1\n";
    let table = |arguments: &[&str]| {
        let arguments = [&["compare", "-", "--runtime", "20ms"], arguments].concat();
        succeeded(hoistway().args(arguments).write_stdin(job))
    };
    assert!(
        table(&["--schedulers", "all"])
            .contains("prioclass, nice, prio or cmdprio (low): no effect with none, kyber, noop, deadline; ")
    );
    assert!(!table(&["--schedulers", "bfq,cfq"]).contains("no effect"));
}

#[test]
fn logging_options_without_fio_logs_get_a_notice() {
    let job = "[a]\nfilename=/dev/sda\ndirect=1\nlog_avg_msec=100\ntime_based\nruntime=1\n";
    let arguments = ["compare", "-", "--runtime", "20ms", "--schedulers", "none"];
    let table = succeeded(hoistway().args(arguments).write_stdin(job));
    assert!(table.contains("Logging options (log_avg_msec and others) have no effect without --fio-logs."), "{table}");
}

#[test]
fn a_ramp_is_left_out_of_the_measurement() {
    let document: Value = serde_json::from_str(&formatted("json", &["--ramp", "100ms"])).unwrap();
    let seconds = document["runs"][0]["simulated_seconds"].as_f64().unwrap();
    assert!((0.15..0.16).contains(&seconds), "{seconds}");
}

#[test]
fn json_has_the_statistics_of_devices_and_cgroups_that_a_kernel_would_show() {
    let folder = tempdir().unwrap();
    let job = "[global]\ndirect=1\nfilename=/dev/sda\nbs=4k\n[a]\nrw=read\nsize=4m\ncgroup=tenants/a\n[b]\nrw=randwrite\n\
               size=2m\ncgroup=tenants/b\n";
    fs::write(folder.path().join("load.fio"), job).unwrap();
    for scheduler in ["none", "bfq", "cfq"] {
        let mut command = hoistway();
        command.current_dir(folder.path());
        command.args(["compare", "load.fio", "--schedulers", scheduler, "--format", "json"]);
        let document: Value = serde_json::from_str(&succeeded(&mut command)).unwrap();
        let disk = &document["runs"][0]["disks"][0];
        let of = |kind: &str| {
            disk[format!("{kind}_ios")].as_u64().unwrap() + disk[format!("{kind}_merges")].as_u64().unwrap()
        };
        assert_eq!((of("read"), of("write")), (1024, 512), "{scheduler}: {disk}");
        let fields: Vec<u64> = disk["stat"].as_str().unwrap().split(' ').map(|field| field.parse().unwrap()).collect();
        assert_eq!((fields[2], fields[6], fields[8]), (8192, 4096, 0), "{scheduler}: sectors, and nothing in flight");
        let groups: Vec<_> =
            disk["cgroups"].as_array().unwrap().iter().map(|group| group["io_stat"].as_str().unwrap()).collect();
        assert!(groups[0].starts_with("rbytes=4194304 wbytes=2097152 rios=1024 wios=512"), "{scheduler}: {groups:?}");
        assert!(groups[1].starts_with("rbytes=4194304 wbytes=0 ") && groups[2].starts_with("rbytes=0 wbytes=2097152 "));
        let util = document["runs"][0]["disks"][0]["util_percent"].as_f64().unwrap();
        assert!((50.0..=100.0).contains(&util), "{scheduler}: {util}");
    }
}
