//! Errors of the simulated figures relative to the kernel's.

use std::fmt;

/// The compared figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Figure {
    Iops,
    Mean,
    P99,
}

impl Figure {
    pub const ALL: [Figure; 3] = [Figure::Iops, Figure::Mean, Figure::P99];
}

/// A figure of a job of a scenario under a scheduler, simulated and on the kernel.
pub struct Cell {
    pub scheduler: &'static str,
    pub figure: Figure,
    pub ours: f64,
    pub kernel: f64,
}

/// The errors of all cells of a scheduler, percent.
pub struct Spread {
    pub figure: Figure,
    pub median: f64,
    pub ninety: f64,
}

impl Spread {
    pub fn of(cells: &[Cell], scheduler: &str, figure: Figure) -> Spread {
        let of = cells.iter().filter(|cell| cell.scheduler == scheduler && cell.figure == figure);
        let mut errors: Vec<f64> = of.map(|cell| 100.0 * (cell.ours / cell.kernel - 1.0).abs()).collect();
        errors.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = share * (errors.len() - 1) as f64;
            let (below, part) = (place.floor() as usize, place.fract());
            let above = errors[(below + 1).min(errors.len() - 1)];
            errors[below] + part * (above - errors[below])
        };
        Spread { figure, median: at(0.5), ninety: at(0.9) }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: median {:6.2} %, 90th percentile {:7.2} %", self.figure, self.median, self.ninety)
    }
}
