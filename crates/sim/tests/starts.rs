//! When processes begin.

use crate::support::{observe, spec};
use hoistway_blk::ground::{CpuId, Kernel, Now};
use hoistway_blk::watch::{Event, Probe};
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_sim::{Host, QueueSettings, Scenario};

/// When each bio was put forward, us, and on which CPU.
#[derive(Default)]
struct Bios(Vec<(u64, u32)>);

impl Probe for Bios {
    fn event(&mut self, now: Now, cpu: CpuId, event: Event<'_>) {
        if let Event::Queue(_) = event {
            self.0.push((now.at.0 / 1000, cpu.0));
        }
    }
}

/// Of jobs of one I/O each, on a host that needs 50 us to begin with a process that is ready, 200 us with one that is not, and no time for anything else.
fn bios(cpus: u16, jobs: &str) -> Vec<(u64, u32)> {
    let text = format!("[global]\nioengine=libaio\ndirect=1\nfilename=/dev/sda\nrw=randread\nnumber_ios=1\n{jobs}");
    let workload = JobFile::parse(&text, "test.fio", &Environment::empty()).unwrap().load;
    let host = "name = \"x\"\ndescription = \"x\"\nsubmit_ns = 0\ncomplete_ns = 0\nredirect_ns = 0\nwake_ns = [0, 0]\n\
                worker_ns = [0, 0]\nidle_ns = []\nrelease_ns = 50_000\nstart_ns = 200_000\n";
    let preset = Preset::builtin("intel-s3520-1600gb").unwrap();
    let scenario = Scenario {
        workload: &workload,
        devices: vec![&preset],
        guests: None,
        queue: QueueSettings::new(Kernel::V6_18, cpus),
        host: Host::from_toml(host, "x.toml").unwrap(),
        runtime: None,
    };
    let (_, mut bios) = observe(&scenario, &spec("none", &[], 1), Bios::default()).unwrap();
    bios.0.sort_unstable();
    bios.0
}

#[test]
fn processes_of_a_cpu_are_started_one_after_the_other_and_those_of_others_beside_them() {
    assert_eq!(bios(1, "[a]\nnumjobs=3\n"), [(0, 0), (50, 0), (100, 0)]);
    assert_eq!(bios(2, "[a]\nnumjobs=4\n"), [(0, 0), (0, 1), (50, 0), (50, 1)]);
}

#[test]
fn those_that_start_later_are_started_one_after_the_other_then() {
    let later = "[a]\nnumjobs=2\n[b]\nnumjobs=2\nstart=1ms\n";
    assert_eq!(bios(1, later), [(0, 0), (50, 0), (1000, 0), (1200, 0)]);
}

/// fio looks 100 ms after it has let the first ones go, makes the two, and lets them go after another 100 ms.
#[test]
fn those_with_a_startdelay_start_when_fio_finds_it_over() {
    let later = "[a]\nnumjobs=2\n[b]\nnumjobs=2\nstartdelay=1ms\n";
    assert_eq!(bios(1, later), [(0, 0), (50, 0), (200_400, 0), (200_600, 0)]);
}
