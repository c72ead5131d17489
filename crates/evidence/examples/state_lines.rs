//! Compares bfq's internal state with recordings, line by line: how many lines are equal, and the first differences.
use hoistway_evidence::conform::{Consistent, bfq::replay_with_lines};
fn main() {
    /// Differences to show.
    const SHOWN: usize = 4;
    for file in std::env::args().skip(1) {
        let trace = hoistway_trace::iosched::Trace::open(&file).unwrap();
        let (outcome, differences) = replay_with_lines(&Consistent::check(&trace).unwrap());
        let lines = outcome.state_lines.unwrap();
        let score = outcome.score;
        println!(
            "{}: {lines}, {} differences; all {} of {}, hard {}, switch {}, null {}",
            trace.header.name,
            differences.len(),
            score.all,
            score.dispatches,
            score.hard,
            score.switch,
            score.null
        );
        for difference in differences.iter().take(SHOWN) {
            let show = |line: &Option<hoistway_evidence::conform::bfq::ComparedLine>| {
                line.as_ref().map_or("-".to_owned(), ToString::to_string)
            };
            println!(
                "  t={} kernel: {}\n      ours: {}",
                difference.t_ns,
                show(&difference.recorded),
                show(&difference.ours)
            );
        }
    }
}
