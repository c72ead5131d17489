//! Clients of other people, each with its own idea of the protocol.

use std::fs;

use crate::control::shown;
use crate::running::{Running, is_installed, succeeded};

const SCHEDULERS: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

/// This many bytes that do not repeat.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(next).take(bytes / 8).flatten().collect()
}

#[test]
fn nbdinfo_sees_the_exports_as_they_are() {
    if !is_installed("nbdinfo") {
        return;
    }
    let vm2 = "name=vm2,offset=48M,read-only,description=the other one";
    let server = Running::start(&["--target", "mem:64M", "--export", "name=vm1,size=48M", "--export", vm2]);
    let all = succeeded("nbdinfo", &["--json", "--list", &server.uri("")]);
    let all: serde_json::Value = serde_json::from_str(&all).unwrap();
    let exports = all["exports"].as_array().unwrap();
    assert_eq!(exports.len(), 2);
    let of = |at: usize, key: &str| exports[at][key].clone();
    assert_eq!((of(0, "export-name"), of(0, "export-size")), ("vm1".into(), (48 << 20).into()));
    assert_eq!((of(1, "export-size"), of(1, "description")), ((16 << 20).into(), "the other one".into()));
    for (key, first, second) in [
        ("is_read_only", false, true),
        ("can_multi_conn", true, true),
        ("can_fua", true, false),
        ("can_zero", true, false),
        ("can_trim", true, false),
        ("can_flush", true, true),
        ("can_df", true, true),
    ] {
        assert_eq!((of(0, key), of(1, key)), (first.into(), second.into()), "{key}");
    }
    assert_eq!(succeeded("nbdinfo", &["--size", &server.uri("")]).trim(), (48 << 20).to_string());
}

#[test]
fn nbdcopy_copies_there_and_back_and_holes_stay_holes() {
    if !is_installed("nbdcopy") || !is_installed("nbdinfo") {
        return;
    }
    let server = Running::start(&["--target", "mem:32M", "--workers", "2"]);
    let (there, back) = (server.folder().join("there"), server.folder().join("back"));
    let mut content = noise(6 << 20);
    content.extend(vec![0; 20 << 20]);
    content.extend(noise(6 << 20));
    fs::write(&there, &content).unwrap();
    succeeded("nbdcopy", &[there.to_str().unwrap(), &server.uri("")]);
    succeeded("nbdcopy", &[&server.uri(""), back.to_str().unwrap()]);
    assert!(fs::read(&back).unwrap() == content);
    let map = succeeded("nbdinfo", &["--map", "--json", &server.uri("")]);
    let map: Vec<serde_json::Value> = serde_json::from_str(&map).unwrap();
    let of = |extent: &serde_json::Value| (extent["length"].as_u64().unwrap() >> 20, extent["type"].as_u64().unwrap());
    assert_eq!(map.iter().map(of).collect::<Vec<_>>(), [(6, 0), (20, 3), (6, 0)]);
}

/// An image whose length is no multiple of any block.
const ODD: usize = 1_000_001;

#[test]
fn nbdcopy_copies_an_image_to_its_last_byte_and_back() {
    if !is_installed("nbdcopy") {
        return;
    }
    let content: Vec<u8> = noise(ODD + 7).into_iter().take(ODD).collect();
    for target in ["mem:1000001", "file:{}/disk"] {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::write(folder.path().join("disk"), vec![7; ODD]).unwrap();
        let server = Running::start_in(folder, &["--target", target, "--scheduler", "mq-deadline"]);
        let (there, back) = (server.folder().join("there"), server.folder().join("back"));
        fs::write(&there, &content).unwrap();
        succeeded("nbdcopy", &["--flush", there.to_str().unwrap(), &server.uri("")]);
        succeeded("nbdcopy", &[&server.uri(""), back.to_str().unwrap()]);
        assert!(fs::read(&back).unwrap() == content, "{target}");
        if target.starts_with("file") {
            assert!(fs::read(server.folder().join("disk")).unwrap() == content);
        }
    }
}

#[test]
fn qemu_io_and_fio_begin_and_end_anywhere() {
    if !is_installed("qemu-io") || !is_installed("fio") {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::write(folder.path().join("disk"), vec![0; ODD]).unwrap();
    // Two exports whose border lies within a block.
    let exports = ["--export", "name=a,size=300001", "--export", "name=b,offset=300001"];
    let server = Running::start_in(folder, &[&["--target", "file:{}/disk"][..], &exports].concat());
    let commands = [
        "write -P 0x5a 1 3000",
        "read -P 0x5a 1 3000",
        "write -z 17 511",
        "read -P 0 17 511",
        "read -P 0x5a 528 100",
        "write -P 0x66 299990 11",
        "read -P 0x66 299990 11",
        "discard 5 4096",
        "flush",
    ];
    let commands: Vec<&str> = commands.iter().flat_map(|command| ["-c", command]).collect();
    let (a, b) = (server.uri("a"), server.uri("b"));
    let said = succeeded("qemu-io", &[&["-f", "raw", &a][..], &commands].concat());
    assert!(!said.contains("failed") && !said.contains("error"), "{said}");
    // Random lengths at random bytes, by several clients that share blocks.
    let job = |uri: &str, size: &str| {
        let uri = format!("--uri={uri}");
        let sizes = ["--bsrange=1-9000", "--bs_unaligned=1", "--norandommap=1", size];
        let how = ["--ioengine=nbd", "--rw=randrw", "--iodepth=1", "--fsync=64", "--number_ios=1500", "--name=odd"];
        succeeded("fio", &[&how[..], &sizes, &[&uri]].concat())
    };
    std::thread::scope(|scope| {
        let jobs: Vec<_> = [(&a, "--size=300001"), (&b, "--size=700000"), (&b, "--size=700000")]
            .map(|(uri, size)| scope.spawn(move || job(uri, size)))
            .into();
        jobs.into_iter().for_each(|job| drop(job.join().unwrap()));
    });
    let errors: u64 = (0..2).map(|at| shown(&server)["exports"][at]["errors"].as_u64().unwrap()).sum();
    assert_eq!(errors, 0);
    assert_eq!(fs::metadata(server.folder().join("disk")).unwrap().len(), ODD as u64);
}

#[test]
fn libnbd_reads_the_same_as_from_a_byte_array() {
    let python = "/usr/bin/python3";
    let has_libnbd = std::process::Command::new(python).args(["-c", "import nbd"]).output();
    let has_libnbd = has_libnbd.is_ok_and(|output| output.status.success());
    assert!(has_libnbd || std::env::var("CI").is_err(), "python3-libnbd is not installed");
    if !has_libnbd {
        eprintln!("skipped: python3-libnbd is not installed");
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/model.py");
    for (seed, scheduler) in SCHEDULERS.into_iter().enumerate() {
        let server = Running::start(&["--target", "mem:2000001", "--scheduler", scheduler, "--workers", "2"]);
        succeeded(python, &[script, &server.uri(""), &seed.to_string(), "2000"]);
    }
    for (seed, more) in (9..).zip([&["--scheduler", "mq-deadline"][..], &["--page-cache"]]) {
        let folder = tempfile::tempdir().unwrap();
        fs::File::create(folder.path().join("disk")).unwrap().set_len(2_000_001).unwrap();
        let server = Running::start_in(folder, &[&["--target", "file:{}/disk"], more].concat());
        succeeded(python, &[script, &server.uri(""), &format!("{seed}"), "1000"]);
    }
}

#[test]
fn qemu_io_writes_reads_zeroes_and_discards() {
    if !is_installed("qemu-io") {
        return;
    }
    let server = Running::start(&["--target", "mem:64M", "--scheduler", "bfq"]);
    let commands = [
        "write -P 0x5a 1M 3M",
        "read -P 0x5a 1M 3M",
        "write -z -u 2M 1M",
        "read -P 0 2M 1M",
        "read -P 0x5a 3M 1M",
        "aio_write -P 0x77 8M 64k",
        "aio_write -P 0x78 9M 64k",
        "aio_flush",
        "read -P 0x77 8M 64k",
        "read -P 0x78 9M 64k",
        "write -f -P 0x11 16M 512k",
        "discard 16M 512k",
        "flush",
    ];
    let commands: Vec<&str> = commands.iter().flat_map(|command| ["-c", command]).collect();
    let uri = server.uri("");
    let said = succeeded("qemu-io", &[&["-f", "raw", &uri][..], &commands].concat());
    assert!(!said.contains("failed"), "{said}");
}

#[test]
fn qemu_img_converts_and_finds_no_difference() {
    if !is_installed("qemu-img") {
        return;
    }
    let server = Running::start(&["--target", "mem:16M", "--scheduler", "kyber"]);
    let (raw, qcow) = (server.folder().join("raw"), server.folder().join("qcow"));
    let mut content = noise(8 << 20);
    content.extend(vec![0; 8 << 20]);
    fs::write(&raw, &content).unwrap();
    let (raw, qcow, uri) = (raw.to_str().unwrap(), qcow.to_str().unwrap(), &server.uri(""));
    succeeded("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", raw, uri]);
    assert!(succeeded("qemu-img", &["compare", "-f", "raw", "-F", "raw", raw, uri]).contains("identical"));
    succeeded("qemu-img", &["convert", "-f", "raw", "-O", "qcow2", uri, qcow]);
    assert!(succeeded("qemu-img", &["compare", "-f", "qcow2", "-F", "raw", qcow, uri]).contains("identical"));
}

#[test]
fn fio_verifies_its_writes_under_every_scheduler_and_during_switches() {
    if !is_installed("fio") {
        return;
    }
    let verify = |server: &Running, job: &str| {
        let uri = format!("--uri={}", server.uri(""));
        let common = [
            "--ioengine=nbd",
            "--rw=randrw",
            "--bsrange=4k-64k",
            "--iodepth=32",
            "--verify=crc32c",
            "--verify_state_save=0",
            "--fsync=32",
        ];
        succeeded("fio", &[&common[..], &[&uri, &format!("--name={job}"), "--size=24m"]].concat());
    };
    for scheduler in SCHEDULERS {
        let server = Running::start(&["--target", "mem:24M", "--scheduler", scheduler, "--workers", "2"]);
        verify(&server, scheduler);
        assert!(server.end().contains("stopped\nSome(0)"));
    }
    let server = Running::start(&["--target", "mem:24M"]);
    std::thread::scope(|scope| {
        let job = scope.spawn(|| verify(&server, "changing"));
        for round in 0.. {
            let setting = format!("scheduler={}", SCHEDULERS[round % 4]);
            let output = server.ctl(&["set", &setting]);
            assert!(output.status.success(), "{output:?}");
            if job.is_finished() {
                assert!(round > 4, "nothing changed while it ran");
                break;
            }
        }
    });
}

#[test]
fn a_simulated_disk_takes_its_time_and_keeps_its_data() {
    if !is_installed("qemu-io") {
        return;
    }
    let server = Running::start(&["--target", "sim:intel-s3520-1600gb", "--scheduler", "mq-deadline"]);
    let uri = server.uri("");
    let said = succeeded("qemu-io", &["-f", "raw", &uri, "-c", "write -P 7 1G 1M", "-c", "read -P 7 1G 1M"]);
    assert!(!said.contains("failed"), "{said}");
}

#[test]
fn the_data_of_a_simulated_disk_outlive_the_server_in_a_file() {
    if !is_installed("qemu-io") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("disk").display().to_string();
    for (command, scheduler) in [("write -P 7 1G 1M", "kyber"), ("read -P 7 1G 1M", "none")] {
        let arguments = ["--target", "sim:intel-s3520-1600gb", "--data", &data, "--scheduler", scheduler];
        let server = Running::start(&arguments);
        let said = succeeded("qemu-io", &["-f", "raw", &server.uri(""), "-c", command]);
        assert!(!said.contains("failed"), "{said}");
        server.end();
    }
}
