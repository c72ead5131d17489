//! A table with a row per figure of a search's runs.

use std::sync::Arc;

use arrow_array::builder::PrimitiveBuilder;
use arrow_array::types::UInt64Type;
use arrow_array::{Float64Array, RecordBatch, UInt64Array};
use arrow_schema::ArrowError;
use hoistway_answer::tuning::Tuning;

use super::keys::{Names, names};
use crate::table::batch;

/// One row for each figure of each run, in the order in which the runs were made.
pub(crate) fn figures_of_search(document: &Tuning) -> Result<RecordBatch, ArrowError> {
    let [mut scheduler, mut setting, mut job, mut operation, mut figure, mut unit] =
        std::array::from_fn(|_| Names::new());
    let mut runtime = PrimitiveBuilder::<UInt64Type>::new();
    let (mut seed, mut value) = (Vec::new(), Vec::new());
    for run in &document.runs {
        let label = run.setting.to_string();
        for (name, measured) in &run.figures {
            scheduler.append_value(&run.setting.scheduler);
            setting.append_value(&label);
            seed.push(run.seed);
            runtime.append_option(run.runtime_ns);
            job.append_value(&name.job);
            operation.append_value(name.operation.name());
            figure.append_value(name.figure.name());
            unit.append_value(name.figure.unit());
            value.push(*measured);
        }
    }
    batch(vec![
        names("scheduler", false, scheduler),
        names("setting", false, setting),
        ("seed", false, Arc::new(UInt64Array::from(seed))),
        ("runtime_ns", true, Arc::new(runtime.finish())),
        names("job", false, job),
        names("operation", false, operation),
        names("figure", false, figure),
        names("unit", false, unit),
        ("value", false, Arc::new(Float64Array::from(value))),
    ])
}
