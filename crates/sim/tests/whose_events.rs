//! What a probe is notified of happens on the disk that it was notified of before.

use crate::support::observe;
use hoistway_blk::bio::{Bio, Op};
use hoistway_blk::ground::{CpuId, Kernel, Nanos, Now, Waiter};
use hoistway_blk::watch::{Event, Probe};
use hoistway_cgroup::IoMax;
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_sim::{Host, QueueSettings, RunSpec, Scenario, Write};

/// All I/O of disk `n` is in its gibibyte `n`. Counts the events of each disk, and keeps those that were attributed to another one.
#[derive(Default)]
struct DiskEvents {
    device: u32,
    by_disk: [u64; 3],
    misattributed: Vec<String>,
}

const GIB_SECTORS: u64 = 1 << 21;

impl DiskEvents {
    fn note(&mut self, sector: u64, event: Event<'_>) {
        let device = sector / GIB_SECTORS;
        if device == u64::from(self.device) {
            self.by_disk[device as usize] += 1;
        } else {
            self.misattributed.push(format!("on disk {}: {event:?}", self.device));
        }
    }
}

impl Probe for DiskEvents {
    fn enter(&mut self, device: u32, _: Option<Waiter>) {
        self.device = device;
    }

    fn event(&mut self, _: Now, _: CpuId, event: Event<'_>) {
        match event {
            Event::Queue(&Bio { sector, .. }) | Event::Split(&Bio { sector, .. }) => self.note(sector.0, event),
            Event::GetRq(rq)
            | Event::Insert(rq)
            | Event::Dispatch { rq: Some(rq), .. }
            | Event::Issue(rq)
            | Event::Requeue(rq)
            | Event::Complete(rq, _)
            | Event::End(rq)
                if rq.op != Op::Flush =>
            {
                self.note(rq.sector.0, event);
            }
            _ => {}
        }
    }
}

/// A recording of reads of three disks in turns, each in its own gibibyte.
fn recording() -> String {
    let disks = ["/dev/a", "/dev/b", "/dev/c"];
    let opened = disks.map(|disk| format!("0 {disk} add\n")).concat();
    let read = |number: u64| {
        let disk = number % 3;
        let offset = (disk << 30) + (number * 7919 % 100_000) * 4096;
        format!("0 {} read {offset} 4096\n", disks[disk as usize])
    };
    format!("fio version 3 iolog\n{opened}{}", (0..3000).map(read).collect::<String>())
}

fn observe_job(job: &str, scheduler: &str, change: impl FnOnce(&mut QueueSettings)) -> DiskEvents {
    let recording = recording();
    let log = |_: &std::path::Path| Ok(hoistway_fio::log_in_memory(recording.as_bytes()));
    let environment = Environment { log: &log, ..Environment::empty() };
    let workload = JobFile::parse(job, "job.fio", &environment).unwrap_or_else(|e| panic!("{e}")).load;
    let preset = Preset::builtin("intel-s3520-1600gb").unwrap();
    let mut queue = QueueSettings::new(Kernel::V6_18, 4);
    change(&mut queue);
    let scenario = Scenario {
        workload: &workload,
        devices: vec![&preset; workload.files.len()],
        guests: None,
        queue,
        host: Host { memory_bytes: 256 << 20, ..Host::builtin("server").unwrap() },
        runtime: None,
    };
    let spec = RunSpec::new(scheduler, 1);
    let (result, events) = observe(&scenario, &spec, DiskEvents::default()).unwrap();
    assert!(result.refused.is_empty(), "{:?}", result.refused);
    events
}

const SCHEDULERS: [&str; 5] = ["none", "mq-deadline", "kyber", "bfq", "cfq"];

#[test]
fn events_of_one_submission_to_several_disks_are_attributed_per_disk() {
    let job = "[replay]\nread_iolog=disks.log\nreplay_no_stall=1\nioengine=libaio\ndirect=1\niodepth=256\n\
               iodepth_batch=96\niodepth_low=100\n";
    for scheduler in SCHEDULERS {
        let events = observe_job(job, scheduler, |_| ());
        assert_eq!(events.misattributed, Vec::<String>::new(), "{scheduler}");
        assert!(events.by_disk.iter().all(|&count| count > 3000), "{scheduler}: {:?}", events.by_disk);
    }
}

#[test]
fn events_are_attributed_per_disk_while_queue_files_are_written() {
    let job = "[global]\nioengine=libaio\ndirect=1\nrw=randread\niodepth=64\nsize=64m\nruntime=100ms\ntime_based\n\
               [a]\nfilename=/dev/a\n[b]\nfilename=/dev/b\noffset=1g\n[c]\nfilename=/dev/c\noffset=2g\n";
    let write = |ms, file: &str, text: &str| Write {
        at: Nanos::from_millis(ms),
        only_under: None,
        file: file.to_owned(),
        text: text.to_owned(),
    };
    for (scheduler, other) in
        [("mq-deadline", "none"), ("kyber", "none"), ("bfq", "none"), ("deadline", "noop"), ("cfq", "noop")]
    {
        let writes = vec![
            write(20, "nr_requests", "8"),
            write(40, "scheduler", other),
            write(60, "scheduler", scheduler),
            write(80, "scheduler", other),
        ];
        let events = observe_job(job, scheduler, |queue| queue.writes = writes);
        assert_eq!(events.misattributed, Vec::<String>::new(), "{scheduler}");
        assert!(events.by_disk.iter().all(|&count| count > 3000), "{scheduler}: {:?}", events.by_disk);
    }
}

#[test]
fn events_of_page_cache_and_throttled_io_are_attributed_per_disk() {
    let job = "[global]\nruntime=300ms\ntime_based\nsize=128m\n[a]\nfilename=/dev/a\nrw=write\nbs=64k\nfsync=200\n\
               [b]\nfilename=/dev/b\nrw=randwrite\nbs=64k\noffset=1g\n\
               [c]\nfilename=/dev/c\nrw=randread\ndirect=1\nioengine=libaio\niodepth=8\noffset=2g\ncgroup=slow\n";
    for scheduler in ["none", "mq-deadline"] {
        let limit = IoMax { riops: Some(2000), ..IoMax::default() };
        let events = observe_job(job, scheduler, |queue| queue.io_max = vec![("slow".to_owned(), limit)]);
        assert_eq!(events.misattributed, Vec::<String>::new(), "{scheduler}");
        assert!(events.by_disk.iter().all(|&count| count > 300), "{scheduler}: {:?}", events.by_disk);
    }
}
