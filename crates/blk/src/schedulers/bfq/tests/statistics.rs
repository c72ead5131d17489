//! What cgroup v1 shows of a group (5.3, 23.5).

use super::super::{BfqConfig, BfqGroup};
use super::machine::{Machine, config};
use crate::cgroup_weight::DeviceNumber;
use crate::elevator::Scheduler;
use crate::ids::CgroupId;

#[test]
fn files_show_what_a_cgroup_has_been_given_and_those_of_a_removed_one_count_for_its_parent() {
    let group = |id, parent| BfqGroup { cgroup: CgroupId(id), parent: CgroupId(parent), weight: 100 };
    let config = BfqConfig { groups: vec![group(1, 0), group(2, 1)], ..config(true) };
    let mut machine = Machine::new(config);
    machine.read_in(1, 1, 0);
    (0..2).for_each(|at| {
        machine.read_in(2, 2, (1 << 24) + 8 * at);
    });
    machine.write(3, 2 << 24, 16);
    let shown = |machine: &Machine, cgroup, file: &str| {
        machine.bfq.cgroup_statistics(CgroupId(cgroup), file, DeviceNumber { major: 8, minor: 16 })
    };
    let total = |text: Option<String>| text.and_then(|text| text.lines().last().map(str::to_owned));
    assert_eq!(total(shown(&machine, 1, "bfq.io_serviced")).as_deref(), Some("Total 0"), "nothing is out");
    machine.drain();
    let root =
        "8:16 Read 0\n8:16 Write 8192\n8:16 Sync 0\n8:16 Async 8192\n8:16 Discard 0\n8:16 Total 8192\nTotal 8192\n";
    assert_eq!(shown(&machine, 0, "bfq.io_service_bytes").as_deref(), Some(root));
    let counts = |machine: &Machine| {
        [(0, ""), (0, "_recursive"), (1, ""), (1, "_recursive"), (2, "")]
            .map(|(cgroup, suffix)| total(shown(machine, cgroup, &format!("bfq.io_serviced{suffix}"))))
    };
    let expected = |counts: [Option<u32>; 5]| counts.map(|count| count.map(|count| format!("Total {count}")));
    assert_eq!(counts(&machine), expected([Some(1), Some(4), Some(1), Some(3), Some(2)]));
    machine.call(|bfq, cx| bfq.cgroup_removed(cx, CgroupId(2)));
    assert_eq!(counts(&machine), expected([Some(1), Some(4), Some(1), Some(3), None]));
    assert_eq!(shown(&machine, 1, "bfq.time"), None, "only for debugging");
}
