//! Loads in real time: which processes run when, what holds I/O back, and what is counted.

use std::sync::Arc;

use hoistway_blk::bio::{IoPriority, PriorityClass};
use hoistway_device::Preset;
use hoistway_engine::job::{JobSettings, LoadRun, check, run};
use hoistway_engine::{Backend, Config, Engine, Memory, Simulated};
use hoistway_fio::{Environment, JobFile};
use hoistway_measure::ProcessResult;

fn load(text: &str) -> hoistway_load::Load {
    JobFile::parse(text, "test.fio", &Environment::empty()).unwrap().load
}

fn results(text: &str) -> Vec<ProcessResult> {
    let config = Config { workers: 2, scheduler: "mq-deadline".into(), ..Config::default() };
    results_on(Memory::new(16 << 20), config, text)
}

fn results_on(target: impl Backend + 'static, config: Config, text: &str) -> Vec<ProcessResult> {
    results_of(&Engine::start(&config, target).unwrap(), text)
}

fn results_of(engine: &Engine, text: &str) -> Vec<ProcessResult> {
    let load = load(text);
    run(engine, &load, &JobSettings::default(), &Arc::new(LoadRun::new(&load))).unwrap()
}

const HEAD: &str = "[global]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\n";

#[test]
fn every_block_of_a_region_is_visited_once_by_each_process() {
    let jobs =
        "[r]\nrw=randread\nbs=4k\nsize=4m\niodepth=16\niodepth_batch=4\nnumjobs=3\n[w]\nrw=write\nbs=64k\nsize=8m\n";
    let results = results(&(HEAD.to_owned() + jobs));
    let ios: Vec<_> = results.iter().map(|result| (result.total_ios(), result.error)).collect();
    assert_eq!(ios, [(1024, 0), (1024, 0), (1024, 0), (128, 0)]);
    assert_eq!(results[3].directions[1].bytes, 8 << 20);
    // Calls submit up to 4, and never go beyond 16 in flight.
    let levels = results[0].depth_levels.counts();
    assert_eq!(levels[5..].iter().sum::<u64>(), 0, "{levels:?}");
    assert!((256..=1024).contains(&levels.iter().sum::<u64>()), "{levels:?}");
}

#[test]
fn a_rate_and_a_run_time_are_kept() {
    let jobs = "[r]\nrw=randread\nbs=4k\nrate_iops=1000\nruntime=300ms\ntime_based\n";
    let result = &results(&(HEAD.to_owned() + jobs))[0];
    // How many there are is the machine's matter; no more than that is ours.
    assert!((1..=302).contains(&result.total_ios()), "{} I/Os in 0.3 s of 1000 a second", result.total_ios());
    assert!(result.runtime_ns >= 290_000_000, "{} ns", result.runtime_ns);
}

#[test]
fn phases_follow_each_other_and_the_first_to_end_takes_the_others_along() {
    let jobs = "[one]\nrw=read\nbs=4k\nsize=1m\n[two]\nstonewall\nrw=randread\nbs=4k\ntime_based\nruntime=1h\n\
                [three]\nrw=write\nbs=4k\nsize=4m\nexitall\nfsync=64\nend_fsync=1\n";
    let results = results(&(HEAD.to_owned() + jobs));
    assert_eq!((results[0].total_ios(), results[2].total_ios()), (256, 1024));
    assert_eq!(results[2].sync.total_ios, 15, "the last one is that of its end, which is not measured");
    assert!(results[1].total_ios() > 0 && results[1].runtime_ns < 60_000_000_000);
}

#[test]
fn unsupported_job_options_are_refused_by_name() {
    let refused = |text: &str| check(&load(text)).unwrap_err().to_string();
    assert!(refused("[a]\nfilename=/dev/sda\n").starts_with("a: I/O through the page cache"));
    assert!(
        refused(&format!("{HEAD}[a]\nrw=write\nsize=1m\nverify=crc32c\n"))
            .starts_with("a: verify: a run does not compare")
    );
    assert!(refused(&format!("{HEAD}[a]\nioengine=io_uring\nhipri\n")).starts_with("a: hipri: the rings of a run"));
    let two = "[a]\ndirect=1\nfilename=/dev/sda\n[b]\ndirect=1\nfilename=/dev/sdb\n";
    assert!(refused(two).starts_with("/dev/sda, /dev/sdb: several files"));
}

#[test]
fn a_cancelled_run_returns_its_partial_results() {
    let config = Config::default();
    let engine = Engine::start(&config, Memory::new(1 << 20)).unwrap();
    let load = load(&format!("{HEAD}[a]\nrw=randread\ntime_based\nruntime=1h\n[b]\nstonewall\n"));
    let shared = Arc::new(LoadRun::new(&load));
    let cancel_handle = Arc::clone(&shared);
    let watcher = std::thread::spawn(move || {
        while cancel_handle.ios() < 100 {
            std::thread::yield_now();
        }
        cancel_handle.cancel();
    });
    let results = run(&engine, &load, &JobSettings::default(), &shared).unwrap();
    watcher.join().unwrap();
    assert!(results[0].total_ios() >= 100);
    assert_eq!(results[1].total_ios(), 0);
}

#[test]
fn a_search_finds_a_depth_and_ends() {
    let jobs = "[s]\nrw=randread\nbs=4k\niodepth=8\ntime_based\nruntime=20\n\
                latency_target=1s\nlatency_window=5ms\nlatency_percentile=50\n";
    let result = &results(&(HEAD.to_owned() + jobs))[0];
    let search = result.latency_search.as_ref().unwrap();
    assert_eq!((search.depth, search.target_ns, search.percentile), (8, 1_000_000_000, 50.0));
    assert!(result.total_ios() > 0 && result.runtime_ns < 10_000_000_000, "{} ns", result.runtime_ns);
}

#[test]
fn processes_of_a_flow_keep_their_proportions() {
    let jobs = "[a]\nrw=randread\nflow=3\nnumber_ios=300\niodepth=4\nexitall\n\
                [b]\nrw=randread\nflow=1\ntime_based\nruntime=1m\n";
    let results = results(&(HEAD.to_owned() + jobs));
    let ios = [results[0].total_ios(), results[1].total_ios()];
    // The last one may be in flight when the first process leaves the balance.
    assert!(ios[0] == 300 && (98..=103).contains(&ios[1]), "{ios:?}");
}

#[test]
fn results_that_are_steady_end_a_process() {
    let jobs =
        "[s]\nrw=randread\nrate_iops=100\ntime_based\nruntime=60\nsteadystate=iops:50%\nsteadystate_duration=1\n";
    let result = &results(&(HEAD.to_owned() + jobs))[0];
    let steady = result.steady_state.as_ref().unwrap();
    assert_eq!((steady.attained, steady.duration), (1, 1));
    assert!((1_000_000_000..30_000_000_000).contains(&result.runtime_ns), "{} ns", result.runtime_ns);
}

#[test]
fn a_process_that_spins_keeps_its_cpu_busy_beside_others() {
    let jobs = "[spins]\nrw=randread\nnumber_ios=20\nthinktime=3ms\nthinktime_spin=2ms\n\
                [others]\nrw=randread\nnumber_ios=200\nnumjobs=3\n";
    let results = results(&(HEAD.to_owned() + jobs));
    let ios: Vec<u64> = results.iter().map(ProcessResult::total_ios).collect();
    assert_eq!(ios, [20, 200, 200, 200]);
    assert!(results[0].cpu.user_ns >= 19 * 2_000_000 && results[1].cpu.user_ns == 0, "{} ns", results[0].cpu.user_ns);
    assert!(results[0].runtime_ns >= 19 * 3_000_000, "{} ns", results[0].runtime_ns);
}

#[test]
fn ios_with_a_priority_of_their_own_overtake_others() {
    let jobs = "[p]\nrw=randread\nnumber_ios=600\niodepth=32\ncmdprio_percentage=30\n";
    let target = Simulated::new(Preset::builtin("micron-9100-1600gb").unwrap().build(1)).discarding_data();
    let config = Config { scheduler: "mq-deadline".into(), queue_depth: Some(1), ..Config::default() };
    let engine = Engine::start(&config, target).unwrap();
    // A depth of one gives two requests: the scheduler would hardly ever have a choice.
    engine.set_attribute("nr_requests", "64").unwrap();
    let result = &results_of(&engine, &(HEAD.to_owned() + jobs))[0];
    let by_priority = &result.directions[0].prios;
    let latencies = |is_meant: &dyn Fn(u16) -> bool| &by_priority.iter().find(|row| is_meant(row.ioprio)).unwrap().lat;
    let real_time = IoPriority::new(PriorityClass::RealTime, 0).0;
    let (urgent, others) = (latencies(&|ioprio| ioprio == real_time), latencies(&|ioprio| ioprio != real_time));
    assert!(by_priority.len() == 2 && urgent.count() + others.count() == 600 && urgent.count() > 100);
    assert!(4.0 * urgent.mean() < others.mean(), "{} and {} ns", urgent.mean(), others.mean());
}

#[test]
fn an_io_that_overlaps_another_waits_for_it() {
    // Each write overlaps the one before: however deep the queue, one is in flight.
    let jobs = "[o]\nrw=write\nbs=8k\nsize=8k\nloops=100\niodepth=8\nserialize_overlap=1\n";
    let result = &results(&(HEAD.to_owned() + jobs))[0];
    assert_eq!((result.total_ios(), result.depth_levels.counts()[0]), (100, 100));
}

#[test]
fn statistics_count_the_work_of_all_workers() {
    let jobs =
        "[r]\nrw=randread\nbs=8k\nnumber_ios=300\niodepth=16\nnumjobs=3\n[w]\nrw=write\nbs=4k\nsize=400k\nfsync=10\n";
    let text = HEAD.to_owned() + jobs;
    for (scheduler, workers) in [("none", 1), ("none", 4), ("mq-deadline", 3), ("bfq", 2), ("kyber", 2)] {
        let target = Simulated::new(Preset::builtin("micron-9100-1600gb").unwrap().build(1)).discarding_data();
        let config = Config {
            workers,
            scheduler: scheduler.into(),
            queue_depth: Some(2),
            keeps_statistics: true,
            ..Config::default()
        };
        let engine = Engine::start(&config, target).unwrap();
        if scheduler != "none" {
            engine.set_attribute("nr_requests", "64").unwrap();
        }
        let begin = engine.now();
        results_of(&engine, &text);
        let passed = engine.now().since(begin);
        let disk = engine.disk_summary("disk", passed).unwrap();
        let what = format!("{scheduler}, {workers} workers: {disk:?}");
        assert_eq!((disk.read_ios, disk.read_merges), (900, 0), "{what}");
        assert!((100..=110).contains(&disk.write_ios), "flushes may count as writes of no sectors: {what}");
        let fields: Vec<u64> = disk.stat.split(' ').map(|field| field.parse().unwrap()).collect();
        assert_eq!((fields.len(), fields[2], fields[6], fields[8]), (17, 900 * 16, 100 * 8, 0), "{what}");
        assert!(disk.read_ms > 0 && disk.in_queue_ms >= disk.read_ms + disk.write_ms, "{what}");
        assert!(disk.util_percent > 0.0 && disk.util_percent <= 100.0, "{what}");
        // kyber limits each kind for itself and holds hardly anything back here.
        assert!(["none", "kyber"].contains(&scheduler) || disk.choices.unwrap() > 100, "{what}");
    }
    let engine = Engine::start(&Config::default(), Memory::new(1 << 20)).unwrap();
    assert!(
        engine.disk_summary("disk", engine.now().since(hoistway_blk::ground::Instant::ZERO)).is_none(),
        "they were not asked for"
    );
}
