//! Parses the values of `random_distribution`.

use std::sync::Arc;

use hoistway_load::{Distribution, Extent, Popularity, Zone};

use crate::error::quoted;
use crate::values::{self, KbBase, Refusal, per_direction};

pub(super) const FORM: &str = "random | zipf:THETA[:CENTRE] | pareto:H[:CENTRE] | normal:DEVIATION[:CENTRE] | \
                               zoned:ACCESS/SIZE:... in percent | zoned_abs:PERCENT/BYTES:..., zones also as \
                               read,write,trim";

pub(super) fn parse(text: &str, base: KbBase) -> Result<Distribution, Refusal> {
    let distribution = parse_unchecked(text, base)?;
    // Checked here, because fio also rejects an invalid distribution in sequential jobs, whose pattern has none.
    distribution.check().map_err(|error| Refusal::new(error.message).with_hint(error.hint))?;
    Ok(distribution)
}

fn parse_unchecked(text: &str, base: KbBase) -> Result<Distribution, Refusal> {
    let (word, rest) = match text.split_once(':') {
        Some((word, rest)) => (word, Some(rest)),
        None => (text, None),
    };
    match word {
        "random" if rest.is_some() => Err(Refusal::new("random has no parameter").with_hint("remove what follows it")),
        "random" => Ok(Distribution::Uniform),
        "zoned" | "zoned_abs" => zoned(rest.unwrap_or_default(), word == "zoned_abs", base),
        _ => skewed(word, rest),
    }
}

fn skewed(word: &str, rest: Option<&str>) -> Result<Distribution, Refusal> {
    let (parameter, centre) = match rest.and_then(|rest| rest.split_once(':')) {
        Some((parameter, centre)) => (Some(parameter), Some(values::decimal(centre)?)),
        None => (rest, None),
    };
    let Some(popularity) = popularity(word, parameter)? else {
        return Err(
            Refusal::new(format!("{} is not one of its values", quoted(word))).with_hint(format!("expected {FORM}"))
        );
    };
    let default = if matches!(popularity, Popularity::Normal { .. }) { Some(0.5) } else { None };
    Ok(Distribution::Skewed { popularity, centre: centre.or(default) })
}

/// `60/10:30/20:...`, or one such list each for reads, writes and trims, separated by commas, as in fio's manual (the
/// parser of fio 3.33 accepts no comma here).
fn zoned(text: &str, is_absolute: bool, base: KbBase) -> Result<Distribution, Refusal> {
    let lists = per_direction(text, |list| zones(list, is_absolute, base))?;
    // An empty list for a direction means uniform.
    let everywhere = || Arc::from([Zone { access_percent: 100.0, extent: Extent::Percent(100.0) }]);
    Ok(Distribution::Zoned(lists.map(|zones| zones.unwrap_or_else(everywhere))))
}

fn zones(list: &str, is_absolute: bool, base: KbBase) -> Result<Arc<[Zone]>, Refusal> {
    let entries: Vec<&str> = list.split(':').map(str::trim).collect();
    let (mut accesses, mut sizes, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    for entry in entries {
        let Some((access, size)) = entry.split_once('/') else {
            let expected = if is_absolute { "60/20g" } else { "60/10" };
            return Err(Refusal::new(format!("{} is not a zone", quoted(entry)))
                .with_hint(format!("a zone is a share of the I/Os and a size, such as {expected}")));
        };
        accesses.push(values::whole(access.trim(), 0, 100)? as u32);
        if is_absolute {
            bytes.push(values::bytes(size.trim(), base)?);
        } else {
            let size = size.trim();
            sizes.push(if size.is_empty() { None } else { Some(values::whole(size, 0, 100)? as u32) });
        }
    }
    let extents: Vec<Extent> = if is_absolute {
        bytes.into_iter().map(Extent::Bytes).collect()
    } else {
        fill_in_missing(&sizes).into_iter().map(Extent::Percent).collect()
    };
    let zones = accesses.into_iter().zip(extents);
    Ok(zones.map(|(access, extent)| Zone { access_percent: f64::from(access), extent }).collect())
}

/// Fills in missing percentages with equal parts of the rest.
fn fill_in_missing(percents: &[Option<u32>]) -> Vec<f64> {
    let given: u32 = percents.iter().flatten().sum();
    let open = percents.iter().filter(|percent| percent.is_none()).count();
    let rest = f64::from(100_u32.saturating_sub(given)) / open.max(1) as f64;
    percents.iter().map(|percent| percent.map_or(rest, f64::from)).collect()
}

/// The popularity with this name and parameter; `None` if the name is unknown.
pub(super) fn popularity(word: &str, parameter: Option<&str>) -> Result<Option<Popularity>, Refusal> {
    let parameter = |default| parameter.map_or(Ok(default), values::decimal);
    Ok(Some(match word {
        "zipf" => Popularity::Zipf { theta: parameter(1.1)? },
        "pareto" => Popularity::Pareto { h: parameter(0.2)? },
        "normal" | "gauss" => Popularity::Normal { spread_percent: parameter(0.0)? },
        _ => return Ok(None),
    }))
}
