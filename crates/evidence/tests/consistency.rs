//! Small recordings with contradictions: each gives one error, with the line and what was expected there.

use hoistway_evidence::conform::{Consistent, NotReplayed, ReplayOutcome, replay};
use hoistway_trace::iosched::Trace;

/// A recording of a scheduler with these events, one every 100 us.
fn recording(scheduler: &str, events: &[String]) -> Trace {
    let queue = r#""nr_hw_queues":2,"queue_depth":4,"nr_requests":64,"nomerges":0,"rotational":0,"max_sectors_kb":1280,
        "max_segments":128,"rq_affinity":1,"write_cache":"write through","fua":0"#;
    let header = format!(
        r#"{{"format":"iosched-trace/1","name":"small","kernel":"Linux 6.18","scheduler":"{scheduler}","tunables":{{}},
        "queue":{{{queue}}},"device":{{}},"cpus":2,"hz":250,"clock":"virtual","processes":[],"events":{}}}"#,
        events.len()
    );
    let mut text = header.replace('\n', " ") + "\n";
    for (event, t) in events.iter().zip((0..).step_by(100_000)) {
        text += &event.replace("NOW", &t.to_string());
        text += "\n";
    }
    Trace::read(text.as_bytes(), "small.jsonl").unwrap_or_else(|error| panic!("{error}"))
}

/// An event of request `rq`, a write of 8 sectors. The number is also that of its bio, and determines its position.
fn event(kind: &str, rq: u32, more: &str) -> String {
    let sector = 1000 * rq;
    format!(
        r#"{{"t":NOW,"e":"{kind}","cpu":0,"pid":7,"rq":{rq},"bio":{rq},"op":"W","rwbs":"W","sector":{sector},"n":8,
        "prio":[0,0],"hctx":0,"ctx":0,"tag":-1,"stag":1,"j":0,"asked":NOW{more}}}"#
    )
    .replace('\n', " ")
}

fn insert(rq: u32) -> String {
    event("insert", rq, r#","by":"sched""#)
}

fn score(scheduler: &str, events: &[String]) -> Result<ReplayOutcome, String> {
    replay(&recording(scheduler, events)).map_err(|refused| match refused {
        NotReplayed::Inconsistent(inconsistency) => inconsistency.to_string(),
        other @ NotReplayed::Unsupported { .. } => panic!("{other}"),
    })
}

/// Both block layers, and all kinds of replay.
const SCHEDULERS: [&str; 5] = ["mq-deadline", "kyber", "bfq", "deadline", "cfq"];

#[test]
fn a_request_is_inserted_once() {
    for scheduler in SCHEDULERS {
        let expected = "expected a request that is new or was requeued, found one that was";
        let twice = score(scheduler, &[insert(1), insert(1)]).unwrap_err();
        assert_eq!(twice, format!("line 3: insert of request 1: {expected} inserted on line 2"), "{scheduler}");
        let after = score(scheduler, &[insert(1), event("dispatch", 1, ""), insert(1)]).unwrap_err();
        assert_eq!(after, format!("line 4: insert of request 1: {expected} dispatched or issued on line 3"));
    }
}

#[test]
fn a_request_that_the_driver_gave_back_may_come_in_again() {
    for scheduler in ["mq-deadline", "kyber", "bfq"] {
        let given_out = |token: u32| event("dispatch", 1, &format!(r#","token":{token}"#));
        let again = [insert(1), given_out(0), event("issue", 1, ""), event("requeue", 1, ""), insert(1), given_out(1)];
        let end = [event("finish", 1, ""), event("free", 1, "")];
        let score = score(scheduler, &[&again[..], &end[..]].concat()).unwrap().score;
        assert_eq!((score.questions, score.all), (2, 2), "{scheduler}");
    }
}

#[test]
fn a_request_that_is_given_out_was_inside() {
    for scheduler in SCHEDULERS {
        let expected = "dispatch of request 1: expected a request that is inside, found one that was";
        let never = score(scheduler, &[event("dispatch", 1, "")]).unwrap_err();
        assert_eq!(never, format!("line 2: {expected} never inserted"), "{scheduler}");
        let given_out = event("dispatch", 1, "");
        let twice = score(scheduler, &[insert(1), given_out.clone(), given_out]).unwrap_err();
        assert_eq!(twice, format!("line 4: {expected} dispatched or issued on line 3"), "{scheduler}");
    }
}

#[test]
fn an_insertion_lost_while_recording_is_not_a_contradiction() {
    let mut trace = recording("mq-deadline", &[event("dispatch", 1, "")]);
    trace.header.dropped = 1;
    assert!(Consistent::check(&trace).is_ok());
}

#[test]
fn a_request_absorbs_another_one_that_is_inside_and_of_its_kind() {
    let absorb = |more: &str| event("rqmerge", 1, &format!(r#","from_sector":8,"from_n":8{more}"#));
    for scheduler in ["deadline", "cfq"] {
        let itself = score(scheduler, &[insert(1), absorb(r#","absorbed":1"#)]).unwrap_err();
        assert_eq!(itself, "line 3: rqmerge: expected two requests, found request 1 twice");
        let gone = [insert(1), insert(2), event("dispatch", 2, ""), absorb(r#","absorbed":2"#)];
        let gone = score(scheduler, &gone).unwrap_err();
        assert!(gone.starts_with("line 5: rqmerge of request 2: expected a request that is inside or on"), "{gone}");
        let read = insert(2).replace("\"W\"", "\"R\"");
        let kinds = [insert(1), read, absorb(r#","absorbed":2"#)];
        let kinds = score(scheduler, &kinds).unwrap_err();
        assert_eq!(kinds, "line 4: rqmerge: expected two requests of one operation, found Write and Read");
        let survivor = [insert(2), absorb(r#","absorbed":2"#)];
        let survivor = score(scheduler, &survivor).unwrap_err();
        assert!(survivor.starts_with("line 3: rqmerge of request 1: expected a request that is inside"), "{survivor}");
    }
    for scheduler in ["mq-deadline", "bfq"] {
        let twice = score(scheduler, &[insert(1), event("rqmerge", 1, ""), event("rqmerge", 1, "")]).unwrap_err();
        assert!(twice.ends_with("on its way in, found one that was absorbed by another on line 3"), "{twice}");
    }
}

#[test]
fn a_request_grows_no_longer_than_a_kernel_can_count() {
    let grow = event("backmerge", 1, "").replace("\"n\":8,", "\"n\":8388600,");
    for scheduler in SCHEDULERS {
        let long = score(scheduler, &[insert(1), grow.clone()]).unwrap_err();
        assert_eq!(long, "line 3: merge into request 1: expected at most 8388607 sectors, found 8388608");
    }
}

#[test]
fn kyber_depth_adjustments_outside_the_range_are_refused() {
    let adjust =
        |depth: u64| format!(r#"{{"t":NOW,"e":"kyber_adjust","cpu":0,"pid":0,"domain":"WRITE","depth":{depth}}}"#);
    assert!(score("kyber", &[adjust(128)]).is_ok());
    for depth in [0, 129, u64::from(u32::MAX)] {
        let refused = score("kyber", &[adjust(depth)]).unwrap_err();
        assert_eq!(refused, format!("line 2: kyber_adjust: expected a depth of 1 to 128, found {depth}"));
    }
}

#[test]
fn a_request_completes_in_cfq_after_it_was_given_out() {
    let allocated = event("getrq", 1, "");
    let refused = score("cfq", &[allocated.clone(), insert(1), event("complete", 1, "")]).unwrap_err();
    assert_eq!(
        refused,
        "line 4: complete of request 1: expected a request that was issued, found one that was inserted on line 3"
    );
    // When the scheduler changes, its requests are issued without a call of dispatch.
    assert!(score("cfq", &[allocated, insert(1), event("issue", 1, ""), event("complete", 1, "")]).is_ok());
}

#[test]
fn a_queue_that_is_too_large_to_be_built_is_refused() {
    let mut trace = recording("none", &[]);
    (trace.header.queue.nr_hw_queues, trace.header.queue.queue_depth, trace.header.cpus) = (2048, 10_240, 8192);
    let refused = |trace: &Trace| replay(trace).unwrap_err().to_string();
    let tags = "line 1: expected at most 524288 driver tags in all hardware queues, found 20971520";
    assert_eq!(refused(&trace), tags);
    trace.header.queue.queue_depth = 1;
    let pairs = "line 1: expected at most 1048576 pairs of hardware queue and CPU, found 16777216";
    assert_eq!(refused(&trace), pairs);
    trace.header.scheduler = "bfq".to_owned();
    assert!(replay(&trace).is_ok(), "a policy needs no tags");
}

#[test]
fn unusual_but_replayable_events_pass_the_check() {
    for scheduler in SCHEDULERS {
        let events = ["complete", "finish", "free", "requeue", "issue"].map(|kind| event(kind, 1, ""));
        assert!(score(scheduler, &events).is_ok(), "{scheduler}: about a request that is not known");
        let released = [insert(1), event("free", 1, "")];
        assert!(score(scheduler, &released).is_ok(), "{scheduler}: released without having been given out");
        let completed =
            [insert(1), event("dispatch", 1, r#","token":3"#), event("complete", 1, ""), event("complete", 1, "")];
        assert!(score(scheduler, &completed).is_ok(), "{scheduler}: completed twice");
        assert!(score(scheduler, &[event("backmerge", 1, ""), event("frontmerge", 1, "")]).is_ok(), "{scheduler}");
    }
}
