//! Every recording in the repository reads, whole and without a line that the reader does not understand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use hoistway_blk::bio::Op;
use hoistway_blk::ground::HctxId;
use hoistway_trace::iosched::{Clock, EventKind, InsertedBy, Mark, Trace};

/// The recordings of the repository.
pub(crate) const RECORDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../evidence/traces");

/// All recordings, in a fixed order.
fn recordings() -> Vec<PathBuf> {
    let list = |dir: &Path| -> Vec<PathBuf> {
        let mut paths: Vec<_> =
            std::fs::read_dir(dir).expect("recordings").map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let folders = list(Path::new(RECORDINGS)).into_iter().filter(|path| path.is_dir());
    folders.flat_map(|folder| list(&folder)).filter(|path| path.to_string_lossy().ends_with(".jsonl.gz")).collect()
}

fn open(name: &str) -> Trace {
    Trace::open(format!("{RECORDINGS}/{name}.jsonl.gz")).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_recording_reads_completely_and_without_unknown_events() {
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let mut files = 0;
    for path in recordings() {
        let trace = Trace::open(&path).unwrap_or_else(|error| panic!("{error}"));
        assert!(path.ends_with(format!("{}.jsonl.gz", trace.header.name)), "{}", path.display());
        assert_eq!(trace.events.len() as u64, trace.header.events, "{}", path.display());
        for (index, event) in trace.events.iter().enumerate() {
            let unknown = matches!(event.kind, EventKind::Unknown(_));
            assert!(!unknown, "{}, line {}: {:?}", path.display(), event.line, event.kind);
            assert_eq!(event.line, index as u64 + 2);
            *kinds.entry(event.kind.name().to_owned()).or_default() += 1;
        }
        files += 1;
    }
    assert!(files >= 230, "only {files} recordings");
    // The recordings as a whole exercise every kind that the reader knows.
    let all = [
        "backmerge",
        "bfq",
        "bfq_idle_timer",
        "complete",
        "dispatch",
        "exit",
        "finish",
        "free",
        "frontmerge",
        "getrq",
        "insert",
        "issue",
        "kyber_adjust",
        "kyber_latency",
        "kyber_throttled",
        "mark",
        "msg",
        "plug",
        "queue",
        "requeue",
        "rqmerge",
        "run",
        "runend",
        "sample",
        "sleeprq",
        "split",
        "unplug",
    ];
    assert_eq!(kinds.keys().map(String::as_str).collect::<Vec<_>>(), all);
}

#[test]
fn a_multi_queue_header_lists_queue_tunables_and_processes() {
    let header = open("bfq/bfq-2hwq").header;
    assert_eq!((header.scheduler.as_str(), header.clock, header.cpus, header.hz.0), ("bfq", Clock::Icount, 2, 250));
    assert!(header.kernel.starts_with("Linux 6.18.15"));
    assert_eq!((header.tunables["slice_idle_us"], header.tunables["low_latency"]), (8000, 1));
    let queue = &header.queue;
    assert_eq!((queue.nr_hw_queues, queue.queue_depth, queue.nr_requests), (2, 2, 64));
    assert!(!queue.rotational && !queue.write_cache && !queue.fua && !queue.shared_tags);
    assert_eq!(header.processes.len(), 4);
    assert_eq!((header.processes[0].pid, header.processes[0].comm.as_str()), (441, "p0"));
    assert_eq!(header.processes[0].effective_ioprio(), hoistway_blk::bio::IoPriority::DEFAULT);
}

#[test]
fn a_legacy_header_has_one_hardware_queue_and_the_devices_depth() {
    let header = open("deadline/batch1").header;
    assert_eq!((header.queue.nr_hw_queues, header.queue.queue_depth, header.queue.nr_requests), (1, 1, 128));
    assert!(header.queue.rotational);
    assert_eq!((header.jiffy_edge_ns, header.truncated), (Some(3_717_600), false));
    assert_eq!(header.device["model"], "hdd");
    assert!(open("noop/deep-ssd").header.truncated);
}

#[test]
fn cgroups_form_a_tree_in_which_every_process_has_a_place() {
    let mut nested = 0;
    for path in recordings() {
        let header = Trace::open(&path).unwrap_or_else(|error| panic!("{error}")).header;
        for process in &header.processes {
            let group = &header.cgroups[process.cgroup.index()];
            assert_eq!(process.weight, group.weight, "{}: {}", path.display(), process.comm);
        }
        for group in &header.cgroups[1..] {
            let parent = &header.cgroups[group.parent.expect("only the root has no parent").index()];
            assert!(group.path.starts_with(&parent.path) && group.weight.is_some());
            nested += usize::from(parent.parent.is_some());
        }
    }
    assert!(nested >= 4, "no nested groups: {nested}");
}

#[test]
fn decisions_name_a_request_that_was_inserted_into_the_scheduler() {
    for name in ["mq-deadline/dd-merge", "kyber/ky-2hwq", "bfq/bfq-2hwq", "cfq/async-prio", "deadline/batch1"] {
        let trace = match recordings().iter().find(|path| path.to_string_lossy().contains(name)) {
            Some(path) => Trace::open(path).unwrap_or_else(|error| panic!("{error}")),
            None => panic!("no recording {name}"),
        };
        let (mut inside, mut decisions) = (BTreeSet::new(), 0);
        for event in &trace.events {
            match &event.kind {
                EventKind::Insert(insert) if insert.by == InsertedBy::Scheduler => {
                    assert!(insert.io.j.is_some());
                    inside.insert(insert.rq);
                }
                EventKind::Dispatch(dispatch) => {
                    assert!(dispatch.called_at <= event.t && dispatch.hctx <= HctxId(1));
                    let known = dispatch.chosen.is_none_or(|chosen| inside.remove(&chosen.rq));
                    assert!(known, "{name}, line {}", event.line);
                    decisions += 1;
                }
                _ => {}
            }
        }
        assert!(decisions > 50, "{name}: {decisions} decisions");
    }
}

#[test]
fn marks_of_a_scheduler_change_and_of_a_tunable_write_are_understood() {
    let marks = |name: &str| -> Vec<Mark> {
        let events = open(name).events.into_iter();
        events.filter_map(|event| if let EventKind::Mark(mark) = event.kind { Some(mark) } else { None }).collect()
    };
    let switches = marks("switch/switch-dd-bfq-kyber-none");
    assert_eq!(switches.len(), 8);
    assert_eq!(switches[..2], [Mark::SwitchBegin("bfq".into()), Mark::SwitchEnd("bfq".into())]);
    let writes = marks("mq-deadline/dd-tunables-live");
    assert_eq!(writes[0], Mark::Tunable { name: "fifo_batch".into(), value: "2".into() });
}

#[test]
fn a_flush_command_never_enters_a_scheduler() {
    let trace = open("kyber/ky-flush");
    assert!(trace.header.queue.write_cache && trace.header.queue.fua);
    let mut flushes = 0;
    for event in &trace.events {
        match &event.kind {
            EventKind::Insert(insert) => assert_ne!(insert.io.op, Op::Flush),
            EventKind::Issue(issue) if issue.io.op == Op::Flush => {
                assert!(issue.io.flushseq && issue.bio.is_none());
                flushes += 1;
            }
            _ => {}
        }
    }
    assert!(flushes > 50);
}
