//! `hoistway trace`: recordings of block I/O are described and converted.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::support::{hoistway, refused, succeeded};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../trace/tests/block/data");

/// What the binary prints beside the recordings, whose short names break no line elsewhere than on another machine.
fn of_data(arguments: &[&str]) -> String {
    succeeded(hoistway().current_dir(DATA).args(arguments))
}

#[test]
fn a_recording_is_described_with_its_streams() {
    let recording = "sqlite-commits.blktrace.0.gz";
    let text = of_data(&["trace", "info", recording]);
    assert!(text.contains("python3") && text.contains("jbd2"), "{text}");
    let document: Value = serde_json::from_str(&of_data(&["trace", "info", recording, "--format", "json"])).unwrap();
    assert!(document["streams"].as_array().is_some_and(|streams| streams.len() >= 2), "{document}");
}

#[test]
fn a_converted_recording_holds_the_same_events() {
    let folder = tempdir().unwrap();
    let convert = |from: &str, to: &str| {
        succeeded(hoistway().current_dir(folder.path()).args(["trace", "convert", from, "-o", to]));
    };
    convert(&format!("{DATA}/synthetic.blktrace.0.gz"), "once.blktrace");
    assert!(folder.path().join("once.blktrace.0").is_file());
    convert(&format!("{DATA}/synthetic.blktrace.0.gz"), "first.jsonl");
    convert("once.blktrace.0", "second.jsonl");
    let lines = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(lines("first.jsonl").lines().count() > 10);
    assert_eq!(lines("first.jsonl"), lines("second.jsonl"));
}

#[test]
fn a_file_that_is_no_recording_is_refused() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("picture.png"), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").unwrap();
    let refuse = |arguments: &[&str], words: &[&str]| {
        let output = hoistway().current_dir(folder.path()).args(arguments).output().unwrap();
        let message = crate::interrupts::complaints(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}: {message}");
        words.iter().for_each(|word| assert!(message.contains(word), "{arguments:?}: no {word:?} in {message}"));
    };
    refuse(&["trace", "info", "picture.png"], &["picture.png", "expected"]);
    refuse(&["trace", "info", "gone.blktrace.0"], &["gone.blktrace.0"]);
    refused(
        Path::new(folder.path()),
        &["trace", "convert", "picture.png", "-o", "x.csv"],
        &["-o x.csv: unknown extension (expected NAME.blktrace, NAME.iolog, NAME.perfetto-trace or NAME.jsonl)"],
    );
    refused(
        Path::new(folder.path()),
        &["trace", "convert", "picture.png", "-o", "x.parquet"],
        &[
            "-o x.parquet: there is no writer of Parquet (expected x.jsonl, and in Python polars.scan_ndjson(\"x.jsonl\", infer_schema_length=None)",
        ],
    );
}

#[test]
fn a_recording_is_compared_as_a_job_file_is() {
    let recording = "sqlite-commits.blktrace.0.gz";
    let compare = |more: &[&str]| {
        let mut arguments = vec!["compare", recording, "--schedulers", "none,mq-deadline", "--repeat", "1"];
        arguments.extend(more);
        of_data(&arguments)
    };
    let text = compare(&["--device", "sata-ssd", "--focus", "python3:sync:mean"]);
    for words in ["blktrace records", "7,0, 8.19 s", "replayed under mq-deadline", "python3, 1 process"] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    let document: Value = serde_json::from_str(&compare(&["--format", "json", "--as", "timed"])).unwrap();
    assert_eq!(document["recording"]["mode"], "timed");
    assert_eq!(document["recording"]["self_check"].as_array().map(Vec::len), Some(0), "it is no check at other times");
    assert!(document["recording"]["streams"].as_array().is_some_and(|streams| streams.len() == 3));
    let slow: Value = serde_json::from_str(&compare(&["--format", "json", "--speed", "0.5"])).unwrap();
    // 18 of 20 parts: the first tenth comes before runs are measured.
    let over_time = |document: &Value| document["recording"]["streams"][0]["over_time"].clone();
    assert_eq!(over_time(&document)[0]["series"]["ios"].as_array().map(Vec::len), Some(18));
    assert_eq!(over_time(&slow), Value::Null, "it was not as slow");
    let simulated = |document: &Value| document["runs"][0]["simulated_seconds"].as_f64().unwrap();
    assert!(simulated(&slow) > 1.8 * simulated(&document), "{} {}", simulated(&slow), simulated(&document));
}

/// What the binary prints for this standard input.
fn with_input(arguments: &[&str], input: &[u8]) -> String {
    succeeded(hoistway().args(arguments).write_stdin(input))
}

#[test]
fn settings_of_other_schedulers_do_not_affect_the_model_check() {
    let recording = "sqlite-commits.blktrace.0.gz";
    for set in [["--set", "bfq.low_latency=0"], ["--vary", "bfq.low_latency=0,1"], ["--at", "1s:bfq.low_latency=0"]] {
        let text = of_data(&["compare", recording, "--repeat", "1", "--schedulers", "bfq", set[0], set[1]]);
        assert!(text.contains("replayed under mq-deadline"), "{set:?}: {text}");
    }
}

#[test]
fn a_recording_may_come_through_a_pipe_and_a_job_file_too() {
    let text = fs::read(format!("{DATA}/synthetic.blkparse.txt.gz")).unwrap();
    let table = with_input(&["compare", "-", "--repeat", "1", "--schedulers", "none", "--as", "timed"], &text);
    assert!(table.contains("blkparse"), "{table}");
    let job = b"[a]\nfilename=/dev/sda\ndirect=1\nrw=randread\nsize=1m\n";
    let table = with_input(&["compare", "-", "--repeat", "1", "--schedulers", "none"], job);
    assert!(table.contains("a, 1 process"), "{table}");
}

#[test]
fn invalid_replay_options_are_refused_with_what_was_expected() {
    let recording = "sqlite-commits.blktrace.0.gz";
    let here = Path::new(DATA);
    for (option, value, words) in [
        ("--as", "slow", "recorded-program"),
        ("--window", "5s", "--window 5s: expected FROM..TO"),
        ("--window", "5s..1s", "expected a start before the end"),
        ("--streams", "pyton3", "did you mean \"python3\""),
        ("--depth", "python3", "--depth python3: expected STREAM=N"),
        ("--depth", "python3=x", "--depth python3=x: expected a whole number"),
        ("--prio", "python3=high", "expected a class and a level"),
        ("--copies", "0", "--copies 0: expected 1 to 1000"),
        ("--speed", "0", "--speed 0: expected a factor"),
        ("--recorded-under", "anticipatory", "unknown scheduler"),
        ("--columns", "time=x", "--columns time=x"),
        ("--recorded-device", "9,9", "has no I/Os of the device 9,9"),
    ] {
        refused(here, &["compare", recording, option, value], &[words]);
    }
    refused(here, &["compare", "--speed", "2"], &["expected a recording of block I/O"]);
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("unknown.csv"), "op_time,block_id,io_size\n1702511878,12ce23ea,8388608\n").unwrap();
    let words = ["unknown.csv: neither a fio job file (it has no [section]) nor a recording", "--columns COLUMNS"];
    refused(folder.path(), &["compare", "unknown.csv"], &words);
    fs::write(folder.path().join("two.csv"), "1,R,0,4096,10\n1,R,4096,4096,20\n2,W,0,4096,30\n").unwrap();
    let columns = "dev=1,op=2:R/W,offset=3:bytes,size=4:bytes,time=5:us";
    refused(folder.path(), &["compare", "two.csv", "--columns", columns], &["several devices", "--recorded-device"]);
}

const IOSTAT: &str = "Device  r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await wareq-sz f/s f_await aqu-sz %util\n\
                      sda  100.00 1600.00 0 0 44.00 16.00 60.00 3840.00 0 0 60.00 64.00 2.00 30.00 9.00 99.0\n\
                      sdb  1.00 4.00 0 0 5.00 4.00 0 0 0 0 0 0 0 0 0.1 1.0\n";

#[test]
fn iostat_output_is_a_load_of_rates_and_a_check_of_the_model() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("sda.txt"), IOSTAT).unwrap();
    let arguments = ["compare", "sda.txt", "--device", "sata-ssd", "--format", "json", "--repeat", "1"];
    let text = succeeded(hoistway().current_dir(folder.path()).args(arguments));
    let document: Value = serde_json::from_str(&text).unwrap();
    let run = &document["runs"][0];
    for (job, rate) in [("reads", 100.0), ("writes", 60.0)] {
        let jobs = run["jobs"].as_array().unwrap();
        let its = jobs.iter().find(|its| its["name"] == job).unwrap();
        let iops = its["operations"][0]["iops"].as_f64().unwrap();
        assert!((iops / rate - 1.0).abs() < 0.1, "{job}: {iops}");
    }
    assert_eq!(document["focus"], "reads:read:mean");
    let said = |field: &str, words: &str| {
        let all = document[field].as_array().unwrap();
        assert!(all.iter().any(|one| one.as_str().unwrap().contains(words)), "no {words:?} in {all:?}");
    };
    said("notices", "sda does 100 reads a second of 16.0 KiB, 44.00 ms each");
    said("notices", "Left out (--recorded-device chooses): sdb");
    said("notices", "blktrace -d /dev/sda -w 30 -o sda; hoistway compare sda.blktrace.0");
    let check = &document["device_checks"][0];
    assert_eq!((&check["disk"], &check["rows"][0]["observed_ns"]), (&json!("sda"), &json!(44e6)), "{check}");
    assert!(document.get("verdicts").is_none(), "sata-ssd is not this disk: {}", document["verdicts"]);
    let first = document["conclusion"][0].as_str().unwrap();
    assert!(
        first.starts_with(
            "No verdict for intel-s3520-1600gb: it is not the observed device sda: reads took 44.0 ms there and "
        ),
        "{first}"
    );
    assert!(first.contains("with --device"), "{first}");
    let text = succeeded(
        hoistway().current_dir(folder.path()).args(["compare", "sda.txt", "--device", "sata-ssd", "--repeat", "1"]),
    );
    assert!(
        text.contains("No verdict for intel-s3520-1600gb") && !text.contains("keep") && !text.contains("change from"),
        "{text}"
    );
}

#[test]
fn iostat_output_gets_a_verdict_on_the_device_that_it_fits_alone() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("sda.txt"), IOSTAT.replace("44.00", "200.00").replace("60.00 64.00", "40.00 64.00"))
        .unwrap();
    let arguments = ["compare", "sda.txt", "--device", "sata-ssd,hdd", "--format", "json", "--repeat", "2"];
    let document: Value =
        serde_json::from_str(&succeeded(hoistway().current_dir(folder.path()).args(arguments))).unwrap();
    let places: Vec<&Value> =
        document["verdicts"].as_array().unwrap().iter().map(|verdict| &verdict["setup"]).collect();
    assert_eq!(places, [&json!(1)], "{}", document["device_checks"]);
    let sentences = document["conclusion"].as_array().unwrap();
    let of_no_verdict = |sentence: &&Value| sentence.as_str().unwrap().starts_with("No verdict");
    assert_eq!(sentences.iter().filter(of_no_verdict).count(), 1, "{sentences:?}");
    assert!(of_no_verdict(&&sentences[0]), "{sentences:?}");
}

#[test]
fn the_model_is_checked_once_for_a_tool_with_one_latency_for_all() {
    let folder = tempdir().unwrap();
    let sar = "\u{feff}12:00:01 AM DEV tps rkB/s wkB/s areq-sz aqu-sz await %util\n\
               12:10:01 AM sda 100.00 800.00 2400.00 32.00 1.00 44.00 80.00\n";
    fs::write(folder.path().join("sar.txt"), sar).unwrap();
    let arguments = ["compare", "sar.txt", "--device", "sata-ssd", "--format", "json", "--repeat", "1"];
    let document: Value =
        serde_json::from_str(&succeeded(hoistway().current_dir(folder.path()).args(arguments))).unwrap();
    let rows = document["device_checks"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((&rows[0]["job"], &rows[0]["observed_ns"]), (&json!("reads and writes"), &json!(44e6)));
    assert!((rows[0]["model_ios"].as_f64().unwrap() - 100.0).abs() < 15.0, "{rows:?}");
}

#[test]
fn output_of_other_tools_is_refused_with_what_it_lacks() {
    let folder = tempdir().unwrap();
    for (text, words) in [
        ("best-effort: prio 4\n", "output of ionice: it has a priority, but no I/Os (expected a recording"),
        ("Device tps kB_read/s kB_wrtn/s\nsda 1 2 3\n", "iostat without -x"),
        (" r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs\n", "output of vmstat"),
        ("   8  0 sda 100 0 1600 500 10 0 80 20 0 44 502\n", "line 1: this is /proc/diskstats without the time"),
        ("Device r/s rkB/s r_await\nsda 0.00 0.00 0.00\n", "no disk with I/O"),
        ("Device r/s rkB/s r_await\nsda x 0.00 0.00\n", "line 2: \"x\" is not a figure of iostat"),
    ] {
        fs::write(folder.path().join("x"), text).unwrap();
        refused(folder.path(), &["compare", "./x"], &[words]);
    }
    fs::write(folder.path().join("sda.txt"), IOSTAT).unwrap();
    refused(folder.path(), &["compare", "sda.txt", "--speed", "2"], &["options of a replay need a recording"]);
}

/// Records of blktrace as the kernel writes them with the option `blk_cgroup`: journal threads are in group 7, all others in 4711.
fn with_cgroups(name: &str) -> Vec<u8> {
    const HEADER_BYTES: usize = 48;
    let mut records = Vec::new();
    flate2::read::MultiGzDecoder::new(fs::File::open(format!("{DATA}/{name}")).unwrap())
        .read_to_end(&mut records)
        .unwrap();
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let (mut rest, mut changed) = (&records[..], Vec::new());
    while rest.len() >= HEADER_BYTES {
        let length = HEADER_BYTES + usize::from(u16::from_le_bytes([rest[46], rest[47]]));
        let (record, behind) = rest.split_at(length);
        let (mut header, payload) = (record[..HEADER_BYTES].to_vec(), &record[HEADER_BYTES..]);
        let (action, pid) = (word(record, 28), word(record, 32));
        let is_note = action & 0x0400_0000 != 0;
        if !is_note {
            header[28..32].copy_from_slice(&(action | 0x100).to_le_bytes());
            header[46..48].copy_from_slice(&(payload.len() as u16 + 8).to_le_bytes());
        }
        changed.extend(header);
        if !is_note {
            changed.extend(if pid == 1027 { 7u64 } else { 4711 }.to_le_bytes());
        }
        changed.extend(payload);
        rest = behind;
    }
    changed
}

#[test]
fn cgroups_of_a_recording_get_weights() {
    let folder = tempdir().unwrap();
    for cpu in 0..2 {
        let records = with_cgroups(&format!("sqlite-commits.blktrace.{cpu}.gz"));
        fs::write(folder.path().join(format!("x.blktrace.{cpu}")), records).unwrap();
    }
    let run = |arguments: &[&str]| {
        let text = succeeded(hoistway().current_dir(folder.path()).args(arguments));
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let described = run(&["trace", "info", "x.blktrace.0", "--format", "json"]);
    let groups: Vec<(&str, u64)> = described["streams"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stream| (stream["name"].as_str().unwrap(), stream["cgroup"].as_u64().unwrap()))
        .collect();
    assert_eq!(groups, [("jbd2/loop0-8", 7), ("python3", 4711), ("others", 4711)]);
    let compare = |more: &[&str]| {
        let arguments =
            ["compare", "x.blktrace.0", "--schedulers", "bfq", "--repeat", "1", "--as", "fast", "--format", "json"];
        run(&[&arguments[..], more].concat())
    };
    let says_so = |document: &Value| {
        let notices = document["notices"].as_array().unwrap();
        notices
            .iter()
            .any(|notice| notice.as_str().unwrap().contains("from 2 cgroups, whose weights a recording does not show"))
    };
    let device = ["--device", "hdd"];
    let (equal, unequal) = (
        compare(&device),
        compare(&[&device[..], &["--cgroup", "7=weight:1000", "--cgroup", "4711=weight:1"]].concat()),
    );
    assert!(says_so(&equal) && !says_so(&unequal));
    assert_ne!(equal["runs"][0]["jobs"], unequal["runs"][0]["jobs"]);
    for (weight, words) in [
        ("4711", "--cgroup 4711: expected ID=weight:N"),
        ("4711=weight:0", "--cgroup 4711=weight:0: expected a weight of 1 to 1000"),
        ("9=weight:100", "--cgroup 9=weight:100: no cgroup of that id (expected one of 7, 4711)"),
    ] {
        refused(folder.path(), &["compare", "x.blktrace.0", "--cgroup", weight], &[words]);
    }
}

/// blkparse's text of a task that always wants to submit, on a queue with two tags whose I/Os take 1 ms each.
fn with_hidden_depth() -> String {
    let mut lines = Vec::new();
    for io in 0..400u64 {
        // A tag is free every 500 us, and the next I/O is wanted as soon as the one before has its tag.
        let taken_us = io * 500;
        let queue_us = taken_us.saturating_sub(499);
        let events = [("C", taken_us + 1000, 0), ("Q", queue_us, 1), ("G", taken_us, 2), ("D", taken_us, 3)];
        for (action, time_us, order) in events {
            let tail = if action == "C" { "[0]" } else { "[reader]" };
            let (seconds, rest, sector) = (time_us / 1_000_000, time_us % 1_000_000, io * 7919 % 5000 * 1000);
            lines.push((
                time_us,
                order,
                format!("  8,0 0 1 {seconds}.{rest:06}000 7 {action} R {sector} + 8 {tail}\n"),
            ));
        }
    }
    lines.sort();
    lines.into_iter().map(|(.., line)| line).collect()
}

#[test]
fn figures_have_the_range_of_the_other_readings_of_a_recording() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("x.txt"), with_hidden_depth()).unwrap();
    let compare = |more: &[&str]| {
        let arguments =
            ["compare", "x.txt", "--device", "sata-ssd", "--schedulers", "none", "--ramp", "0", "--repeat", "2"];
        succeeded(hoistway().current_dir(folder.path()).args(arguments).args(more))
    };
    let text = compare(&[]);
    assert!(
        text.contains("wants more than") && text.contains("around its values over the other reading of the recording"),
        "{text}"
    );
    let line = text.lines().find(|line| line.starts_with("none") && line.contains("read")).unwrap();
    assert!(line.matches(" to ").count() >= 2, "{line}");
    // With its depth nothing is left open.
    let text = compare(&["--as", "timed"]);
    let line = text.lines().find(|line| line.starts_with("none") && line.contains("read")).unwrap();
    assert!(!line.contains(" to "), "{line}");
}

#[test]
fn a_recording_runs_in_real_time_as_its_program_waits() {
    let recording = "sqlite-commits.blktrace.0.gz";
    let arguments = ["run", recording, "--target", "null:", "--speed", "40", "--ramp", "0", "--format", "json"];
    let document: Value = serde_json::from_str(&of_data(&arguments)).unwrap();
    let jobs = document["runs"][0]["jobs"].as_array().unwrap();
    let ios = |name: &str| {
        let job = jobs.iter().find(|job| job["name"] == name).unwrap();
        job["operations"].as_array().unwrap().iter().map(|of| of["ios"].as_u64().unwrap()).sum::<u64>()
    };
    // The run ends with the first of the two that wait for each other.
    assert!((800..=896).contains(&ios("python3")) && (1300..=1453).contains(&ios("jbd2/loop0-8")), "{jobs:?}");
    assert!(document["is_real"] == true, "{}", document["is_real"]);
}

#[test]
fn a_burst_late_in_a_recording_has_the_rate_of_its_replay() {
    let folder = tempdir().unwrap();
    let load = "[global]\nfilename=/dev/sda\ndirect=1\nioengine=psync\nsize=1g\nrw=randread\n\
                [steady]\ntime_based\nruntime=1\n[burst]\nstartdelay=700ms\nnumber_ios=60\noffset=1g\nnumjobs=2\n";
    fs::write(folder.path().join("load.fio"), load).unwrap();
    let compare = |arguments: &[&str]| {
        let common = ["--device", "sata-ssd", "--schedulers", "none", "--repeat", "1"];
        succeeded(hoistway().current_dir(folder.path()).arg("compare").args(arguments).args(common))
    };
    compare(&["load.fio", "--trace", "run.blktrace"]);
    let document: Value = serde_json::from_str(&compare(&["run.none.blktrace.0", "--format", "json"])).unwrap();
    let checks = document["recording"]["self_check"].as_array().unwrap();
    let bursts: Vec<&Value> =
        checks.iter().filter(|check| check["job"].as_str().unwrap().starts_with("burst")).collect();
    assert!(!bursts.is_empty(), "{checks:?}");
    for check in bursts {
        let [recorded, replayed] = ["recorded_iops", "replayed_iops"].map(|name| check[name].as_f64().unwrap());
        assert!((recorded / replayed - 1.0).abs() < 0.1, "{check}");
    }
}
