//! Drives cfq without corrections by the recordings named on the command line, and prints for each the first message or
//! decision that differs from the kernel's.
use hoistway_evidence::conform::{Consistent, cfq::first_difference};
use hoistway_trace::iosched::Trace;

fn main() {
    for file in std::env::args().skip(1) {
        let trace = match Trace::open(&file) {
            Ok(trace) => trace,
            Err(error) => {
                eprintln!("{error}");
                continue;
            }
        };
        match Consistent::check(&trace).map(|recording| first_difference(&recording)) {
            Ok(None) => println!("{file}: the same"),
            Ok(Some(difference)) => println!("{file}:\n{difference}"),
            Err(error) => eprintln!("{file}: {error}"),
        }
    }
}
