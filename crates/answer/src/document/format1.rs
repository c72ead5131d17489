//! Converts documents of format 1 to the current format before they are parsed.
//!
//! In format 1 a job had `directions` and `sync` instead of `operations`, a run had `fio`'s document, and `statistics` had the values of
//! each repeat. Keys that are no longer read are left in place.

use serde_json::{Map, Value};

/// The value of `format` in documents of format 1.
pub(super) const FORMAT: &str = "hoistway-results/1";

/// Converts a document to the current format. Damaged parts stay as they are, for the parser to report.
pub(super) fn upgrade(mut document: Value) -> Value {
    let runs = document.get_mut("runs").and_then(Value::as_array_mut);
    let jobs = runs.into_iter().flatten().filter_map(|run| run.get_mut("jobs")?.as_array_mut()).flatten();
    jobs.filter_map(Value::as_object_mut).for_each(upgrade_job);
    let rows = document.pointer_mut("/statistics/rows").and_then(Value::as_array_mut);
    let rows = rows.into_iter().flatten().filter_map(Value::as_object_mut);
    rows.for_each(|row| rename(row, "direction", "operation"));
    document["format"] = super::FORMAT.into();
    document
}

fn upgrade_job(object: &mut Map<String, Value>) {
    let (directions, sync) = (object.remove("directions"), object.remove("sync"));
    let Some(Value::Array(mut operations)) = directions else {
        // The parser reports what is missing or wrong.
        object.extend(directions.map(|directions| ("operations".to_owned(), directions)));
        return;
    };
    for direction in operations.iter_mut().filter_map(Value::as_object_mut) {
        rename(direction, "direction", "operation");
    }
    if let Some(mut sync) = sync.filter(|sync| !sync.is_null()) {
        if let Value::Object(of) = &mut sync {
            rename(of, "syncs", "ios");
            rename(of, "syncs_per_second", "iops");
            of.extend([("operation", "sync".into()), ("bytes", 0.into()), ("bytes_per_second", 0.0.into())].map(owned));
        }
        operations.push(sync);
    }
    object.insert("operations".to_owned(), operations.into());
}

fn rename(object: &mut Map<String, Value>, from: &str, to: &str) {
    let value = object.remove(from);
    object.extend(value.map(|value| (to.to_owned(), value)));
}

fn owned((key, value): (&str, Value)) -> (String, Value) {
    (key.to_owned(), value)
}

/// Translates the path of a field in the converted document to its path in the original one, for error messages.
pub(super) fn original_path(field: &str, document: &Value) -> String {
    if field.starts_with("statistics.rows") {
        return field.replace("].operation", "].direction");
    }
    let Some((job, rest)) = field.split_once(".operations") else { return field.to_owned() };
    let index_after =
        |list: &str, text: &str| -> Option<usize> { text.strip_prefix(list)?.split(']').next()?.parse().ok() };
    let number = index_after("[", rest);
    let directions = || {
        let run = index_after("runs[", job)?;
        let job = index_after("].jobs[", &job[job.find(']')?..])?;
        Some(document["runs"][run]["jobs"][job]["directions"].as_array()?.len())
    };
    let suffix = rest.split_once(']').map_or("", |(_, suffix)| suffix);
    match (number, directions()) {
        (Some(number), Some(directions)) if number >= directions => {
            let suffix = match suffix {
                ".ios" => ".syncs",
                ".iops" => ".syncs_per_second",
                other => other,
            };
            format!("{job}.sync{suffix}")
        }
        _ => format!("{job}.directions{}", rest.replace("].operation", "].direction")),
    }
}
