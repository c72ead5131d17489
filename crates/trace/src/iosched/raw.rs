//! A line before validation: the keys of all kinds of events, borrowed from the text.

use std::borrow::Cow;

use hoistway_blk::bio::{IoPriority, Op};
use hoistway_blk::ground::{CgroupId, CpuId, HctxId, Sector, Tick};
use serde::{Deserialize, Deserializer};

use super::bounds::{PID_MAX, SECTOR_MAX, SECTORS_MAX, TIME_NS_MAX, within};
use super::error::Problem;
use super::flags;
use super::header::Header;
use super::io::{BioNumber, Io, MqContext, QueueName, RqNumber};

pub(super) const QUEUE_NAME: &str = "a queue name such as 431S or 431A";

/// The kind of a line, parsed first because it determines the meaning of the other keys.
#[derive(Deserialize)]
pub(super) struct RawKind<'a> {
    pub(super) t: u64,
    #[serde(borrow)]
    pub(super) e: Cow<'a, str>,
}

/// The keys of all kinds. Texts are `Cow` because JSON strings may contain escapes, although they rarely do.
#[derive(Deserialize)]
pub(super) struct RawLine<'a> {
    pub(super) cpu: Option<u16>,
    pub(super) pid: Option<u32>,
    bio: Option<u32>,
    // Absent and null differ: null means that the scheduler returned no request.
    #[serde(default, deserialize_with = "present")]
    pub(super) rq: Option<Option<u32>>,
    #[serde(borrow)]
    op: Option<Cow<'a, str>>,
    #[serde(borrow)]
    rwbs: Option<Cow<'a, str>>,
    #[serde(borrow)]
    hint: Option<Cow<'a, str>>,
    sector: Option<u64>,
    n: Option<u32>,
    prio: Option<(u8, u8)>,
    pub(super) hctx: Option<u16>,
    ctx: Option<u16>,
    tag: Option<i32>,
    stag: Option<i32>,
    j: Option<u64>,
    flushseq: Option<bool>,
    #[serde(borrow)]
    cg: Option<Cow<'a, str>>,
    #[serde(borrow)]
    q: Option<Cow<'a, str>>,
    pub(super) at: Option<u64>,
    pub(super) nr: Option<u32>,
    pub(super) explicit: Option<bool>,
    #[serde(borrow)]
    pub(super) by: Option<Cow<'a, str>>,
    pub(super) batch: Option<u32>,
    pub(super) head: Option<bool>,
    pub(super) absorbed: Option<u32>,
    pub(super) from_sector: Option<u64>,
    pub(super) from_n: Option<u32>,
    pub(super) asked: Option<u64>,
    pub(super) queued: Option<u32>,
    pub(super) token: Option<u32>,
    pub(super) drv: Option<u32>,
    pub(super) err: Option<i32>,
    pub(super) done: Option<u32>,
    pub(super) rqnoidle: Option<u8>,
    #[serde(borrow)]
    pub(super) domain: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) kind: Option<Cow<'a, str>>,
    pub(super) percentile: Option<u8>,
    pub(super) bucket: Option<u8>,
    pub(super) buckets: Option<u8>,
    pub(super) samples: Option<u32>,
    pub(super) depth: Option<u32>,
    #[serde(borrow)]
    pub(super) msg: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) text: Option<Cow<'a, str>>,
}

fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<u32>>, D::Error> {
    Option::deserialize(value).map(Some)
}

/// A line with its kind and the recording's header: accessors for fields that several kinds share.
pub(super) struct Fields<'a> {
    pub(super) raw: RawLine<'a>,
    /// The time of the event, ns.
    pub(super) t: u64,
    pub(super) event: &'static str,
    pub(super) header: &'a Header,
}

impl Fields<'_> {
    /// The value of a field that is mandatory for this kind of event.
    pub(super) fn need<T>(&self, field: &'static str, value: Option<T>) -> Result<T, Problem> {
        value.ok_or(Problem::MissingField { event: self.event, field })
    }

    pub(super) fn bio(&self) -> Result<BioNumber, Problem> {
        self.need("bio", self.bio_if_any())
    }

    pub(super) fn bio_if_any(&self) -> Option<BioNumber> {
        self.raw.bio.map(BioNumber)
    }

    pub(super) fn rq(&self) -> Result<RqNumber, Problem> {
        self.need("rq", self.rq_if_any())
    }

    pub(super) fn rq_if_any(&self) -> Option<RqNumber> {
        self.raw.rq.flatten().map(RqNumber)
    }

    /// First sector and length, from the usual fields.
    pub(super) fn extent(&self) -> Result<(Sector, u32), Problem> {
        self.extent_in(("sector", self.raw.sector), ("n", self.raw.n))
    }

    /// First sector and length, from these fields.
    pub(super) fn extent_in(
        &self,
        (first, sector): (&'static str, Option<u64>),
        (length, sectors): (&'static str, Option<u32>),
    ) -> Result<(Sector, u32), Problem> {
        let sectors = within(length, self.need(length, sectors)?, 0..=SECTORS_MAX)?;
        let sector = within(first, self.need(first, sector)?, 0..=SECTOR_MAX - u64::from(sectors))?;
        Ok((Sector(sector), sectors))
    }

    pub(super) fn cpu(&self) -> Result<Option<CpuId>, Problem> {
        self.raw.cpu.map(|cpu| Ok(CpuId(within("cpu", cpu, 0..=self.header.cpus - 1)?.into()))).transpose()
    }

    pub(super) fn pid(&self) -> Result<Option<u32>, Problem> {
        self.raw.pid.map(|pid| within("pid", pid, 0..=PID_MAX)).transpose()
    }

    /// A hardware queue, which must serve at least one CPU.
    pub(super) fn hctx(&self) -> Result<HctxId, Problem> {
        let hctxs = self.header.queue.nr_hw_queues.min(self.header.cpus);
        within("hctx", self.need("hctx", self.raw.hctx)?, 0..=hctxs - 1).map(HctxId)
    }

    pub(super) fn op(&self) -> Result<Op, Problem> {
        let text = self.need("op", self.raw.op.as_deref())?;
        flags::op(text).ok_or_else(|| Problem::bad_field("op", "R, W, F or D", text))
    }

    pub(super) fn tick(&self) -> Result<Tick, Problem> {
        self.need("j", self.tick_if_any()?)
    }

    fn tick_if_any(&self) -> Result<Option<Tick>, Problem> {
        let ticks_max = TIME_NS_MAX / self.header.hz.tick_ns();
        self.raw.j.map(|j| within("j", j, 0..=ticks_max).map(Tick)).transpose()
    }

    /// The description of the event's bio or request.
    pub(super) fn io(&self) -> Result<Io, Problem> {
        let op = self.op()?;
        let rwbs = self.need("rwbs", self.raw.rwbs.as_deref())?;
        let bits = flags::rwbs(op, rwbs).ok_or_else(|| {
            Problem::bad_field("rwbs", "the letter of `op` with F before it or F, A, S, M after", rwbs)
        })?;
        let hint = self.raw.hint.as_deref().unwrap_or_default();
        let hints =
            flags::hint(hint).ok_or_else(|| Problem::bad_field("hint", "letters of I, B, P, X, N, A, M", hint))?;
        let (sector, sectors) = self.extent()?;
        Ok(Io {
            sector,
            sectors,
            op,
            flags: bits.with(hints),
            prio: self.prio()?,
            flushseq: self.raw.flushseq.unwrap_or(false),
            context: if self.raw.hctx.is_some() { Some(self.mq_context()?) } else { None },
            j: self.tick_if_any()?,
            cg: self.cgroup()?,
        })
    }

    fn prio(&self) -> Result<IoPriority, Problem> {
        let (class, level) = self.need("prio", self.raw.prio)?;
        flags::prio(class, level)
            .ok_or_else(|| Problem::bad_field("prio", "[class 0..3, level 0..7]", format_args!("[{class},{level}]")))
    }

    /// Queues and tags of a request on a multi-queue kernel.
    pub(super) fn mq_context(&self) -> Result<MqContext, Problem> {
        Ok(MqContext {
            hctx: self.hctx()?,
            ctx: CpuId(within("ctx", self.need("ctx", self.raw.ctx)?, 0..=self.header.cpus - 1)?.into()),
            tag: parse_tag("tag", self.need("tag", self.raw.tag)?)?,
            stag: parse_tag("stag", self.need("stag", self.raw.stag)?)?,
        })
    }

    pub(super) fn cgroup(&self) -> Result<Option<CgroupId>, Problem> {
        let Some(path) = self.raw.cg.as_deref() else { return Ok(None) };
        match self.header.cgroup(path) {
            None => Err(Problem::bad_field("cg", "a path of the header's `cgroups`", path)),
            id => Ok(id),
        }
    }

    pub(super) fn queue_name(&self) -> Result<Option<QueueName>, Problem> {
        let Some(name) = self.raw.q.as_deref() else { return Ok(None) };
        match QueueName::parse(name) {
            None => Err(Problem::bad_field("q", QUEUE_NAME, name)),
            name => Ok(name),
        }
    }
}

/// A tag number; recorders write -1 for none.
fn parse_tag(field: &'static str, number: i32) -> Result<Option<u32>, Problem> {
    if number == -1 {
        return Ok(None);
    }
    match u32::try_from(number) {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(Problem::bad_field(field, "a tag number or -1", number)),
    }
}
