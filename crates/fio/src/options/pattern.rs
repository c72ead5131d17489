//! Options of the I/O pattern: directions, block sizes and offsets.

use hoistway_load::{Direction, Offsets, Process, Random, RandomGenerator, Sequencer, Share as Sized, Sizes};

use super::Job;
use super::distribution;
use super::{OptionSpec, Setter, U32_MAX, row};
use super::{Settings, Subject};
use crate::JobFileError;
use crate::error::quoted;
use crate::values::{self, Refusal, merge, per_direction};

#[derive(Clone, Debug, Default)]
pub(crate) struct Pattern {
    /// Whether `rw` is random.
    is_random: bool,
    random: Random,
    /// `rw=...:N`
    has_modifier: bool,
    /// Bytes to skip after each sequential I/O, backwards if negative.
    skip: i64,
    bs: [Option<u64>; 3],
    bs_range: [Option<(u64, u64)>; 3],
    bs_split: [Vec<Share>; 3],
    bs_unaligned: bool,
    seed: Option<i64>,
}

/// One entry of `bssplit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Share {
    bytes: u64,
    /// `None` for an equal part of the remaining percentage.
    percent: Option<u8>,
}

pub(super) const SUBJECT: Subject = Subject {
    rows: ROWS,
    apply,
    fields: &[
        ("plan.pattern.sizes", effective_size_option),
        ("plan.pattern.offsets", |_| "rw"),
        ("plan.pattern.offsets.align_bytes", |_| "ba"),
        ("plan.pattern.offsets.distribution", |_| "random_distribution"),
    ],
};

const ROWS: &[OptionSpec] = &[
    row(
        "rw",
        "read",
        Setter::Form {
            form: "read | write | trim | randread | randwrite | randtrim | rw | randrw | trimwrite | randtrimwrite, \
                   with :N for random in runs of N, or :BYTES for sequential with holes",
            set: rw,
        },
    )
    .doc("Direction and order of the I/O")
    .alias(&["readwrite"]),
    row(
        "rw_sequencer",
        "sequential",
        Setter::Choice {
            words: &["sequential", "identical"],
            set: |s, i| s.pattern.random.sequencer = [Sequencer::Sequential, Sequencer::Identical][i & 1],
        },
    )
    .doc("How the run after a random offset continues with rw=rand...:N"),
    row("rwmixread", "50", Setter::Int { min: 0, max: 100, set: |s, v| s.pattern().read_percent = v as u8 })
        .doc("Percentage of reads in a mix; the later of rwmixread and rwmixwrite counts"),
    row("rwmixwrite", "50", Setter::Int { min: 0, max: 100, set: |s, v| s.pattern().read_percent = 100 - v as u8 })
        .doc("Percentage of writes in a mix"),
    row("bs", "4k", Setter::BytesList { set: |s, v| merge(&mut s.pattern.bs, v.map(|v| v.map(Some))) })
        .doc("Size of the I/Os")
        .alias(&["blocksize"]),
    row("bsrange", "", Setter::Form { form: "read,write,trim: low-high", set: bs_range })
        .doc("Sizes drawn evenly from the multiples of the lowest; overrides bs")
        .alias(&["blocksize_range"]),
    row("bssplit", "", Setter::Form { form: "read,write,trim: size/percent:size/percent:...", set: bs_split })
        .doc("Sizes drawn with the given shares; overrides bs and bsrange"),
    row("bs_unaligned", "0", Setter::Flag(|s, on| s.pattern.bs_unaligned = on))
        .doc("Draw any size of bsrange, in whole sectors, not only multiples of the lowest")
        .alias(&["blocksize_unaligned"]),
    row("ba", "", Setter::BytesList { set: |s, v| merge(&mut s.pattern.random.align_bytes, v.map(|v| v.map(Some))) })
        .doc("Alignment of random offsets instead of the lowest block size; switches the random map off")
        .alias(&["blockalign"]),
    row(
        "percentage_random",
        "100",
        Setter::IntList {
            min: 0,
            max: 100,
            set: |s, v| merge(&mut s.pattern.random.percent, v.map(|v| v.map(|v| v as u8))),
        },
    )
    .doc("Percentage of random I/Os in a random job; the others continue sequentially"),
    row("norandommap", "0", Setter::Flag(|s, on| s.pattern.random.map = !on))
        .doc("Draw each random offset independently instead of visiting each block once per pass"),
    row(
        "random_generator",
        "tausworthe",
        Setter::Choice {
            words: &["tausworthe", "lfsr", "tausworthe64"],
            set: |s, i| {
                s.pattern.random.generator = if i == 1 { RandomGenerator::Lfsr } else { RandomGenerator::Tausworthe };
            },
        },
    )
    .doc("Generator of random offsets; fio's distribution is reproduced, not its numbers"),
    row(
        "random_distribution",
        "random",
        Setter::Form {
            form: distribution::FORM,
            set: |s, v| distribution::parse(v, s.files.kb_base).map(|d| s.pattern.random.distribution = d),
        },
    )
    .doc("How random offsets are distributed over the region"),
    row("randseed", "", Setter::Int { min: i64::MIN, max: i64::MAX, set: |s, v| s.pattern.seed = Some(v) })
        .doc("Seed of the job's random numbers; as in fio, only used with randrepeat=0"),
    row("randrepeat", "1", Setter::Bool(|s, on| s.pattern.random.repeats = on))
        .doc("Repeat the same order in each pass; 0 gives each pass a different one"),
    row("allrandrepeat", "0", Setter::Bool(|s, on| s.pattern.random.repeats = on))
        .doc("Same as randrepeat, which covers all random numbers here"),
];

fn apply(job: &Job<'_>, process: &mut Process) -> Result<(), JobFileError> {
    let s = &job.settings.pattern;
    let pattern = process.plan.pattern_mut();
    pattern.sizes = [sizes(s, 0), sizes(s, 1), sizes(s, 2)];
    pattern.seed = s.seed.filter(|_| !s.random.repeats);
    pattern.offsets =
        if s.is_random { Offsets::Random(s.random.clone()) } else { Offsets::Sequential { skip_bytes: s.skip } };
    if let Offsets::Random(random) = &mut pattern.offsets {
        // Tried with fio 3.33: an alignment equal to the default keeps the random map.
        for (align, sizes) in random.align_bytes.iter_mut().zip(&pattern.sizes) {
            *align = align.filter(|&bytes| bytes != u64::from(sizes.min()));
        }
    }
    if s.random.repeats {
        job.add_notice_of_unused_options(&["randseed"], "without randrepeat=0, as in fio");
    }
    let lanes = pattern.direction.lanes();
    let has_range = lanes.iter().any(|&lane| s.bs_range[lane].is_some());
    match effective_size_option(job.settings) {
        "bssplit" if job.is_given("bs") || has_range => {
            job.add_notice_unless_replay("bssplit overrides bs and bsrange, as in fio.");
        }
        "bsrange" if job.is_given("bs") => job.add_notice_unless_replay("bsrange overrides bs, as in fio."),
        _ => {}
    }
    let has_varied_sizes = lanes.iter().any(|&lane| !matches!(pattern.sizes[lane], Sizes::Fixed(_)));
    if s.is_random && s.random.has_map() && has_varied_sizes && s.random.generator != RandomGenerator::Lfsr {
        job.add_notice_unless_replay(
            "with several block sizes the random map covers the starts of blocks: blocks may overlap, \
             where fio would cut them.",
        );
    }
    if !s.is_random && ["percentage_random", "random_distribution", "norandommap"].iter().any(|o| job.is_given(o)) {
        job.add_notice_unless_replay("options for random offsets have no effect on a sequential job.");
    }
    if !s.has_modifier {
        job.add_notice_of_unused_options(&["rw_sequencer"], "without rw=...:N");
    }
    Ok(())
}

/// The block sizes of a direction: from bssplit, otherwise bsrange, otherwise bs, as in fio. Sizes that are too large are
/// rejected later.
fn sizes(s: &Pattern, lane: usize) -> Sizes {
    let saturate = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    let shares = &s.bs_split[lane];
    if shares.is_empty() {
        return match s.bs_range[lane] {
            Some((min, max)) if min < max => Sizes::Range {
                min: saturate(min),
                max: saturate(max),
                step: if s.bs_unaligned { 512 } else { saturate(min) },
            },
            range => Sizes::Fixed(saturate(range.map_or(s.bs[lane].unwrap_or(4096), |(min, _)| min))),
        };
    }
    let given: u32 = shares.iter().filter_map(|share| share.percent).map(u32::from).sum();
    let open = shares.iter().filter(|share| share.percent.is_none()).count() as f64;
    let rest = f64::from(100_u32.saturating_sub(given)) / open;
    let shares = shares
        .iter()
        .map(|share| Sized { bytes: saturate(share.bytes), percent: share.percent.map_or(rest, f64::from) });
    let shares: Vec<Sized> = shares.filter(|share| share.percent > 0.0).collect();
    match shares[..] {
        [Sized { bytes, percent: 100.0 }] => Sizes::Fixed(bytes),
        _ => Sizes::Split(shares.into()),
    }
}

/// The option that determines the block sizes.
fn effective_size_option(s: &Settings) -> &'static str {
    let (split, range) = (&s.pattern.bs_split, &s.pattern.bs_range);
    let lanes = s.process.plan.pattern.direction.lanes();
    if lanes.iter().any(|&lane| !split[lane].is_empty()) {
        "bssplit"
    } else if lanes.iter().any(|&lane| range[lane].is_some()) {
        "bsrange"
    } else {
        "bs"
    }
}

fn bs_range(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let base = s.files.kb_base;
    let given = per_direction(text, |v| values::range_bytes(v, base))?;
    merge(&mut s.pattern.bs_range, given.map(|range| range.map(Some)));
    Ok(())
}

fn bs_split(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let base = s.files.kb_base;
    let given = per_direction(text, |v| v.split(':').map(|entry| share(entry, base)).collect::<Result<Vec<_>, _>>())?;
    merge(&mut s.pattern.bs_split, given);
    Ok(())
}

fn share(entry: &str, base: values::KbBase) -> Result<Share, Refusal> {
    let (size, percent) = match entry.split_once('/') {
        Some((size, percent)) => (size, percent.trim()),
        None => (entry, ""),
    };
    let percent = if percent.is_empty() { None } else { Some(values::whole(percent, 0, 100)? as u8) };
    Ok(Share { bytes: values::bytes(size.trim(), base)?, percent })
}

fn rw(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let (word, modifier) = match text.split_once(':') {
        Some((word, modifier)) => (word, Some(modifier)),
        None => (text, None),
    };
    let (random, direction) = match word.strip_suffix(',').unwrap_or(word) {
        "read" => (false, Direction::Read),
        "write" => (false, Direction::Write),
        "trim" => (false, Direction::Trim),
        "rw" | "readwrite" => (false, Direction::Mixed),
        "trimwrite" => (false, Direction::TrimWrite),
        "randread" => (true, Direction::Read),
        "randwrite" => (true, Direction::Write),
        "randtrim" => (true, Direction::Trim),
        "randrw" => (true, Direction::Mixed),
        "randtrimwrite" => (true, Direction::TrimWrite),
        _ => {
            return Err(Refusal::new(format!("{} is not one of its values", quoted(word)))
                .with_hint("expected read, write, trim, rw, trimwrite, or one of these prefixed with rand"));
        }
    };
    s.pattern().direction = direction;
    s.pattern.is_random = random;
    (s.pattern.random.every, s.pattern.skip) = match modifier {
        None => (1, 0),
        Some(n) if random => (values::whole(n, 1, U32_MAX)? as u32, 0),
        Some(skip) => (1, skip_bytes(skip, s.files.kb_base)?),
    };
    s.pattern.has_modifier = modifier.is_some();
    Ok(())
}

fn skip_bytes(text: &str, base: values::KbBase) -> Result<i64, Refusal> {
    let magnitude = text.strip_prefix('-').unwrap_or(text);
    let bytes = values::bytes(magnitude, base)?;
    if bytes > hoistway_load::limits::REGION_BYTES {
        return Err(Refusal::new(format!("{} is larger than any device", quoted(text))));
    }
    Ok(if magnitude == text { 1 } else { -1 } * bytes as i64)
}
