//! The host profile `server` is calibrated on the CPU time of an I/O on one saturated core, under each scheduler (ICPE'24).

use hoistway_experiment::{Alone, Comparison, Load};

const JOB: &str = "[a]\nfilename=/dev/nvme0n1\nioengine=io_uring\ndirect=1\nrw=randread\nnorandommap=1\nbs=4k\niodepth=128\n\
                   cpus_allowed=1\ntime_based\nruntime=200ms\n";

/// CPU time per I/O under each scheduler, us.
fn cpu_us(cpus: u16, host: &str, schedulers: &[&str]) -> Vec<f64> {
    let document = Comparison {
        load: Load::text(JOB),
        devices: vec!["samsung-980pro-1tb".into()],
        kernels: vec!["6.3".to_owned()],
        hosts: vec![host.into()],
        cpus: Some(cpus),
        submitter_dispatches: true,
        schedulers: schedulers.iter().map(|&name| name.to_owned()).collect(),
        ..Comparison::default()
    }
    .run(&Alone)
    .unwrap();
    document.runs.iter().map(|run| run.cpu_us_per_io.unwrap()).collect()
}

#[test]
fn cpu_cost_per_io_on_a_saturated_core_matches_the_measurement() {
    let measured = [("none", 2.62), ("mq-deadline", 3.23), ("kyber", 3.29), ("bfq", 4.15)];
    let ours = cpu_us(10, "server", &measured.map(|(scheduler, _)| scheduler));
    let rows: Vec<_> = measured.into_iter().zip(ours).map(|((name, us), ours)| (name, us, ours)).collect();
    assert!(rows.iter().all(|(_, us, ours)| (ours / us - 1.0).abs() < 0.03), "scheduler, measured, here: {rows:?}");
}

#[test]
fn schedulers_without_cost_on_a_host_all_cost_the_same() {
    let ours = cpu_us(10, "instant", &["none", "bfq"]);
    assert_eq!(ours[0].to_bits(), ours[1].to_bits());
}
