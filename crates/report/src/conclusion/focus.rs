//! Which figure a load is about.

use hoistway_results::comparison::{Comparison, JobComparison, OperationComparison};
use hoistway_results::{Figure, FigureName, Operation};

use super::Chosen;

/// Bytes of an I/O from which on streams are judged by their bandwidth.
const STREAM_BYTES: f64 = 65_536.0;
/// I/Os of a run behind a 99th percentile that means something: ten beyond it.
const IOS_MIN: u64 = 1000;

/// The figure that is wanted, if the comparison has it; or else what is likeliest to be waited for: reads before
/// writes, and of several jobs the one with the fewest I/Os outstanding. Small reads are judged by their 99th
/// percentile (their mean, if there are few), streams by their bandwidth, small writes by their number.
pub(super) fn chosen<'a>(comparison: &'a Comparison<'_>, wanted: Option<&FigureName>) -> Option<Chosen<'a>> {
    let found = wanted.and_then(|wanted| Some((comparison.find(wanted).ok()?, wanted.figure)));
    if let Some(((job, direction), figure)) = found {
        return Some(Chosen { job: &job.name, direction, figure });
    }
    let all = comparison.jobs.iter().flat_map(|job| job.operations.iter().map(move |direction| (job, direction)));
    let is_read = |direction: Operation| direction == Operation::Read;
    let rank = |(_, direction): &(&JobComparison, &OperationComparison)| {
        (!is_read(direction.operation), outstanding(direction))
    };
    let (job, direction) = all.min_by(|a, b| {
        let (a, b) = (rank(a), rank(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    })?;
    Some(Chosen { job: &job.name, direction, figure: figure_of(direction) })
}

fn figure_of(direction: &OperationComparison) -> Figure {
    let (ios, bytes) = direction
        .rows
        .iter()
        .flat_map(|row| row.samples())
        .fold((0.0, 0.0), |(ios, bytes), sample| (ios + sample.ios as f64, bytes + sample.bytes as f64));
    if bytes >= STREAM_BYTES * ios {
        Figure::Bandwidth
    } else if direction.operation != Operation::Read {
        Figure::Iops
    } else if direction.rows.iter().all(|row| row.ios_min() >= IOS_MIN) {
        Figure::P99
    } else {
        Figure::Mean
    }
}

/// I/Os that are under way on average, by Little's law, under the first scheduler.
fn outstanding(direction: &OperationComparison) -> f64 {
    let Some(row) = direction.rows.first() else { return 0.0 };
    row.estimate(Figure::Iops).mean * row.estimate(Figure::Mean).mean / 1e9
}
