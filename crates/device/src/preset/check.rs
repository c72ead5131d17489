//! Checks a parsed document against the schema.
//!
//! It walks the TOML parser's document, which contains the position of every key, so that each error names its line.
//! serde alone cannot: it reports a missing key without a line, and an invalid value without the key.

use std::ops::Range;

use hoistway_blk::ground::SECTOR_BYTES;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::PresetProblem;
use super::file::{Model, bytes_from_gb};
use super::schema::{self, Key, Kind};
use super::{Parameters, Preset};

/// A value with its position in the text.
type Value<'a> = Spanned<DeValue<'a>>;

/// Checks the whole text of a preset file.
pub(super) fn document(text: &str) -> Result<(), PresetProblem> {
    let document = DeTable::parse(text).map_err(|e| PresetProblem::from_toml(&e))?;
    let table = document.get_ref();
    // The model comes first: it determines the sections.
    let model = match table.get(schema::MODEL.name) {
        Some(value) => {
            check_value(value, schema::MODEL.kind, schema::MODEL.name)?;
            value.get_ref().as_str().and_then(schema::model)
        }
        None => None,
    };
    let model = model.ok_or_else(|| missing(&(0..0), "", schema::MODEL))?;
    check_keys(table, &(0..0), schema::file(model), "")?;
    check_shape(table)?;
    check_seeks(table)?;
    check_buffer(table)?;
    check_striping(table)?;
    check_collection_step(table)?;
    check_needed_sections(table)?;
    check_fua(table)?;
    check_inner(table)?;
    check_transport(table)?;
    check_assumed(table)?;
    check_sources(table, model)
}

/// Checks that a section has all required keys, no unknown ones, and only valid values.
fn check_keys(table: &DeTable<'_>, span: &Range<usize>, keys: &[Key], section: &str) -> Result<(), PresetProblem> {
    for (name, value) in table {
        let path = path(section, name.get_ref());
        let Some(key) = keys.iter().find(|key| key.name == name.get_ref()) else {
            let expected = format!("one of {}", schema::names(keys));
            return Err(PresetProblem::with_key(
                &name.span(),
                path,
                "is not a key that this model knows".into(),
                expected,
            ));
        };
        match (key.kind, value.get_ref()) {
            // The position of a section is that of its name.
            (Kind::Section(inner), DeValue::Table(table)) => check_keys(table, &name.span(), inner, &path)?,
            _ => check_value(value, key.kind, &path)?,
        }
    }
    match keys.iter().find(|key| key.required && !table.contains_key(key.name)) {
        Some(key) => Err(missing(span, section, key)),
        None => Ok(()),
    }
}

fn missing(span: &Range<usize>, section: &str, key: &Key) -> PresetProblem {
    PresetProblem::with_key(span, path(section, key.name), "is missing".into(), key.kind.to_string())
}

/// Checks one value.
fn check_value(value: &Value<'_>, kind: Kind, path: &str) -> Result<(), PresetProblem> {
    let is_valid = match (kind, value.get_ref()) {
        (Kind::Text, DeValue::String(text)) => !text.trim().is_empty(),
        (Kind::Word(words), DeValue::String(word)) => words.contains(&word.as_ref()),
        (Kind::Flag, DeValue::Boolean(_)) => true,
        // NaN is not in any range.
        (Kind::Number(min, max, _), number) => number_of(number).is_some_and(|n| (min..=max).contains(&n)),
        (Kind::Whole(min, max, _), number) => whole_of(number).is_some_and(|n| (min..=max).contains(&n)),
        (Kind::Span(min, max, _), DeValue::Array(ends)) => {
            let ends: Vec<_> = ends.iter().map(|end| whole_of(end.get_ref())).collect();
            matches!(ends[..], [Some(from), Some(to)] if min <= from && from <= to && to <= max)
        }
        (Kind::Ascending(count, min, max, _), DeValue::Array(numbers)) => {
            let numbers: Option<Vec<f64>> = numbers.iter().map(|number| number_of(number.get_ref())).collect();
            numbers.is_some_and(|numbers| {
                numbers.len() == count && numbers.is_sorted() && numbers.iter().all(|n| (min..=max).contains(n))
            })
        }
        (Kind::PowerOfTwo(min, max, _), number) => {
            whole_of(number).is_some_and(|n| (min..=max).contains(&n) && n.is_power_of_two())
        }
        (Kind::Section(keys), DeValue::Table(table)) => return check_keys(table, &value.span(), keys, path),
        (Kind::Sections(keys), DeValue::Array(entries)) => {
            for (index, entry) in entries.iter().enumerate() {
                check_value(entry, Kind::Section(keys), &format!("{path}[{index}]"))?;
            }
            true
        }
        (Kind::Sources, DeValue::Table(_)) => true,
        _ => false,
    };
    if is_valid {
        return Ok(());
    }
    let problem = format!("is {}", describe(value.get_ref()));
    Err(PresetProblem::with_key(&value.span(), path.to_owned(), problem, kind.to_string()))
}

/// Checks that involve several keys of the shape. Single keys have been checked before.
fn check_shape(table: &DeTable<'_>) -> Result<(), PresetProblem> {
    let value = |name| table.get("shape").and_then(|shape| shape.get_ref().as_table()?.get(name));
    let (Some(capacity), Some(logical), Some(physical)) =
        (value("capacity_gb"), value("logical_block_bytes"), value("physical_block_bytes"))
    else {
        return Ok(());
    };
    let logical_bytes = whole_of(logical.get_ref()).unwrap_or(1);
    if whole_of(physical.get_ref()) < Some(logical_bytes) {
        let problem = format!("is {}", describe(physical.get_ref()));
        let expected = format!("at least `shape.logical_block_bytes`, which is {logical_bytes}");
        return Err(PresetProblem::with_key(&physical.span(), "shape.physical_block_bytes".into(), problem, expected));
    }
    let bytes = number_of(capacity.get_ref()).map_or(0, bytes_from_gb);
    if bytes == 0 || !bytes.is_multiple_of(logical_bytes) {
        let problem = format!("is {}, that is {bytes} bytes", describe(capacity.get_ref()));
        let expected = format!("a whole number of logical blocks of {logical_bytes} bytes");
        return Err(PresetProblem::with_key(&capacity.span(), "shape.capacity_gb".into(), problem, expected));
    }
    Ok(())
}

/// The three seek times of a disk must be consistent: longer seeks must take longer.
fn check_seeks(table: &DeTable<'_>) -> Result<(), PresetProblem> {
    let value = |name| table.get("hdd").and_then(|hdd| hdd.get_ref().as_table()?.get(name));
    let (Some(min), Some(average), Some(max)) =
        (value("seek_track_to_track_ms"), value("seek_average_ms"), value("seek_full_stroke_ms"))
    else {
        return Ok(());
    };
    let [min_ms, average_ms, max_ms] = [min, average, max].map(|value| number_of(value.get_ref()).unwrap_or_default());
    // From a straight line to a pure square root.
    let [line_ms, root_ms] = [1.0 / 3.0, 8.0 / 15.0].map(|part| min_ms + (max_ms - min_ms) * part);
    let refuse = |value: &Value<'_>, name: &str, expected: String| {
        let problem = format!("is {}", describe(value.get_ref()));
        Err(PresetProblem::with_key(&value.span(), format!("hdd.{name}"), problem, expected))
    };
    if max_ms < min_ms {
        let expected = format!("at least `hdd.seek_track_to_track_ms`, which is {min_ms}");
        return refuse(max, "seek_full_stroke_ms", expected);
    }
    if !(line_ms - 1e-9..=root_ms + 1e-9).contains(&average_ms) {
        let expected = format!(
            "a number of milliseconds from {line_ms:.3} to {root_ms:.3}, so that with the other two seeks a longer one \
             takes longer"
        );
        return refuse(average, "seek_average_ms", expected);
    }
    Ok(())
}

/// A program must fit into the write buffer of a flash drive, or it would never be full.
fn check_buffer(table: &DeTable<'_>) -> Result<(), PresetProblem> {
    let Some(flash) = table.get("flash").and_then(|flash| flash.get_ref().as_table()) else { return Ok(()) };
    let Some(buffer) = flash.get("buffer_kib") else { return Ok(()) };
    let kib = flash.get("program_kib").and_then(|value| whole_of(value.get_ref())).unwrap_or_default();
    if whole_of(buffer.get_ref()) < Some(kib) {
        let problem = format!("is {}", describe(buffer.get_ref()));
        let expected = format!("at least `flash.program_kib`, which is {kib}");
        return Err(PresetProblem::with_key(&buffer.span(), "flash.buffer_kib".into(), problem, expected));
    }
    Ok(())
}

/// A flash drive has the placement `striped` if, and only if, it has striping parameters, which collection parameters require.
fn check_striping(table: &DeTable<'_>) -> Result<(), PresetProblem> {
    let Some(flash) = table.get("flash").and_then(|flash| flash.get_ref().as_table()) else { return Ok(()) };
    let Some(placement) = flash.get("placement") else { return Ok(()) };
    let is_striped = placement.get_ref().as_str() == Some("striped");
    let expected = match (flash.contains_key("striping"), flash.contains_key("collection")) {
        (true, _) if !is_striped => "\"striped\", because there is a section `flash.striping`",
        (false, _) if is_striped => "a section `flash.striping`, or another placement",
        (false, true) => "\"striped\", because there is a section `flash.collection`",
        _ => return Ok(()),
    };
    let problem = format!("is {}", describe(placement.get_ref()));
    Err(PresetProblem::with_key(&placement.span(), "flash.placement".into(), problem, expected.to_owned()))
}

/// Steps of collection are of amplified programs that reads interrupt, and not of data dealt to dies.
fn check_collection_step(table: &DeTable<'_>) -> Result<(), PresetProblem> {
    let Some(flash) = table.get("flash").and_then(|flash| flash.get_ref().as_table()) else { return Ok(()) };
    let Some(step) = flash.get("collection_step_us") else { return Ok(()) };
    let is_amplified = flash.contains_key("random_write_amplification") || flash.contains_key("translation");
    let expected = match (flash.contains_key("program_suspend_us"), is_amplified, flash.contains_key("striping")) {
        (false, ..) => "`program_suspend_us`, too: otherwise reads wait for whole programs",
        (_, false, _) => "`random_write_amplification` or a section `flash.translation`, too",
        (.., true) => "a section `flash.collection` instead, because there is a section `flash.striping`",
        _ => return Ok(()),
    };
    let problem = format!("is {}", describe(step.get_ref()));
    Err(PresetProblem::with_key(&step.span(), "flash.collection_step_us".into(), problem, expected.to_owned()))
}

/// Options of collection need the section of the kind of collection that they are about.
fn check_needed_sections(table: &DeTable<'_>) -> Result<(), PresetProblem> {
    let Some(flash) = table.get("flash").and_then(|flash| flash.get_ref().as_table()) else { return Ok(()) };
    for (key, section) in [("gc_defers", "collection"), ("heat_placement", "translation")] {
        let Some(flag) = flash.get(key).filter(|flag| flag.get_ref().as_bool() == Some(true)) else { continue };
        if !flash.contains_key(section) {
            let expected = format!("false, or a section `flash.{section}`");
            return Err(PresetProblem::with_key(&flag.span(), format!("flash.{key}"), "is true".into(), expected));
        }
    }
    Ok(())
}

/// Only a drive with FUA and a volatile cache has writes that wait for the flash, which can block reads.
fn check_fua(table: &DeTable<'_>) -> Result<(), PresetProblem> {
    let value = |section, name| table.get(section).and_then(|section| section.get_ref().as_table()?.get(name));
    let is_true = |section, name| value(section, name).and_then(|flag| flag.get_ref().as_bool()) == Some(true);
    match value("flash", "fua_blocks_reads") {
        Some(blocks)
            if is_true("flash", "fua_blocks_reads")
                && !(is_true("shape", "fua") && is_true("shape", "write_cache")) =>
        {
            let expected = "false, or `shape.fua` and `shape.write_cache` true".to_owned();
            Err(PresetProblem::with_key(&blocks.span(), "flash.fua_blocks_reads".into(), "is true".into(), expected))
        }
        _ => Ok(()),
    }
}

/// The device behind a RAID card must exist, must not be such a card, and must be at least as large as the card's
/// capacity.
fn check_inner(table: &DeTable<'_>) -> Result<(), PresetProblem> {
    let value = |section, name| table.get(section).and_then(|raid| raid.get_ref().as_table()?.get(name));
    let Some(inner) = value("raid", "inner") else { return Ok(()) };
    let name = inner.get_ref().as_str().unwrap_or_default();
    let refuse = |expected: String| {
        let problem = format!("is {}", describe(inner.get_ref()));
        Err(PresetProblem::with_key(&inner.span(), "raid.inner".into(), problem, expected))
    };
    let Ok(preset) = Preset::builtin(name) else {
        return refuse("the name of a built-in device (see `hoistway devices`)".into());
    };
    if matches!(preset.parameters(), Parameters::Raid(..)) {
        return refuse("a device that is not a RAID card itself".into());
    }
    if preset.transport().is_some() {
        return refuse("a device without a transport".into());
    }
    let bytes = value("shape", "capacity_gb").and_then(|value| number_of(value.get_ref())).map_or(0, bytes_from_gb);
    if preset.shape().capacity_sectors < bytes / SECTOR_BYTES {
        return refuse(format!("a device of at least `shape.capacity_gb`, which is {} GB", bytes as f64 / 1e9));
    }
    Ok(())
}

/// A transport needs hardware queues of its own: a SCSI disk has one, and those of a drive with arbitration have classes already.
fn check_transport(table: &DeTable<'_>) -> Result<(), PresetProblem> {
    let Some((name, _)) = table.get_key_value("transport") else { return Ok(()) };
    let value = |section, name| table.get(section).and_then(|section| section.get_ref().as_table()?.get(name));
    let is_scsi = value("shape", "scsi").and_then(|flag| flag.get_ref().as_bool()) == Some(true);
    let expected = match (is_scsi, value("flash", "arbitration")) {
        (true, _) => "no transport, or `shape.scsi` false",
        (false, Some(_)) => "no transport, or no section `flash.arbitration`",
        (false, None) => return Ok(()),
    };
    Err(PresetProblem::with_key(&name.span(), "transport".into(), "is given".into(), expected.to_owned()))
}

/// A preset with assumed numbers has no residuals.
fn check_assumed(table: &DeTable<'_>) -> Result<(), PresetProblem> {
    let Some(calibration) = table.get("calibration").and_then(|value| value.get_ref().as_table()) else {
        return Ok(());
    };
    match calibration.get("assumed") {
        Some(assumed)
            if assumed.get_ref().as_bool() == Some(true)
                && ["range", "residuals"].iter().any(|key| calibration.contains_key(*key)) =>
        {
            let expected = "false, or a section without `range` and `residuals`".to_owned();
            Err(PresetProblem::with_key(&assumed.span(), "calibration.assumed".into(), "is true".into(), expected))
        }
        _ => Ok(()),
    }
}

/// A source must belong to a parameter; otherwise its key is misspelled.
fn check_sources(table: &DeTable<'_>, model: Model) -> Result<(), PresetProblem> {
    let calibration = table.get("calibration").and_then(|value| value.get_ref().as_table());
    let Some(sources) = calibration.and_then(|table| table.get("sources")?.get_ref().as_table()) else {
        return Ok(());
    };
    let parameters = schema::parameters(model);
    for (name, value) in sources {
        let path = path("calibration.sources", name.get_ref());
        if !parameters.iter().any(|parameter| parameter == name.get_ref()) {
            let problem = "is not the key of a parameter".into();
            let expected = format!("one of these in quotes: {}", parameters.join(", "));
            return Err(PresetProblem::with_key(&name.span(), path, problem, expected));
        }
        check_value(value, Kind::Text, &path)?;
    }
    Ok(())
}

/// The key with its section. Control characters are escaped, and long keys truncated.
fn path(section: &str, name: &str) -> String {
    let name = truncate(name);
    if section.is_empty() { name } else { format!("{section}.{name}") }
}

/// Any number.
fn number_of(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(float) => float.as_str().parse().ok(),
        _ => whole_of(value).map(|n| n as f64),
    }
}

/// A non-negative integer.
fn whole_of(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// The value for a message.
fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text \"{}\"", truncate(text)),
        DeValue::Integer(integer) => truncate(&integer.to_string()),
        DeValue::Float(float) => truncate(float.as_str()),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a section".to_owned(),
    }
}

/// At most 60 characters, on one line.
fn truncate(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    let mut truncated: String = text.chars().take(CHARS_MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(CHARS_MAX).is_some() {
        truncated.push_str("...");
    }
    truncated
}
