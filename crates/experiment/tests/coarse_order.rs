//! The coarse model of a drive orders the schedulers as the calibrated model of the same drive does: reads beside writers on the one
//! drive that has both. Nothing of the one was fitted to the other but how reads treat programs and collection.

use hoistway_experiment::{Alone, Comparison, Load};
use hoistway_measure::Operation;

/// A difference below this share orders nothing.
const TIE: f64 = 0.10;

/// A reader at this depth beside a writer of this size and depth.
const LOADS: [(u32, &str, u32); 8] = [
    (1, "4k", 1),
    (1, "4k", 16),
    (1, "64k", 4),
    (1, "64k", 32),
    (1, "4k", 128),
    (32, "4k", 16),
    (32, "64k", 4),
    (32, "4k", 128),
];

/// The mean latency of the reads under each scheduler, us.
fn reads_under(device: &str, (depth, size, write_depth): (u32, &str, u32)) -> Vec<(String, f64)> {
    let text = format!(
        "[global]\ndirect=1\nioengine=io_uring\nruntime=600ms\ntime_based\nfilename=/dev/x\nbs=4k\n[reader]\nrw=randread\niodepth={depth}\n\
         [writer]\nstartdelay=200ms\nrw=randwrite\nbs={size}\niodepth={write_depth}\n"
    );
    let asked = Comparison { load: Load::text(&text), devices: vec![device.into()], ..Comparison::default() };
    let document = asked.run(&Alone).unwrap();
    let reads = |run: &hoistway_answer::document::Run| {
        let mut reads = run.jobs[0].operations.iter().filter(|row| row.operation == Operation::Read);
        (run.variant.label.clone(), reads.next().unwrap().lat_ns.mean / 1e3)
    };
    document.runs.iter().map(reads).collect()
}

#[test]
fn the_coarse_model_orders_schedulers_as_the_calibrated_one() {
    let (mut pairs, mut wrong, mut factors) = (0, Vec::new(), Vec::new());
    for load in LOADS {
        let [calibrated, coarse] =
            ["samsung-980pro-1tb", "Samsung_SSD_980_PRO_1TB"].map(|name| reads_under(name, load));
        println!("{load:?}: {calibrated:.0?}, coarse {coarse:.0?}");
        factors.extend(calibrated.iter().zip(&coarse).map(|((_, here), (_, there))| (here / there).max(there / here)));
        for (number, (first, here)) in calibrated.iter().enumerate() {
            for (second, other) in calibrated.iter().skip(number + 1).map(|(second, other)| (second, *other)) {
                let ratio_of = |rows: &[(String, f64)]| {
                    let of = |name: &str| rows.iter().find(|(label, _)| label == name).unwrap().1;
                    of(first) / of(second)
                };
                if (here / other).ln().abs() < (1.0 + TIE).ln() {
                    continue;
                }
                pairs += 1;
                if (here / other > 1.0) == (ratio_of(&coarse) < 1.0) {
                    wrong.push(format!("{load:?}: {first} {here:.0}, {second} {other:.0}"));
                }
            }
        }
    }
    factors.sort_by(f64::total_cmp);
    let median = factors[factors.len() / 2];
    println!(
        "{} of {pairs} orders; means within a factor of {median:.2} in the median, {:.2} at most",
        pairs - wrong.len(),
        factors[factors.len() - 1]
    );
    assert!(pairs >= 20 && wrong.len() * 10 <= pairs, "{wrong:#?}");
    assert!(median < 1.6, "{factors:?}");
}
