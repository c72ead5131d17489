//! The example of a custom scheduler: one file and one row, compared with the schedulers of Linux.

#[path = "../examples/turns.rs"]
mod turns;

fn iops(job: &str, quantum: u32) -> [f64; 2] {
    let figures = turns::iops(job, &["mq-deadline", "turns"], quantum).unwrap();
    let labels: Vec<&str> = figures.iter().map(|(label, _)| label.as_str()).collect();
    assert!(labels[0] == "mq-deadline" && labels[1].starts_with("turns"), "{labels:?}");
    [figures[0].1, figures[1].1]
}

#[test]
fn a_fifth_scheduler_is_one_file_and_one_row() {
    let [in_order, in_turns] = iops("quiet", 1);
    // It still waits for a tag and in the device, behind the flood's requests.
    assert!(2.0 * in_turns > 3.0 * in_order, "{in_turns} against {in_order}");
    let [in_order, in_turns] = iops("flood", 1);
    assert!(in_turns > in_order / 2.0, "the flood goes on: {in_turns} against {in_order}");
}

#[test]
fn its_tunable_is_written_as_any_other() {
    let ([_, short], [_, long]) = (iops("quiet", 1), iops("quiet", 128));
    assert!(short > long, "{short} against {long}");
}
