//! x
use hoistway_results::fio::*;
use hoistway_results::*;
fn main() {
    let t = std::time::Instant::now();
    let mut ps: Vec<ProcessResult> = (0..4000)
        .map(|i| ProcessResult {
            name: "a".into(),
            group: i,
            iodepth: 8,
            runtime_ns: 2_000_000_000,
            ..Default::default()
        })
        .collect();
    eprintln!("create 4000: {:?}", t.elapsed());
    let t = std::time::Instant::now();
    for (i, p) in ps.iter_mut().enumerate() {
        let d = p.direction_mut(Direction::Write);
        for k in 0..2000u64 {
            let v = 10_000 + (k * 7919 * (i as u64 + 1)) % 3_000_000;
            d.ios += 1;
            d.bytes += 4096;
            d.slat.record(1000);
            d.clat.record(v);
            d.lat.record(v + 1000);
        }
    }
    eprintln!("24M records: {:?}", t.elapsed());
    let t = std::time::Instant::now();
    let o = Output::from_processes(&[], &ps, &OutputParameters::default());
    eprintln!("output: {:?}", t.elapsed());
    let t = std::time::Instant::now();
    let s = document::JobSummary::from_processes(&ps);
    eprintln!("summary: {:?} {}", t.elapsed(), s.len());
    eprintln!("json size {}", serde_json::to_string(&o).unwrap().len());
    let o = Output::from_processes(&[], &ps[..2], &OutputParameters { bins: true, ..Default::default() });
    println!("{}", serde_json::to_string_pretty(&o).unwrap());
}
