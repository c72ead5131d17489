//! The description of a host, and the findings, for trees of files.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use hoistway_linux::dump::{DumpError, System};
use hoistway_linux::host::{Host, HostError, Rule, Severity, TunableFact};
use support::tree;
use tempfile::TempDir;

const FIXTURES: [&str; 4] = ["desktop", "server", "multipath", "guest"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn folder_of(name: &str) -> TempDir {
    tree(&fs::read_to_string(fixture(&format!("{name}.tree"))).unwrap())
}

fn host_of(folder: &Path) -> Host {
    System::open(Some(folder), false).unwrap().host().unwrap()
}

fn host(name: &str) -> Host {
    host_of(folder_of(name).path())
}

fn json(host: &Host) -> String {
    serde_json::to_string_pretty(host).unwrap() + "\n"
}

/// Programs read the JSON document, so every change in it must be visible. `UPDATE=1` rewrites the files.
#[test]
fn the_document_of_each_host_does_not_change() {
    for name in FIXTURES {
        let (file, now) = (fixture(&format!("{name}.json")), json(&host(name)));
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&file, &now).unwrap();
        }
        assert_eq!(
            now,
            fs::read_to_string(&file).unwrap(),
            "{name}: what differs is a change of the document's schema"
        );
    }
}

fn found(host: &Host, rule: Rule) -> Vec<&hoistway_linux::host::Finding> {
    host.findings.iter().filter(|finding| finding.rule == rule).collect()
}

#[test]
fn findings_stand_worst_first_and_each_has_evidence_and_a_command() {
    for name in FIXTURES {
        let host = host(name);
        assert!(host.findings.is_sorted_by_key(|finding| finding.severity), "{name}");
        for finding in &host.findings {
            assert!(!finding.evidence.is_empty() && !finding.commands.is_empty(), "{name}: {finding:?}");
        }
    }
    assert_eq!(host("guest").findings, [], "nothing is wrong there");
}

#[test]
fn bfq_on_every_device_of_a_desktop_is_found_through_stacked_devices() {
    let host = host("desktop");
    let fast = found(&host, Rule::BfqOnFastDevice);
    assert_eq!((fast.len(), fast[0].severity, fast[0].devices[0].as_str()), (1, Severity::High, "nvme0n1"));
    assert_eq!(fast[0].commands[0], "echo none > /sys/block/nvme0n1/queue/scheduler");
    let stacked = found(&host, Rule::SchedulerOnStackedDevice);
    assert_eq!(stacked.len(), 1, "one line of a rule is one finding");
    let stacked = stacked[0];
    assert_eq!(stacked.devices, ["dm-0", "dm-1"]);
    assert!(stacked.what.ends_with("Set it on nvme0n1 instead."), "through both layers to the disk: {}", stacked.what);
    assert!(stacked.evidence.iter().any(|line| line.starts_with("/etc/udev/rules.d/60-io.rules:2:")), "{stacked:?}");
    let inactive = found(&host, Rule::SettingNotActive);
    assert_eq!(inactive.len(), 1);
    assert_eq!(inactive[0].devices, ["loop0"], "the rule is for it, too, and loop1 is not used");
    assert_eq!(found(&host, Rule::ElevatorParameter).len(), 1);
    assert_eq!(found(&host, Rule::WbtOffUnderBfq)[0].devices, ["nvme0n1"]);
    assert!(found(&host, Rule::WeightsWithoutEffect).is_empty(), "bfq honours its own, and the other is systemd's");
}

#[test]
fn rules_and_profiles_that_set_something_else_are_named_with_file_and_line() {
    let host = host("server");
    let named: Vec<(&str, String)> = found(&host, Rule::SettingNotActive)
        .iter()
        .map(|finding| (finding.evidence[0].as_str(), finding.devices.join(" ")))
        .collect();
    assert_eq!(
        named,
        [
            ("/lib/udev/rules.d/60-scheduler.rules:3: sets queue/scheduler to noop", "sdc".to_owned()),
            ("/lib/udev/rules.d/60-scheduler.rules:4: sets queue/iosched/read_expire to 500", "sda".to_owned()),
            ("/usr/lib/tuned/throughput-performance/tuned.conf:5: sets queue/scheduler to bfq", "sda sdb".to_owned()),
        ]
    );
    let noop = found(&host, Rule::SettingNotActive)[0];
    assert!(noop.evidence.iter().any(|line| line.contains("noop is not in the list")), "{noop:?}");
    let weights = found(&host, Rule::WeightsWithoutEffect);
    assert_eq!(weights.len(), 1);
    assert_eq!(
        weights[0].evidence[..2],
        [
            "/sys/fs/cgroup/db.slice/io.bfq.weight: 500".to_owned(),
            "/sys/fs/cgroup/db.slice/io.bfq.weight: 8:0 1000".to_owned()
        ]
    );
    let ignored = found(&host, Rule::PrioritiesIgnored)[0];
    assert!(ignored.evidence.contains(&"process 900 (rsync): best-effort 7".to_owned()), "{ignored:?}");
    assert!(
        !ignored.evidence.iter().any(|line| line.contains("postgres")),
        "mq-deadline honours classes since 5.14: {ignored:?}"
    );
    let changed: Vec<(&str, &str)> = host
        .devices
        .iter()
        .flat_map(|device| {
            device
                .tunables
                .iter()
                .filter(|tunable| tunable.changed)
                .map(|tunable| (device.name.as_str(), tunable.file.as_str()))
        })
        .collect();
    assert_eq!(changed, [("sda", "iosched/read_expire")]);
}

#[test]
fn bfq_on_paths_is_found_and_request_based_multipath_is_no_finding() {
    let host = host("multipath");
    let parts = found(&host, Rule::BfqOnMultipathPart);
    assert_eq!((parts.len(), parts[0].devices.join(" ")), (1, "sda sdb".to_owned()));
    assert!(parts[0].what.contains("mpatha"));
    assert!(found(&host, Rule::SchedulerOnStackedDevice).is_empty());
    let device = |name: &str| host.device(name).unwrap();
    assert_eq!(device("dm-1").below, ["dm-0"]);
    assert_eq!(device("sda").above, ["dm-0"]);
    let hardware = device("sda").hardware.unwrap();
    assert_eq!((hardware.depth, hardware.tags), (64, 2048), "the LUN takes fewer than the adapter");
    let is_changed = |tunable: &&TunableFact| tunable.file == "nr_requests" && tunable.changed;
    let changed = host.devices.iter().flat_map(|device| &device.tunables).filter(is_changed).count();
    assert_eq!(changed, 0, "the kernel goes by the adapter's tags");
    assert!(device("sdb").tunables.iter().any(|tunable| tunable.file == "iosched/low_latency" && tunable.changed));
}

#[test]
fn a_tuned_profile_says_nothing_about_memory_cards() {
    let text = fs::read_to_string(fixture("server.tree")).unwrap();
    let of_tuned = |text: &str| {
        let folder = tree(text);
        let host = host_of(folder.path());
        let findings = found(&host, Rule::SettingNotActive).into_iter().filter(|it| it.evidence[0].contains("tuned"));
        findings.flat_map(|finding| finding.devices.clone()).collect::<Vec<_>>()
    };
    assert!(of_tuned(&text).contains(&"sda".to_owned()));
    let devices = of_tuned(&text.replace("sda", "mmcblk0"));
    assert!(!devices.is_empty() && !devices.contains(&"mmcblk0".to_owned()), "{devices:?}");
}

/// bfq's and cfq's defaults that are whole ticks depend on how many a second the kernel has, which no file says.
#[test]
fn an_eighth_of_a_second_is_the_default_in_whole_ticks_of_any_kernel() {
    let folder = folder_of("multipath");
    let file = folder.path().join("sys/block/sdb/queue/iosched/timeout_sync");
    for (value, is_changed) in [("120", false), ("123", false), ("124", false), ("125", false), ("200", true)] {
        std::fs::write(&file, value).unwrap();
        let host = host_of(folder.path());
        let device = host.devices.iter().find(|device| device.name == "sdb").unwrap();
        let tunable = device.tunables.iter().find(|tunable| tunable.file == "iosched/timeout_sync").unwrap();
        assert_eq!((&*tunable.value, tunable.changed), (value, is_changed), "{tunable:?}");
    }
}

#[test]
fn devices_are_accepted_by_kernel_name_path_partition_or_mapper_name() {
    let all = host("desktop");
    for (given, kept) in [
        ("nvme0n1", vec!["nvme0n1"]),
        ("/dev/nvme0n1p2", vec!["nvme0n1"]),
        ("/dev/mapper/vg-root", vec!["nvme0n1", "dm-0", "dm-1"]),
        ("dm-0", vec!["nvme0n1", "dm-0"]),
    ] {
        let mut host = all.clone();
        host.keep(&[given.to_owned()]).unwrap();
        let names: Vec<&str> = host.devices.iter().map(|device| device.name.as_str()).collect();
        assert_eq!(names, kept, "{given}");
    }
    let mut host = all.clone();
    let error = host.keep(&["sdz".to_owned()]).unwrap_err();
    assert!(matches!(error, HostError::NoDevice { .. }));
    assert_eq!(error.to_string(), "sdz: no such block device (expected one of loop0, loop1, nvme0n1, dm-0, dm-1)");
}

#[test]
fn a_dump_says_the_same_as_the_host_and_keeps_no_serial_numbers() {
    for name in FIXTURES {
        let folder = folder_of(name);
        let system = System::open(Some(folder.path()), true).unwrap();
        let host = system.host().unwrap();
        for with_serials in [false, true] {
            let (bytes, files) = system.dump(&host, with_serials).unwrap();
            assert!(files > 20);
            let archive = folder.path().join("dump.tar.zst");
            fs::write(&archive, &bytes).unwrap();
            let again = System::open(Some(&archive), true).unwrap();
            assert!(json(&again.host().unwrap()) == json(&host), "{name}");
            let holds = |secret: &str| {
                let found = again.root.found();
                found.values().any(|found| matches!(found, hoistway_linux::Found::File(bytes) if String::from_utf8_lossy(bytes).contains(secret)))
            };
            assert_eq!(holds("S3CR3T"), name == "desktop" && with_serials);
            assert_eq!(holds("5ec4e7"), name == "desktop" && with_serials);
            assert!(!holds("0b5e"), "the command line is read only where it concerns block I/O");
        }
    }
}

#[test]
fn a_dump_that_is_cut_or_damaged_is_refused() {
    let folder = folder_of("guest");
    let system = System::open(Some(folder.path()), true).unwrap();
    let (bytes, _) = system.dump(&system.host().unwrap(), false).unwrap();
    let archive = folder.path().join("cut.tar.zst");
    let opened = |bytes: &[u8]| {
        fs::write(&archive, bytes).unwrap();
        System::open(Some(&archive), false)
    };
    for length in (0..bytes.len()).step_by(37).chain([bytes.len() - 1, bytes.len() / 2]) {
        let error = opened(&bytes[..length]).err().unwrap_or_else(|| panic!("{length} of {} bytes", bytes.len()));
        assert!(matches!(error, DumpError::Damaged { .. } | DumpError::NoDump { .. }), "{length}: {error}");
    }
    assert!(opened(&bytes).is_ok());
    assert!(matches!(opened(b"#!/bin/sh\n"), Err(DumpError::NoDump { .. })));
    assert!(matches!(System::open(Some(Path::new("/no/such/file")), false), Err(DumpError::Unopened { .. })));
}

/// An archive with one more entry than a dump.
fn archive_with(path: &str, kind: tar::EntryType, target: &str) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut add = |path: &str, kind: tar::EntryType, target: &str, text: &str| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(text.len() as u64);
        // As an attacker would write it; libraries refuse to.
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_cksum();
        builder.append(&header, text.as_bytes()).unwrap();
    };
    add("hoistway/dump", tar::EntryType::Regular, "", "hoistway-dump/1\n");
    add("sys/inner", tar::EntryType::Symlink, "../etc", "");
    add(path, kind, target, "");
    let bytes = builder.into_inner().unwrap();
    ruzstd::encoding::compress_to_vec(bytes.as_slice(), ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn an_archive_with_escaping_paths_is_refused_and_writes_nothing() {
    use tar::EntryType;
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("bad.tar.zst");
    let outside = folder.path().join("outside").display().to_string();
    for (path, kind, target) in [
        ("../outside", EntryType::Regular, ""),
        ("sys/../../outside", EntryType::Regular, ""),
        (outside.as_str(), EntryType::Regular, ""),
        ("sys/link", EntryType::Symlink, "../../outside"),
        ("sys/link", EntryType::Symlink, "a/../../../x"),
        ("link", EntryType::Symlink, "/../x"),
        ("sys/inner/file", EntryType::Regular, ""),
        ("sys/hard", EntryType::Link, "/etc/passwd"),
        ("sys/device", EntryType::Char, ""),
        ("sys/pipe", EntryType::Fifo, ""),
    ] {
        fs::write(&archive, archive_with(path, kind, target)).unwrap();
        let error = System::open(Some(&archive), false).err().unwrap_or_else(|| panic!("{path} -> {target}"));
        assert!(matches!(error, DumpError::Unsafe { .. }), "{path} -> {target}: {error}");
        assert!(!Path::new(&outside).exists());
    }
    fs::write(&archive, archive_with("sys/fine", EntryType::Symlink, "../etc/x")).unwrap();
    assert!(System::open(Some(&archive), false).is_ok());
}

#[test]
fn missing_or_unreadable_files_are_reported_and_the_rest_is_read() {
    let folder = folder_of("server");
    let path_in = |path: &str| folder.path().join(path);
    // The device vanishes while it is read: only its link, or only some of its files, still exist.
    fs::remove_dir_all(path_in("sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda"))
        .unwrap();
    fs::remove_file(path_in("sys/devices/pci0000:00/0000:00:17.0/ata2/host1/target1:0:0/1:0:0:0/block/sdb/size"))
        .unwrap();
    let host = host_of(folder.path());
    let names: Vec<&str> = host.devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["sdc", "md127"]);
    fs::write(path_in("sys/devices/virtual/block/md127/queue/scheduler"), [0xff, 0xfe, b'[', 0]).unwrap();
    fs::write(
        path_in("sys/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sdc/mq/0/nr_tags"),
        "-3",
    )
    .unwrap();
    let host = host_of(folder.path());
    assert!(host.devices.iter().all(|device| device.hardware.is_none()));
    fs::remove_dir_all(path_in("sys/block")).unwrap();
    let error = System::open(Some(folder.path()), false).unwrap().host().unwrap_err();
    assert!(matches!(error, HostError::NoSysfs(_)), "{error}");
    fs::remove_dir_all(path_in("proc")).unwrap();
    let error = System::open(Some(folder.path()), false).unwrap().host().unwrap_err();
    assert!(matches!(error, HostError::NoProcfs(_)), "{error}");
}

#[test]
fn a_cycle_of_stacked_devices_terminates() {
    let folder = folder_of("desktop");
    let link = folder.path().join("sys/devices/virtual/block/dm-0/slaves/dm-1");
    std::os::unix::fs::symlink("../../dm-1", link).unwrap();
    assert_eq!(host_of(folder.path()).devices.len(), 5);
}

/// All files below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => folders.push(entry.path()),
                kind if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort();
    files
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(16))]

    /// Whatever the content of files, also of a dump from elsewhere, a host is read or refused.
    #[test]
    fn no_content_of_a_file_makes_it_panic(
        fixture in 0..FIXTURES.len(),
        changes in proptest::collection::vec((proptest::prelude::any::<proptest::sample::Index>(), "(-?[0-9]{1,24}|[ \\[\\]{}\"=!a-z0-9:,\n*?|/.-]{0,40}|\\PC{0,20})"), 1..8),
    ) {
        let folder = folder_of(FIXTURES[fixture]);
        let files = files_below(folder.path());
        for (index, text) in changes {
            fs::write(index.get(&files), text).unwrap();
        }
        let system = System::open(Some(folder.path()), true).unwrap();
        if let Ok(host) = system.host() {
            json(&host);
            system.dump(&host, false).unwrap();
        }
    }
}
