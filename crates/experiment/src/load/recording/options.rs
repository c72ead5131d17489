//! Options of a replay, checked against the replayed program.

use std::collections::BTreeSet;

use hoistway_blk::bio::{IoPriority, PriorityClass};
use hoistway_program::{Program, ReplayOptions, RequestedDevice};
use hoistway_trace::block::Columns;

use crate::comparison::environment::Options;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::nearest;

const SPEED_MAX: f64 = 1e6;
const COPIES_MAX: u32 = 1000;

/// The requested device, if the recording has several.
pub(super) fn device(options: &Options<'_>) -> Option<RequestedDevice> {
    options.comparison.replay.device.as_deref().map(RequestedDevice::parse)
}

/// The columns of a table.
pub(crate) fn columns(options: &Options<'_>) -> Result<Option<Columns>, Error> {
    let Some(text) = &options.comparison.replay.columns else { return Ok(None) };
    Columns::parse(text).map(Some).map_err(|problem| options.refuse(Field::Columns, text, problem))
}

/// The requested part.
pub(super) fn window(options: &Options<'_>) -> Result<Option<(u64, u64)>, Error> {
    match options.comparison.replay.window_ns {
        Some((from, to)) if from >= to => {
            let shown = format!("{from}..{to} ns");
            Err(options.refuse(Field::Window, shown, "expected a start before the end"))
        }
        window => Ok(window),
    }
}

/// How to replay the program.
pub(super) fn replay(options: &Options<'_>, program: &Program) -> Result<ReplayOptions, Error> {
    let requested = &options.comparison.replay;
    if !(requested.speed > 1.0 / SPEED_MAX && requested.speed < SPEED_MAX) {
        return Err(options.refuse(
            Field::Speed,
            requested.speed,
            "expected a factor above 0.000001 and below 1000000",
        ));
    }
    if !(1..=COPIES_MAX).contains(&requested.copies) {
        return Err(options.refuse(Field::Copies, requested.copies, format!("expected 1 to {COPIES_MAX}")));
    }
    let check_stream = |field: Field, name: &String| {
        if program.streams.iter().any(|stream| stream.is_called(name)) {
            return Ok(());
        }
        let mut names: Vec<&str> = program.streams.iter().map(|stream| &*stream.name).collect();
        names.dedup();
        let hint = nearest::hint(name, names.iter().copied());
        let problem = format!("no stream of that name or PID ({hint}expected one of {})", names.join(", "));
        Err(options.refuse(field, name, problem))
    };
    requested.streams.iter().try_for_each(|name| check_stream(Field::Streams, name))?;
    requested.depths.keys().try_for_each(|name| check_stream(Field::Depths, name))?;
    requested.priorities.keys().try_for_each(|name| check_stream(Field::Priorities, name))?;
    if let Some((name, depth)) = requested.depths.iter().find(|(_, depth)| **depth == 0 || **depth > 65_536) {
        return Err(options.refuse(Field::Depths, format_args!("{name}={depth}"), "expected a depth of 1 to 65536"));
    }
    for (id, weight) in &requested.cgroup_weights {
        let given = format!("{id}=weight:{weight}");
        if !(1..=1000).contains(weight) {
            return Err(options.refuse(Field::CgroupWeights, given, "expected a weight of 1 to 1000"));
        }
        let known = cgroups(program);
        if !known.contains(id) {
            let known: Vec<String> = known.iter().map(u64::to_string).collect();
            let expected = if known.is_empty() {
                "a recording with cgroups".to_owned()
            } else {
                format!("one of {}", known.join(", "))
            };
            return Err(options.refuse(
                Field::CgroupWeights,
                given,
                format!("no cgroup of that id (expected {expected})"),
            ));
        }
    }
    let mut priorities = Vec::new();
    for (name, text) in &requested.priorities {
        let Some(priority) = priority(text) else {
            let given = format!("{name}={text}");
            return Err(options.refuse(
                Field::Priorities,
                given,
                "expected a class and a level, such as rt:4, be:0 or idle",
            ));
        };
        priorities.push((name.clone(), priority));
    }
    if let Some(name) = &requested.recorded_under
        && options.environment.schedulers().find(name).is_none()
    {
        let registry = options.environment.schedulers();
        let names: Vec<&str> = registry.rows().iter().map(|row| row.name).collect();
        let problem = format!("unknown scheduler (expected one of {})", names.join(", "));
        return Err(options.refuse(Field::RecordedUnder, name, problem));
    }
    Ok(ReplayOptions {
        mode: requested.mode,
        speed: requested.speed,
        copies: requested.copies,
        depths: requested.depths.iter().map(|(name, depth)| (name.clone(), *depth)).collect(),
        priorities,
        cgroup_weights: requested.cgroup_weights.iter().map(|(id, weight)| (*id, *weight)).collect(),
        streams: requested.streams.clone(),
        ..ReplayOptions::default()
    })
}

/// Ids of the cgroups of a recording.
pub(super) fn cgroups(program: &Program) -> BTreeSet<u64> {
    program.streams.iter().filter_map(|stream| stream.cgroup).collect()
}

/// A class with a level: `rt:4`, `be:0`, `idle`.
pub(super) fn priority(text: &str) -> Option<IoPriority> {
    let (class, level) = text.split_once(':').unwrap_or((text, "4"));
    let class = match class {
        "rt" | "realtime" => PriorityClass::RealTime,
        "be" | "best-effort" => PriorityClass::BestEffort,
        "idle" => PriorityClass::Idle,
        _ => return None,
    };
    let level: u8 = level.parse().ok().filter(|level| *level < 8)?;
    Some(IoPriority::new(class, level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_a_class_with_a_level() {
        assert_eq!(priority("rt:0"), Some(IoPriority::new(PriorityClass::RealTime, 0)));
        assert_eq!(priority("idle"), Some(IoPriority::new(PriorityClass::Idle, 4)));
        assert_eq!(priority("be"), Some(IoPriority::new(PriorityClass::BestEffort, 4)));
        for wrong in ["", "rt:8", "rt:", "high:1", "be:-1"] {
            assert_eq!(priority(wrong), None, "{wrong}");
        }
    }
}
