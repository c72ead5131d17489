//! Changes real loop devices, and restores them. Tests that need root and `losetup` report that they are skipped
//! without them.

#[path = "support/loop_device.rs"]
mod loop_device;
mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::slice::from_ref;

use hoistway_linux::Root;
use hoistway_linux::apply::{Applier, ApplyError, Match, Persist, PersistedFile, Plan, PlanError, Restored, Udevadm};
use hoistway_linux::dump::System;
use loop_device::{Loop, skipped};
use support::tree;
use tempfile::tempdir;

fn live() -> Root {
    Root::open(Path::new("/")).unwrap()
}

fn plan(device: &str, files: &[(&str, &str)], persist: Persist) -> Result<Plan, PlanError> {
    let host = System::open(None, false).unwrap().host().unwrap();
    let files: Vec<_> = files.iter().map(|(file, value)| ((*file).to_owned(), (*value).to_owned())).collect();
    Plan::make(&live(), &host, host.device(device).unwrap(), &files, persist)
}

fn kept(restored: &[Restored]) -> Vec<String> {
    restored.iter().flat_map(|restored| restored.kept.iter().map(|kept| kept.file.clone())).collect()
}

/// For each scheduler, settings other than its defaults.
const SETTINGS: [&[(&str, &str)]; 4] = [
    &[("scheduler", "none"), ("nr_requests", "64")],
    &[("scheduler", "mq-deadline"), ("nr_requests", "96"), ("iosched/read_expire", "100"), ("iosched/fifo_batch", "4")],
    &[("scheduler", "kyber"), ("iosched/read_lat_nsec", "1000000")],
    &[("scheduler", "bfq"), ("wbt_lat_usec", "5000"), ("iosched/slice_idle", "0"), ("iosched/low_latency", "0")],
];

#[test]
fn every_scheduler_and_its_tunables_are_applied_over_every_other_and_undone() {
    let Some(device) = Loop::new() else { return };
    let (system, folder) = (live(), tempdir().unwrap());
    for from in SETTINGS {
        for (file, value) in from {
            device.set(file, value);
        }
        let before = device.state();
        for to in SETTINGS {
            let applier = Applier::open(&system, &system, folder.path(), None).unwrap();
            let plan = plan(&device.name, to, Persist::No).unwrap();
            let written = applier.apply(from_ref(&plan)).unwrap();
            assert_eq!(written.len(), to.len());
            for (file, value) in &to[1..] {
                assert_eq!(device.shown(file), *value, "{file}");
            }
            assert!(device.shown("scheduler").contains(&format!("[{}]", to[0].1)));
            let status = applier.status().unwrap();
            assert!(status.len() == 1 && status[0].is_in_force && !status[0].is_half_done, "{status:?}");
            assert!(kept(&applier.undo(None).unwrap()).is_empty());
            assert_eq!(device.state(), before, "{from:?} -> {to:?}");
            assert!(applier.status().unwrap().is_empty());
        }
    }
}

#[test]
fn changes_are_undone_in_reverse_and_foreign_changes_are_left_alone() {
    let Some(device) = Loop::new() else { return };
    let (system, folder) = (live(), tempdir().unwrap());
    let before = device.state();
    let applier = Applier::open(&system, &system, folder.path(), None).unwrap();
    for to in [SETTINGS[1], SETTINGS[3], SETTINGS[3]] {
        applier.apply(&[plan(&device.name, to, Persist::No).unwrap()]).unwrap();
    }
    assert!(kept(&applier.undo(Some("another")).unwrap()).is_empty());
    assert_eq!(applier.status().unwrap().len(), 3);
    assert!(kept(&applier.undo(Some(&device.name)).unwrap()).is_empty());
    assert_eq!(device.state(), before);

    applier.apply(&[plan(&device.name, SETTINGS[1], Persist::No).unwrap()]).unwrap();
    device.set("nr_requests", "33");
    assert!(!applier.status().unwrap()[0].is_in_force);
    assert_eq!(kept(&applier.undo(None).unwrap()), [device.file("nr_requests")]);
    assert!(device.shown("scheduler").contains("[none]"));

    applier.apply(&[plan(&device.name, SETTINGS[1], Persist::No).unwrap()]).unwrap();
    device.set("scheduler", "kyber");
    assert!(kept(&applier.undo(None).unwrap()).contains(&device.file("scheduler")));
    assert!(device.shown("scheduler").contains("[kyber]"), "that was another program's choice");
}

#[test]
fn a_value_that_is_refused_rolls_back_all_and_one_that_is_cut_is_reported() {
    let Some(device) = Loop::new() else { return };
    let (system, folder) = (live(), tempdir().unwrap());
    let before = device.state();
    let applier = Applier::open(&system, &system, folder.path(), None).unwrap();
    for bad in [("iosched/read_expire", "soon"), ("iosched/nothing", "1"), ("io_timeout", "0")] {
        let plan =
            plan(&device.name, &[("scheduler", "mq-deadline"), ("nr_requests", "96"), bad], Persist::No).unwrap();
        let error = applier.apply(from_ref(&plan)).unwrap_err();
        assert!(
            matches!(&error, ApplyError::ValueRejected { back, .. } if back == "everything was rolled back"),
            "{error}"
        );
        assert_eq!(device.state(), before, "{bad:?}");
        assert!(applier.status().unwrap().is_empty());
    }
    let plan = plan(&device.name, &[("scheduler", "mq-deadline"), ("nr_requests", "1")], Persist::No).unwrap();
    let written = applier.apply(from_ref(&plan)).unwrap();
    assert_eq!((written[1].value.as_str(), written[1].shown.as_str()), ("1", "4"));
    applier.undo(None).unwrap();
    assert_eq!(device.state(), before);
}

#[test]
fn several_devices_are_set_or_none_is() {
    let (Some(first), Some(second)) = (Loop::new(), Loop::new()) else { return };
    let (system, folder) = (live(), tempdir().unwrap());
    first.set("scheduler", "bfq");
    first.set("iosched/slice_idle", "3");
    let before = (first.state(), second.state());
    let applier = Applier::open(&system, &system, folder.path(), None).unwrap();
    let plans = |bad: &[(&str, &str)]| {
        let last = [SETTINGS[1], bad].concat();
        [(&first, SETTINGS[2]), (&second, &last)].map(|(device, files)| plan(&device.name, files, Persist::No).unwrap())
    };
    let error = applier.apply(&plans(&[("iosched/nothing", "1")])).unwrap_err().to_string();
    assert!(
        error.contains(&second.file("iosched/nothing")) && error.ends_with("; everything was rolled back"),
        "{error}"
    );
    assert!(applier.status().unwrap().is_empty());
    assert_eq!((first.state(), second.state()), before);
    applier.apply(&plans(&[])).unwrap();
    assert!(first.shown("scheduler").contains("[kyber]") && second.shown("scheduler").contains("[mq-deadline]"));
    let status = applier.status().unwrap();
    assert!(status.len() == 2 && status.iter().all(|applied| applied.is_in_force && !applied.is_half_done));
    assert!(kept(&applier.undo(None).unwrap()).is_empty());
    assert_eq!((first.state(), second.state()), before);
}

#[test]
fn udevd_reads_its_rules_again_after_each_change_of_them() {
    let Some(device) = Loop::new() else { return };
    let (system, folder, etc_root) = (live(), tempdir().unwrap(), tempdir().unwrap());
    let (program, log) = (folder.path().join("udevadm"), folder.path().join("log"));
    // Whether the rule exists at the time of the call.
    let text = format!(
        "#!/bin/sh\n[ \"$1\" != --version ] || {{ echo 252; exit; }}\necho \"$@\" $(ls {}/etc/udev/rules.d) >>{}\n",
        etc_root.path().display(),
        log.display()
    );
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fs::create_dir_all(etc_root.path().join("etc/udev/rules.d")).unwrap();
    let etc = Root::open(etc_root.path()).unwrap();
    let udevadm = Udevadm::find(program.to_str().unwrap());
    let applier = Applier::open(&system, &etc, &folder.path().join("journal"), udevadm).unwrap();
    let plan = plan(&device.name, SETTINGS[1], Persist::Udev(Match::Name)).unwrap();
    assert!(!plan.is_done(&etc));
    applier.apply(from_ref(&plan)).unwrap();
    assert!(applier.undo(None).unwrap()[0].files[0].1.is_none(), "the rule was removed");
    let name = &device.name;
    let log = fs::read_to_string(log).unwrap();
    let rule = format!("90-hoistway-{name}.rules");
    let expected =
        format!("control --reload {rule}\ntest --action=change /sys/block/{name} {rule}\ncontrol --reload\n");
    assert_eq!(log, expected);
}

#[test]
fn a_change_that_is_there_with_its_files_is_done() {
    let Some(device) = Loop::new() else { return };
    let (system, folder, etc_root) = (live(), tempdir().unwrap(), tempdir().unwrap());
    fs::create_dir_all(etc_root.path().join("etc/udev/rules.d")).unwrap();
    let etc = Root::open(etc_root.path()).unwrap();
    let applier = Applier::open(&system, &etc, folder.path(), None).unwrap();
    let plan = || plan(&device.name, SETTINGS[1], Persist::Udev(Match::Name)).unwrap();
    applier.apply(&[plan()]).unwrap();
    assert!(plan().is_done(&etc));
    device.set("iosched/fifo_batch", "5");
    assert!(!plan().is_done(&etc));
    device.set("iosched/fifo_batch", "4");
    fs::write(etc_root.path().join(format!("etc/udev/rules.d/90-hoistway-{}.rules", device.name)), "# mine\n").unwrap();
    assert!(!plan().is_done(&etc));
}

#[test]
fn a_rule_is_made_and_removed_and_one_that_was_edited_is_left() {
    let Some(device) = Loop::new() else { return };
    let (system, folder, etc_root) = (live(), tempdir().unwrap(), tempdir().unwrap());
    let rule = etc_root.path().join(format!("etc/udev/rules.d/90-hoistway-{}.rules", device.name));
    fs::create_dir_all(rule.parent().unwrap()).unwrap();
    let etc = Root::open(etc_root.path()).unwrap();
    let applier = Applier::open(&system, &etc, folder.path(), None).unwrap();
    assert!(matches!(plan(&device.name, SETTINGS[1], Persist::Udev(Match::Serial)), Err(PlanError::NoSerial(_))));
    let plan = plan(&device.name, SETTINGS[1], Persist::Udev(Match::Name)).unwrap();
    applier.apply(from_ref(&plan)).unwrap();
    let text = fs::read_to_string(&rule).unwrap();
    let line = format!("KERNEL==\"{}\", ATTR{{queue/scheduler}}=\"mq-deadline\"", device.name);
    assert!(text.contains(&line) && text.find("queue/scheduler") < text.find("queue/iosched"), "{text}");
    applier.undo(None).unwrap();
    assert!(!rule.exists());
    fs::write(&rule, "# mine\n").unwrap();
    applier.apply(from_ref(&plan)).unwrap();
    applier.undo(None).unwrap();
    assert_eq!(fs::read_to_string(&rule).unwrap(), "# mine\n");
    applier.apply(from_ref(&plan)).unwrap();
    fs::write(&rule, "# edited\n").unwrap();
    assert_eq!(kept(&applier.undo(None).unwrap()), [format!("/etc/udev/rules.d/90-hoistway-{}.rules", device.name)]);
    // If the folder cannot be written to, nothing is applied.
    let before = device.state();
    fs::remove_dir_all(etc_root.path().join("etc")).unwrap();
    assert!(matches!(applier.apply(from_ref(&plan)), Err(ApplyError::ValueRejected { .. })));
    assert_eq!(device.state(), before);
}

#[test]
fn files_that_make_a_change_last_are_made_with_their_folders_and_removed_and_older_ones_are_restored() {
    let Some(device) = Loop::new() else { return };
    let (system, folder, etc_root) = (live(), tempdir().unwrap(), tempdir().unwrap());
    let path_in = |path: &str| etc_root.path().join(path);
    fs::create_dir_all(path_in("etc/tuned")).unwrap();
    fs::write(path_in("etc/tuned/active_profile"), "balanced\n").unwrap();
    let etc = Root::open(etc_root.path()).unwrap();
    let file = |path: &str, content: &str| PersistedFile { path: path.to_owned(), content: content.to_owned() };
    let persisted = vec![
        file("etc/tuned/hoistway-x/tuned.conf", "[main]\n"),
        file("etc/tuned/profile_mode", "manual\n"),
        file("etc/tuned/active_profile", "hoistway-x\n"),
    ];
    let plan = Plan { persisted, ..plan(&device.name, SETTINGS[1], Persist::No).unwrap() };
    let applier = Applier::open(&system, &etc, folder.path(), None).unwrap();
    applier.apply(from_ref(&plan)).unwrap();
    assert_eq!(fs::read_to_string(path_in("etc/tuned/active_profile")).unwrap(), "hoistway-x\n");
    let status = applier.status().unwrap();
    assert!(status[0].is_in_force && status[0].persisted.len() == 3, "{status:?}");
    assert!(kept(&applier.undo(None).unwrap()).is_empty());
    assert_eq!(fs::read_to_string(path_in("etc/tuned/active_profile")).unwrap(), "balanced\n");
    assert!(!path_in("etc/tuned/hoistway-x").exists() && !path_in("etc/tuned/profile_mode").exists());
    // A file that another program has changed since stays, and the others are removed.
    applier.apply(from_ref(&plan)).unwrap();
    fs::write(path_in("etc/tuned/active_profile"), "powersave\n").unwrap();
    assert!(!applier.status().unwrap()[0].is_in_force);
    assert_eq!(kept(&applier.undo(None).unwrap()), ["/etc/tuned/active_profile"]);
    assert!(!path_in("etc/tuned/hoistway-x").exists());
}

#[test]
fn the_unit_of_systemd_sets_the_device_again() {
    let Some(device) = Loop::new() else { return };
    if Command::new("systemd-tmpfiles").arg("--version").output().is_err() {
        skipped("there is no systemd-tmpfiles");
        return;
    }
    let plan = plan(&device.name, SETTINGS[2], Persist::Systemd).unwrap();
    let folder = tempdir().unwrap();
    let conf = folder.path().join("hoistway.conf");
    fs::write(&conf, &plan.persisted[0].content).unwrap();
    let set = Command::new("systemd-tmpfiles").arg("--create").arg(&conf).status().unwrap();
    assert!(set.success());
    assert!(device.shown("scheduler").contains("[kyber]"));
    assert_eq!(device.shown("iosched/read_lat_nsec"), "1000000");
}

#[test]
fn nixos_gets_the_rule_as_text_and_nothing_is_written() {
    let Some(device) = Loop::new() else { return };
    let plan = plan(&device.name, SETTINGS[1], Persist::NixOs(Match::Name)).unwrap();
    let text = plan.to_paste.unwrap();
    assert!(text.starts_with("services.udev.extraRules = ''\n  ACTION==") && text.ends_with("\n'';\n"), "{text}");
    assert!(plan.persisted.is_empty());
}

#[test]
fn a_rule_that_a_later_one_overrules_is_rolled_back_and_one_that_holds_is_not() {
    let Some(device) = Loop::new() else { return };
    let Some(udevadm) = Udevadm::find("udevadm").filter(|_| Path::new("/etc/udev/rules.d").is_dir()) else {
        skipped("there is no udevadm with /etc/udev/rules.d");
        return;
    };
    let (system, folder) = (live(), tempdir().unwrap());
    let before = device.state();
    let applier = Applier::open(&system, &system, folder.path(), Some(udevadm.clone())).unwrap();
    let plan = plan(&device.name, SETTINGS[1], Persist::Udev(Match::Name)).unwrap();
    let rule = format!("/etc/udev/rules.d/90-hoistway-{}.rules", device.name);
    applier.apply(from_ref(&plan)).unwrap();
    assert!(Path::new(&rule).exists());
    // udev alone sets the scheduler, too, where `udevadm test` writes attributes.
    device.set("scheduler", "kyber");
    udevadm.test(&device.name).unwrap();
    let is_written = device.shown("scheduler").contains("[mq-deadline]");
    device.set("scheduler", "mq-deadline");
    assert!(applier.undo(None).is_ok() && !Path::new(&rule).exists());
    device.set("scheduler", "none");
    if !is_written {
        skipped("udevadm test writes no attributes");
        return;
    }
    let later = format!("/etc/udev/rules.d/91-{}-of-a-test.rules", device.name);
    fs::write(&later, format!("KERNEL==\"{}\", ATTR{{queue/scheduler}}=\"bfq\"\n", device.name)).unwrap();
    let error = applier.apply(from_ref(&plan)).unwrap_err().to_string();
    fs::remove_file(&later).unwrap();
    assert!(error.contains("udev's rules set it to bfq"), "{error}");
    assert!(!Path::new(&rule).exists() && applier.status().unwrap().is_empty());
    assert_eq!(device.state(), before);
}

#[test]
fn a_setting_for_a_time_is_restored_when_it_is_dropped_and_after_a_kill() {
    let Some(device) = Loop::new() else { return };
    let (system, folder) = (live(), tempdir().unwrap());
    device.set("scheduler", "bfq");
    device.set("iosched/slice_idle", "3");
    let before = device.state();
    let applier = Applier::open(&system, &system, folder.path(), None).unwrap();
    let path = format!("/dev/{}", device.name);
    let is_locked =
        || !Command::new("flock").args(["--nonblock", "--shared", &path, "true"]).status().unwrap().success();
    for is_killed in [false, true] {
        assert!(!is_locked());
        let mut time = applier.begin_temporary(&device.name).unwrap();
        assert!(is_locked(), "udevd takes a shared lock for each event");
        for settings in SETTINGS {
            time.set(&plan(&device.name, settings, Persist::No).unwrap()).unwrap();
            assert!(device.shown("scheduler").contains(&format!("[{}]", settings[0].1)));
        }
        time.set(&plan(&device.name, SETTINGS[1], Persist::No).unwrap()).unwrap();
        if is_killed {
            std::mem::forget(time);
            assert!(applier.status().unwrap()[0].is_half_done);
            let restored = applier.recover().unwrap();
            assert!(restored[0].was_half_done && restored[0].kept.is_empty(), "{restored:?}");
        } else {
            drop(time);
        }
        assert_eq!(device.state(), before);
        assert!(applier.status().unwrap().is_empty());
    }
}

#[test]
fn what_a_killed_run_has_left_is_listed_with_the_values_before_and_now() {
    let folder = tree(
        "sys/block/sda/queue/scheduler = none [kyber] bfq\nsys/block/sda/queue/nr_requests = 256\n\
         sys/block/sda/queue/nomerges = 0\nsys/block/sda/queue/iosched/read_lat_nsec = 1000000\n\
         etc/udev/rules.d/90-hoistway-sda.rules = written\n",
    );
    let (system, journals) = (Root::open(folder.path()).unwrap(), tempdir().unwrap());
    let rule = |name: &str| format!(r#"{{"path":"etc/udev/rules.d/{name}","content":"written\n","before":null}}"#);
    let journal = format!(
        r#"{{"format":"hoistway-journal/1","state":"half-done","device":"sda","entries":[{{"file":"scheduler","value":"kyber"}},
            {{"file":"iosched/read_lat_nsec","value":"1000000"}}],"before":{{"scheduler":"bfq","files":[["nr_requests","64"],
            ["nomerges","0"],["iosched/slice_idle","3"]]}},"after":{{"scheduler":null,"files":[]}},"made":[{},{}]}}"#,
        rule("90-hoistway-sda.rules"),
        rule("90-hoistway-sdb.rules")
    );
    fs::write(journals.path().join("00000001.json"), journal).unwrap();
    let applier = Applier::open(&system, &system, journals.path(), None).unwrap();
    let left = &applier.status().unwrap()[0];
    assert!(left.is_half_done && !left.is_in_force);
    let files: Vec<String> =
        left.files.iter().map(|(file, before, now)| format!("{file}: {before}, now {now}")).collect();
    assert_eq!(
        files,
        ["scheduler: bfq, now kyber", "nr_requests: 64, now 256", "iosched/read_lat_nsec: -, now 1000000"],
        "nomerges is as before, and slice_idle returns with bfq"
    );
    assert_eq!(left.persisted, ["/etc/udev/rules.d/90-hoistway-sda.rules"], "the other one was not written yet");
}

#[test]
fn a_journal_that_is_damaged_or_leads_elsewhere_is_refused_and_nothing_is_written() {
    let (folder, system) = (tempdir().unwrap(), live());
    let applier = Applier::open(&system, &system, folder.path(), None).unwrap();
    let journal = |device: &str, file: &str| {
        format!(
            r#"{{"format":"hoistway-journal/1","state":"half-done","device":"{device}","entries":[],"before":{{"scheduler":null,"files":[["{file}","1"]]}},"after":{{"scheduler":null,"files":[]}},"made":null}}"#
        )
    };
    let whole = journal("no-such-device", "nr_requests");
    let cut = &whole[..whole.len() / 2];
    for text in [
        cut,
        "",
        &journal("../../x", "a"),
        &journal("sda", "../../x"),
        &journal("sda", "/etc/x"),
        &whole.replace("journal/1", "journal/9"),
    ] {
        fs::write(folder.path().join("00000001.json"), text).unwrap();
        for result in [applier.undo(None).map(|_| ()), applier.recover().map(|_| ()), applier.status().map(|_| ())] {
            assert!(matches!(result, Err(ApplyError::NoJournal { .. })), "{text}");
        }
    }
    fs::write(folder.path().join("00000001.json"), &whole).unwrap();
    assert_eq!(kept(&applier.recover().unwrap()), ["/sys/block/no-such-device"]);
    assert!(matches!(Applier::open(&system, &system, folder.path(), None), Err(ApplyError::Busy(_))));
}

#[test]
fn only_disks_with_requests_and_plain_values_are_planned_and_rules_match_by_serial_number() {
    let folder =
        tree(&fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/desktop.tree")).unwrap());
    symlink("nowhere", folder.path().join("etc/link")).unwrap();
    let system = System::open(Some(folder.path()), false).unwrap();
    let host = system.host().unwrap();
    let plan = |device: &str, file: &str, value: &str| {
        let files = [(file.to_owned(), value.to_owned())];
        Plan::make(&system.root, &host, host.device(device).unwrap(), &files, Persist::Udev(Match::Serial))
    };
    let rule = plan("nvme0n1", "scheduler", "none").unwrap();
    assert!(rule.persisted[0].content.contains("ENV{ID_WWN}==\"eui.S3CR3T\", ATTR{queue/scheduler}=\"none\""));
    assert!(rule.overruled_by.is_empty(), "60-io.rules comes before");
    assert!(
        matches!(plan("dm-0", "scheduler", "bfq"), Err(PlanError::NoQueue(_, below)) if below.ends_with(": nvme0n1"))
    );
    assert!(matches!(plan("nvme0n1", "scheduler", "cfq"), Err(PlanError::NoScheduler { .. })));
    // The kernel loads a module when its name is written, and lists it only then.
    let modules = folder.path().join("lib/modules/6.12.57-desktop");
    fs::create_dir_all(&modules).unwrap();
    fs::write(modules.join("modules.dep"), "kernel/block/cfq-iosched.ko.xz:\nkernel/block/bfq.ko:\n").unwrap();
    fs::write(modules.join("modules.alias"), "alias other-iosched other\n").unwrap();
    for (scheduler, is_there) in [("cfq", true), ("other", true), ("deadline2", false), ("oth", false)] {
        assert_eq!(plan("nvme0n1", "scheduler", scheduler).is_ok(), is_there, "{scheduler}");
    }
    for (file, value) in [
        ("../x", "1"),
        ("iosched/../../x", "1"),
        ("a/b", "1"),
        ("nr_requests", "1\"; rm"),
        ("nr_requests", "$x"),
        ("nr_requests", ""),
    ] {
        assert!(matches!(plan("nvme0n1", file, value), Err(PlanError::NoFile(_))), "{file}={value}");
    }
}
