//! A fleet of generated dumps with planted faults: all are found, and nothing else.
//!
//! `HOISTWAY_FLEET_HOSTS=2000` makes the fleet larger, and prints the time and memory that its reading takes (`--nocapture`).

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use hoistway_linux::dump::System;
use hoistway_linux::fleet::{Fleet, FleetMembers, HostCondition};
use hoistway_linux::host::Rule;
use support::tree;
use tempfile::TempDir;

const MACHINES: [(&str, &str); 3] =
    [("Dell Inc.", "PowerEdge R650"), ("HPE", "ProLiant DL380 Gen11"), ("Supermicro", "SYS-220U")];
const KERNELS: [&str; 4] = ["5.14.0-427.el9.x86_64", "6.1.0-18-amd64", "6.12.9", "6.12.30-cloud"];
const DRIVES: [&str; 2] = ["Samsung SSD 990 PRO 2TB", "Micron_9100_MTFDHAL1T6TCT"];

/// A host of the fleet.
#[derive(Clone, PartialEq, Debug)]
struct Plan {
    name: String,
    machine: usize,
    kernel: usize,
    drive: usize,
    drives: usize,
    /// The scheduler of the second drive, which has no fault.
    second_scheduler: &'static str,
    faults: BTreeSet<Rule>,
}

/// Pseudo-random bits of a number.
fn bits(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn plan(number: usize) -> Plan {
    let random = bits(number as u64);
    let choose = |shift: u32, count: usize| (random >> shift) as usize % count;
    let mut faults: BTreeSet<Rule> = Rule::ALL
        .into_iter()
        .enumerate()
        .filter(|(index, _)| bits(random ^ *index as u64).is_multiple_of(3))
        .map(|(_, rule)| rule)
        .collect();
    let bfq = [Rule::BfqOnFastDevice, Rule::WbtOffUnderBfq, Rule::BfqOnMultipathPart];
    if bfq.iter().any(|rule| faults.contains(rule)) {
        // The planted weights are honoured by bfq.
        faults.remove(&Rule::WeightsWithoutEffect);
    }
    Plan {
        name: format!("host-{number:05}"),
        machine: choose(0, MACHINES.len()),
        kernel: choose(8, KERNELS.len()),
        drive: choose(16, DRIVES.len()),
        drives: 2 + choose(24, 6),
        second_scheduler: "none",
        faults,
    }
}

/// A disk's files, with this scheduler active.
fn disk(path: &str, number: &str, model: &str, active: &str, rotational: u8, queues: usize) -> String {
    let offered = ["none", "mq-deadline", "kyber", "bfq"];
    let offered = offered.map(|name| if name == active { format!("[{name}]") } else { name.to_owned() }).join(" ");
    let queues: String = (0..queues).map(|queue| format!("mq/{queue}/nr_tags = 256\n")).collect();
    format!(
        "disk {path}\ndev = {number}\nsize = 3907029168\nremovable = 0\nro = 0\ndevice/model = {model}\n{queues}slaves/\n\
         queue/scheduler = {offered}\nqueue/rotational = {rotational}\nqueue/write_cache = write back\n\
         queue/wbt_lat_usec = 2000\nqueue/nomerges = 0\n"
    )
}

/// The files of a host, in the text of [`tree`].
fn files(plan: &Plan) -> String {
    let has = |rule: Rule| plan.faults.contains(&rule);
    let (vendor, product) = MACHINES[plan.machine];
    let mut text = format!(
        "sys/class/dmi/id/sys_vendor = {vendor}\nsys/class/dmi/id/product_name = {product}\n\
         proc/sys/kernel/osrelease = {}\nproc/cmdline = root=/dev/sda1 quiet{}\n\
         proc/self/mountinfo = 30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n\
         sys/fs/cgroup/cgroup.controllers = cpu io memory\nsys/fs/cgroup/db.slice/io.bfq.weight = default {}\n",
        KERNELS[plan.kernel],
        if has(Rule::ElevatorParameter) { " elevator=noop" } else { "" },
        if has(Rule::WeightsWithoutEffect) { 500 } else { 100 },
    );
    if has(Rule::SettingNotActive) {
        text += "etc/udev/rules.d/60-io.rules = KERNEL==\"sdz\", ATTR{queue/scheduler}=\"kyber\"\n";
    }
    // Every host has a target; the fault is that the slice above it has none.
    text += "sys/fs/cgroup/prod.slice/db.service/io.latency = 259:0 target=2000\n";
    if !has(Rule::LatencyTargetWithoutEffect) {
        text += "sys/fs/cgroup/prod.slice/io.latency = 259:0 target=3000\n";
    }
    if has(Rule::PrioritiesIgnored) {
        text += "hoistway/priorities = 900 realtime 4 backup\n";
    }
    for drive in 0..plan.drives {
        let scheduler = match drive {
            0 if has(Rule::BfqOnFastDevice) => "bfq",
            1 => plan.second_scheduler,
            _ => "none",
        };
        let path = format!("pci0000:00/0000:0{drive}:00.0/nvme/nvme{drive}/nvme{drive}n1");
        text += &disk(&path, &format!("259:{drive}"), DRIVES[plan.drive], scheduler, 0, 8);
    }
    let of_disk = if has(Rule::WbtOffUnderBfq) { "bfq" } else { "mq-deadline" };
    let path = "pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sdz";
    text += &disk(path, "65:144", "HGST HUH721010AL", of_disk, 1, 1);
    if has(Rule::WbtOffUnderBfq) {
        text += "queue/wbt_lat_usec = 0\n";
    }
    if has(Rule::BfqOnMultipathPart) {
        let path = "pci0000:40/0000:40:01.0/host1/rport-1:0-0/target1:0:0/1:0:0:1/block/sda";
        text += &disk(path, "8:0", "LUN C-Mode", "bfq", 0, 2);
        text += "disk virtual/block/dm-1\ndev = 254:1\nsize = 3907029168\ndm/name = mpatha\ndm/uuid = mpath-36\nmq/0/nr_tags = 256\n";
        text +=
            &format!("slaves/sda -> ../../../../{path}\nqueue/scheduler = [none] mq-deadline\nqueue/rotational = 0\n");
    }
    if has(Rule::SchedulerOnStackedDevice) {
        text += "disk virtual/block/dm-0\ndev = 254:0\nsize = 3907029000\ndm/name = data\ndm/uuid = LVM-x\n";
        text += "slaves/nvme0n1 -> ../../../../pci0000:00/0000:00:00.0/nvme/nvme0/nvme0n1\nqueue/scheduler = [mq-deadline] none\n";
        text += "queue/rotational = 0\n";
    }
    text
}

/// Writes a dump in one of the four forms.
fn write(plan: &Plan, form: usize, folder: &Path) -> PathBuf {
    let files = tree(&files(plan));
    let path = |ending: &str| folder.join(format!("{}{ending}", plan.name));
    let tar = || {
        let mut builder = tar::Builder::new(Vec::new());
        builder.follow_symlinks(false);
        // As somebody packs a folder that is named after the host.
        builder.append_dir_all(&plan.name, files.path()).unwrap();
        builder.into_inner().unwrap()
    };
    let (path, bytes) = match form % 4 {
        0 => {
            let path = path("");
            fs::rename(files.keep(), &path).unwrap();
            return path;
        }
        1 => (path(".tar"), tar()),
        2 => {
            let mut bytes = Vec::new();
            std::io::copy(
                &mut flate2::bufread::GzEncoder::new(tar().as_slice(), flate2::Compression::fast()),
                &mut bytes,
            )
            .unwrap();
            (path(".tar.gz"), bytes)
        }
        _ => {
            let system = System::open(Some(files.path()), true).unwrap();
            (path(".tar.zst"), system.dump(&system.host().unwrap(), false).unwrap().0)
        }
    };
    fs::write(&path, bytes).unwrap();
    path
}

fn write_all(plans: &[Plan]) -> TempDir {
    let folder = support::folder();
    for (form, plan) in plans.iter().enumerate() {
        write(plan, form, folder.path());
    }
    folder
}

fn members(folder: &Path) -> FleetMembers {
    FleetMembers::find(&[folder.display().to_string()], std::io::empty()).unwrap()
}

fn read(folder: &Path) -> Fleet {
    Fleet::read(&members(folder), None, &[])
}

fn hosts() -> usize {
    std::env::var("HOISTWAY_FLEET_HOSTS").map_or(24, |hosts| hosts.parse().expect("a number of hosts"))
}

#[test]
fn all_planted_faults_are_found_and_none_is_invented() {
    let plans: Vec<Plan> = (0..hosts()).map(plan).collect();
    let folder = write_all(&plans);
    let begin = Instant::now();
    let fleet = read(folder.path());
    if plans.len() > 1000 {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let memory = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
        eprintln!("{} hosts in {:.2} s, {memory}", plans.len(), begin.elapsed().as_secs_f64());
    }
    assert_eq!(fleet.damaged, []);
    let found: BTreeMap<&str, BTreeSet<Rule>> =
        fleet.hosts.iter().map(|host| (host.name.as_str(), host.rules.iter().copied().collect())).collect();
    let planted: BTreeMap<&str, BTreeSet<Rule>> =
        plans.iter().map(|plan| (plan.name.as_str(), plan.faults.clone())).collect();
    assert_eq!(found.len(), planted.len());
    for (name, planted) in &planted {
        assert_eq!(found[name], *planted, "{name}");
    }
    let is_used = |rule: Rule| plans.iter().any(|plan| plan.faults.contains(&rule));
    assert!(Rule::ALL.into_iter().all(is_used), "the fleet is large enough for each fault");
}

#[test]
fn findings_are_counted_by_machine_device_and_kernel() {
    let plans: Vec<Plan> = (0..24).map(plan).collect();
    let folder = write_all(&plans);
    let fleet = read(folder.path());
    let minor = |plan: &Plan| KERNELS[plan.kernel].split('.').take(2).collect::<Vec<_>>().join(".");
    let machine = |plan: &Plan| format!("{} {}", MACHINES[plan.machine].0, MACHINES[plan.machine].1);
    let rows: Vec<_> = fleet.findings.iter().filter(|row| row.rule == Rule::BfqOnFastDevice).collect();
    for row in &rows {
        let of_class = plans.iter().filter(|plan| {
            row.machine.as_ref() == Some(&machine(plan))
                && row.kernel == minor(plan)
                && row.device.as_deref() == Some(&format!("nvme {}", DRIVES[plan.drive]))
        });
        let of_class: Vec<&Plan> = of_class.collect();
        let with_fault: Vec<&String> = of_class
            .iter()
            .filter(|plan| plan.faults.contains(&Rule::BfqOnFastDevice))
            .map(|plan| &plan.name)
            .collect();
        assert_eq!(row.hosts.iter().collect::<Vec<_>>(), with_fault, "{row:?}");
        assert_eq!((row.hosts_of_class, row.devices), (of_class.len(), with_fault.len()), "{row:?}");
        assert_eq!(row.devices_of_class, of_class.iter().map(|plan| plan.drives).sum::<usize>(), "{row:?}");
        assert_eq!(row.advice.iter().map(|advice| advice.hosts.len()).sum::<usize>(), row.hosts.len());
        assert_eq!(row.advice[0].commands[0], "echo none > /sys/block/nvme0n1/queue/scheduler");
    }
    let planted = plans.iter().filter(|plan| plan.faults.contains(&Rule::BfqOnFastDevice)).count();
    assert_eq!(rows.iter().map(|row| row.hosts.len()).sum::<usize>(), planted);
    assert!(fleet.findings.is_sorted_by_key(|row| row.severity));
    let worst = fleet.worst();
    assert!(worst.is_sorted_by_key(|host| std::cmp::Reverse((host.high, host.medium, host.low))));
    assert_eq!(worst.len(), plans.iter().filter(|plan| !plan.faults.is_empty()).count());
}

#[test]
fn damaged_dumps_are_named_and_the_others_are_read() {
    let plans: Vec<Plan> = (0..8).map(plan).collect();
    let folder = support::folder();
    let mut damaged = Vec::new();
    for (form, plan) in plans.iter().enumerate() {
        let path = write(plan, form, folder.path());
        if form < 4 {
            damaged.push(plan.name.clone());
            if path.is_dir() {
                fs::remove_dir_all(path.join("proc")).unwrap();
            } else {
                let bytes = fs::read(&path).unwrap();
                fs::write(&path, &bytes[..bytes.len() * 3 / 4]).unwrap();
            }
        }
    }
    let fleet = read(folder.path());
    let named: Vec<&String> = fleet.damaged.iter().map(|dump| &dump.name).collect();
    assert_eq!(named, damaged.iter().collect::<Vec<_>>());
    for dump in &fleet.damaged {
        assert!(dump.error.contains(&dump.name) && dump.error.contains("(expected"), "{}", dump.error);
    }
    assert_eq!(fleet.hosts.len(), plans.len() - damaged.len());
    // A host whose earlier dump is damaged is still shown.
    let whole = write_all(&plans);
    let fleet = Fleet::read(&members(whole.path()), Some(&members(folder.path())), &[]);
    assert_eq!((fleet.hosts.len(), fleet.damaged.len()), (plans.len(), damaged.len()));
    assert_eq!(fleet.changes.unwrap().settings, []);
}

#[test]
fn changes_between_two_days_are_those_that_were_made() {
    let then: Vec<Plan> = (0..12).map(plan).collect();
    let mut now: Vec<Plan> = (1..13).map(plan).collect();
    let (mut appeared, mut gone, mut kyber, mut added) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    // The last has no earlier dump.
    for (number, plan) in now.iter_mut().take(11).enumerate() {
        if number % 4 == 1 {
            plan.second_scheduler = "kyber";
            kyber.push(plan.name.clone());
        }
        if number % 5 == 3 {
            plan.drives += 1;
            added.push(plan.name.clone());
        }
        if number % 3 == 2 {
            let side = if plan.faults.remove(&Rule::ElevatorParameter) { &mut gone } else { &mut appeared };
            side.push(plan.name.clone());
            if !gone.contains(&plan.name) {
                plan.faults.insert(Rule::ElevatorParameter);
            }
        }
    }
    let folders = [&then, &now].map(|plans| write_all(plans));
    let [then, now] = [0, 1].map(|day: usize| members(folders[day].path()));
    let changes = Fleet::read(&now, Some(&then), &[]).changes.unwrap();
    assert_eq!(
        (changes.hosts_added, changes.hosts_gone),
        (vec!["host-00012".to_owned()], vec!["host-00000".to_owned()])
    );
    assert_eq!(changes.findings.len(), 1);
    assert_eq!((changes.findings[0].rule, &changes.findings[0].device), (Rule::ElevatorParameter, &None));
    assert_eq!((&changes.findings[0].appeared, &changes.findings[0].gone), (&appeared, &gone));
    let (mut changed_schedulers, mut drives_added) = (Vec::new(), Vec::new());
    for change in &changes.settings {
        match change.what.as_str() {
            "scheduler" => {
                assert_eq!((change.from.as_deref(), change.to.as_deref()), (Some("none"), Some("kyber")));
                changed_schedulers.extend(change.hosts.clone());
            }
            "device" => {
                assert_eq!((change.from.as_deref(), change.to.as_deref()), (None, Some("present")));
                drives_added.extend(change.hosts.clone());
            }
            "kernel parameters" => {
                assert!(change.hosts.iter().all(|host| appeared.contains(host) || gone.contains(host)))
            }
            other => panic!("{other} was not changed: {change:?}"),
        }
    }
    changed_schedulers.sort();
    drives_added.sort();
    assert_eq!((changed_schedulers, drives_added), (kyber, added));
    assert!(!gone.is_empty() && !appeared.is_empty());
    let same = Fleet::read(&now, Some(&now), &[]).changes.unwrap();
    assert_eq!(same, hoistway_linux::fleet::FleetChanges::default());
}

#[test]
fn conditions_are_met_by_the_hosts_that_meet_them() {
    let plans: Vec<Plan> = (0..24).map(plan).collect();
    let folder = write_all(&plans);
    let having = |has: &dyn Fn(&Plan) -> bool| plans.iter().filter(|plan| has(plan)).count();
    let elevator = having(&|plan| plan.faults.contains(&Rule::ElevatorParameter));
    let any_bfq = [Rule::BfqOnFastDevice, Rule::WbtOffUnderBfq, Rule::BfqOnMultipathPart];
    let exactly = format!("elevator-parameter>{elevator}");
    let fewer = format!("elevator-parameter>{}", elevator - 1);
    let expected = [
        ("elevator-parameter", elevator),
        (&fewer, elevator),
        (&exactly, 0),
        ("nvme:scheduler!=none", having(&|plan| plan.faults.contains(&Rule::BfqOnFastDevice))),
        ("scheduler=bfq", having(&|plan| any_bfq.iter().any(|rule| plan.faults.contains(rule)))),
        ("hdd:wbt_lat_usec<2000", having(&|plan| plan.faults.contains(&Rule::WbtOffUnderBfq))),
        ("kernel<6.12", having(&|plan| plan.kernel < 2)),
        ("kernel=6.12", having(&|plan| plan.kernel >= 2)),
        ("kernel>6.12.9", having(&|plan| plan.kernel == 3)),
        ("damaged", 0),
        ("mmc:scheduler=none", 0),
    ];
    let conditions: Vec<HostCondition> = expected.iter().map(|(text, _)| text.parse().unwrap()).collect();
    let fleet = Fleet::read(&members(folder.path()), None, &conditions);
    for (text, count) in expected {
        let met = fleet.conditions_met.iter().find(|met| met.condition == text);
        assert_eq!(met.map_or(0, |met| met.hosts.len()), count, "{text}");
    }
    let of_scheduler = fleet.conditions_met.iter().find(|met| met.condition == "nvme:scheduler!=none").unwrap();
    assert!(of_scheduler.hosts[0].ends_with(" (nvme0n1 bfq)"), "{of_scheduler:?}");
}
