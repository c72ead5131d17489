//! Equivalent formulations whose results are bit-identical.

use super::case::{Case, Simulated, directions, ios_of_each};
use super::cases;

/// I/Os, bytes and latencies of each process, unrounded.
fn figures(runs: &[Simulated]) -> Vec<(u64, u64, String)> {
    let of = |run: &Simulated| {
        let jobs = run.fio.jobs.iter().flat_map(directions);
        jobs.map(|stats| (stats.total_ios, stats.io_bytes, format!("{:?}", stats.lat_ns))).collect::<Vec<_>>()
    };
    runs.iter().flat_map(of).collect()
}

fn expect_equal(case: &Case, other: &Case) -> Result<(), String> {
    expect_equal_text(case, other.job_file())
}

fn expect_equal_text(case: &Case, text: String) -> Result<(), String> {
    let (ours, theirs) = (case.run(1, 1), case.run_text(text.clone(), 1, 1));
    if figures(&ours) == figures(&theirs) {
        return Ok(());
    }
    Err(format!("{:?}, and {:?} from\n{text}", ios_of_each(&ours[0]), ios_of_each(&theirs[0])))
}

#[test]
fn job_names_do_not_change_results() {
    cases(8, |case| {
        let mut other = case.clone();
        for (index, section) in other.sections.iter_mut().enumerate() {
            section.name = format!("{} another", ["z", "a", "m"][index]);
        }
        expect_equal(case, &other)
    });
}

#[test]
fn units_do_not_change_results() {
    cases(8, |case| {
        let mut text = case.job_file().replace("size=256m", "size=262144k");
        text =
            text.replace(&format!("runtime={}ms", case.runtime_ms), &format!("runtime={}us", 1000 * case.runtime_ms));
        for kib in [4, 16, 64] {
            text = text.replace(&format!("bs={kib}k\n"), &format!("blocksize={}\n", kib * 1024));
        }
        expect_equal_text(case, text.replace("thinktime=500us", "thinktime=500"))
    });
}

#[test]
fn equal_sections_are_equivalent_to_one_with_numjobs() {
    cases(8, |case| {
        let mut other = case.clone();
        other.sections.clear();
        for section in &case.sections {
            for clone in 0..section.numjobs {
                let name = format!("{}-{clone}", section.name);
                other.sections.push(super::case::Section { name, numjobs: 1, ..section.clone() });
            }
        }
        expect_equal(case, &other)
    });
}

#[test]
fn a_job_that_begins_when_all_others_have_ended_changes_nothing_for_them() {
    cases(8, |case| {
        let text = case.job_file() + "[later]\nfilename=/dev/sda\nstonewall\nrw=randread\nbs=4k\nnumber_ios=3\n";
        let (ours, theirs) = (figures(&case.run(1, 1)), figures(&case.run_text(text, 1, 1)));
        if theirs.starts_with(&ours) { Ok(()) } else { Err("others change by it".to_owned()) }
    });
}

#[test]
fn a_second_run_gives_the_same_bits_and_another_seed_others() {
    let mut differs = 0;
    for number in 0..20 {
        let case = Case::new(number);
        assert_eq!(figures(&case.run(3, 1)), figures(&case.run(3, 1)), "{}", case.in_words());
        differs += u32::from(figures(&case.run(3, 1)) != figures(&case.run(4, 1)));
    }
    assert!(differs >= 18, "{differs} of 20");
}
