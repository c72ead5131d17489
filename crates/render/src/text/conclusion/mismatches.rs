//! Setups whose simulated device is not the observed one: no verdict, and what to do instead.

use hoistway_answer::Figure;
use hoistway_answer::ResultsDocument;
use hoistway_answer::document::{CheckedLatency, DeviceMismatch};

use super::sentences::setup_name;
use crate::text::columns::value;
use crate::text::words::{device_name, list};
use hoistway_measure::units;

/// What takes at least this long on average, ns, and less on the model, may be a disk that seeks.
const SEEK_NS: f64 = 4e6;

/// A sentence for each such setup.
pub(super) fn mismatches(document: &ResultsDocument) -> Vec<String> {
    let setup_count = document.setups.len().max(1) as u32;
    (0..setup_count).filter_map(|setup| Some(sentence(document, setup, &document.device_mismatch(setup)?))).collect()
}

fn sentence(document: &ResultsDocument, setup: u32, mismatch: &DeviceMismatch) -> String {
    let setup_name = document.setups.get(setup as usize).map(|setup| setup_name(&document.setups, setup));
    let device = setup_name.unwrap_or_else(|| device_name(&document.device));
    let DeviceMismatch { disk, under, rows } = mismatch;
    let took = |row: &CheckedLatency| {
        if let Some(ios) = row.model_ios.filter(|_| row.is_too_slow()) {
            let [observed, model] = [row.ios, ios].map(|ios| value(Figure::Iops, ios, false));
            return format!("{observed} {} a second were done there, and {model} can be done here", row.subject());
        }
        let [observed, model] = [row.observed_ns, row.model_ns].map(|ns| value(Figure::Mean, ns, false));
        format!("{} took {observed} there and {model} here ({} times)", row.subject(), units::times(row.factor()))
    };
    let took = list(&rows.iter().map(took).collect::<Vec<_>>());
    let is_seek = |row: &CheckedLatency| row.observed_ns >= SEEK_NS && row.model_ns < row.observed_ns;
    let such_as = if rows.iter().all(is_seek) { ", such as hdd" } else { "" };
    format!(
        "No verdict for {device}: it is not the observed device {disk}: {took}, under {under}. Choose a model that fits with --device{such_as} \
         (hoistway devices lists them), or calibrate one."
    )
}
