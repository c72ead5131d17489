//! Loads in real time over memory: who runs when, and what is counted.

use std::sync::Arc;

use hoistway_engine::{Config, Engine, Memory};
use hoistway_fio::{Environment, JobFile};
use hoistway_measure::ProcessResult;
use hoistway_run::{Board, Settings, check, run};

fn load(text: &str) -> hoistway_load::Load {
    JobFile::parse(text, "test.fio", &Environment::empty()).unwrap().load
}

fn results(text: &str) -> Vec<ProcessResult> {
    let config = Config { workers: 2, scheduler: "mq-deadline".into(), ..Config::default() };
    let engine = Engine::start(&config, Memory::new(16 << 20)).unwrap();
    let load = load(text);
    run(&engine, &load, &Settings::default(), &Arc::new(Board::new(&load))).unwrap()
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
    // Batches of 4 are under way one by one, or several if memory is slow to answer, but never more than 16 I/Os.
    let levels = results[0].depth_levels.counts();
    assert_eq!(levels[2..5].iter().sum::<u64>(), 256, "{levels:?}");
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
fn what_cannot_be_done_is_refused_by_name() {
    let refused = |text: &str| check(&load(text)).unwrap_err().to_string();
    assert!(refused("[a]\nfilename=/dev/sda\n").starts_with("a: I/O through the page cache"));
    assert!(refused(&format!("{HEAD}[a]\nserialize_overlap=1\n")).starts_with("a: serialize_overlap"));
    let two = "[a]\ndirect=1\nfilename=/dev/sda\n[b]\ndirect=1\nfilename=/dev/sdb\n";
    assert!(refused(two).starts_with("/dev/sda, /dev/sdb: several files"));
}

#[test]
fn a_run_that_is_cancelled_answers_what_it_has() {
    let config = Config::default();
    let engine = Engine::start(&config, Memory::new(1 << 20)).unwrap();
    let load = load(&format!("{HEAD}[a]\nrw=randread\ntime_based\nruntime=1h\n[b]\nstonewall\n"));
    let board = Arc::new(Board::new(&load));
    let canceller = Arc::clone(&board);
    let watcher = std::thread::spawn(move || {
        while canceller.ios() < 100 {
            std::thread::yield_now();
        }
        canceller.cancel();
    });
    let results = run(&engine, &load, &Settings::default(), &board).unwrap();
    watcher.join().unwrap();
    assert!(results[0].total_ios() >= 100);
    assert_eq!(results[1].total_ios(), 0);
}
