//! What each kind of line becomes.

use hoistway_blk::bio::{BioFlags, IoPriority, Op, PriorityClass};
use hoistway_blk::ground::{CgroupId, CpuId, HctxId, Instant, Sector, Tick};
use hoistway_trace::iosched::{
    BioNumber, Chosen, Clock, EventKind, InsertedBy, KyberDomain, LatencyKind, Mark, MqContext, QueueName, RqNumber,
    Survivor,
};

use crate::small::{event, header_with, read, recording};

#[test]
fn the_header_becomes_typed_settings() {
    let header = read(recording(&[])).expect("a header alone is a recording of nothing").header;
    assert_eq!((header.clock, header.hz.0, header.queue.queue_depth), (Clock::Virtual, 250, 4));
    assert!(header.queue.write_cache && header.queue.fua && header.queue.shared_tags && header.queue.rotational);
    let groups: Vec<_> = header.cgroups.iter().map(|group| (group.path.as_str(), group.parent, group.weight)).collect();
    assert_eq!(
        groups,
        [("/", None, None), ("/a", Some(CgroupId(0)), Some(100)), ("/a/b", Some(CgroupId(1)), Some(300))]
    );
    let process = &header.processes[0];
    assert_eq!(process.ioprio, IoPriority::new(PriorityClass::RealTime, 3));
    assert_eq!((process.cgroup, process.weight), (CgroupId(2), Some(300)));
}

#[test]
fn a_bio_carries_the_flags_of_rwbs_and_hint_together() {
    let line = r#"{"t":5,"e":"queue","cpu":1,"pid":7,"bio":3,"op":"W","rwbs":"FWFS","sector":8,"n":16,"hint":"XI","prio":[2,4],"cg":"/a"}"#;
    let event = event(line);
    assert_eq!((event.line, event.t, event.cpu, event.pid), (2, Instant(5), Some(CpuId(1)), Some(7)));
    let EventKind::Queue(submitted) = event.kind else { panic!("{event:?}") };
    assert_eq!(submitted.bio, BioNumber(3));
    let io = submitted.io;
    assert_eq!((io.op, io.sector, io.sectors, io.end()), (Op::Write, Sector(8), 16, Sector(24)));
    let flags = [BioFlags::PREFLUSH, BioFlags::FUA, BioFlags::SYNC, BioFlags::NOMERGE, BioFlags::IDLE];
    assert_eq!(io.flags, flags.into_iter().fold(BioFlags::NONE, BioFlags::with));
    assert_eq!((io.prio, io.context, io.j, io.cg), (IoPriority::DEFAULT, None, None, Some(CgroupId(1))));
    assert!(io.is_sync() && !io.flushseq);
}

#[test]
fn an_insert_event_has_place_tick_batch_and_head() {
    let line = r#"{"t":5,"e":"insert","cpu":0,"pid":7,"rq":9,"bio":3,"op":"R","rwbs":"R","sector":8,"n":16,"prio":[0,0],"hctx":1,"ctx":0,"tag":-1,"stag":12,"j":3,"by":"sched","batch":4,"head":true}"#;
    let EventKind::Insert(insert) = event(line).kind else { panic!() };
    assert_eq!((insert.rq, insert.bio, insert.by), (RqNumber(9), BioNumber(3), InsertedBy::Scheduler));
    assert_eq!((insert.batch, insert.head, insert.queue), (Some(4), true, None));
    assert_eq!(insert.io.context, Some(MqContext { hctx: HctxId(1), ctx: CpuId(0), tag: None, stag: Some(12) }));
    assert_eq!((insert.io.j, insert.io.prio), (Some(Tick(3)), IoPriority::UNSET));
}

#[test]
fn a_legacy_insert_names_cfqs_queue() {
    let line = r#"{"t":5,"e":"insert","cpu":0,"pid":7,"rq":9,"bio":3,"op":"R","rwbs":"R","sector":8,"n":16,"prio":[0,0],"j":3,"by":"core","q":"7SN"}"#;
    let EventKind::Insert(insert) = event(line).kind else { panic!() };
    assert_eq!((insert.by, insert.batch, insert.head, insert.io.context), (InsertedBy::Core, None, false, None));
    assert_eq!(insert.queue, Some(QueueName { owner: Some(7), sync: true, noidle: true }));
}

#[test]
fn a_dispatch_is_a_request_or_a_refusal() {
    let line = r#"{"t":5,"e":"dispatch","cpu":0,"pid":7,"hctx":1,"asked":2,"rq":9,"op":"D","sector":8,"n":16,"j":3,"token":0}"#;
    let EventKind::Dispatch(answer) = event(line).kind else { panic!() };
    let chosen = Chosen { rq: RqNumber(9), op: Op::Discard, sector: Sector(8), sectors: 16 };
    assert_eq!((answer.chosen, answer.token, answer.queued), (Some(chosen), Some(0), None));
    assert_eq!((answer.hctx, answer.called_at, answer.j), (HctxId(1), Instant(2), Tick(3)));

    let legacy = event(r#"{"t":5,"e":"dispatch","cpu":0,"asked":2,"rq":null,"queued":6,"j":3}"#);
    assert_eq!(legacy.pid, None);
    let EventKind::Dispatch(answer) = legacy.kind else { panic!() };
    assert_eq!((answer.chosen, answer.queued, answer.hctx), (None, Some(6), HctxId(0)));
}

#[test]
fn both_forms_of_a_request_merge_name_the_absorbed_request() {
    let line = r#"{"t":5,"e":"rqmerge","cpu":0,"pid":7,"rq":9,"op":"R","rwbs":"R","sector":72,"n":8,"prio":[2,4],"hctx":0,"ctx":0,"tag":-1,"stag":1}"#;
    let EventKind::Rqmerge(merge) = event(line).kind else { panic!() };
    assert_eq!((merge.absorbed, merge.sector, merge.sectors), (RqNumber(9), Sector(72), 8));
    assert!(merge.io.is_some() && merge.survivor.is_none());

    let line =
        r#"{"t":5,"e":"rqmerge","cpu":0,"rq":12,"absorbed":8,"sector":1008,"n":24,"from_sector":1024,"from_n":8}"#;
    let EventKind::Rqmerge(merge) = event(line).kind else { panic!() };
    assert_eq!((merge.absorbed, merge.sector, merge.sectors), (RqNumber(8), Sector(1024), 8));
    assert_eq!(merge.survivor, Some(Survivor { rq: RqNumber(12), sector: Sector(1008), sectors: 24 }));
}

#[test]
fn issue_and_complete_carry_fields_of_single_schedulers() {
    let line = r#"{"t":5,"e":"issue","cpu":0,"pid":7,"rq":9,"op":"F","rwbs":"F","sector":0,"n":0,"prio":[0,0],"j":3,"flushseq":true,"token":0,"q":"0A","drv":2}"#;
    let EventKind::Issue(issue) = event(line).kind else { panic!() };
    assert_eq!((issue.bio, issue.token, issue.in_driver, issue.io.flushseq), (None, Some(0), Some(2), true));
    assert_eq!(issue.queue.map(|name| name.to_string()).as_deref(), Some("0A"));

    let line = r#"{"t":5,"e":"complete","cpu":0,"pid":0,"rq":9,"op":"R","rwbs":"R","sector":0,"n":8,"prio":[0,0],"err":-5,"done":4,"rqnoidle":1}"#;
    let EventKind::Complete(complete) = event(line).kind else { panic!() };
    assert_eq!((complete.err, complete.done, complete.rq_noidle), (Some(-5), Some(4), Some(true)));
}

#[test]
fn kybers_own_events_are_typed() {
    let line = r#"{"t":5,"e":"kyber_latency","cpu":0,"pid":0,"domain":"WRITE","kind":"I/O","percentile":90,"bucket":8,"buckets":4,"samples":519}"#;
    let EventKind::KyberLatency(latency) = event(line).kind else { panic!() };
    assert_eq!((latency.domain, latency.kind, latency.bucket), (KyberDomain::Write, LatencyKind::Io, 8));
    let adjust = event(r#"{"t":5,"e":"kyber_adjust","cpu":0,"pid":0,"domain":"DISCARD","depth":96}"#).kind;
    assert_eq!(adjust, EventKind::KyberAdjust { domain: KyberDomain::Discard, depth: 96 });
    let throttled = event(r#"{"t":5,"e":"kyber_throttled","cpu":0,"pid":0,"domain":"READ"}"#).kind;
    assert_eq!(throttled, EventKind::KyberThrottled { domain: KyberDomain::Read });
}

#[test]
fn a_bfq_line_keeps_its_fields_and_its_pid_is_not_a_context() {
    let event = event(r#"{"t":5,"e":"bfq","k":"waker","q":"sharedS","pid":431,"n":"any type"}"#);
    assert_eq!((event.pid, event.cpu), (None, None));
    let EventKind::Bfq(state) = event.kind else { panic!() };
    assert_eq!((&*state.kind, state.number("pid"), state.text("n")), ("waker", Some(431), Some("any type")));
    assert_eq!(state.queue, Some(QueueName { owner: None, sync: true, noidle: false }));
    assert_eq!(state.fields.len(), 2);
}

#[test]
fn marks_and_messages_keep_their_words() {
    let mark = |text: &str| event(&format!(r#"{{"t":5,"e":"mark","cpu":0,"pid":7,"msg":"{text}"}}"#)).kind;
    assert_eq!(mark("switch none end"), EventKind::Mark(Mark::SwitchEnd("none".into())));
    assert_eq!(mark("switch to \\u00e9\\n"), EventKind::Mark(Mark::Other("switch to \u{e9}\n".into())));
    let msg = event(r#"{"t":5,"e":"msg","text":"cfq7S \"x\"","cg":"/a/b"}"#).kind;
    assert_eq!(msg, EventKind::Msg { text: "cfq7S \"x\"".into(), cg: Some(CgroupId(2)) });
}

#[test]
fn an_unknown_event_kind_is_kept_by_name_with_any_keys() {
    let kind = event(r#"{"t":5,"e":"zone_append","rq":"text","n":-1,"sector":[]}"#).kind;
    assert_eq!((kind.name(), &kind), ("zone_append", &EventKind::Unknown("zone_append".into())));
}

#[test]
fn a_truncated_recording_may_have_fewer_events_than_its_header_says() {
    let text = format!("{}\n{}\n", header_with(9, r#","truncated":true"#), r#"{"t":5,"e":"plug","cpu":0,"pid":7}"#);
    assert_eq!(read(text).expect("truncated on purpose").events.len(), 1);
}

#[test]
fn carriage_returns_and_a_missing_last_line_end_do_no_harm() {
    let text = recording(&[r#"{"t":5,"e":"exit","cpu":0,"pid":7}"#]);
    assert_eq!(read(text.replace('\n', "\r\n")).expect("CRLF").events.len(), 1);
    assert_eq!(read(text.trim_end()).expect("no line end").events[0].kind, EventKind::Exit);
}
