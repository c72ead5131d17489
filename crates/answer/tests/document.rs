//! The result document, written and read again.

use hoistway_answer::document::{FailedProcesses, Front, JobSummary, REVISION, ReadError, Run, RunLabel, SetupSummary};
use hoistway_answer::{Analysis, ResultsDocument};
use hoistway_measure::{Direction, ProcessResult, Settling};
use serde_json::{Map, Value, json};

fn processes() -> Vec<ProcessResult> {
    let process = |job: u32, name: &str, ios: u64, runtime_ns: u64| {
        let mut process = ProcessResult { name: name.to_owned(), job, runtime_ns, ..ProcessResult::default() };
        let reads = process.direction_mut(Direction::Read);
        reads.ios = ios;
        reads.bytes = ios * 4096;
        (0..ios).for_each(|i| reads.lat.record(100_000 + i % 7));
        process
    };
    // Jobs out of order, as a caller might pass them.
    vec![process(1, "b", 10, 1_000_000_000), process(0, "a", 1000, 1_000_000_000), process(0, "a", 1000, 2_000_000_000)]
}

fn document() -> ResultsDocument {
    let processes = processes();
    ResultsDocument {
        format: Default::default(),
        revision: REVISION,
        version: "0.1.0".to_owned(),
        command: "hoistway compare job.fio".to_owned(),
        arguments: Vec::new(),
        job_file: "job.fio".to_owned(),
        job_text: "[a]\nrw=randread\n".to_owned(),
        recording: None,
        window: None,
        device: json!({"name": "nvme", "channels": 8}),
        guests: None,
        kernel: "6.18".to_owned(),
        cpus: 4,
        hw_queues: 4,
        nr_requests: 256,
        host: json!("ideal"),
        seed: u64::MAX,
        seeds: vec![7],
        setups: Vec::new(),
        wall_seconds: 1.5,
        simulated_ios: 2010,
        is_real: false,
        real_place: None,
        partial: false,
        notices: vec!["A notice.".to_owned()],
        default_scheduler: None,
        disk_groups: Vec::new(),
        baseline: Some("none".to_owned()),
        focus: "a:read:p99".parse().ok(),
        focuses: Vec::new(),
        smallest_effect: None,
        writes: Vec::new(),
        doubts: vec!["nobody measured".to_owned()],
        device_checks: Vec::new(),
        verdicts: Vec::new(),
        advice: Vec::new(),
        conclusion: vec!["It is so.".to_owned()],
        statistics: None,
        runs: vec![Run {
            scheduler: "none".to_owned(),
            front: Front::Mq,
            ran_as: None,
            research: None,
            tunables: Map::from_iter([("nr_requests".to_owned(), Value::from(64))]),
            queue_files: Map::new(),
            variant: RunLabel::new("none", Map::new()),
            setup: 0,
            repeat: 0,
            seed: 7,
            simulated_seconds: 2.0,
            simulated_ios: 2010,
            wall_seconds: 0.25,
            cpu_us_per_io: None,
            disks: Vec::new(),
            locks: None,
            page_cache: None,
            io_cost: Vec::new(),
            io_latency: Vec::new(),
            jobs: JobSummary::from_processes(&processes),
            excerpt: None,
        }],
    }
}

#[test]
fn a_document_reads_back_as_it_was_written() {
    let document = document();
    let text = serde_json::to_string_pretty(&document).unwrap();
    let again = ResultsDocument::from_json(&text).unwrap();
    assert_eq!(again, document);
    assert_eq!(serde_json::to_string_pretty(&again).unwrap(), text);
}

#[test]
fn keys_come_in_the_documented_order() {
    let value = serde_json::to_value(document()).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(
        keys(&value),
        "format revision version command arguments job_file job_text device guests kernel cpus hw_queues nr_requests host seed seeds \
         wall_seconds simulated_ios partial notices baseline focus doubts conclusion statistics runs"
    );
    assert_eq!(
        keys(&value["runs"][0]),
        "scheduler front tunables variant repeat seed simulated_seconds simulated_ios wall_seconds cpu_us_per_io jobs"
    );
    assert_eq!(value["format"], "hoistway-results/2");
    assert_eq!(value["runs"][0]["front"], "mq");
    assert_eq!(value["runs"][0]["jobs"][0]["operations"][0]["operation"], "read");
}

#[test]
fn documents_of_versions_that_knew_one_setup_can_be_read() {
    let mut old = serde_json::to_value(document()).unwrap();
    for key in ["revision", "seeds", "focus", "doubts"] {
        old.as_object_mut().unwrap().remove(key);
    }
    old["runs"][0].as_object_mut().unwrap().remove("variant");
    let read = ResultsDocument::from_json(&old.to_string()).unwrap();
    assert_eq!((read.revision, read.runs[0].setup), (0, 0));
    assert_eq!(read.setup_of(&read.runs[0]), (&read.device, "6.18"));
    assert_eq!(Analysis::of(&read).variants[0].label, "none");
}

#[test]
fn one_scheduler_on_several_kernels_is_several_variants() {
    let mut document = document();
    let here = |kernel: &str| SetupSummary {
        device: json!({"name": "nvme"}),
        kernel: kernel.to_owned(),
        cpus: 4,
        hw_queues: 4,
        nr_requests: 256,
        host: json!("ideal"),
        default_scheduler: None,
    };
    document.setups = vec![here("4.19"), here("6.18")];
    let run = |setup, kernel: &str| Run {
        setup,
        variant: RunLabel::new("none", Map::from_iter([("kernel".to_owned(), Value::from(kernel))])),
        ..document.runs[0].clone()
    };
    document.runs = vec![run(0, "4.19"), run(1, "6.18")];
    document.baseline = Some("none kernel=6.18".to_owned());
    let again = ResultsDocument::from_json(&serde_json::to_string(&document).unwrap()).unwrap();
    assert_eq!(again, document);
    let analysis = Analysis::of(&again);
    let labels: Vec<_> = analysis.variants.iter().map(|variant| variant.label.as_str()).collect();
    assert_eq!((labels, analysis.baseline), (vec!["none kernel=4.19", "none kernel=6.18"], 1));
    assert_eq!(again.setup_of(&again.runs[1]).1, "6.18");
}

#[test]
fn an_unknown_format_is_reported_before_any_other_error() {
    let error = ResultsDocument::from_json(r#"{"runs": 5, "format": "hoistway-results/9"}"#).unwrap_err();
    assert!(matches!(&error, ReadError::UnknownFormat { found } if found == "hoistway-results/9"));
    assert_eq!(
        error.to_string(),
        "unknown result format \"hoistway-results/9\": this version reads formats up to \"hoistway-results/2\"; use the version that \
         wrote the file"
    );
}

#[test]
fn an_invalid_document_is_refused_with_the_reason() {
    for text in ["[]", "5", "{}", r#"{"format": 5}"#, r#"{"fio version": "fio-3.33", "jobs": []}"#] {
        assert!(matches!(ResultsDocument::from_json(text), Err(ReadError::NotADocument)), "{text}");
    }
    let cut_short = &serde_json::to_string(&document()).unwrap()[..500];
    let error = ResultsDocument::from_json(cut_short).unwrap_err().to_string();
    assert!(error.starts_with("the result document cannot be read: conclusion[0]: EOF while parsing"), "{error}");
    let mut incomplete = serde_json::to_value(document()).unwrap();
    incomplete.as_object_mut().unwrap().remove("kernel");
    let error = ResultsDocument::from_json(&incomplete.to_string()).unwrap_err().to_string();
    assert!(error.contains("missing field `kernel`"), "{error}");
}

#[test]
fn without_wall_clock_nothing_depends_on_the_time() {
    let (early, mut late) = (document(), document());
    late.wall_seconds = 99.0;
    late.runs[0].wall_seconds = 98.0;
    assert_ne!(early, late);
    assert_eq!(early.without_wall_clock(), late.without_wall_clock());
}

#[test]
fn a_job_counts_the_processes_that_each_error_ended() {
    let mut processes = [processes(), processes()].concat();
    // Two of the four processes of job 0.
    (processes[1].error, processes[4].error) = (110, 5);
    let jobs = JobSummary::from_processes(&processes);
    let failed = |errno| FailedProcesses { errno, processes: 1 };
    assert_eq!((jobs[0].failed.as_slice(), jobs[0].processes), ([failed(5), failed(110)].as_slice(), 4));
    assert_eq!(jobs[1].failed, []);
    let text = |job| serde_json::to_value(job).unwrap();
    assert_eq!(text(&jobs[0])["failed"][1], json!({"errno": 110, "processes": 1}));
    assert!(text(&jobs[1]).get("failed").is_none());
}

#[test]
fn a_job_sums_the_rates_and_merges_the_latencies_of_its_processes() {
    let jobs = JobSummary::from_processes(&processes());
    assert_eq!(jobs.iter().map(|job| (job.name.as_str(), job.processes)).collect::<Vec<_>>(), [("a", 2), ("b", 1)]);
    assert_eq!(jobs[0].operations.len(), 1);
    let reads = &jobs[0].operations[0];
    assert_eq!(reads.ios, 2000);
    assert_eq!(reads.iops, 1500.0);
    assert_eq!(reads.bytes_per_second, 1500.0 * 4096.0);
    assert_eq!((reads.lat_ns.min, reads.lat_ns.max), (100_000, 100_006));
}

#[test]
fn a_series_ends_with_the_last_process_of_a_job_and_settling_is_judged_by_the_first_that_ends() {
    let mut processes = processes();
    for process in &mut processes[1..] {
        let io_times = (0..process.runtime_ns).step_by(10_000_000);
        io_times.for_each(|at| process.direction_mut(Direction::Read).series.record(at, 1000));
    }
    let jobs = JobSummary::from_processes(&processes);
    let reads = &jobs[0].operations[0];
    assert_eq!(reads.series.ios.len() as f64 * reads.series.interval_seconds, 2.0);
    assert_eq!(reads.series.ios.iter().sum::<u64>(), 300, "all I/Os of both are in it");
    // One of two clones ends after a second: half the rate, which is not a warm-up.
    assert_eq!(reads.settling, Settling::Settled);
}

#[test]
fn a_series_interval_holds_the_mean_latency_of_ios_completed_in_it() {
    let mut processes = processes();
    processes.truncate(1);
    let reads = processes[0].direction_mut(Direction::Read);
    for (at, lat_ns) in [(0, 1000), (1, 3000), (2_500_000, 500)] {
        reads.series.record(at, lat_ns);
    }
    let jobs = JobSummary::from_processes(&processes);
    let series = &jobs[0].operations[0].series;
    assert_eq!(
        (series.interval_seconds, &series.ios[..3], &series.mean_lat_ns[..3]),
        (1e-3, &[2, 0, 1][..], &[2000, 0, 500][..])
    );
}

#[test]
fn cpu_time_is_that_of_user_and_system_for_each_io_syncs_included() {
    let mut processes = processes();
    processes.truncate(1);
    assert_eq!(JobSummary::from_processes(&processes)[0].syncs(), None);
    (processes[0].cpu.user_ns, processes[0].cpu.system_ns) = (30_000, 70_000);
    processes[0].sync.total_ios = 10;
    processes[0].sync.lat.record(5);
    let job = &JobSummary::from_processes(&processes)[0];
    assert_eq!(job.cpu_us_per_io, Some(5.0), "100 us for 20 of them");
    assert_eq!(job.syncs().map(|syncs| (syncs.ios, syncs.iops)), Some((10, 10.0)));
}
