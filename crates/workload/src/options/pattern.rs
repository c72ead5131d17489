//! Directions, block sizes and offsets.

use super::distribution;
use super::setter::Setter;
use super::spec::OptionSpec;
use crate::error::quoted;
use crate::generator::RandomGenerator;
use crate::settings::{Direction, Modifier, Sequencer, Settings, Share};
use crate::values::{self, PerDirection, Refusal, merge, per_direction};

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "rw",
        "read",
        Setter::Form {
            form: "read | write | trim | randread | randwrite | randtrim | rw | randrw | trimwrite | randtrimwrite, \
                   with :N for random in runs of N, or :BYTES for sequential with holes",
            set: rw,
        },
        "Direction and order of the I/O",
    )
    .alias(&["readwrite"]),
    OptionSpec::new(
        "rw_sequencer",
        "sequential",
        Setter::Choice {
            of: &["sequential", "identical"],
            set: |s, i| s.sequencer = [Sequencer::Sequential, Sequencer::Identical][i & 1],
        },
        "What follows a random offset with rw=rand...:N",
    ),
    OptionSpec::new(
        "rwmixread",
        "50",
        Setter::Int { min: 0, max: 100, set: |s, v| s.read_percent = v as u8 },
        "Percentage of reads in a mix; the later of rwmixread and rwmixwrite counts",
    ),
    OptionSpec::new(
        "rwmixwrite",
        "50",
        Setter::Int { min: 0, max: 100, set: |s, v| s.read_percent = 100 - v as u8 },
        "Percentage of writes in a mix",
    ),
    OptionSpec::new("bs", "4k", Setter::BytesList { set: bs }, "Size of the I/Os").alias(&["blocksize"]),
    OptionSpec::new(
        "bsrange",
        "",
        Setter::Form { form: "read,write,trim: low-high", set: bs_range },
        "Sizes drawn evenly from the multiples of the lowest; stronger than bs",
    )
    .alias(&["blocksize_range"]),
    OptionSpec::new(
        "bssplit",
        "",
        Setter::Form { form: "read,write,trim: size/percent:size/percent:...", set: bs_split },
        "Sizes drawn with the given shares; stronger than bs and bsrange",
    ),
    OptionSpec::new(
        "bs_unaligned",
        "0",
        Setter::Flag(|s, on| s.bs_unaligned = on),
        "Draw any size of bsrange, in whole sectors, not only multiples of the lowest",
    )
    .alias(&["blocksize_unaligned"]),
    OptionSpec::new(
        "ba",
        "",
        Setter::BytesList { set: |s, v| merge(&mut s.block_align, v.map(|v| v.map(Some))) },
        "Alignment of random offsets instead of the lowest block size; switches the random map off",
    )
    .alias(&["blockalign"]),
    OptionSpec::new(
        "percentage_random",
        "100",
        Setter::IntList { min: 0, max: 100, set: |s, v| merge(&mut s.percent_random, v.map(|v| v.map(|v| v as u8))) },
        "Percentage of random I/Os in a random job; the others continue the last",
    ),
    OptionSpec::new(
        "norandommap",
        "0",
        Setter::Flag(|s, on| s.no_random_map = on),
        "Draw each random offset anew instead of visiting each block once in a pass",
    ),
    OptionSpec::new(
        "random_generator",
        "tausworthe",
        Setter::Choice {
            of: &["tausworthe", "lfsr", "tausworthe64"],
            set: |s, i| {
                s.random_generator = if i == 1 { RandomGenerator::Lfsr } else { RandomGenerator::Tausworthe };
            },
        },
        "Where random offsets come from; fio's numbers are not repeated, their distribution is",
    ),
    OptionSpec::new(
        "random_distribution",
        "random",
        Setter::Form {
            form: distribution::FORM,
            set: |s, v| distribution::parse(v, s.kb_base).map(|d| s.distribution = d),
        },
        "How random offsets are distributed over the region",
    ),
    OptionSpec::new(
        "randseed",
        "",
        Setter::Int { min: i64::MIN, max: i64::MAX, set: |s, v| s.rand_seed = Some(v) },
        "Seed of the job's random numbers; as in fio it counts only with randrepeat=0",
    ),
    OptionSpec::new(
        "randrepeat",
        "1",
        Setter::Bool(|s, on| s.rand_repeat = on),
        "Repeat the same order in each pass; 0 gives each pass another",
    ),
    OptionSpec::new(
        "allrandrepeat",
        "0",
        Setter::Bool(|s, on| s.rand_repeat = on),
        "As randrepeat, which covers all random numbers here",
    ),
];

fn bs(s: &mut Settings, given: PerDirection<Option<u64>>) {
    merge(&mut s.bs, given);
}

fn bs_range(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let base = s.kb_base;
    let given = per_direction(text, |v| values::range_bytes(v, base))?;
    merge(&mut s.bs_range, given.map(|range| range.map(Some)));
    Ok(())
}

fn bs_split(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let base = s.kb_base;
    let given = per_direction(text, |v| v.split(':').map(|entry| share(entry, base)).collect::<Result<Vec<_>, _>>())?;
    for (old, new) in s.bs_split.0.iter_mut().zip(given.0) {
        if let Some(new) = new {
            *old = new;
        }
    }
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
                .hinting("expected read, write, trim, rw, trimwrite, or one of them after rand"));
        }
    };
    s.modifier = match modifier {
        None => Modifier::None,
        Some(n) if random => Modifier::Every(values::whole(n, 1, i64::from(u32::MAX))? as u32),
        Some(skip) => Modifier::Skip(skip_bytes(skip, s.kb_base)?),
    };
    (s.random, s.direction) = (random, direction);
    Ok(())
}

fn skip_bytes(text: &str, base: values::KbBase) -> Result<i64, Refusal> {
    let (sign, magnitude) = match text.strip_prefix('-') {
        Some(magnitude) => (-1, magnitude),
        None => (1, text),
    };
    let bytes = values::bytes(magnitude, base)?;
    if bytes % 512 != 0 || bytes > 1 << 60 {
        return Err(Refusal::new(format!("{} bytes cannot be skipped", bytes)).hinting("use a multiple of 512 bytes"));
    }
    Ok(sign * bytes as i64)
}
