//! Invalid input: one message that names the error and what was expected, exit status 2, and nothing else.

use std::fs;

use tempfile::{TempDir, tempdir};

use crate::support::{hoistway, refused};

/// A valid preset, from which the invalid ones are made.
pub(crate) const PRESET: &str = r#"name = "mine"
title = "a device for tests"
model = "null"

[shape]
capacity_gb = 100.0
logical_block_bytes = 512
physical_block_bytes = 4096
hw_queues = 1
queue_depth = 32
scsi = false
rotational = false
write_cache = false
fua = false
max_sectors = 2560
max_segments = 128

[null]
delay_ns = 20_000

[calibration]
on = "nothing"
valid_range = "any load"
"#;

/// `printf iostat | gzip`.
const GZIP_OF_TEXT: &[u8] =
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\xcc\x2f\x2e\x49\x2c\x01\x00\x90\x3f\xa7\x84\x06\x00\x00\x00";
/// Bytes that are not text.
const GARBAGE: &[u8] = b"[a]\nrw=read\n\xff\xfe\x80\x00\x01\xc3\x28\n";

/// A folder with one file in it.
fn folder_with(name: &str, content: impl AsRef<[u8]>) -> TempDir {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join(name), content).unwrap();
    folder
}

// --- job files ---

#[track_caller]
fn job_refused(content: impl AsRef<[u8]>, words: &[&str]) {
    let folder = folder_with("load.fio", content);
    refused(folder.path(), &["compare", "load.fio"], words);
}

/// A job whose last line, the fourth, is this option.
fn job_with(option: &str) -> String {
    format!("[job]\nfilename=/dev/sda\ndirect=1\n{option}\n")
}

#[test]
fn a_section_without_closing_bracket() {
    job_refused("[global]\ndirect=1\n[job\n", &["load.fio:3:", "closing bracket", "[name]"]);
}

#[test]
fn an_option_outside_of_any_section() {
    job_refused("rw=read\n", &["load.fio:1:", "\"rw=read\"", "[job] or [global]"]);
}

#[test]
fn an_option_that_does_not_exist_with_the_one_that_was_meant() {
    job_refused(job_with("iodpeth=4"), &["load.fio:4:", "[job]", "iodpeth", "did you mean \"iodepth\"?"]);
}

#[test]
fn an_invalid_option_value_is_refused() {
    job_refused(job_with("bs=0"), &["load.fio:4:", "bs:", "0 bytes is out of range", "expected 1 byte to 1 GiB"]);
    job_refused(job_with("iodepth=many"), &["load.fio:4:", "iodepth:", "\"many\"", "whole number"]);
    job_refused(job_with("rw=sideways"), &["load.fio:4:", "rw:", "\"sideways\"", "prefixed with rand"]);
    job_refused(job_with("rwmixread=101"), &["load.fio:4:", "rwmixread:", "100"]);
}

#[test]
fn an_empty_job_file() {
    job_refused("", &["load.fio:", "no jobs", "[name]"]);
    job_refused("; only a comment\n\n", &["load.fio:", "no jobs"]);
}

#[test]
fn a_job_file_of_bytes() {
    job_refused(GARBAGE, &["load.fio:3:", "not text", "expected a fio job file"]);
    job_refused(GZIP_OF_TEXT, &["load.fio: compressed, and not a recording", "unpack anything else first"]);
    job_refused(b"[a]\n\0\0\0", &["load.fio:", "not a text file"]);
}

#[test]
fn includes_that_loop_or_lead_nowhere() {
    let folder = folder_with("load.fio", "[a]\ninclude one.inc\n");
    fs::write(folder.path().join("one.inc"), "bs=4k\ninclude two.inc\n").unwrap();
    fs::write(folder.path().join("two.inc"), "include one.inc\n").unwrap();
    refused(folder.path(), &["compare", "load.fio"], &["two.inc:1:", "\"one.inc\" includes itself"]);
    fs::write(folder.path().join("two.inc"), "include three.inc\n").unwrap();
    refused(folder.path(), &["compare", "load.fio"], &["two.inc:1:", "\"three.inc\"", "No such file"]);
    fs::write(folder.path().join("two.inc"), GARBAGE).unwrap();
    refused(folder.path(), &["compare", "load.fio"], &["one.inc:2:", "\"two.inc\"", "not text"]);
}

#[test]
fn an_include_without_end() {
    job_refused("[a]\ninclude /dev/zero\n", &["load.fio:2:", "\"/dev/zero\"", "longer than 64 MiB"]);
}

#[test]
fn a_job_file_that_is_missing_or_a_folder_or_without_end() {
    let folder = tempdir().unwrap();
    let refused = |name: &str, words: &[&str]| refused(folder.path(), &["compare", name], words);
    refused("gone.fio", &["gone.fio:", "expected a fio job file", "No such file"]);
    refused(".", &[".: there is no recording in this folder", "expected a folder with one recording"]);
    refused("/dev/zero", &["/dev/zero:", "longer than 64 MiB", "expected a fio job file"]);
}

// --- presets ---

/// The preset with one line changed: refused by `devices` and by `compare` alike.
#[track_caller]
fn preset_refused(from: &str, to: &str, words: &[&str]) {
    assert!(PRESET.contains(from), "{from}");
    preset_text_refused(PRESET.replace(from, to), words);
}

#[track_caller]
fn preset_text_refused(content: impl AsRef<[u8]>, words: &[&str]) {
    let folder = folder_with("mine.toml", content);
    refused(folder.path(), &["devices", "mine.toml"], words);
    refused(folder.path(), &["compare", "--device", "mine.toml"], words);
}

#[test]
fn a_preset_without_a_key() {
    preset_refused("delay_ns = 20_000\n", "", &["mine.toml:18:", "`null.delay_ns` is missing", "expected"]);
    preset_refused("hw_queues = 1\n", "", &["mine.toml:5:", "`shape.hw_queues` is missing", "expected"]);
}

#[test]
fn a_preset_with_an_impossible_number_is_refused() {
    preset_refused("= 20_000", "= -1", &["mine.toml:19:", "`null.delay_ns` is -1", "from 1 to"]);
    for number in ["nan", "inf", "-inf", "-100.0", "0"] {
        let shown = format!("`shape.capacity_gb` is {number}");
        preset_refused("= 100.0", &format!("= {number}"), &["mine.toml:6:", &shown, "expected a number"]);
    }
    preset_refused("= 100.0", "= \"big\"", &["mine.toml:6:", "the text \"big\"", "expected a number"]);
}

#[test]
fn a_preset_with_a_key_too_many() {
    let words = ["mine.toml:20:", "`null.delay` is not a key", "`delay_jitter_percent`"];
    preset_refused("= 20_000\n", "= 20_000\ndelay = 1\n", &words);
}

#[test]
fn a_preset_of_something_else() {
    preset_text_refused("", &["mine.toml:1:", "`model` is missing", "\"null\" or"]);
    preset_text_refused("{{{\n", &["mine.toml:1:", "expected key"]);
    preset_text_refused(GARBAGE, &["mine.toml:3:", "not text", "expected a device preset in TOML"]);
}

#[test]
fn a_preset_that_is_missing_or_a_folder() {
    let folder = tempdir().unwrap();
    fs::create_dir(folder.path().join("folder.toml")).unwrap();
    for (name, reason) in [("gone.toml", "No such file"), ("folder.toml", "Is a directory")] {
        let words = [&format!("{name}:"), "expected a device preset in TOML", reason];
        refused(folder.path(), &["devices", name], &words);
        refused(folder.path(), &["compare", "--device", name], &words);
    }
}

// --- the command line ---

#[track_caller]
fn compare_refused(arguments: &[&str], words: &[&str]) {
    let folder = tempdir().unwrap();
    refused(folder.path(), &[&["compare"], arguments].concat(), words);
}

#[test]
fn unknown_names_are_refused_with_the_known_ones() {
    compare_refused(
        &["--schedulers", "none,mq-dedline"],
        &["mq-dedline: unknown", "expected all, or", "did you mean \"mq-deadline\"?"],
    );
    compare_refused(&["--device", "floppy"], &["`floppy`", "expected one of", "intel-s3520-1600gb"]);
    compare_refused(&["--device", "sdb=null"], &["sdb=null", "\"sdb\"", "expected one of /dev/sda"]);
    let twice = ["--device", "sda=null", "--device", "/dev/sda=hdd"];
    compare_refused(&twice, &["sda=null", "/dev/sda is the same device (expected it once)"]);
    compare_refused(&["--kernel", "2.6"], &["unknown kernel \"2.6\"", "--kernel", "expected one of", "6.18"]);
    let folder = tempdir().unwrap();
    refused(folder.path(), &["devices", "floppy"], &["`floppy`", "expected one of", "intel-s3520-1600gb"]);
}

#[test]
fn devices_given_twice() {
    let words = ["--device hdd: --device null was already given", "NAME=PRESET", "--device null,hdd"];
    compare_refused(&["--device", "null", "--device", "hdd"], &words);
}

#[test]
fn impossible_run_times_are_refused() {
    let hint = "a number with a unit, such as 30s or 0.2s";
    for (time, expected) in [
        ("", hint),
        ("fast", "expected us, ms, s, m, h or d"),
        ("3x", "expected us, ms, s, m, h or d"),
        ("s", hint),
        ("0", "between 1 us and 10 years"),
        ("3654d", "between 1 us and 10 years"),
        ("99999999999999999999", hint),
    ] {
        compare_refused(&["--runtime", time], &["--runtime", expected]);
    }
}

#[test]
fn impossible_settings_are_refused() {
    let example = "expected SCHED.TUNABLE=VALUE, such as mq-deadline.fifo_batch=1";
    for setting in ["", "fifo_batch", "fifo_batch=1", "mq-deadline.fifo_batch", "=", "."] {
        compare_refused(&["--set", setting], &[&format!("--set {setting}: "), example]);
    }
    for (setting, words) in [
        ("elevator.fifo_batch=1", ["unknown scheduler \"elevator\"", "expected one of none"]),
        ("mq-deadline.fifo_bitch=1", ["no tunable \"fifo_bitch\"", "expected one of read_expire, "]),
        ("none.fifo_batch=1", ["none has no", "tunables"]),
        ("mq-deadline.fifo_batch=", ["not a number", "expected 0 to 2147483647"]),
        ("mq-deadline.fifo_batch=many", ["not a number", "expected 0 to 2147483647"]),
        ("mq-deadline.fifo_batch=1.5", ["not a number", "expected 0 to 2147483647"]),
        ("mq-deadline.fifo_batch=99999999999", ["out of range", "expected 0 to 2147483647"]),
    ] {
        compare_refused(&["--set", setting], &[&format!("--set {setting}: "), words[0], words[1]]);
    }
    let not_compared = ["--schedulers", "none", "--set", "mq-deadline.fifo_batch=1"];
    compare_refused(&not_compared, &["mq-deadline is not among the compared schedulers"]);
}

#[test]
fn an_invalid_setting_is_refused_before_the_runs_begin() {
    // If the runs came first, this would take days.
    compare_refused(&["--runtime", "3650d", "--set", "mq-deadline.front_merges=x"], &["not a number"]);
}

#[test]
fn invalid_formats_and_seeds_are_refused() {
    compare_refused(&["--format", "xml"], &["'xml'", "table, json"]);
    compare_refused(&["--seed", "dice"], &["'dice'", "--seed"]);
}

#[test]
fn no_command_at_all_gets_the_help() {
    let output = hoistway().output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(String::from_utf8(output.stderr).unwrap().contains("compare"));
}

// --- results ---

#[test]
fn unwritable_output_paths_are_refused() {
    let folder = tempdir().unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    let compare = ["compare", "--runtime", "3650d", "-o"];
    let refused = |place: &str, words: &[&str]| refused(folder.path(), &[&compare[..], &[place]].concat(), words);
    refused("folder", &["folder: is a directory", "expected a file to write"]);
    refused("gone/results", &["gone/results: cannot be written", "in a folder that exists", "No such file"]);
    refused("/", &["/: is a directory", "expected a file to write"]);
    refused("..", &["..: is a directory", "expected a file to write"]);
}

#[test]
fn a_full_disk() {
    let folder = tempdir().unwrap();
    let words = ["/dev/full: cannot be written", "No space left"];
    refused(folder.path(), &["compare", "--runtime", "20ms", "-o", "/dev/full"], &words);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hoistway"));
    let output = command.arg("devices").stdout(full).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.starts_with("hoistway: standard output: cannot be written: No space left"), "{message}");
}

#[test]
fn an_invalid_queue_file_value_is_refused_with_the_valid_ones() {
    for (setting, words) in [
        ("nr_requests", "expected KEY=VALUE"),
        ("nr_requests=x", "expected a whole number"),
        ("nr_requests=2049", "2049 is not in 0 to 2048"),
        ("colour=1", "expected one of nr_requests, async_depth, nomerges"),
        ("write_cache=foo", "EINVAL"),
        ("nomerges=-1", "EINVAL"),
        ("max_sectors_kb=3", "EINVAL"),
        ("fua=1", "can only be read"),
        ("scheduler=bfq", "use --schedulers"),
        ("rq_affinity=-1", "EINVAL"),
        ("iosched/fifo_batch=1", "use --set"),
    ] {
        compare_refused(&["--queue", setting], &["--queue", words]);
    }
    let none = ["--queue", "nr_requests=40", "--schedulers", "none"];
    compare_refused(&none, &["--queue nr_requests=", "the device has 32 tags (expected fewer with none"]);
}

#[test]
fn a_cgroup_limit_needs_a_group_of_the_job_file_and_a_valid_value() {
    for (limit, words) in [
        ("slow", "expected a cgroup and its limits"),
        ("slow rbps=1000", "no job is in cgroup \"slow\""),
        ("/ rbps=1000", "no job is in cgroup"),
    ] {
        compare_refused(&["--io-max", limit], &["--io-max", words]);
    }
}

#[test]
fn settings_of_io_cost_are_refused_with_their_position() {
    for (option, text, words) in [
        ("--io-cost", "enable=1 rpct=101", "\"rpct=101\" at character 10"),
        ("--io-cost", "enable=1", "does not hold rbps"),
        ("--io-weight", "pods", "expected a cgroup and its weight"),
        ("--vary", "io.cost.qos.max=5", "no device has io.cost"),
    ] {
        compare_refused(&[option, text], &[option, words]);
    }
}

#[test]
fn targets_of_io_latency_are_refused_with_what_was_expected() {
    for (text, words) in [
        ("pods", "expected a cgroup and its target"),
        ("nobody target=5", "no job is in cgroup \"nobody\""),
        ("/ target=5", "the root cgroup has no io.latency"),
    ] {
        compare_refused(&["--io-latency", text], &["--io-latency", words]);
    }
}

#[test]
fn varied_targets_of_io_latency_are_refused_with_the_option_the_value_and_what_was_expected() {
    for (text, words) in [
        ("io.latency.pods=5", "\"pods\" is not the target of a cgroup (expected io.latency.CGROUP.target"),
        ("io.latency.nobody.target=5", "no job is in cgroup \"nobody\""),
        ("io.latency.target=5", "expected io.latency.CGROUP.target"),
        ("io.latency./pods.target=5", "expected io.latency.CGROUP.target"),
        ("io.latency.pods.target", "io.latency.CGROUP.target=V1,V2"),
    ] {
        compare_refused(&["--vary", text], &["--vary io.latency", words]);
    }
    let etcd = |text: &str, words: &str| {
        let folder = tempfile::tempdir().unwrap();
        let load = ["compare", "etcd-beside-pods", "--vary", text];
        crate::support::refused(folder.path(), &load, &[&format!("--vary {text}"), words]);
    };
    etcd("io.latency.kubepods/etcd.target=2ms", "expected a number of microseconds");
    etcd("io.latency.kubepods/etcd.target=5,5", "5 is given twice (expected each value once)");
}

// --- repeats, formats and queues ---

#[test]
fn numbers_that_make_no_comparison_are_refused() {
    let folder = tempdir().unwrap();
    let compare = |options: &[&str], words: &[&str]| {
        refused(folder.path(), &[&["compare"], options].concat(), words);
    };
    compare(&["--repeat", "0"], &["--repeat"]);
    compare(&["--repeat", "many"], &["--repeat"]);
    compare(&["--hw-queues", "0"], &["--hw-queues"]);
    compare(&["--hw-queues", "4000"], &["--hw-queues"]);
    compare(&["--nr-requests", "few"], &["--nr-requests few: expected a whole number"]);
    compare(&["--nr-requests", "8", "--queue", "nr_requests=9"], &["--nr-requests 8: --queue sets nr_requests too"]);
    compare(&["--ramp", "soon"], &["--ramp"]);
}

#[test]
fn a_baseline_that_is_not_compared_is_refused() {
    let folder = tempdir().unwrap();
    let arguments = ["compare", "--schedulers", "none,bfq", "--baseline", "kyber"];
    refused(folder.path(), &arguments, &["--baseline kyber: not among the compared schedulers", "none, bfq"]);
}

#[test]
fn documents_of_one_run_are_refused_for_several() {
    let folder = tempdir().unwrap();
    let words = ["--format fio-json+: fio's document holds one run, but this makes 4", "--fio-logs DIR"];
    refused(folder.path(), &["compare", "--format", "fio-json+"], &words);
    let arguments = ["compare", "--schedulers", "none", "--repeat", "2", "--format", "fio-json"];
    refused(folder.path(), &arguments, &["this makes 2"]);
}

#[test]
fn an_invalid_log_window_is_refused_with_its_line() {
    job_refused(job_with("log_avg_msec=often"), &["load.fio:4", "log_avg_msec"]);
}

#[test]
fn misspelt_names_are_refused_with_a_suggestion() {
    let folder = tempdir().unwrap();
    for (arguments, meant) in [
        (&["compare", "--schedulers", "nonee"][..], "did you mean \"none\"?"),
        (&["compare", "--set", "mq-deadline.fifo_bach=1"], "did you mean \"fifo_batch\"?"),
        (&["compare", "--host", "sever"], "did you mean \"server\"?"),
        (&["compare", "databse"], "did you mean \"database\"?"),
    ] {
        refused(folder.path(), arguments, &[meant]);
    }
}

#[test]
fn a_tunable_set_twice_and_a_write_after_the_end_are_refused() {
    let folder = tempdir().unwrap();
    let twice = ["compare", "--set", "bfq.slice_idle=1", "--set", "bfq.slice_idle=2"];
    refused(folder.path(), &twice, &["--set bfq.slice_idle=2: --set bfq.slice_idle=1 was already given"]);
    let late = ["compare", "--runtime", "2s", "--at", "3s:scheduler=bfq"];
    refused(folder.path(), &late, &["the load ends after 2"]);
}
