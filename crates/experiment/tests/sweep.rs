//! Sweeps: points, keys, shards and serialization.

use std::io;
use std::path::Path;

use hoistway_experiment::sweep::{Key, RunRecord, Space, Sweep, SweepError};
use hoistway_experiment::{Alone, CallerEnvironment, Comparison, Load};

const JOB: &str =
    "[r]\nfilename=/dev/sda\ndirect=1\nrw=randread\nsize=1g\nnumber_ios=100\niodepth=${DEPTH}\nioengine=libaio\n";

/// An environment with a job file, a device preset and a variable.
struct Files {
    job: &'static str,
    depth: &'static str,
    device: &'static str,
}

const FILES: Files = Files { job: JOB, depth: "4", device: "mine" };

impl CallerEnvironment for Files {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match path.to_str() {
            Some("job.fio") => Ok(self.job.into()),
            Some("mine.toml") => Ok(include_str!("../../device/presets/null.toml")
                .replace("name = \"null\"", &format!("name = \"{}\"", self.device))
                .into()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        (name == "DEPTH").then(|| self.depth.to_owned())
    }
}

fn space() -> Space {
    let text = r#"{"loads": ["job.fio", {"text": {"name": "other", "text": "[r]\nfilename=/dev/sda\ndirect=1\nrw=write\nsize=1m\n"}}],
                   "devices": ["mine.toml", "null"], "schedulers": ["none", "mq-deadline"], "seeds": 3,
                   "settings": {"mq-deadline": {"fifo_batch": [1, 2]}}}"#;
    serde_json::from_str(text).unwrap()
}

fn sweep(environment: &dyn CallerEnvironment) -> Sweep {
    Sweep::of(space(), environment, 1000).unwrap().0
}

fn keys(sweep: &Sweep) -> Vec<Key> {
    sweep.keys(0..sweep.points()).map(|key| key.unwrap().1).collect()
}

fn records(sweep: &Sweep, points: impl IntoIterator<Item = u64>) -> Vec<(u64, Key, RunRecord<'static>)> {
    let mut records = Vec::new();
    let each = |point, key, record: &RunRecord<'_>| {
        let owned = serde_json::from_str(&serde_json::to_string(record).unwrap()).unwrap();
        records.push((point, key, owned));
    };
    sweep.run(points, &Sweep::controls(), each).unwrap();
    records
}

#[test]
fn a_sweep_sent_elsewhere_needs_no_environment_and_makes_the_same_runs() {
    let sweep = sweep(&FILES);
    assert_eq!(sweep.points(), 2 * 2 * 3 * 3);
    let sent = Sweep::from_json(&sweep.to_json().unwrap()).unwrap();
    assert_eq!(sent.key(), sweep.key());
    let here = records(&sweep, 0..sweep.points());
    let mut there = records(&sent, (0..sent.points()).rev());
    there.reverse();
    assert_eq!(here, there);
    assert_eq!(here.iter().map(|(_, key, _)| *key).collect::<Vec<_>>(), keys(&sweep));
}

#[test]
fn a_run_has_the_figures_of_the_comparison_that_it_is() {
    let sweep = sweep(&FILES);
    let (_, _, record) = records(&sweep, [7]).remove(0);
    let job = JOB.replace("${DEPTH}", "4");
    let document = Comparison {
        load: Load::Text { name: "job.fio".to_owned(), text: job },
        devices: vec!["null".into()],
        schedulers: vec!["none".to_owned()],
        repeats: 3,
        ..Comparison::default()
    };
    // The tenth point is the first one on the second device.
    let (_, _, of_null) = records(&sweep, [9]).remove(0);
    let document = document.run(&Alone).unwrap();
    let figures = |record: &RunRecord<'_>| record.operations[0].figures.clone();
    let rows: Vec<_> = document.figure_rows().filter(|row| row.run.repeat == 0).collect();
    assert_eq!(figures(&of_null), rows.iter().map(|row| (row.figure, row.value)).collect::<Vec<_>>());
    assert_eq!(record.run.settings, "fifo_batch=2");
}

#[test]
fn keys_change_with_the_inputs_of_a_run_and_with_nothing_else() {
    let before = keys(&sweep(&FILES));
    assert_eq!(before.iter().collect::<std::collections::BTreeSet<_>>().len(), before.len());
    let changed = |files: &Files| {
        let after = keys(&sweep(files));
        before.iter().zip(after).map(|(before, after)| *before != after).collect::<Vec<bool>>()
    };
    // By load, device, and the rest: 9 points of each pair.
    let of = |pairs: [bool; 4]| pairs.into_iter().flat_map(|is| [is; 9]).collect::<Vec<bool>>();
    assert_eq!(
        changed(&Files { job: "[r]\nfilename=/dev/sda\ndirect=1\nrw=read\nsize=1m\n", ..FILES }),
        of([true, true, false, false])
    );
    assert_eq!(changed(&Files { depth: "5", ..FILES }), of([true, true, false, false]));
    assert_eq!(changed(&Files { device: "yours", ..FILES }), of([true, false, true, false]));
}

#[test]
fn a_sweep_of_another_version_or_a_damaged_one_is_refused() {
    let text = sweep(&FILES).to_json().unwrap();
    let version = format!("\"version\":\"{}\"", hoistway_experiment::sweep::VERSION);
    let other = text.replacen(&version, "\"version\":\"0.0.1\"", 1);
    assert_eq!(Sweep::from_json(&other).unwrap_err(), SweepError::Version { found: "0.0.1".to_owned() });
    for damaged in [&text[..text.len() / 2], "{}", &text.replacen("hoistway-sweep/1", "hoistway-sweep/9", 1)] {
        assert!(matches!(Sweep::from_json(damaged), Err(SweepError::Damaged(_))), "{damaged:.40}");
    }
}

#[test]
fn a_cancelled_sweep_shows_no_run_that_was_cut_short() {
    let sweep = sweep(&FILES);
    let controls = Sweep::controls();
    let mut shown = 0;
    let cancel = |_, _, _: &RunRecord<'_>| {
        shown += 1;
        controls.cancel();
    };
    sweep.run(0..sweep.points(), &controls, cancel).unwrap();
    assert_eq!(shown, 1);
}
