//! The columns that identify the run of a row.

use std::sync::Arc;

use arrow_array::builder::{PrimitiveBuilder, StringDictionaryBuilder};
use arrow_array::types::{Int32Type, UInt32Type, UInt64Type};
use hoistway_answer::document::Front;
use hoistway_answer::rows::RunRow;

use crate::table::Column;

/// A dictionary-encoded column, for few different texts in many rows.
pub(super) type Names = StringDictionaryBuilder<Int32Type>;

/// The columns that identify a run.
#[derive(Default)]
pub(super) struct Keys {
    scheduler: Names,
    label: Names,
    block_layer: Names,
    kernel: Names,
    device: Names,
    host: Names,
    settings: Names,
    seed: PrimitiveBuilder<UInt64Type>,
    repeat: PrimitiveBuilder<UInt32Type>,
}

impl Keys {
    pub(super) fn append(&mut self, row: &RunRow<'_>) {
        self.scheduler.append_value(&row.scheduler);
        self.label.append_value(&row.label);
        self.block_layer.append_value(match row.block_layer {
            Front::Mq => "mq",
            Front::Legacy => "legacy",
        });
        self.kernel.append_value(&row.kernel);
        self.device.append_value(&row.device);
        self.host.append_value(&row.host);
        self.settings.append_value(&row.settings);
        self.seed.append_value(row.seed);
        self.repeat.append_value(row.repeat);
    }

    /// These columns, followed by others.
    pub(super) fn with(mut self, others: Vec<Column>) -> Vec<Column> {
        let names = [
            ("scheduler", &mut self.scheduler),
            ("label", &mut self.label),
            ("block_layer", &mut self.block_layer),
            ("kernel", &mut self.kernel),
            ("device", &mut self.device),
            ("host", &mut self.host),
            ("settings", &mut self.settings),
        ];
        let mut columns: Vec<Column> =
            names.into_iter().map(|(name, builder)| (name, false, Arc::new(builder.finish()) as _)).collect();
        columns.push(("seed", false, Arc::new(self.seed.finish())));
        columns.push(("repeat", false, Arc::new(self.repeat.finish())));
        columns.extend(others);
        columns
    }
}

/// A column of names.
pub(super) fn names(name: &'static str, is_nullable: bool, mut builder: Names) -> Column {
    (name, is_nullable, Arc::new(builder.finish()))
}
