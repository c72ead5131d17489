//! Scores the recordings that are named on the command line.
use hoistway_conform::{Report, TraceReport, pool_of, replay};
fn main() {
    let mut report = Report::default();
    for file in std::env::args().skip(1) {
        let trace = hoistway_trace::iosched::Trace::open(&file).unwrap();
        match replay(&trace) {
            Ok(outcome) => report.traces.push(TraceReport { file, scheduler: pool_of(&trace), outcome }),
            Err(why) => report.skipped.push((file, why.to_string())),
        }
    }
    print!("{}", report.table(false));
}
