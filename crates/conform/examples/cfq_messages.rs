//! Drives cfq freely by the recordings that are named on the command line, and prints for each the first message or
//! decision that differs from the kernel's.
use hoistway_conform::cfq::first_difference;

fn main() {
    for file in std::env::args().skip(1) {
        match hoistway_trace::iosched::Trace::open(&file) {
            Ok(trace) => match first_difference(&trace) {
                None => println!("{file}: the same"),
                Some(difference) => println!("{file}:\n{difference}"),
            },
            Err(error) => eprintln!("{error}"),
        }
    }
}
