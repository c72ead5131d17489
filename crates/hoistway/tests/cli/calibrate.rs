//! `hoistway calibrate`.

use std::fs;

use crate::support::{hoistway, printed, refused};

const MEASURED: &str = "rw,bs,iodepth,iops,lat_mean_us\n\
                        randread,4k,1,12000,83\nrandread,4k,32,200000,160\nrandread,4k,256,320000,800\n";

#[test]
fn a_measured_host_is_a_profile_that_comparisons_take() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("host.toml");
    let profile = profile.to_str().unwrap();
    let report = printed(&["calibrate", "host", "--rounds", "1", "--name", "mine", "-o", profile]);
    assert!(report.contains("medians of 1 rounds") && report.contains("mq-deadline"), "{report}");
    let text = fs::read_to_string(profile).unwrap();
    assert!(text.contains("name = \"mine\"") && text.starts_with("# Measured by"), "{text}");
    let compared = printed(&["compare", "--host", profile, "--runtime", "20ms", "--repeat", "1", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&compared).unwrap();
    assert_eq!(document["host"]["name"], "mine");
}

#[test]
fn a_device_that_was_fitted_is_a_preset_that_comparisons_take() {
    let folder = tempfile::tempdir().unwrap();
    let (measured, preset) = (folder.path().join("m.csv"), folder.path().join("my-disk.toml"));
    fs::write(&measured, MEASURED).unwrap();
    let [measured, preset] = [&measured, &preset].map(|path| path.to_str().unwrap());
    let arguments = ["calibrate", "fit", measured, "--like", "CT1000P3PSSD8", "--parameters", "read_us", "-o", preset];
    let report = printed(&arguments);
    for expected in ["flash.read_us", "known to", "line 4: random reads of 4096 bytes, 1 x 256 outstanding, IOPS"] {
        assert!(report.contains(expected), "{expected}\n{report}");
    }
    let shown = printed(&["devices", preset]);
    assert!(shown.contains("my-disk") && shown.contains("m.csv"), "{shown}");
}

#[test]
fn an_unconverged_fit_writes_its_best_so_far_marked_and_exits_with_1() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m.csv"), MEASURED).unwrap();
    let mut command = hoistway();
    command.current_dir(folder.path());
    command.args(["calibrate", "fit", "m.csv", "--like", "CT1000P3PSSD8", "--evaluations", "3", "-o", "d.toml"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("did not converge in 3 evaluations"));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("NOT CONVERGED"));
    assert!(fs::read_to_string(folder.path().join("d.toml")).unwrap().contains("did not converge"));
}

#[test]
fn an_impossible_fit_is_refused_in_one_message_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("m.csv"), MEASURED).unwrap();
    fs::write(at.join("bfq.csv"), "rw,bs,iodepth,scheduler,iops\nread,4k,1,bfq,9\n").unwrap();
    fs::write(at.join("few.csv"), "rw,bs,iodepth,iops\nrandread,4k,1,9000\n").unwrap();
    let fit = |file: &str, more: &[&str], words: &[&str]| {
        refused(at, &[&["calibrate", "fit", file, "--like"], more].concat(), words);
    };
    fit("no.csv", &["nvme"], &["no.csv: cannot be read"]);
    fit("bfq.csv", &["nvme"], &["bfq.csv:2: `scheduler` is bfq"]);
    fit("few.csv", &["nvme"], &["few.csv: ", "but not for read_us"]);
    fit("m.csv", &["nvme", "--parameters", "reed_us"], &["--parameters: `reed_us` is not a parameter"]);
    fit("m.csv", &["nvme", "--parameters", "read_us,read_us"], &["--parameters: `read_us` is given twice"]);
    fit("m.csv", &["nvem"], &["--like", "nvem"]);
    fit("m.csv", &["no.toml"], &["--like no.toml: cannot be read"]);
    fit("m.csv", &["null"], &["--like null: null has a model without parameters"]);
    fit("/dev/zero", &["nvme"], &["/dev/zero: cannot be read", "longer than 64 MiB"]);
    fs::write(at.join("own.toml"), printed(&["devices", "CT1000P3PSSD8", "--toml"])).unwrap();
    for read in ["m.csv", "own.toml"] {
        let line = ["calibrate", "fit", "m.csv", "--like", "own.toml", "-o", read];
        refused(at, &line, &[read, "is read by this command"]);
    }
    refused(at, &["calibrate", "host", "--rounds", "0"], &["--rounds"]);
}
