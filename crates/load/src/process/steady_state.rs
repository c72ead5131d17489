//! Processes that end when their results are steady: `steadystate` (tried with fio 3.33).
//!
//! Every second a sample is taken of the I/O of a process or, with `group_reporting`, of its whole group. The processes
//! end when the samples of the last `steadystate_duration` are steady.

use hoistway_blk::ground::{Instant, Nanos};
use hoistway_measure::fio::{SteadyState as Document, SteadyStateData};

use super::{Process, SteadyFigure, SteadyState as Rule};

/// The time between two samples, as in fio.
pub const STEADY_SAMPLE: Nanos = Nanos(1_000_000_000);

/// All processes of a load with a steady-state check.
#[derive(Default)]
pub struct SteadyStates {
    groups: Vec<SteadyStateGroup>,
}

/// Processes that are checked together.
struct SteadyStateGroup {
    rule: Rule,
    /// The reporting group, if it is checked as a whole.
    group: Option<u32>,
    members: Vec<u32>,
    has_begun: bool,
    /// I/Os and bytes at the last sample; `None` before the first.
    before: Option<(u64, u64)>,
    /// I/Os and bytes of the seconds of the window.
    samples: Vec<(u64, u64)>,
    is_attained: bool,
}

impl SteadyStates {
    /// The checks of these processes.
    #[must_use]
    pub fn new(processes: &[Process]) -> SteadyStates {
        let mut all = SteadyStates::default();
        for (number, process) in (0..).zip(processes) {
            let Some(rule) = process.steady_state else { continue };
            let group = process.schedule.group_reporting.then_some(process.schedule.group);
            match all.groups.iter_mut().find(|existing| group.is_some() && existing.group == group) {
                Some(existing) => existing.members.push(number),
                None => all.groups.push(SteadyStateGroup {
                    rule,
                    group,
                    members: vec![number],
                    has_begun: false,
                    before: None,
                    samples: Vec::with_capacity(rule.seconds as usize),
                    is_attained: false,
                }),
            }
        }
        all
    }

    /// The measurement of a process begins at `start`. If it is the first of the processes that are checked together, returns their
    /// index and when the first sample is due.
    pub fn begin(&mut self, process: u32, start: Instant) -> Option<(u32, Instant)> {
        let index = self.groups.iter().position(|group| group.members.contains(&process))?;
        let group = &mut self.groups[index];
        let is_first = !std::mem::replace(&mut group.has_begun, true);
        is_first.then_some((index as u32, start + group.rule.ramp))
    }

    /// The numbers of the processes that are checked together.
    #[must_use]
    pub fn members(&self, index: u32) -> &[u32] {
        &self.groups[index as usize].members
    }

    /// Takes the sample that is due: the I/Os and bytes of all members so far. Returns whether the results are steady, so that the members
    /// end.
    pub fn sample(&mut self, index: u32, done: (u64, u64)) -> bool {
        self.groups[index as usize].sample(done)
    }

    /// The steady-state part of a process's result.
    #[must_use]
    pub fn document(&self, process: u32) -> Option<Box<Document>> {
        let group = self.groups.iter().find(|group| group.members.contains(&process))?;
        Some(Box::new(group.document()))
    }
}

impl SteadyStateGroup {
    fn sample(&mut self, done: (u64, u64)) -> bool {
        if let Some(before) = self.before.replace(done) {
            if self.samples.len() == self.rule.seconds as usize {
                self.samples.remove(0);
            }
            self.samples.push((done.0.saturating_sub(before.0), done.1.saturating_sub(before.1)));
            let Steady { criterion, .. } = self.steady();
            let is_full = self.samples.len() == self.rule.seconds as usize;
            self.is_attained = is_full && criterion.abs() < self.rule.steadiness.limit;
        }
        self.is_attained
    }

    fn steady(&self) -> Steady {
        let steadiness = self.rule.steadiness;
        let values: Vec<f64> = self
            .samples
            .iter()
            .map(|&(ios, bytes)| match steadiness.figure {
                SteadyFigure::Ios => ios as f64,
                SteadyFigure::Bytes => bytes as f64,
            })
            .collect();
        let mean = mean(values.iter().copied());
        let (slope, deviation) = if steadiness.is_slope {
            (slope(&values), 0.0)
        } else {
            (0.0, values.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max))
        };
        let value = slope + deviation;
        let criterion = if !steadiness.is_percent {
            value
        } else if mean > 0.0 {
            100.0 * value / mean
        } else {
            // Without any I/O the results are not steady.
            f64::INFINITY
        };
        Steady { criterion, slope, deviation }
    }

    fn document(&self) -> Document {
        let steadiness = self.rule.steadiness;
        let unit = if steadiness.is_percent { "%" } else { "" };
        let figure = match (steadiness.figure, steadiness.is_slope) {
            (SteadyFigure::Ios, false) => "iops",
            (SteadyFigure::Ios, true) => "iops_slope",
            (SteadyFigure::Bytes, false) => "bw",
            (SteadyFigure::Bytes, true) => "bw_slope",
        };
        let Steady { criterion, slope, deviation } = self.steady();
        let criterion = if self.samples.is_empty() { 0.0 } else { criterion };
        Document {
            ss: format!("{figure}:{:.6}{unit}", steadiness.limit),
            duration: u64::from(self.rule.seconds),
            attained: u8::from(self.is_attained),
            criterion: format!("{criterion:.6}{unit}"),
            max_deviation: deviation,
            slope,
            data: SteadyStateData {
                bw_mean: mean(self.samples.iter().map(|sample| sample.1 as f64)) as u64,
                iops_mean: mean(self.samples.iter().map(|sample| sample.0 as f64)) as u64,
                iops: self.samples.iter().map(|sample| sample.0).collect(),
                bw: self.samples.iter().map(|sample| sample.1).collect(),
            },
        }
    }
}

/// The steadiness of a window.
struct Steady {
    /// The value that is compared with the limit.
    criterion: f64,
    slope: f64,
    deviation: f64,
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}

/// The slope of the regression line, per sample.
fn slope(values: &[f64]) -> f64 {
    let x_mean = (values.len() as f64 - 1.0) / 2.0;
    let y_mean = mean(values.iter().copied());
    let (mut xy, mut xx) = (0.0, 0.0);
    for (x, y) in values.iter().enumerate() {
        let x = x as f64 - x_mean;
        xy += x * (y - y_mean);
        xx += x * x;
    }
    if xx > 0.0 { xy / xx } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Steadiness;

    /// The document of a window with these samples.
    fn document(
        figure: SteadyFigure,
        is_slope: bool,
        limit: f64,
        is_percent: bool,
        samples: &[(u64, u64)],
    ) -> Document {
        let steadiness = Steadiness { figure, is_slope, limit, is_percent };
        let rule = Rule { steadiness, seconds: samples.len() as u32, ramp: Nanos::ZERO };
        let group = &mut SteadyStateGroup {
            rule,
            group: None,
            members: vec![0],
            has_begun: true,
            before: None,
            samples: Vec::new(),
            is_attained: false,
        };
        let mut done = (0, 0);
        group.sample(done);
        for (number, sample) in samples.iter().enumerate() {
            done = (done.0 + sample.0, done.1 + sample.1);
            assert!(!group.sample(done) || number + 1 == samples.len());
        }
        group.document()
    }

    #[test]
    fn the_steady_state_document_matches_fio_for_the_same_samples() {
        // All recorded from fio 3.33.
        let found = |document: &Document| {
            (document.ss.clone(), document.attained, document.criterion.clone(), document.max_deviation, document.slope)
        };
        let samples = [(1001, 4_100_096), (1000, 4_096_000), (1001, 4_100_096), (1000, 4_096_000)];
        let a = document(SteadyFigure::Ios, false, 10.0, true, &samples);
        assert_eq!(found(&a), ("iops:10.000000%".into(), 1, "0.049975%".into(), 0.5, 0.0));
        assert_eq!((a.data.bw_mean, a.data.iops_mean, a.duration), (4_098_048, 1000, 4));
        assert_eq!(a.data.iops, [1001, 1000, 1001, 1000]);
        let samples = [(2002, 8_201_157), (2001, 8_196_096), (2000, 8_192_000)];
        let d = document(SteadyFigure::Bytes, true, 5.0, true, &samples);
        assert_eq!(found(&d), ("bw_slope:5.000000%".into(), 1, "-0.055860%".into(), 0.0, -4578.5));
        let samples = [(1002, 8_208_384), (999, 8_183_816), (1002, 8_208_416)];
        let e = document(SteadyFigure::Ios, false, 0.0001, true, &samples);
        assert_eq!(found(&e), ("iops:0.000100%".into(), 0, "0.199800%".into(), 2.0, 0.0));
        let c = document(SteadyFigure::Bytes, false, 50.0, false, &[(1000, 4_096_000); 3]);
        assert_eq!(found(&c), ("bw:50.000000".into(), 1, "0.000000".into(), 0.0, 0.0));
    }

    #[test]
    fn a_window_without_io_is_not_steady() {
        assert_eq!(document(SteadyFigure::Ios, true, 1.0, true, &[(0, 0); 3]).attained, 0);
    }
}
