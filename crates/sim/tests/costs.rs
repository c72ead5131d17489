//! A host whose locks cost nothing is a host without meters.

use std::collections::BTreeMap;

use crate::support::{observe, spec};
use hoistway_blk::ground::{CpuId, Kernel, Nanos, Now};
use hoistway_blk::watch::{Event, Probe};
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_sim::{Host, LockUse, QueueSettings, Scenario};

/// Every event, with its time and its CPU.
#[derive(Default)]
struct All(Vec<String>);

impl Probe for All {
    fn event(&mut self, now: Now, cpu: CpuId, event: Event<'_>) {
        self.0.push(format!("{} {} {event:?}", now.at.0, cpu.0));
    }
}

/// The events of a mixed load with a scheduler on a host, and what its locks took.
fn events(host: Host, cpus: u16, scheduler: &str) -> (Vec<String>, LockUse) {
    let job = "[global]\nfilename=/dev/nvme0n1\ndirect=1\nioengine=libaio\ntime_based\nruntime=1\n\
               [a]\nrw=randread\niodepth=8\nnumjobs=6\n[b]\nrw=write\niodepth=16\niodepth_batch_submit=4\nnumjobs=2\n";
    let workload = JobFile::parse(job, "test.fio", &Environment::empty()).unwrap().load;
    let preset = Preset::builtin("samsung-980pro-1tb").unwrap();
    let queue = QueueSettings::new(Kernel::V6_18, cpus);
    let runtime = Some(Nanos::from_millis(3));
    let scenario = Scenario { workload: &workload, devices: vec![&preset], guests: None, queue, host, runtime };
    let (result, all) = observe(&scenario, &spec(scheduler, &[], 1), All::default()).unwrap();
    (all.0, result.locks)
}

#[test]
fn with_free_locks_every_event_is_as_without_a_meter() {
    let server = Host::builtin(Host::DEFAULT).unwrap();
    let unmetered = Host { sections_ns: BTreeMap::new(), handover_ns: 0, waiter_ns: 0, ..server.clone() };
    let named = server.sections_ns.keys().map(|name| (name.clone(), 0)).collect();
    let free = Host { sections_ns: named, handover_ns: 0, waiter_ns: 0, ..server.clone() };
    for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
        let (without, _) = events(unmetered.clone(), 4, scheduler);
        let (with, locks) = events(free.clone(), 4, scheduler);
        assert!(without.len() > 1000, "{scheduler}: {} events", without.len());
        assert_eq!(with, without, "{scheduler}");
        assert_eq!(locks, LockUse::default(), "{scheduler}");
        let (metered, _) = events(server.clone(), 4, scheduler);
        assert_eq!(metered == without, scheduler == "none", "{scheduler}: a price shows");
    }
}

#[test]
fn on_one_cpu_nothing_contends_and_a_hand_over_may_cost_anything() {
    let server = Host::builtin(Host::DEFAULT).unwrap();
    let dear = Host { handover_ns: 9000, far_handover_ns: Some(20_000), waiter_ns: 700, ..server.clone() };
    for scheduler in ["mq-deadline", "bfq"] {
        let (with, locks) = events(dear.clone(), 1, scheduler);
        assert!(locks.waited == Nanos::ZERO && locks.taken > 1000, "{scheduler}: {locks:?}");
        assert_eq!((with, locks), events(server.clone(), 1, scheduler), "{scheduler}");
        assert_ne!(events(dear.clone(), 4, scheduler), events(server.clone(), 4, scheduler), "{scheduler}");
    }
}
