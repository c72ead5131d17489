//! A recording without `--device` runs on a model of its device, whatever that was.
//!
//! `HOISTWAY_SEED=1000 HOISTWAY_CASES=100 cargo test --test cli drives_that_nobody_knows -- --nocapture` tries more drives and loads.

use std::fs;
use std::path::Path;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde_json::Value;
use tempfile::tempdir;

use crate::self_replay::{Draw, job_file};
use crate::support::{hoistway, refused, succeeded};

const SCHEDULERS: [&str; 3] = ["none", "mq-deadline", "bfq"];
/// An operation of a job with fewer I/Os says little.
const IOS_MIN: u64 = 200;
/// Drives, and numbers of theirs that are changed, so that no model is known.
const DRIVES: [(&str, &[&str]); 5] = [
    ("samsung-980pro-1tb", &["read_us", "large_read_us", "program_us"]),
    ("micron-9100-1600gb", &["read_us", "command_us", "program_us"]),
    ("intel-s3520-1600gb", &["serial_stage_us", "flash_read_us", "acknowledge_us"]),
    ("intel-p4800x-375gb", &["access_us", "read_command_us"]),
    ("emmc", &["read_us", "program_us"]),
];

fn compare(folder: &Path, arguments: &[&str]) -> Value {
    let common = ["--host", "instant", "--repeat", "1", "--from-start", "--format", "json"];
    let printed = succeeded(hoistway().current_dir(folder).arg("compare").args(arguments).args(common));
    serde_json::from_str(&printed).unwrap()
}

/// A preset with some numbers multiplied by 0.4 to 2.5.
fn changed_drive(draw: &mut Draw) -> String {
    let (name, keys) = DRIVES[draw.0.next_u64() as usize % DRIVES.len()];
    let text = succeeded(hoistway().args(["devices", name, "--toml"]));
    let change = |line: &str| {
        let Some((key, value)) = line.split_once(" = ").filter(|(key, _)| keys.contains(key)) else {
            return line.to_owned();
        };
        let number: f64 = value.split('#').next().unwrap().trim().replace('_', "").parse().unwrap();
        let power = (draw.0.next_u64() % 1000) as f64 / 500.0 - 1.0;
        format!("{key} = {:.3}", number * 2.5_f64.powf(power))
    };
    text.lines().map(change).collect::<Vec<_>>().join("\n")
}

/// Scheduler, job, operation, and the relative errors of rate, mean and p99.
type Error = (String, [f64; 3]);

/// The errors of predictions of other schedulers from a recording under one, without naming the device; what was used with them.
fn errors(folder: &Path, seed: u64) -> (String, Vec<Error>) {
    let mut draw = Draw(Xoshiro256PlusPlus::seed_from_u64(seed));
    fs::write(folder.join("load.fio"), job_file(&mut draw, "600ms")).unwrap();
    fs::write(folder.join("drive.toml"), changed_drive(&mut draw)).unwrap();
    let under = draw.one_of(&SCHEDULERS);
    let truth = compare(folder, &["load.fio", "--device", "drive.toml", "--schedulers", &SCHEDULERS.join(",")]);
    compare(folder, &["load.fio", "--device", "drive.toml", "--schedulers", under, "--trace", "run.blktrace"]);
    let recording = format!("run.{under}.blktrace.0");
    let predicted = compare(folder, &[&recording, "--recorded-under", under, "--schedulers", &SCHEDULERS.join(",")]);
    let rows = |document: &Value| {
        let mut rows = Vec::new();
        for run in document["runs"].as_array().unwrap() {
            for job in run["jobs"].as_array().unwrap() {
                for operation in job["operations"].as_array().unwrap() {
                    let name = format!("{} {} {}", run["scheduler"], job["name"], operation["operation"]);
                    let [iops, mean, p99] =
                        [&operation["iops"], &operation["lat_ns"]["mean"], &operation["lat_ns"]["p99"]]
                            .map(|figure| figure.as_f64().unwrap());
                    rows.push((name, operation["ios"].as_u64().unwrap(), [iops, mean, p99]));
                }
            }
        }
        rows
    };
    let predicted_rows = rows(&predicted);
    let mut errors = Vec::new();
    for (name, ios, true_figures) in rows(&truth) {
        let found = predicted_rows.iter().find(|(other, ..)| *other == name);
        let Some((_, _, figures)) = found.filter(|_| ios >= IOS_MIN && !name.contains(&format!("{under:?}"))) else {
            continue;
        };
        errors.push((name, std::array::from_fn(|figure| (figures[figure] / true_figures[figure] - 1.0).abs())));
    }
    let used = predicted["device"]["name"].as_str().unwrap();
    (format!("{seed}: under {under}, on {used}, {}", predicted["recording"]["device_off_factor"]), errors)
}

#[test]
fn drives_that_nobody_knows_are_predicted_from_their_recordings() {
    let asked = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let (first, count) = (asked("HOISTWAY_SEED").unwrap_or(0), asked("HOISTWAY_CASES").unwrap_or(6));
    let folder = tempdir().unwrap();
    let mut all: [Vec<f64>; 3] = Default::default();
    for seed in first..first + count {
        let case = folder.path().join(seed.to_string());
        fs::create_dir(&case).unwrap();
        let (what, errors) = errors(&case, seed);
        for (name, figures) in errors {
            println!("{what}: {name}: {:.0?} %", figures.map(|error| 100.0 * error));
            all.iter_mut().zip(figures).for_each(|(all, error)| all.push(error));
        }
        fs::remove_dir_all(&case).unwrap();
    }
    for (figure, errors) in ["IOPS", "mean", "p99"].iter().zip(&mut all) {
        errors.sort_by(f64::total_cmp);
        let at = |percent: usize| 100.0 * errors[(errors.len() * percent / 100).min(errors.len() - 1)];
        println!("{figure}: median error {:.1} %, 75th {:.0}, 90th {:.0} of {}", at(50), at(75), at(90), errors.len());
        assert!(at(50) < 15.0, "{figure}: {:.1} %", at(50));
    }
}

#[test]
fn a_drive_that_is_known_is_recognised_and_a_model_of_another_is_written() {
    let folder = tempdir().unwrap();
    let load = "[global]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\ntime_based\nruntime=500ms\nsize=2g\n\
                [reader]\nrw=randread\nbs=4k\niodepth=4\n[writer]\nrw=randwrite\nbs=16k\niodepth=2\n";
    fs::write(folder.path().join("load.fio"), load).unwrap();
    for drive in ["intel-p4800x-375gb", "intel-s3520-1600gb", "laptop-hdd"] {
        compare(
            folder.path(),
            &["load.fio", "--device", drive, "--schedulers", "bfq", "--runtime", "3s", "--trace", "run.blktrace"],
        );
        let found = compare(folder.path(), &["run.bfq.blktrace.0", "--schedulers", "none", "--recorded-under", "bfq"]);
        assert_eq!(found["device"]["name"], drive);
    }
    let mut draw = Draw(Xoshiro256PlusPlus::seed_from_u64(1));
    fs::write(folder.path().join("drive.toml"), changed_drive(&mut draw)).unwrap();
    compare(folder.path(), &["load.fio", "--device", "drive.toml", "--schedulers", "none", "--trace", "run.blktrace"]);
    let fit = |arguments: &[&str]| {
        let mut command = hoistway();
        succeeded(command.current_dir(folder.path()).args(["calibrate", "fit"]).args(arguments))
    };
    let printed = fit(&["run.none.blktrace.0", "-o", "mine.toml"]);
    assert!(printed.contains("off on the others by"), "{printed}");
    let document = compare(folder.path(), &["load.fio", "--device", "mine.toml", "--schedulers", "none"]);
    assert_eq!(document["device"]["name"], "mine");
    refused(
        folder.path(),
        &["calibrate", "fit", "run.none.blktrace.0", "--like", "emmc", "-o", "x.toml"],
        &["--like", "expected"],
    );
    refused(folder.path(), &["calibrate", "fit", "load.fio", "-o", "x.toml"], &["load.fio", "--like"]);
    assert!(!folder.path().join("x.toml").exists());
}

#[test]
fn a_replay_that_fails_names_what_is_at_fault() {
    let folder = tempdir().unwrap();
    let load = "[reader]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\ntime_based\nruntime=500ms\nsize=2g\nrw=randread\niodepth=4\n";
    fs::write(folder.path().join("load.fio"), load).unwrap();
    compare(folder.path(), &["load.fio", "--device", "emmc", "--schedulers", "none", "--trace", "run.blktrace"]);
    let text = |device: &[&str]| {
        let arguments = ["compare", "run.none.blktrace.0", "--schedulers", "none", "--repeat", "1"];
        succeeded(hoistway().current_dir(folder.path()).args(arguments).args(device)).replace("\n  ", " ")
    };
    let wrong = text(&["--device", "samsung-980pro-1tb"]);
    assert!(wrong.contains("The device model is at fault"), "{wrong}");
    let right = text(&["--device", "emmc"]);
    assert!(!right.contains("at fault"), "{right}");
}

#[test]
fn flushes_have_the_device_for_themselves_only_if_they_had_it_in_the_recording() {
    let folder = tempdir().unwrap();
    let load = "[db]\nfilename=/dev/sda\ndirect=1\nioengine=psync\ntime_based\nruntime=500ms\nsize=2g\nrw=randrw\nbs=8k\nfsync=8\n\
                numjobs=4\n";
    fs::write(folder.path().join("load.fio"), load).unwrap();
    let sata = succeeded(hoistway().args(["devices", "sata-ssd", "--toml"]));
    fs::write(folder.path().join("queued.toml"), sata.replace("sata = true", "sata = false")).unwrap();
    for (device, is_sata) in [("sata-ssd", true), ("queued.toml", false)] {
        compare(folder.path(), &["load.fio", "--device", device, "--schedulers", "none", "--trace", "run.blktrace"]);
        let made = format!("{is_sata}.toml");
        let fit = ["calibrate", "fit", "run.none.blktrace.0", "-o", &made];
        succeeded(hoistway().current_dir(folder.path()).args(fit));
        let text = fs::read_to_string(folder.path().join(made)).unwrap();
        assert_eq!(text.contains("\nsata = true\n"), is_sata, "{text}");
    }
}
