//! Going on from what a recorded kernel did.

use super::super::replay::KyberChoice;
use super::*;
use crate::request::Marks;

#[test]
fn undoing_a_dispatch_leaves_no_trace() {
    let mut bench = <Bench>::current();
    bench.insert_many(Op::Read, 20);
    bench.insert_many(Op::Write, 10);
    let mut given = Vec::new();
    // Over the end of a batch of reads.
    for _ in 0..20 {
        let before = bench.kyber.turn(HctxId(0));
        let first = bench.dispatch(0).expect("something waits");
        let (told, token) = (name(&first), bench.kyber.token_of(first.id()));
        assert!(token.is_some());
        let id = first.id();
        assert!(first.marks.contains(Marks::STARTED));
        bench.kyber.undo(HctxId(0), before, Some(first));
        assert_eq!((bench.kyber.token_of(id), bench.kyber.turn(HctxId(0))), (None, before));
        let again = bench.dispatch(0).expect("it waits again");
        assert_eq!((name(&again), bench.kyber.token_of(again.id()).is_some()), (told.clone(), true));
        given.push(told);
    }
    let mut plain = <Bench>::current();
    plain.insert_many(Op::Read, 20);
    plain.insert_many(Op::Write, 10);
    let expected: Vec<String> = (0..20).map(|_| name(&plain.dispatch(0).unwrap())).collect();
    assert_eq!(given, expected);
    // A refusal, too, may have moved the turn.
    let before = bench.kyber.turn(HctxId(0));
    bench.drain(0);
    assert_ne!(bench.kyber.turn(HctxId(0)), before);
    bench.kyber.undo(HctxId(0), before, None);
    assert_eq!(bench.kyber.turn(HctxId(0)), before);
}

#[test]
fn an_adopted_kernel_choice_includes_its_token_and_turn() {
    let mut bench = <Bench>::current();
    bench.insert_many(Op::Read, 20);
    bench.insert_many(Op::Write, 3);
    let choice = |id, domain, token| Some(KyberChoice { id: RqId(id), domain, token });
    // The second write, before any read.
    let write = bench.kyber.adopt(HctxId(0), choice(21, Domain::Write, 7)).expect("it waits");
    assert_eq!((name(&write), bench.kyber.token_of(RqId(21))), ("W2".to_owned(), Some(7)));
    assert!(write.marks.contains(Marks::STARTED));
    let of_writes = bench.kyber.turn(HctxId(0));
    let read = bench.kyber.adopt(HctxId(0), choice(4, Domain::Read, 9)).expect("it waits");
    assert_eq!((name(&read), bench.kyber.token_of(RqId(4))), ("R5".to_owned(), Some(9)));
    let of_reads = bench.kyber.turn(HctxId(0));
    assert_ne!(of_reads, of_writes);
    // Its batch continues with what the scheduler itself chooses: 16 reads in a row.
    let rest: String = (0..17).map(|_| name(&bench.dispatch(0).unwrap())).map(|name| name[..1].to_owned()).collect();
    assert_eq!(rest, format!("{}WW", "R".repeat(15)));
    assert!(bench.kyber.adopt(HctxId(0), choice(21, Domain::Write, 8)).is_none(), "it does not wait");
    // Nothing: the batch is over.
    let before = bench.kyber.turn(HctxId(0));
    assert!(bench.kyber.adopt(HctxId(0), None).is_none());
    assert_ne!(bench.kyber.turn(HctxId(0)), before);
}

#[test]
fn an_adopted_token_is_no_longer_available() {
    let mut bench = <Bench>::current();
    bench.insert_many(Op::Write, 3);
    let adopt = |id, token| {
        let kernel = KyberChoice { id: RqId(id), domain: Domain::Write, token };
        drop(bench.kyber.adopt(HctxId(0), Some(kernel)).expect("it waits"));
        bench.kyber.token_of(RqId(id))
    };
    assert_eq!([adopt(0, 5), adopt(1, 5)], [Some(5), None]);
    let rq = bench.dispatch(0).unwrap();
    let own = bench.kyber.token_of(rq.id()).unwrap();
    bench.kyber.adopt_token(rq.id(), 5);
    assert_eq!(bench.kyber.token_of(rq.id()), Some(own), "another request holds it");
    bench.kyber.adopt_token(rq.id(), own + 20);
    assert_eq!(bench.kyber.token_of(rq.id()), Some(own + 20));
    bench.kyber.adopt_token(RqId(1), 11);
    assert_eq!(bench.kyber.token_of(RqId(1)), None, "who has none is given none");
}

#[test]
fn adopted_depths_stay_within_their_range() {
    let tokens_of = |depth| {
        let mut bench = <Bench>::current();
        bench.insert_many(Op::Read, 300);
        bench.kyber.adopt_depth(Domain::Read, depth);
        bench.drain(0).len()
    };
    assert_eq!([0, 1, 2, 77, 1000].map(tokens_of), [1, 1, 2, 77, 256]);
}

#[test]
fn there_is_work_again_when_the_only_dispatch_is_undone() {
    let mut bench = <Bench>::current();
    bench.insert_many(Op::Read, 1);
    let before = bench.kyber.turn(HctxId(0));
    let given = bench.dispatch(0);
    assert!(given.is_some() && !bench.kyber.has_work(HctxId(0)));
    bench.kyber.undo(HctxId(0), before, given);
    assert!(bench.kyber.has_work(HctxId(0)));
    assert_eq!(bench.drain(0), names("R1"));
    assert!(!bench.kyber.has_work(HctxId(0)));
}

#[test]
fn adopted_choices_count_toward_their_batch() {
    let mut bench = <Bench>::current();
    bench.insert_many(Op::Read, 20);
    bench.insert_many(Op::Write, 3);
    for id in 0..3 {
        let kernel = KyberChoice { id: RqId(id), domain: Domain::Read, token: id };
        drop(bench.kyber.adopt(HctxId(0), Some(kernel)).expect("it waits"));
    }
    let rest: String = (0..14).map(|_| name(&bench.dispatch(0).unwrap())).map(|name| name[..1].to_owned()).collect();
    assert_eq!(rest, format!("{}W", "R".repeat(13)), "16 reads in a row");
}
