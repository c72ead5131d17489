//! A checked space and its runs.

use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use super::axes::{Axes, Position};
use super::inputs::{Inputs, Shared};
use super::key::Key;
use super::record::RunRecord;
use super::space::{Seeds, Space};
use super::{FORMAT, VERSION, check};
use crate::comparison::Vary;
use crate::comparison::error::Error;
use crate::comparison::observer::{Controls, Unobserved};
use crate::plan::Plan;

/// A sweep: a checked space with all files and variables that its runs read, for this version of Hoistway.
#[derive(Clone, Debug)]
pub struct Sweep {
    written: Written,
    axes: Axes,
    seeds: Vec<u64>,
}

/// The serialized form of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Written {
    format: String,
    version: String,
    space: Space,
    inputs: Inputs,
    /// Keys of the inputs, for each load, device and host.
    keys_of_inputs: Vec<Key>,
}

/// Why a sweep cannot be made or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SweepError {
    /// The space is invalid.
    #[error(transparent)]
    Space(#[from] Error),
    /// It has more runs than the limit.
    #[error("the space has {} runs, more than {limit} (expected a smaller space, or a higher limit)", run_count_text(*.runs))]
    TooMany {
        /// The number of runs; [`u64::MAX`] if there are more.
        runs: u64,
        /// The limit.
        limit: u64,
    },
    /// A text is not a valid sweep.
    #[error("not a sweep: {0}")]
    Damaged(String),
    /// Another version wrote it, so its runs would differ.
    #[error("created by hoistway {found}, but this is {VERSION} (expected the same version)")]
    Version {
        /// The version that wrote it.
        found: String,
    },
}

fn run_count_text(runs: u64) -> String {
    if runs == u64::MAX { "more than 10^19".to_owned() } else { runs.to_string() }
}

impl Sweep {
    /// Checks a space, reads all inputs of its runs, and counts them. Nothing is simulated yet. Also returns notices, one
    /// sentence each.
    ///
    /// # Errors
    /// The first invalid field, or if there are more than `limit` runs.
    pub fn of(
        space: Space,
        environment: &dyn crate::CallerEnvironment,
        limit: u64,
    ) -> Result<(Sweep, Vec<String>), SweepError> {
        if let Seeds::Count(count) = space.seeds {
            // Check before the seeds are drawn, which might not fit into memory.
            let runs = Axes::of(&space, count as usize).points();
            if runs > limit {
                return Err(SweepError::TooMany { runs, limit });
            }
        }
        let seeds = check::seeds(&space)?;
        let axes = Axes::of(&space, seeds.len());
        let runs = axes.points();
        if runs > limit {
            return Err(SweepError::TooMany { runs, limit });
        }
        let shared = Shared::new(environment);
        let tried = check::trials(&space, &axes, &shared)?;
        let inputs = shared.into_inputs();
        let key = |tried: &check::TrialResult| Ok(Key::of(&[&json(&inputs.only(&tried.read))?]));
        let keys_of_inputs = tried.iter().map(key).collect::<Result<_, SweepError>>()?;
        let mut notices: Vec<String> = Vec::new();
        for notice in tried.into_iter().flat_map(|tried| tried.notices) {
            if !notices.contains(&notice) {
                notices.push(notice);
            }
        }
        let (format, version) = (FORMAT.to_owned(), VERSION.to_owned());
        Ok((Sweep { written: Written { format, version, space, inputs, keys_of_inputs }, axes, seeds }, notices))
    }

    /// Reads a sweep that was [written](Sweep::to_json).
    ///
    /// # Errors
    /// If the text is not a sweep, or another version wrote it.
    pub fn from_json(text: &str) -> Result<Sweep, SweepError> {
        #[derive(Deserialize)]
        struct Header {
            format: String,
            version: String,
        }
        let damaged = |error: serde_json::Error| SweepError::Damaged(error.to_string());
        let header: Header = serde_json::from_str(text).map_err(damaged)?;
        if header.format != FORMAT {
            return Err(SweepError::Damaged(format!("its format is {:?} (expected {FORMAT:?})", header.format)));
        }
        if header.version != VERSION {
            return Err(SweepError::Version { found: header.version });
        }
        let written: Written = serde_json::from_str(text).map_err(damaged)?;
        let seeds = check::seeds(&written.space)?;
        let axes = Axes::of(&written.space, seeds.len());
        let [loads, devices, hosts, ..] = axes.lengths();
        if written.keys_of_inputs.len() != loads * devices * hosts {
            return Err(SweepError::Damaged("it lacks a key for each load, device and host".to_owned()));
        }
        Ok(Sweep { written, axes, seeds })
    }

    /// The sweep as self-contained text.
    ///
    /// # Errors
    /// If a path in it is not Unicode.
    pub fn to_json(&self) -> Result<String, SweepError> {
        serde_json::to_string(&self.written).map_err(|error| SweepError::Damaged(error.to_string()))
    }

    /// The key of the sweep.
    ///
    /// # Errors
    /// The same as [`to_json`](Sweep::to_json).
    pub fn key(&self) -> Result<Key, SweepError> {
        Ok(Key::of(&[self.to_json()?.as_bytes()]))
    }

    /// The number of runs; points are numbered from 0.
    #[must_use]
    pub fn points(&self) -> u64 {
        self.axes.points()
    }

    /// All varied tunables and files, in a fixed order.
    #[must_use]
    pub fn settings(&self) -> &[Vary] {
        self.axes.settings()
    }

    /// The value of each of the [`settings`](Sweep::settings) at a point; `None` where a scheduler has no such tunable.
    pub fn settings_of(&self, point: u64) -> impl Iterator<Item = Option<&str>> {
        let position = self.axes.position(point);
        let mut own_settings = self.axes.settings_of(&position).collect::<Vec<_>>().into_iter().peekable();
        self.settings().iter().map(move |setting| {
            let matching = own_settings.next_if(|(of, _)| *of == setting);
            matching.map(|(_, text)| text.as_str())
        })
    }

    /// The keys of some points, in the same order.
    ///
    /// # Errors
    /// If a path is not Unicode.
    pub fn keys(&self, points: impl Iterator<Item = u64>) -> impl Iterator<Item = Result<(u64, Key), SweepError>> {
        let mut seedless_key: Option<(u64, Key)> = None;
        points.map(move |point| {
            let position = self.axes.position(point);
            let key = match seedless_key {
                Some((cell, key)) if cell == position.cell => key,
                _ => self.cell_key(&position)?,
            };
            seedless_key = Some((position.cell, key));
            Ok((point, key.with_seed(self.seeds[position.seed])))
        })
    }

    fn cell_key(&self, position: &Position) -> Result<Key, SweepError> {
        let [_, devices, hosts, ..] = self.axes.lengths();
        let comparison = self.axes.comparison(&self.written.space, position);
        // The seed belongs to the point, not to the cell.
        let comparison = json(&crate::Comparison { seed: 0, ..comparison })?;
        let inputs = &self.written.keys_of_inputs[(position.load * devices + position.devices) * hosts + position.host];
        let comparison = String::from_utf8_lossy(&comparison);
        Ok(Key::seedless_key(&comparison, inputs.bytes()))
    }

    /// Controls for [`run`](Sweep::run), for one caller at a time.
    #[must_use]
    pub fn controls() -> Controls {
        Controls::new(1)
    }

    /// Carries out some runs one after the other, and reports each as soon as it has ended; after a cancel no more begin.
    /// Consecutive points of one cell are fastest.
    ///
    /// # Errors
    /// The first run that cannot begin.
    pub fn run(
        &self,
        points: impl IntoIterator<Item = u64>,
        controls: &Controls,
        mut each: impl FnMut(u64, Key, &RunRecord<'_>),
    ) -> Result<(), SweepError> {
        let mut points = points.into_iter().peekable();
        let control = &controls.0[0];
        while let Some(&first) = points.peek() {
            let position = self.axes.position(first);
            let comparison = self.axes.comparison(&self.written.space, &position);
            let key = self.cell_key(&position)?;
            let mut plan = Plan::of(&comparison, &self.written.inputs)?;
            plan.choose_window(controls)?;
            let setup = plan.setups[0].summary()?;
            while let Some(point) = points.next_if(|&point| self.axes.position(point).cell == position.cell) {
                let seed = self.seeds[self.axes.position(point).seed];
                plan.runs[0].spec.seed = seed;
                let outcome = plan.run_single(&plan.runs[0], control, &Unobserved, &mut [])?;
                if outcome.is_partial || control.cancelled.load(Ordering::Relaxed) {
                    return Ok(());
                }
                each(point, key.with_seed(seed), &RunRecord::of(&plan.load.name, &setup, &outcome.run));
            }
        }
        Ok(())
    }
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, SweepError> {
    serde_json::to_vec(value).map_err(|error| SweepError::Damaged(error.to_string()))
}
