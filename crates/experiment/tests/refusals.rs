//! Invalid comparisons give an error that names the field and what was expected, and never a panic.

use std::collections::BTreeMap;

use hoistway_answer::WeightedFigure;
use hoistway_experiment::{
    Alone, CgroupFile, Comparison, Devices, Field, Guests, Load, MeasuredTime, Plan, Profile, QueueFile, QueueWrite,
    Replay, Sysctl, Tunable, Vary,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

const JOB: &str = "[a]\nfilename=/dev/sda\ndirect=1\ncgroup=g\nruntime=1ms\ntime_based\n";

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Asserts that a comparison is refused, with this field at fault and these words.
#[track_caller]
fn refused(comparison: Comparison, field: Field, words: &str) {
    let error = Plan::of(&comparison, &Alone).err().unwrap_or_else(|| panic!("{comparison:?} is possible"));
    assert_eq!(error.field, field, "{error}");
    assert!(error.message.contains(words), "{error}");
}

/// Asserts that a comparison is refused with a message that begins with the field's name.
#[track_caller]
fn refused_by_name(comparison: Comparison, field: Field, words: &str) {
    refused(comparison.clone(), field, words);
    let message = Plan::of(&comparison, &Alone).unwrap_err().message;
    assert!(message.starts_with(&format!("`{}`", field.name())), "{message}");
}

fn base() -> Comparison {
    Comparison { load: Load::text(JOB), devices: vec!["null".into()], ..Comparison::default() }
}

#[test]
fn texts_and_profiles_that_are_wrong_say_where() {
    refused(Comparison { load: Load::text("[a]\nrw=sideways\n"), ..base() }, Field::Load, "(text):2: [a] rw:");
    refused(Comparison { load: Load::File("a.fio".into()), ..base() }, Field::Load, "a.fio: cannot be read");
    refused_by_name(
        Comparison { load: Load::Scenario("x".to_owned()), ..base() },
        Field::Load,
        "expected one of desktop",
    );
    refused(Comparison { devices: vec!["floppy".into()], ..base() }, Field::Devices, "`floppy`; expected one of");
    let text = |text: &str| Profile::Text { name: "mine".to_owned(), text: text.to_owned() };
    let devices = vec![Devices { common: Some(text("{")), files: BTreeMap::new() }];
    refused(Comparison { devices, ..base() }, Field::Devices, "mine:1:");
    refused(Comparison { hosts: vec![text("cpus = 0")], ..base() }, Field::Hosts, "mine:");
    let place = |comparison: Comparison| {
        let place = Plan::of(&comparison, &Alone).unwrap_err().place.expect("a text is at fault");
        (place.file, place.line, place.option)
    };
    let at = |file: &str, line, option: &str| (file.to_owned(), Some(line), Some(option.to_owned()));
    assert_eq!(place(Comparison { load: Load::text("[a]\nrw=sideways\n"), ..base() }), at("(text)", 2, "rw"));
    assert_eq!(place(Comparison { hosts: vec![text("\ncpus = 0")], ..base() }), at("mine", 2, "cpus"));
    let devices = vec![Devices { common: Some(text("floppy = 1")), files: BTreeMap::new() }];
    let (file, line, key) = place(Comparison { devices, ..base() });
    assert_eq!((file.as_str(), line, key.is_some()), ("mine", Some(1), true));
    let guests = Guests { schedulers: names(&["none"]), virtual_disk: Some("x".into()), ..Guests::default() };
    refused(Comparison { guests, ..base() }, Field::VirtualDisk, "no built-in virtual disk `x`");
    refused(Comparison { kernels: names(&["6.18", "2.6"]), ..base() }, Field::Kernels, "unknown kernel \"2.6\"");
}

#[test]
fn invalid_numbers_name_their_field() {
    refused_by_name(Comparison { cpus: Some(0), ..base() }, Field::Cpus, "0: expected 1 to 1024");
    refused_by_name(Comparison { memory_bytes: Some(1), ..base() }, Field::MemoryBytes, "1: expected 16777216 to");
    refused_by_name(Comparison { hw_queues: Some(0), ..base() }, Field::HwQueues, "0: expected 1 to 2048");
    refused_by_name(Comparison { read_queues: 2000, ..base() }, Field::ReadQueues, "2000: expected 0 to 1024");
    refused_by_name(Comparison { poll_queues: 2000, ..base() }, Field::PollQueues, "2000: expected 0 to 1024");
    refused_by_name(Comparison { runtime_ns: Some(0), ..base() }, Field::RuntimeNs, "between 1 us and 10 years");
    refused_by_name(Comparison { ramp_ns: Some(u64::MAX), ..base() }, Field::RampNs, "between 1 us and 10 years");
    refused_by_name(Comparison { repeats: 0, ..base() }, Field::Repeats, "0: expected 1 to 1000");
    let unknown = Comparison { techniques: Some("trymerge".to_owned()), ..base() };
    refused_by_name(unknown, Field::ContentionOptions, "\"trymerge\" is no technique (expected all, none, or some of");
    let both = Comparison { techniques: Some("pending-lists,insertion-buckets".to_owned()), ..base() };
    refused_by_name(both, Field::ContentionOptions, "insertion-buckets and pending-lists exclude each other");
    let old = Comparison { kernels: names(&["4.19"]), read_queues: 1, ..base() };
    refused_by_name(old, Field::ReadQueues, "expected `kernels` 5.10 or later");
}

#[test]
fn invalid_names_and_settings_name_their_field() {
    refused_by_name(Comparison { schedulers: names(&["x"]), ..base() }, Field::Schedulers, "x: unknown scheduler");
    refused_by_name(
        Comparison { elevator: Some("cfq".to_owned()), ..base() },
        Field::Elevator,
        "cfq: only the kernel's",
    );
    refused_by_name(Comparison { baseline: Some("x".to_owned()), ..base() }, Field::Baseline, "expected one of none");
    refused_by_name(
        Comparison { shared_tags: true, ..base() },
        Field::SharedTags,
        "sharing tags needs several devices",
    );
    refused_by_name(
        Comparison { fill_percent: Some(101.0), ..base() },
        Field::FillPercent,
        "101%: expected 0% to 100%",
    );
    let on_a_disk = Comparison { devices: vec!["hdd".into()], trimmed: true, ..base() };
    refused_by_name(on_a_disk, Field::Trimmed, "depends on how full it is (expected an SSD");
    let files = [("/dev/sdx".to_owned(), "null".into())].into();
    let devices = vec![Devices { common: None, files }];
    refused_by_name(Comparison { devices, ..base() }, Field::Devices, "no filename \"/dev/sdx\"");
    let tunables = vec![Tunable { scheduler: "bfq".to_owned(), name: "x".to_owned(), text: "1".to_owned() }];
    refused_by_name(Comparison { tunables, ..base() }, Field::Tunables, "bfq.x=1: bfq has no tunable \"x\"");
    let file = |file: &str| vec![QueueFile { file: file.to_owned(), text: "1".to_owned() }];
    refused_by_name(Comparison { queue_files: file("x"), ..base() }, Field::QueueFiles, "x=1: no such file");
    refused_by_name(Comparison { queue_files: file("scheduler"), ..base() }, Field::QueueFiles, "use `schedulers`");
    let write = QueueWrite { at_ns: 1, under: Some("x".to_owned()), file: "iosched/y".to_owned(), text: String::new() };
    refused_by_name(Comparison { writes: vec![write], ..base() }, Field::TimedWrites, "unknown scheduler \"x\"");
    let group = |cgroup: &str| vec![CgroupFile { cgroup: cgroup.to_owned(), text: "x".to_owned() }];
    refused_by_name(Comparison { io_max: group("h"), ..base() }, Field::IoMax, "no job is in cgroup \"h\"");
    refused_by_name(Comparison { io_max: group("g"), ..base() }, Field::IoMax, "expected rbps, wbps");
    refused_by_name(Comparison { io_prio_class: group("g"), ..base() }, Field::IoPrioClass, "unknown class \"x\"");
    let guests = |schedulers: &[&str], weight| Guests {
        schedulers: names(schedulers),
        weights: vec![("/dev/sda".to_owned(), weight)],
        ..Guests::default()
    };
    let weights_alone = Comparison { guests: guests(&[], 5), ..base() };
    refused_by_name(weights_alone, Field::GuestWeights, "expected `guests.schedulers` as well");
    refused_by_name(Comparison { guests: guests(&["none"], 0), ..base() }, Field::GuestWeights, "N from 1 to 1000");
    refused_by_name(Comparison { guests: guests(&["x"], 5), ..base() }, Field::GuestSchedulers, "unknown scheduler");
}

#[test]
fn stacked_devices_that_cannot_be_are_refused_by_name() {
    let with = |texts: &[&str]| Comparison { stacks: names(texts), ..base() };
    for (texts, problem) in [
        (&["/dev/md0"][..], "\"/dev/md0\": expected NAME = KIND(MEMBER, ...), such as"),
        (&["/dev/md0 = raid9(a, b)"], "\"raid9\" is no kind of stacked device"),
        (
            &["/dev/md0 = raid1(a, b)"],
            "no job uses /dev/md0 (expected it as a filename of the job file, which has /dev/sda)",
        ),
        (&["/dev/sda = raid1(a, a)"], "/dev/a is a member twice (expected each device as a member once)"),
        (&["/dev/sda = linear(a)", "b = linear(a)"], "/dev/a is a member of /dev/sda, too (expected each device"),
        (
            &["/dev/sda = linear(a)", "/dev/sda = linear(b)"],
            "/dev/sda is given twice (expected each stacked device once)",
        ),
        (&["/dev/sda = linear(a)", "a = linear(/dev/sda)"], "/dev/sda lies on itself (expected members below it)"),
        (&["/dev/md0 = linear(/dev/sda)"], "the load uses /dev/sda itself (expected jobs on /dev/md0 alone)"),
    ] {
        refused_by_name(with(texts), Field::Stacks, problem);
    }
    let stacked = with(&["/dev/sda = linear(a, b)"]);
    let guests = Guests { schedulers: names(&["none"]), ..Guests::default() };
    refused_by_name(
        Comparison { guests, ..stacked.clone() },
        Field::Stacks,
        "stacked devices below guests are not modelled",
    );
    let load = Load::text("[a]\nfilename=/dev/sda\nrw=read\nsize=1m\ndirect=0\n");
    refused_by_name(
        Comparison { load, ..stacked.clone() },
        Field::Stacks,
        "job a does buffered I/O, which is not modelled",
    );
    let files = [("/dev/sda".to_owned(), "null".into())].into();
    let devices = vec![Devices { common: None, files }];
    refused_by_name(
        Comparison { devices, ..stacked },
        Field::Devices,
        "/dev/sda is a stacked device (expected a device for a disk: one of /dev/a, /dev/b)",
    );
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec![
            "none", "bfq", "cfq", "all", "default", "null", "/dev/sda", "g", "0", "7", "-1", "", "4.4", "6.18"
        ])
        .prop_map(str::to_owned),
        select(vec!["io.cost", "qos.max", "enable=1 min=5", "sda rlat=7", "model=linear rbps=9"])
            .prop_map(str::to_owned),
        select(vec!["scheduler", "nr_requests", "iosched/slice_idle", "fifo_batch", "slice_idle", "wbt_lat_usec"])
            .prop_map(str::to_owned),
        "[ -~]{0,5}",
    ]
}

prop_compose! {
    fn any_comparison()(
        (devices, kernels, hosts) in (vec(word(), 0..2), vec(word(), 0..2), vec(word(), 0..2)),
        (schedulers, guest_schedulers) in (vec(word(), 0..3), vec(word(), 0..2)),
        (tunables, varied) in (vec((word(), word(), word()), 0..2), vec((word(), word(), vec(word(), 0..3)), 0..2)),
        files in vec((word(), word()), 0..3),
        stacks in vec((word(), select(vec!["linear", "raid0", "raid1", "raid5", "crypt", "x"]), vec(word(), 0..3)), 0..2),
        writes in vec((any::<u64>(), option::of(word()), word(), word()), 0..2),
        groups in vec((word(), word()), 0..2),
        weights in vec((word(), any::<u32>()), 0..2),
        (cpus, hw_queues) in (option::of(any::<u16>()), option::of(any::<u16>())),
        (read_queues, poll_queues, shared_tags) in (0u16..3, 0u16..3, any::<bool>()),
        (runtime_ns, ramp_ns, repeats) in (option::of(any::<u64>()), option::of(any::<u64>()), 0u32..3),
        (focus, smallest_effect) in (vec(("[ab]:(read|write|sync):(p99|max)", 0.1..9.0_f64), 0..3), option::of(-1.0..2.0_f64)),
        techniques in option::of(word()),
        (memory_bytes, baseline, elevator) in (option::of(any::<u64>()), option::of(word()), option::of(word())),
    ) -> Comparison {
        let stacks = stacks.into_iter().map(|(name, kind, members)| format!("{name} = {kind}({})", members.join(", "))).collect();
        let groups: Vec<_> = groups.into_iter().map(|(cgroup, text)| CgroupFile { cgroup, text }).collect();
        Comparison {
            load: Load::text(JOB),
            replay: Replay::default(),
            devices: devices.iter().map(|name| name.as_str().into()).collect(),
            stacks,
            kernels,
            hosts: hosts.iter().map(|name| name.as_str().into()).collect(),
            cpus,
            memory_bytes,
            sysctls: groups.iter().map(|of| Sysctl { name: of.cgroup.clone(), text: of.text.clone() }).collect(),
            journal: shared_tags,
            schedulers,
            elevator,
            guests: Guests { schedulers: guest_schedulers, virtual_disk: None, weights },
            tunables: tunables.into_iter().map(|(scheduler, name, text)| Tunable { scheduler, name, text }).collect(),
            queue_files: files.into_iter().map(|(file, text)| QueueFile { file, text }).collect(),
            vary: varied.into_iter().map(|(of, name, texts)| Vary { of, name, texts }).collect(),
            hw_queues,
            read_queues,
            poll_queues,
            shared_tags,
            fill_percent: smallest_effect.map(|effect| effect * 100.0),
            trimmed: shared_tags,
            submitter_dispatches: shared_tags,
            techniques,
            writes: writes.into_iter().map(|(at_ns, under, file, text)| QueueWrite { at_ns, under, file, text }).collect(),
            io_max: groups.clone(),
            io_cost: groups.iter().map(|of| of.text.clone()).collect(),
            io_weight: groups.clone(),
            io_latency: groups.clone(),
            io_prio_class: groups,
            runtime_ns,
            ramp_ns,
            repeats,
            until_sure: shared_tags,
            measured: if shared_tags { MeasuredTime::Lasting } else { MeasuredTime::AsFio },
            baseline,
            focus: focus.into_iter().map(|(name, weight)| WeightedFigure { weight, figure: name.parse().unwrap() }).collect(),
            smallest_effect,
            seed: 1,
            logs: false,
            excerpts: false,
        }
    }
}

proptest! {
    #[test]
    fn every_comparison_is_planned_or_refused(comparison in any_comparison()) {
        match Plan::of(&comparison, &Alone) {
            Ok(plan) => prop_assert!(plan.run_count() > 0),
            Err(error) => prop_assert!(!error.message.is_empty()),
        }
    }
}
