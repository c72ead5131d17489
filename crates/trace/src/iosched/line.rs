//! Parses a line into an event: the fields of each kind and their meaning.

use hoistway_blk::ground::{HctxId, Instant, Sector};

use super::bfq::BfqState;
use super::bounds::{SECTOR_MAX, TIME_NS_MAX, within};
use super::error::Problem;
use super::event::{
    Chosen, Complete, Dispatch, Event, EventKind, Free, Insert, InsertedBy, Issue, KyberDomain, KyberLatency,
    LatencyKind, Mark, Merge, RqMerge, Submitted, Survivor,
};
use super::header::Header;
use super::io::RqNumber;
use super::raw::{Fields, RawKind, RawLine};

/// Parses `line`, number `number` of its file.
pub(super) fn parse(line: &[u8], number: u64, header: &Header) -> Result<Event, Problem> {
    let json = |error: serde_json::Error| Problem::from_json(&error, line);
    let RawKind { t, e } = serde_json::from_slice(line).map_err(json)?;
    within("t", t, 0..=TIME_NS_MAX)?;
    let without_context = |kind| Event { line: number, t: Instant(t), cpu: None, pid: None, kind };
    let Some((event, parser)) = parser(&e) else { return Ok(without_context(EventKind::Unknown(e.into()))) };
    match parser {
        Parser::Bfq => Ok(without_context(EventKind::Bfq(BfqState::parse(line)?))),
        Parser::Fields(parse) => {
            let raw: RawLine<'_> = serde_json::from_slice(line).map_err(json)?;
            let fields = Fields { raw, t, event, header };
            let (cpu, pid) = (fields.cpu()?, fields.pid()?);
            Ok(Event { line: number, t: Instant(t), cpu, pid, kind: parse(&fields)? })
        }
    }
}

type Parse = fn(&Fields<'_>) -> Result<EventKind, Problem>;

enum Parser {
    /// A kind that uses the common keys.
    Fields(Parse),
    /// A bfq line, whose keys have other meanings: `pid` is not the context.
    Bfq,
}

/// The parser for the kind `e`, with the kind's name for error messages.
fn parser(e: &str) -> Option<(&'static str, Parser)> {
    use EventKind as Kind;
    let (event, parse): (_, Parse) = match e {
        "bfq" => return Some(("bfq", Parser::Bfq)),
        "queue" => ("queue", |line| Ok(Kind::Queue(submitted(line)?))),
        "split" => ("split", |line| {
            let at = within("at", line.need("at", line.raw.at)?, 0..=SECTOR_MAX)?;
            Ok(Kind::Split { bio: submitted(line)?, at: Sector(at) })
        }),
        "getrq" => ("getrq", |line| Ok(Kind::Getrq { bio: submitted(line)?, rq: line.rq_if_any() })),
        "sleeprq" => ("sleeprq", |line| Ok(Kind::Sleeprq(submitted(line)?))),
        "plug" => ("plug", |_| Ok(Kind::Plug)),
        "unplug" => ("unplug", unplug),
        "backmerge" => ("backmerge", |line| Ok(Kind::Backmerge(merge(line)?))),
        "frontmerge" => ("frontmerge", |line| Ok(Kind::Frontmerge(merge(line)?))),
        "insert" => ("insert", |line| Ok(Kind::Insert(insert(line)?))),
        "rqmerge" => ("rqmerge", |line| Ok(Kind::Rqmerge(rqmerge(line)?))),
        "run" => ("run", |line| Ok(Kind::Run { hctx: line.hctx()? })),
        "runend" => ("runend", |_| Ok(Kind::RunEnd)),
        "dispatch" => ("dispatch", |line| Ok(Kind::Dispatch(dispatch(line)?))),
        "issue" => ("issue", |line| Ok(Kind::Issue(issue(line)?))),
        "requeue" => ("requeue", |line| Ok(Kind::Requeue { rq: line.rq()?, io: line.io()? })),
        "complete" => ("complete", |line| Ok(Kind::Complete(complete(line)?))),
        "sample" => ("sample", |line| Ok(Kind::Sample { rq: line.rq()? })),
        "finish" => ("finish", |line| Ok(Kind::Finish { rq: line.rq()? })),
        "free" => ("free", |line| Ok(Kind::Free(Free { rq: line.rq()?, context: line.mq_context()? }))),
        "kyber_latency" => ("kyber_latency", |line| Ok(Kind::KyberLatency(kyber_latency(line)?))),
        "kyber_adjust" => ("kyber_adjust", |line| {
            Ok(Kind::KyberAdjust { domain: domain(line)?, depth: line.need("depth", line.raw.depth)? })
        }),
        "kyber_throttled" => ("kyber_throttled", |line| Ok(Kind::KyberThrottled { domain: domain(line)? })),
        "bfq_idle_timer" => ("bfq_idle_timer", |_| Ok(Kind::BfqIdleTimer)),
        "mark" => ("mark", |line| Ok(Kind::Mark(mark(line.need("msg", line.raw.msg.as_deref())?)))),
        "exit" => ("exit", |_| Ok(Kind::Exit)),
        "msg" => ("msg", |line| {
            Ok(Kind::Msg { text: line.need("text", line.raw.text.as_deref())?.into(), cg: line.cgroup()? })
        }),
        _ => return None,
    };
    Some((event, Parser::Fields(parse)))
}

fn submitted(line: &Fields<'_>) -> Result<Submitted, Problem> {
    Ok(Submitted { bio: line.bio()?, io: line.io()? })
}

fn unplug(line: &Fields<'_>) -> Result<EventKind, Problem> {
    Ok(EventKind::Unplug { nr: line.need("nr", line.raw.nr)?, explicit: line.need("explicit", line.raw.explicit)? })
}

fn merge(line: &Fields<'_>) -> Result<Merge, Problem> {
    Ok(Merge { bio: line.bio()?, rq: line.rq()?, io: line.io()? })
}

fn insert(line: &Fields<'_>) -> Result<Insert, Problem> {
    line.tick()?;
    let by = match line.need("by", line.raw.by.as_deref())? {
        "sched" => InsertedBy::Scheduler,
        "core" => InsertedBy::Core,
        other => return Err(Problem::bad_field("by", "`sched` or `core`", other)),
    };
    Ok(Insert {
        rq: line.rq()?,
        bio: line.bio()?,
        io: line.io()?,
        by,
        batch: line.raw.batch,
        head: line.raw.head.unwrap_or(false),
        queue: line.queue_name()?,
    })
}

fn rqmerge(line: &Fields<'_>) -> Result<RqMerge, Problem> {
    match line.raw.absorbed {
        // Multi-queue: `rq` is the absorbed request.
        None => {
            let io = line.io()?;
            Ok(RqMerge { absorbed: line.rq()?, sector: io.sector, sectors: io.sectors, io: Some(io), survivor: None })
        }
        // Legacy: `rq` is the surviving request.
        Some(absorbed) => {
            let (from_sector, from_sectors) =
                line.extent_in(("from_sector", line.raw.from_sector), ("from_n", line.raw.from_n))?;
            let (sector, sectors) = line.extent()?;
            Ok(RqMerge {
                absorbed: RqNumber(absorbed),
                sector: from_sector,
                sectors: from_sectors,
                io: None,
                survivor: Some(Survivor { rq: line.rq()?, sector, sectors }),
            })
        }
    }
}

fn dispatch(line: &Fields<'_>) -> Result<Dispatch, Problem> {
    let chosen = match line.need("rq", line.raw.rq)? {
        None => None,
        Some(rq) => {
            let (sector, sectors) = line.extent()?;
            Some(Chosen { rq: RqNumber(rq), op: line.op()?, sector, sectors })
        }
    };
    Ok(Dispatch {
        // A legacy recording has no hardware queues.
        hctx: if line.raw.hctx.is_some() { line.hctx()? } else { HctxId(0) },
        called_at: Instant(within("asked", line.need("asked", line.raw.asked)?, 0..=line.t)?),
        j: line.tick()?,
        chosen,
        queued: line.raw.queued,
        token: line.raw.token,
    })
}

fn issue(line: &Fields<'_>) -> Result<Issue, Problem> {
    line.tick()?;
    Ok(Issue {
        rq: line.rq()?,
        bio: line.bio_if_any(),
        io: line.io()?,
        token: line.raw.token,
        queue: line.queue_name()?,
        in_driver: line.raw.drv,
    })
}

fn complete(line: &Fields<'_>) -> Result<Complete, Problem> {
    Ok(Complete {
        rq: line.rq()?,
        io: line.io()?,
        err: line.raw.err,
        done: line.raw.done,
        queue: line.queue_name()?,
        rq_noidle: line.raw.rqnoidle.map(|flag| flag != 0),
    })
}

fn kyber_latency(line: &Fields<'_>) -> Result<KyberLatency, Problem> {
    let raw = &line.raw;
    let kind = match line.need("kind", raw.kind.as_deref())? {
        "total" => LatencyKind::Total,
        "I/O" => LatencyKind::Io,
        other => return Err(Problem::bad_field("kind", "`total` or `I/O`", other)),
    };
    Ok(KyberLatency {
        domain: domain(line)?,
        kind,
        percentile: line.need("percentile", raw.percentile)?,
        bucket: within("bucket", line.need("bucket", raw.bucket)?, 1..=8)?,
        buckets: line.need("buckets", raw.buckets)?,
        samples: line.need("samples", raw.samples)?,
    })
}

fn domain(line: &Fields<'_>) -> Result<KyberDomain, Problem> {
    match line.need("domain", line.raw.domain.as_deref())? {
        "READ" => Ok(KyberDomain::Read),
        "WRITE" => Ok(KyberDomain::Write),
        "DISCARD" => Ok(KyberDomain::Discard),
        "OTHER" => Ok(KyberDomain::Other),
        other => Err(Problem::bad_field("domain", "READ, WRITE, DISCARD or OTHER", other)),
    }
}

/// Parses a mark: free text, with a fixed form for marks that a replay must act on.
fn mark(text: &str) -> Mark {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        ["switch", name, "begin"] => Mark::SwitchBegin(name.into()),
        ["switch", name, "done"] => Mark::SwitchDone(name.into()),
        ["switch", name, "end"] => Mark::SwitchEnd(name.into()),
        ["tunable", name, value] => Mark::Tunable { name: name.into(), value: value.into() },
        _ => Mark::Other(text.into()),
    }
}
