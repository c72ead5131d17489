//! Comparisons by callers other than the command line.

use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use hoistway_answer::{Analysis, ResultsDocument};
use hoistway_blk::schedulers::{MQ_DEADLINE, Registry, Row};
use hoistway_experiment::{
    Alone, CallerEnvironment, Comparison, Controls, Devices, Ended, Field, Guests, Load, Plan, QueueWrite, RunObserver,
    Tunable, Unobserved,
};
use hoistway_legacy::all_schedulers;

const JOB: &str = "[global]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\nruntime=20ms\ntime_based\n\
    [a]\nrw=randread\niodepth=4\n[b]\nrw=write\nbs=64k\niodepth=8\n";

fn small() -> Comparison {
    Comparison {
        load: Load::text(JOB),
        devices: vec!["intel-s3520-1600gb".into()],
        schedulers: names(&["none", "mq-deadline"]),
        ..Comparison::default()
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn run(comparison: &Comparison) -> ResultsDocument {
    comparison.run(&Alone).unwrap_or_else(|error| panic!("{error}"))
}

fn labels(document: &ResultsDocument) -> Vec<&str> {
    document.runs.iter().map(|run| run.variant.label.as_str()).collect()
}

#[test]
fn a_comparison_without_a_clock_gives_the_same_document_each_time() {
    let comparison = Comparison { repeats: 2, ..small() };
    let document = run(&comparison);
    assert_eq!(document, run(&comparison));
    assert_eq!(document.without_wall_clock(), document, "nothing in it is from a clock");
    assert_eq!((document.seeds.len(), document.seeds[0]), (2, 1));
    assert_eq!(document.runs.iter().map(|run| run.seed).collect::<Vec<_>>()[2..], [document.seeds[1]; 2]);
    assert_eq!(labels(&document), ["none", "mq-deadline", "none", "mq-deadline"]);
}

#[test]
fn results_do_not_depend_on_how_many_run_at_once() {
    let comparison = Comparison { schedulers: Vec::new(), ..small() };
    let with = |threads| {
        let pool = rayon_core::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(&comparison))
    };
    assert_eq!(with(1), with(4));
}

#[test]
fn a_comparison_can_be_written_down_and_read_again() {
    let comparison = Comparison {
        devices: vec![Devices {
            common: Some("null".into()),
            files: [("/dev/sdb".to_owned(), "micron-9100-1600gb".into())].into(),
        }],
        kernels: names(&["4.19", "6.18"]),
        tunables: vec![Tunable { scheduler: "bfq".to_owned(), name: "slice_idle".to_owned(), text: "0".to_owned() }],
        writes: vec![QueueWrite { at_ns: 5, under: None, file: "scheduler".to_owned(), text: "bfq".to_owned() }],
        guests: Guests { weights: vec![("/dev/sda".to_owned(), 300)], ..Guests::default() },
        ..small()
    };
    let text = serde_json::to_string(&comparison).unwrap();
    assert_eq!(serde_json::from_str::<Comparison>(&text).unwrap(), comparison);
    assert_eq!(serde_json::from_str::<Comparison>("{}").unwrap(), Comparison::default());
    let error = serde_json::from_str::<Comparison>(r#"{"schedluers": []}"#).unwrap_err().to_string();
    assert!(error.contains("schedluers") && error.contains("schedulers"), "{error}");
    let file: Comparison = toml::from_str("load = { file = \"my.fio\" }\nkernels = [\"6.12\"]\n").unwrap();
    assert_eq!((file.load, file.kernels), (Load::File("my.fio".into()), names(&["6.12"])));
}

// --- several setups ---

#[test]
fn several_kernels_are_compared_in_one_document() {
    let both =
        Comparison { kernels: names(&["4.19", "6.18"]), baseline: Some("none kernel=6.18".to_owned()), ..small() };
    let document = run(&both);
    let four = ["none kernel=4.19", "mq-deadline kernel=4.19", "none kernel=6.18", "mq-deadline kernel=6.18"];
    assert_eq!(labels(&document), four);
    assert_eq!(document.setups.iter().map(|setup| setup.kernel.as_str()).collect::<Vec<_>>(), ["4.19", "6.18"]);
    assert_eq!(document.kernel, "4.19");
    assert_eq!(document.runs[2].variant.settings["kernel"], "6.18");
    assert!(document.runs.iter().all(|run| run.seed == 1), "all have the same load");
    // Several setups in one comparison give the same as one comparison each.
    for (place, kernel) in ["4.19", "6.18"].into_iter().enumerate() {
        let alone = run(&Comparison { kernels: names(&[kernel]), ..small() });
        assert!(alone.setups.is_empty(), "{kernel}");
        for (one, other) in alone.runs.iter().zip(&document.runs[2 * place..]) {
            assert_eq!((&one.scheduler, one.setup as usize), (&other.scheduler, 0));
            assert_eq!((&one.jobs, other.setup as usize), (&other.jobs, place));
        }
    }
    let results = Analysis::of(&document);
    assert_eq!(results.variants.iter().map(|variant| variant.label.as_str()).collect::<Vec<_>>(), four);
    assert_eq!(results.baseline, 2);
    assert_eq!(document.statistics.unwrap().baseline, "none kernel=6.18");
}

#[test]
fn several_devices_and_hosts_are_compared_in_one_document() {
    let document = run(&Comparison {
        schedulers: names(&["none"]),
        devices: vec!["null".into(), "intel-s3520-1600gb".into()],
        hosts: vec!["server".into(), "instant".into()],
        ..small()
    });
    assert_eq!(
        labels(&document),
        [
            "none device=null host=server",
            "none device=null host=instant",
            "none device=intel-s3520-1600gb host=server",
            "none device=intel-s3520-1600gb host=instant",
        ]
    );
    let last = &document.setups[document.runs[3].setup as usize];
    assert_eq!((&last.device["name"], &last.host["name"]), (&"intel-s3520-1600gb".into(), &"instant".into()));
    assert_eq!(Analysis::of(&document).variants.len(), 4);
}

#[test]
fn indistinguishable_variants_are_refused() {
    let twice = Comparison { kernels: names(&["6.18", "6.18"]), ..small() };
    let error = twice.run(&Alone).unwrap_err();
    assert!(error.message.contains(" kernel=6.18: duplicate variant name"), "{error}");
}

// --- repeats ---

#[test]
fn repeats_end_when_the_decision_is_sure_and_their_number_gives_the_same_again() {
    for seed in [1, 2] {
        let few = Comparison { seed, ..small() };
        let document = run(&Comparison { until_sure: true, repeats: 60, ..few.clone() });
        let repeats = document.seeds.len() as u32;
        assert!((3..60).contains(&repeats), "{repeats}");
        assert_eq!(document, run(&Comparison { repeats, ..few.clone() }));
        let pool = rayon_core::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let elsewhere = pool.install(|| run(&Comparison { until_sure: true, repeats: 60, ..few.clone() }));
        assert_eq!(document, elsewhere, "however many run side by side");
    }
}

// --- observers ---

/// Counts runs, advances its clock, and stops after the first repeat.
struct Impatient<'a> {
    controls: &'a Controls,
    seen: Mutex<Vec<String>>,
    looks: AtomicU32,
}

impl RunObserver for Impatient<'_> {
    fn seconds(&self) -> f64 {
        f64::from(self.looks.fetch_add(1, Ordering::Relaxed))
    }

    fn ended(&self, ended: &Ended<'_>) {
        assert!(ended.processes.iter().all(|process| process.log.is_some()));
        assert_eq!(ended.fio_output(true).jobs.len(), 2);
        self.seen.lock().unwrap().push(ended.label.to_owned());
        self.controls.cancel();
    }
}

#[test]
fn an_observer_sees_each_run_may_end_all_and_brings_the_clock() {
    let comparison = Comparison { logs: true, repeats: 3, ..small() };
    let plan = Plan::of(&comparison, &Alone).unwrap();
    assert_eq!((plan.run_count(), plan.expected_ns()), (6, Some(6 * 20_000_000)));
    let controls = plan.controls();
    let observer = Impatient { controls: &controls, seen: Mutex::default(), looks: AtomicU32::new(0) };
    let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let document = pool.install(|| plan.run(&controls, &observer)).unwrap();
    assert_eq!(observer.seen.into_inner().unwrap().len(), 1);
    assert!(document.partial && document.runs.len() == 1);
    assert_eq!((document.runs[0].wall_seconds, document.wall_seconds), (1.0, 3.0));
    assert!(controls.reached_ns() >= 20_000_000);
}

#[test]
fn events_are_written_to_any_writer() {
    let comparison = small();
    let plan = Plan::of(&comparison, &Alone).unwrap();
    let (document, bytes) = plan.traced(Vec::new(), &plan.controls(), &Unobserved).unwrap();
    assert_eq!(document, run(&comparison), "tracing changes nothing");
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.starts_with("{\"format\":\"hoistway-trace/1\"") && text.lines().count() > 100);
    let two = Comparison { kernels: names(&["4.19", "6.18"]), ..small() };
    let plan = Plan::of(&two, &Alone).unwrap();
    let error = plan.traced(Vec::new(), &plan.controls(), &Unobserved).unwrap_err().to_string();
    assert!(error.contains("`kernels`") && error.contains("one kernel"), "{error}");
}

// --- environment ---

/// An environment with one file, one variable, and its own names of fields.
struct Notebook;

impl CallerEnvironment for Notebook {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match path.to_str() {
            Some("my.fio") => {
                Ok(b"[a]\nfilename=/dev/sda\ndirect=1\nrw=randread\nruntime=${TIME}\ntime_based\n".to_vec())
            }
            _ => Err(io::Error::other("not in this notebook")),
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        (name == "TIME").then(|| "10ms".to_owned())
    }

    fn name(&self, field: Field) -> String {
        format!("compare({}=...)", field.name())
    }
}

#[test]
fn the_environment_reads_the_files_named_by_a_comparison() {
    let load = Load::File("my.fio".into());
    let comparison = Comparison { load: load.clone(), ..small() };
    let document = comparison.run(&Notebook).unwrap();
    assert_eq!(document.job_file, "my.fio");
    assert!((document.runs[0].simulated_seconds - 0.01).abs() < 0.005);
    let error = comparison.run(&Alone).unwrap_err();
    assert_eq!((error.field, error.message.starts_with("my.fio: cannot be read")), (Field::Load, true), "{error}");
    let error = Comparison { hosts: vec!["gone.toml".into()], ..comparison }.run(&Notebook).unwrap_err();
    let shown = "gone.toml: cannot be read (expected a host profile in TOML): not in this notebook";
    assert_eq!((error.field, error.message.as_str()), (Field::Hosts, shown));
    let error = Comparison { baseline: Some("cfq".to_owned()), load, ..small() }.run(&Notebook).unwrap_err();
    assert!(error.message.starts_with("compare(baseline=...) cfq: not among"), "{error}");
}

/// The schedulers of Linux and one more: mq-deadline under another name.
struct Workshop;

impl CallerEnvironment for Workshop {
    fn schedulers(&self) -> Registry {
        all_schedulers().with(&[Row { name: "mine", ..MQ_DEADLINE }])
    }
}

#[test]
fn a_custom_scheduler_is_compared_with_the_others_on_hosts_and_in_guests() {
    let wanted = names(&["mine", "mq-deadline", "none"]);
    let tunables = ["mine", "mq-deadline"].map(|scheduler| Tunable {
        scheduler: scheduler.to_owned(),
        name: "fifo_batch".to_owned(),
        text: "1".to_owned(),
    });
    let comparison = Comparison { schedulers: wanted.clone(), tunables: tunables.to_vec(), ..small() };
    let document = comparison.run(&Workshop).unwrap();
    let [mine, theirs, none] = &document.runs[..] else { panic!("{:?}", labels(&document)) };
    assert_eq!((&mine.scheduler[..], &mine.jobs), ("mine", &theirs.jobs));
    assert_ne!(mine.jobs, none.jobs);
    let all = Comparison { schedulers: Vec::new(), ..small() };
    assert_eq!(Plan::of(&all, &Workshop).unwrap().run_count(), 5);
    let guests = Guests { schedulers: wanted, ..Guests::default() };
    let document = Comparison { guests, ..small() }.run(&Workshop).unwrap();
    assert_eq!(labels(&document)[..2], ["mine-over-none", "mq-deadline-over-none"]);
    assert_eq!(document.runs[0].jobs, document.runs[1].jobs);
    let error = comparison.run(&Alone).unwrap_err();
    assert_eq!((error.field, error.message.contains("mine: unknown scheduler")), (Field::Schedulers, true), "{error}");
}

#[test]
fn every_bundled_load_runs_and_has_the_figure_that_it_is_about() {
    for name in hoistway_experiment::scenarios::names() {
        let page = hoistway_experiment::scenarios::named(name).unwrap().page;
        let document = run(&Comparison {
            load: Load::Scenario(name.to_owned()),
            schedulers: names(&["none"]),
            guests: Guests { schedulers: page.guest_schedulers.iter().take(1).cloned().collect(), ..Guests::default() },
            runtime_ns: Some(200_000_000),
            ramp_ns: Some(0),
            ..Comparison::default()
        });
        assert_eq!(document.focus.as_ref(), Some(&page.focus), "{name}");
        assert!(Analysis::of(&document).figure(&page.focus).unwrap()[0].1.mean > 0.0, "{name}");
    }
}

#[test]
fn the_loads_of_published_schedulers_run_under_every_scheduler() {
    let loads =
        ["deep-neighbour", "fua-writer", "priority-shares", "collection-deadline", "real-time-read", "l-and-t-apps"];
    for load in loads {
        let document = run(&Comparison {
            load: Load::Scenario(load.to_owned()),
            schedulers: names(&["all", "research", "shipping"]),
            runtime_ns: Some(20_000_000),
            ramp_ns: Some(0),
            ..Comparison::default()
        });
        let [all, outside] =
            [&["none", "mq-deadline", "kyber", "bfq"][..], &["k2", "mqfq", "tabs", "vfair", "cffq", "adios"]];
        for scheduler in all.iter().chain(outside) {
            let run = document.runs.iter().find(|run| run.scheduler == *scheduler);
            assert!(run.is_some_and(|run| run.simulated_ios > 100), "{load} under {scheduler}");
        }
    }
}

#[test]
fn research_selects_schedulers_outside_linux_and_default_and_all_do_not() {
    let of = |schedulers: &[&str]| {
        let comparison = Comparison { schedulers: names(schedulers), repeats: 1, ..small() };
        labels(&run(&comparison)).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        of(&["research"]),
        ["k2", "mqfq", "tabs", "vfair", "cffq"],
        "the device has no weighted round robin for d2fq"
    );
    assert_eq!(of(&["shipping"]), ["adios"]);
    assert_eq!(of(&["none", "research", "k2"]), ["none", "k2", "mqfq", "tabs", "vfair", "cffq"]);
    let (default, all) = (of(&[]), of(&["all"]));
    for outside in ["k2", "adios", "mqfq", "tabs", "vfair", "cffq"].map(str::to_owned) {
        assert!(!default.contains(&outside) && !all.contains(&outside), "{default:?} {all:?}");
    }
    assert_eq!(
        of(&["all", "research", "shipping"]),
        [all, names(&["k2", "mqfq", "tabs", "vfair", "cffq", "adios"])].concat()
    );
    let refused = |schedulers: &[&str], kernel: &str| {
        let comparison = Comparison { schedulers: names(schedulers), kernels: names(&[kernel]), ..small() };
        comparison.run(&Alone).unwrap_err().to_string()
    };
    let error = refused(&["all", "reseach"], "6.18");
    assert!(error.contains("did you mean \"research\"?"), "{error}");
    let error = refused(&["k2"], "4.4");
    assert!(error.contains("4.11 or later"), "{error}");
    let error = refused(&["blk-switch"], "6.18");
    let expected = "no transport with a worker and two hardware queues for each CPU (expected a device that has it, such as nvme-over-tcp)";
    assert!(error.contains(expected), "{error}");
    let behind = |cpus: u16, devices: &[&str]| Comparison {
        schedulers: names(&["blk-switch"]),
        devices: devices.iter().map(|&device| device.into()).collect(),
        cpus: Some(cpus),
        repeats: 1,
        ..small()
    };
    let error = behind(1, &["nvme-over-tcp"]).run(&Alone).unwrap_err().to_string();
    assert!(error.contains("there is only one CPU, so that nothing can move (expected at least two)"), "{error}");
    assert_eq!(labels(&run(&behind(2, &["nvme-over-tcp"]))), ["blk-switch"]);
    let error = refused(&["d2fq"], "6.18");
    let expected = "no weighted round robin between at least three hardware queues (expected a device that has it, such as nvme-wrr)";
    assert!(error.contains(expected), "{error}");
    let in_guests = |device: &str, expected: &str| {
        let guests = Guests { schedulers: names(&["blk-switch"]), ..Guests::default() };
        let devices = vec![device.into()];
        let comparison = Comparison { guests, devices, schedulers: names(&["none"]), cpus: Some(2), ..small() };
        let error = comparison.run(&Alone).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    in_guests("nvme", "no transport with a worker and two hardware queues for each CPU");
    in_guests("nvme-over-tcp", "is behind a transport, whose workers need the host's CPUs (expected another device)");
}

#[test]
fn an_invalid_bound_is_refused_with_the_valid_range() {
    for text in ["0", "-1", "65536", "few", ""] {
        let tunables = vec![Tunable { scheduler: "k2".into(), name: "max_inflight".into(), text: text.into() }];
        let comparison = Comparison { schedulers: names(&["k2"]), tunables, ..small() };
        let error = comparison.run(&Alone).unwrap_err().to_string();
        assert!(error.contains("max_inflight") && error.contains("expected 1 to 65535 (requests)"), "{error}");
    }
}
