//! Compares our output with fio's: the keys and their order, the rules behind the numbers, and the round trip through the
//! types.

use hoistway_measure::fio::{DiskUtil, Output, OutputParameters, PercentileChoice};
use hoistway_measure::{Direction, LatencyHistogram, ProcessResult, Reporting};
use serde_json::Value;

const ERROR: &str = include_str!("data/error.json");
const TWO_GROUPS: &str = include_str!("data/two-groups.json");
const NO_GROUP_REPORTING: &str = include_str!("data/no-group-reporting.json");
const JSON_PLUS: &str = include_str!("data/json-plus.json");

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Every key with its path, in the order of the document; array elements by number.
fn key_paths(value: &Value) -> Vec<String> {
    fn walk(value: &Value, path: &str, paths: &mut Vec<String>) {
        let children: Vec<(String, &Value)> = match value {
            Value::Object(object) => object.iter().map(|(key, child)| (format!("{path}/{key}"), child)).collect(),
            Value::Array(array) => array.iter().enumerate().map(|(i, child)| (format!("{path}/{i}"), child)).collect(),
            _ => return,
        };
        for (path, child) in children {
            paths.push(path.clone());
            walk(child, &path, paths);
        }
    }
    let mut paths = Vec::new();
    walk(value, "", &mut paths);
    paths
}

/// Whether numbers keep their JSON type: integers stay integers, floats stay floats.
fn number_kinds(value: &Value) -> Vec<&'static str> {
    match value {
        Value::Object(object) => object.values().flat_map(number_kinds).collect(),
        Value::Array(array) => array.iter().flat_map(number_kinds).collect(),
        Value::Number(number) if number.is_f64() => vec!["float"],
        Value::Number(_) => vec!["integer"],
        _ => vec![],
    }
}

fn options(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A process of the sample's job file that did `ios` I/Os of `bytes` each in a direction, at 20, 40, ... us.
fn process(name: &str, group: u32, job: u32, done: &[(Direction, u64, u64)]) -> ProcessResult {
    let mut process = ProcessResult {
        name: name.to_owned(),
        job,
        group,
        group_reporting: true,
        iodepth: 4,
        runtime_ns: 3_000_400_000,
        ..ProcessResult::default()
    };
    for &(direction, ios, bytes) in done {
        let measured = process.direction_mut(direction);
        measured.ios = ios;
        measured.bytes = ios * bytes;
        for i in 0..ios {
            measured.slat.record(5_000);
            measured.clat.record(15_000 + i * 20_000);
            measured.lat.record(20_000 + i * 20_000);
        }
        for _ in 0..5 {
            measured.bandwidth.add(ios * bytes / 1024 / 3);
            measured.iops.add(ios / 3);
        }
        for _ in 0..ios {
            process.depth_levels.record(1);
            process.submit_levels.record(1);
            process.complete_levels.record(1);
        }
    }
    process
}

fn sample_processes() -> Vec<ProcessResult> {
    use Direction::{Read, Write};
    let w_options =
        options(&[("rw", "randwrite"), ("bs", "4k"), ("iodepth", "4"), ("numjobs", "2"), ("rate_iops", "500")]);
    let mix_options = options(&[
        ("rw", "randrw"),
        ("rwmixread", "40"),
        ("bs", "4k"),
        ("iodepth", "2"),
        ("rate_iops", "400,200"),
        ("cmdprio_percentage", "20"),
        ("cmdprio_class", "1"),
        ("cmdprio", "2"),
    ]);
    let fs_options =
        options(&[("ioengine", "psync"), ("rw", "randwrite"), ("fsync", "4"), ("bs", "8k"), ("rate_iops", "300")]);
    let mut processes = vec![
        process("w", 0, 0, &[(Write, 1500, 4096)]),
        process("w", 0, 0, &[(Write, 1500, 4096)]),
        process("mix", 1, 1, &[(Read, 1200, 4096), (Write, 600, 4096)]),
        process("fs", 2, 2, &[(Write, 900, 8192)]),
    ];
    processes[0].options = w_options.clone();
    processes[1].options = w_options;
    processes[2].options = mix_options;
    processes[3].options = fs_options;
    for direction in [Read, Write] {
        for ioprio in [0, 0x2002] {
            let result = processes[2].direction_mut(direction).priority_mut(ioprio);
            result.lat.record(50_000 + u64::from(ioprio));
            result.lat.record(51_000);
        }
    }
    // A synchronous engine: no submission latency, and fsyncs.
    processes[3].direction_mut(Write).slat = LatencyHistogram::new();
    processes[3].sync.total_ios = 225;
    for i in 0..225 {
        processes[3].sync.lat.record(100_000 + i);
        processes[3].depth_levels.record(1);
    }
    processes
}

fn sample_output(processes: &[ProcessResult]) -> Output {
    let global = options(&[
        ("direct", "1"),
        ("size", "32m"),
        ("runtime", "3"),
        ("percentile_list", "50:90:99:99.9:100"),
        ("clat_percentiles", "1"),
        ("lat_percentiles", "1"),
        ("slat_percentiles", "1"),
        ("ioengine", "libaio"),
        ("filename", "/dev/sdx"),
    ]);
    let parameters = OutputParameters {
        timestamp_ms: 1_795_193_860_842,
        bins: false,
        percentiles: PercentileChoice { slat: true, clat: true, lat: true, list: vec![50.0, 90.0, 99.0, 99.9, 100.0] },
        disk_util: vec![DiskUtil { name: "sdx".to_owned(), ..DiskUtil::default() }],
    };
    Output::from_processes(&global, processes, &parameters)
}

#[test]
fn keys_and_their_order_are_those_of_fio() {
    let ours = serde_json::to_value(sample_output(&sample_processes())).unwrap();
    let fios = value(TWO_GROUPS);
    assert_eq!(key_paths(&ours), key_paths(&fios));
    assert_eq!(number_kinds(&ours), number_kinds(&fios));
}

#[test]
fn without_group_reporting_every_process_has_an_entry() {
    let mut processes = sample_processes();
    processes.iter_mut().for_each(|process| process.group_reporting = false);
    let ours = serde_json::to_value(sample_output(&processes)).unwrap();
    let fios = value(NO_GROUP_REPORTING);
    assert_eq!(key_paths(&ours), key_paths(&fios));
    assert_eq!(number_kinds(&ours), number_kinds(&fios));
    // Two equal clones have half of their group each, as fio counts it.
    let share = ours["jobs"][0]["write"]["bw_agg"].as_f64().unwrap();
    assert!((share - 50.0).abs() < 0.1, "{share}");
}

#[test]
fn fio_output_round_trips_through_our_types() {
    for text in [ERROR, TWO_GROUPS, NO_GROUP_REPORTING, JSON_PLUS] {
        let output: Output = serde_json::from_str(text).unwrap();
        let again = serde_json::to_string(&output).unwrap();
        // Not assert_eq!, which would print both documents.
        assert!(value(&again) == value(text), "{}", output.time);
        assert_eq!(key_paths(&value(&again)), key_paths(&value(text)));
    }
}

#[test]
fn a_group_is_the_sum_of_its_processes() {
    let output = sample_output(&sample_processes());
    let fios: Output = serde_json::from_str(TWO_GROUPS).unwrap();
    let (ours, fios) = (&output.jobs[0], &fios.jobs[0]);
    assert_eq!(output.time, "Fri Nov 20 16:57:40 2026");
    assert_eq!(ours.elapsed, fios.elapsed);
    assert_eq!(ours.job_runtime, fios.job_runtime);
    assert_eq!(ours.latency_depth, fios.latency_depth);
    let (ours, fios) = (&ours.write, &fios.write);
    assert_eq!((ours.io_bytes, ours.io_kbytes, ours.total_ios), (fios.io_bytes, fios.io_kbytes, fios.total_ios));
    assert_eq!(ours.runtime, fios.runtime);
    assert_eq!((ours.bw_samples, ours.iops_samples), (fios.bw_samples, fios.iops_samples));
    assert_eq!((ours.iops_min, ours.iops_max), (1000, 1000));
    // fio divides by 3001 ms, we by 3000.4 ms.
    assert!((ours.iops / fios.iops - 1.0).abs() < 3e-4, "{} {}", ours.iops, fios.iops);
    assert!((ours.bw_bytes as f64 / fios.bw_bytes as f64 - 1.0).abs() < 3e-4);
    assert_eq!(ours.lat_ns.count, 3000);
    assert_eq!(ours.slat_ns.mean, 5000.0);
}

#[test]
fn fsyncs_come_on_top_of_the_depth_levels() {
    let output = sample_output(&sample_processes());
    let fios: Output = serde_json::from_str(TWO_GROUPS).unwrap();
    assert_eq!(output.jobs[2].iodepth_level, fios.jobs[2].iodepth_level);
    assert_eq!(output.jobs[2].iodepth_submit, fios.jobs[2].iodepth_submit);
    assert_eq!(output.jobs[2].iodepth_level.get("1"), Some(&125.0));
    assert_eq!(output.jobs[2].sync.total_ios, 225);
}

#[test]
fn a_failed_process_looks_as_fio_writes_it() {
    let mut failed = process("err", 0, 0, &[]);
    failed.options = value(ERROR)["jobs"][0]["job options"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
        .collect();
    failed.error = 28;
    let output = Output::from_processes(&[], &[failed], &OutputParameters::default());
    assert_eq!(output.jobs[0].error, 28);
    assert_eq!(key_paths(&serde_json::to_value(output).unwrap()), key_paths(&value(ERROR)));
}

#[test]
fn no_processes_make_no_jobs() {
    let output = Output::from_processes(&[], &[], &OutputParameters::default());
    assert!(output.jobs.is_empty());
}

/// Refills a histogram from the bins that fio wrote.
fn refilled(bins: impl Iterator<Item = (u64, u64)>) -> LatencyHistogram {
    let mut histogram = LatencyHistogram::new();
    for (midpoint_ns, count) in bins {
        (0..count).for_each(|_| histogram.record(midpoint_ns));
    }
    histogram
}

#[test]
fn bins_and_percentiles_are_those_of_fio() {
    let fios: Output = serde_json::from_str(JSON_PLUS).unwrap();
    let mut seen = 0;
    for job in &fios.jobs {
        for stats in [&job.write.slat_ns, &job.write.clat_ns, &job.write.lat_ns, &job.sync.lat_ns] {
            let (Some(bins), Some(percentiles)) = (&stats.bins, &stats.percentile) else { continue };
            let bins: Vec<(u64, u64)> =
                bins.iter().map(|(midpoint_ns, &count)| (midpoint_ns.parse().unwrap(), count)).collect();
            let histogram = refilled(bins.iter().copied());
            assert_eq!(histogram.bins().collect::<Vec<_>>(), bins);
            for (percent, &expected_ns) in percentiles.iter() {
                assert_eq!(histogram.percentile(percent.parse().unwrap()), Some(expected_ns), "{percent} %");
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 30);
}

#[test]
fn json_plus_adds_bins_where_there_are_percentiles() {
    let parameters = OutputParameters { bins: true, ..OutputParameters::default() };
    let output = Output::from_processes(&[], &sample_processes(), &parameters);
    let write = &output.jobs[0].write;
    assert_eq!(write.slat_ns.bins, None);
    assert_eq!(write.slat_ns.percentile, None);
    let counts: u64 = write.lat_ns.bins.as_ref().unwrap().iter().map(|(_, &count)| count).sum();
    assert_eq!(counts, write.lat_ns.count);
    assert_eq!(write.clat_ns.percentile.as_ref().unwrap().len(), 17);
    assert_eq!(output.jobs[0].read.lat_ns.bins, None);
}

#[test]
fn a_process_has_one_cpu_at_a_time() {
    let mut processes = sample_processes();
    (processes[2].cpu.user_ns, processes[2].cpu.system_ns) = (3_000_000_000, 9_000_000_000);
    let job = &sample_output(&processes).jobs[1];
    assert_eq!((job.usr_cpu, job.sys_cpu), (25.0, 75.0));
}

#[test]
fn directions_may_be_separate_or_unified_and_fdatasyncs_are_no_syncs() {
    for (reporting, keys) in [
        (Reporting::Separate, &["read", "write", "trim"][..]),
        (Reporting::Unified, &["mixed"]),
        (Reporting::Both, &["read", "write", "trim", "mixed"]),
    ] {
        let mut process = ProcessResult { reporting, runtime_ns: 1_000_000_000, ..ProcessResult::default() };
        for (direction, ios) in [(Direction::Read, 3), (Direction::Write, 5)] {
            let result = process.direction_mut(direction);
            (result.ios, result.bytes) = (ios, ios * 4096);
            (0..ios).for_each(|_| result.clat.record(1000));
        }
        (process.sync.total_ios, process.sync.of_data) = (7, 4);
        let output = Output::from_processes(&[], &[process], &OutputParameters::default());
        let json = serde_json::to_value(&output).unwrap();
        let job = &json["jobs"][0];
        for key in ["read", "write", "trim", "mixed"] {
            assert_eq!(job.get(key).is_some(), keys.contains(&key), "{reporting:?}: {key}");
        }
        if reporting != Reporting::Separate {
            assert_eq!(
                (job["mixed"]["total_ios"].as_u64(), job["mixed"]["io_bytes"].as_u64()),
                (Some(8), Some(8 * 4096))
            );
        }
        assert_eq!(job["sync"]["total_ios"], 3);
        let again: Output = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(&again).unwrap(), json);
    }
}

#[test]
fn measurements_are_read_back_from_a_document_with_bins() {
    let mut written = process("a", 0, 0, &[(Direction::Read, 50, 4096), (Direction::Write, 7, 512)]);
    (written.runtime_ns, written.error) = (3_000_000_000, 5);
    written.sync.total_ios = 3;
    for us in [100, 200, 900] {
        written.sync.lat.record(us * 1000);
    }
    let parameters = OutputParameters { bins: true, ..OutputParameters::default() };
    let written = [ProcessResult { group_reporting: false, ..written }];
    let text = serde_json::to_string(&Output::from_processes(&[], &written, &parameters)).unwrap();
    let read = serde_json::from_str::<Output>(&text).unwrap().processes();
    let figures = |process: &ProcessResult| {
        let direction = |of| {
            let measured = process.direction(of);
            let lat = &measured.lat;
            let percentiles = [50.0, 99.0].map(|percent| lat.percentile(percent));
            (measured.ios, measured.bytes, lat.min(), lat.max(), lat.mean(), lat.stddev().round(), percentiles)
        };
        let syncs = (process.sync.total_ios, process.sync.lat.mean());
        (process.name.clone(), process.runtime_ns, process.error, Direction::ALL.map(direction), syncs)
    };
    assert_eq!(read.iter().map(figures).collect::<Vec<_>>(), written.iter().map(figures).collect::<Vec<_>>());
    // fio's own.
    let fios = serde_json::from_str::<Output>(JSON_PLUS).unwrap();
    for (process, job) in fios.processes().iter().zip(&fios.jobs) {
        let (measured, stats) = (&process.direction(Direction::Read).clat, &job.read.clat_ns);
        let percentile = stats.percentile.as_ref().map(|all| all["99.000000"]);
        assert_eq!((measured.count(), measured.percentile(99.0)), (stats.count, percentile));
        assert!((measured.stddev() - stats.stddev).abs() <= 0.01 * stats.stddev);
    }
}
