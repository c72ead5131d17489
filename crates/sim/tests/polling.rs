//! Hardware queues for reads and for polled I/O (BL-49 to BL-52, BL-130).

use std::collections::BTreeMap;

use crate::support::{run_job_probed, spec};
use hoistway_blk::bio::Op;
use hoistway_blk::ground::{CpuId, Kernel, Nanos, Now};
use hoistway_blk::watch::{Event, Probe};
use hoistway_device::{Preset, PresetFile};
use hoistway_measure::{Direction, ProcessResult};
use hoistway_sim::QueueSettings;

/// How many reads and writes each hardware queue was handed.
#[derive(Default)]
struct Issues(BTreeMap<(u16, bool), u32>);

impl Probe for Issues {
    fn event(&mut self, _: Now, _: CpuId, event: Event<'_>) {
        if let Event::Issue(rq) = event {
            *self.0.entry((rq.hctx.0, rq.op == Op::Read)).or_default() += 1;
        }
    }
}

/// A load of 100 ms on a drive with as many hardware queues of each type, on two CPUs.
fn simulated(options: &str, scheduler: &str, queues: [u16; 3]) -> (ProcessResult, Vec<(u16, bool)>) {
    let job = format!(
        "[a]\nfilename=/dev/nvme0n1\ndirect=1\nioengine=io_uring\nrw=randrw\ntime_based\nruntime=1\n{options}\n"
    );
    let mut file = PresetFile::from(Preset::builtin("intel-p4800x-375gb").unwrap());
    file.shape.hw_queues = queues.iter().sum();
    let preset = Preset::try_from(file).unwrap();
    let queue =
        QueueSettings { read_queues: queues[1], poll_queues: queues[2], ..QueueSettings::new(Kernel::V6_18, 2) };
    let runtime = Some(Nanos::from_millis(100));
    let (mut result, issues) =
        run_job_probed(&job, &preset, queue, runtime, &spec(scheduler, &[], 1), Issues::default());
    (result.processes.remove(0), issues.0.into_keys().collect())
}

#[test]
fn reads_writes_and_polled_io_take_the_hardware_queues_of_their_type() {
    for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
        let queues = |options, types| simulated(options, scheduler, types).1;
        assert_eq!(queues("", [1, 0, 0]), [(0, false), (0, true)], "{scheduler}");
        assert_eq!(queues("", [1, 1, 0]), [(0, false), (1, true)], "{scheduler}");
        assert_eq!(queues("hipri", [1, 1, 1]), [(2, false), (2, true)], "{scheduler}");
        assert_eq!(queues("hipri", [1, 1, 0]), [(0, false), (1, true)], "{scheduler}: none can be polled");
    }
}

#[test]
fn a_polling_process_is_not_woken_and_spends_its_cpu_time_polling() {
    let mean_ns = |process: &ProcessResult| process.direction(Direction::Read).lat.mean();
    let busy = |process: &ProcessResult| process.cpu.system_ns as f64 / process.runtime_ns as f64;
    for scheduler in ["none", "mq-deadline"] {
        let (interrupted, _) = simulated("", scheduler, [2, 0, 0]);
        let (polled, _) = simulated("hipri", scheduler, [2, 0, 2]);
        let saved = mean_ns(&interrupted) - mean_ns(&polled);
        // The host `server` wakes a process in 2.9 to 8.5 us.
        assert!((2900.0..8500.0).contains(&saved), "{scheduler}: {saved} ns");
        assert!(busy(&interrupted) < 0.55, "{scheduler}: {}", busy(&interrupted));
        assert!((0.98..1.02).contains(&busy(&polled)), "{scheduler}: {}", busy(&polled));
    }
}

#[test]
fn pollers_on_one_cpu_give_it_to_each_other() {
    let (alone, _) = simulated("hipri\ncpus_allowed=0", "none", [2, 0, 2]);
    let (beside, _) = simulated("hipri\ncpus_allowed=0\nnumjobs=2", "none", [2, 0, 2]);
    let ios = |process: &ProcessResult| process.direction(Direction::Read).ios as f64;
    assert!(ios(&beside) > 0.7 * ios(&alone), "{} beside another, {} alone", ios(&beside), ios(&alone));
}
