//! `hoistway fio`: command lines from vendors' documents.

use serde_json::Value;
use tempfile::tempdir;

use crate::support::{hoistway, printed, refused, succeeded};

const LINE: [&str; 9] = [
    "--name=x",
    "--filename=/dev/nvme0n1",
    "--rw=randread",
    "--bs=4k",
    "--direct=1",
    "--ioengine=libaio",
    "--iodepth=4",
    "--runtime=${SECONDS_LONG}",
    "--time_based",
];

#[test]
fn a_pasted_command_line_is_compared_with_the_options_behind_two_dashes() {
    let arguments =
        [&["fio", "fio"], &LINE[..], &["--eta=never", "--", "--schedulers", "none,bfq", "--format", "json"]].concat();
    let json = succeeded(hoistway().args(arguments).env("SECONDS_LONG", "1"));
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["job_file"], "fio command line");
    assert_eq!(document["runs"].as_array().unwrap().len(), 2);
    assert_eq!(document["runs"][0]["jobs"][0]["name"], "x");
    assert!((1.0..1.1).contains(&document["runs"][0]["simulated_seconds"].as_f64().unwrap()));
}

#[test]
fn the_job_file_that_it_means_can_be_had() {
    let text = printed(&["fio", "--print-job", "--direct=1", "--name=a", "--rw", "read", "--name=b", "--rw=write"]);
    assert_eq!(text, "[global]\ndirect=1\n\n[a]\nrw=read\n\n[b]\nrw=write\n");
    assert_eq!(printed(&["fio", "fio", "--name=a", "--rw=read", "--print-job"]), "[a]\nrw=read\n");
    let quoted = "sudo fio --name=a --rw=read";
    for line in [&["--device", "hdd", quoted][..], &[quoted, "--device=hdd"], &[quoted, "--fail-if", "a:read:p99>1s"]] {
        assert_eq!(printed(&[&["fio", "--print-job"], line].concat()), "[a]\nrw=read\n");
    }
}

#[test]
fn unsupported_fio_options_are_refused_by_name() {
    let folder = tempdir().unwrap();
    let refuse = |arguments: &[&str], words: &[&str]| {
        let output = hoistway().current_dir(folder.path()).arg("fio").args(arguments).output().unwrap();
        let message = crate::interrupts::complaints(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{message}");
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    refuse(&["--name=x", "--iodpeth=4"], &["fio command line: --iodpeth", "did you mean --iodepth?"]);
    refuse(&["--name=x", "--rw=rndread"], &["fio command line:2: [x] rw:"]);
    refuse(&["--name=x", "--rw=read", "--", "my.fio"], &["my.fio: the load comes from the fio command line"]);
    refuse(&["--name=x", "--rw=read", "--", "--schedulres", "none"], &["--schedulers"]);
}

#[test]
fn fio_options_given_to_compare_get_a_hint_to_the_fio_command() {
    let folder = tempdir().unwrap();
    refused(
        folder.path(),
        &["compare", "--name=x", "--rw=randread"],
        &["compare: --name is an option of fio (try: hoistway fio --name=x --rw=randread -o results)"],
    );
}
