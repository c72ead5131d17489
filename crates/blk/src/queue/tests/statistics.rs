//! BL-92, BL-115, BL-126 to BL-128: what `/proc/diskstats` shows.

use super::*;
use crate::caller::env::Cx;
use crate::ground::meter::NoMeter;
use crate::watch::disk_stats::{DiskStats, IoCounts};

/// A queue that is watched by statistics only.
struct Watched {
    queue: Queue<Local>,
    driver: Script,
    stats: DiskStats,
    caller: Caller,
    agenda: Agenda,
    now: Instant,
    plug: Option<Plug>,
}

impl Watched {
    fn new(kernel: Kernel, scheduler: &str) -> Self {
        let limits = Limits { write_cache: true, ..Limits::default() };
        Watched {
            queue: Queue::new(&QueueConfig { limits, queue_depth: 4, ..config(kernel) }, scheduler).unwrap(),
            driver: Script::default(),
            stats: DiskStats::new(kernel),
            caller: Caller::new(),
            agenda: Agenda::new(1),
            now: Instant::ZERO,
            plug: None,
        }
    }

    fn moment(&self) -> Now {
        self.queue.generation().hz.now(self.now)
    }

    fn call<R>(
        &mut self,
        body: impl FnOnce(&Queue<Local>, &mut Cx<'_, (Script, DiskStats)>, Option<&mut Plug>) -> R,
    ) -> R {
        let now = self.moment();
        let mut cx = self.caller.cx(now, CpuId(0), &mut self.driver, &mut self.stats, &NoMeter);
        body(&self.queue, &mut cx, self.plug.as_mut())
    }

    fn submit(&mut self, bio: Bio) {
        let mut submission = QueueSubmission::new(bio, Waiter(0));
        let submitted = self.call(|queue, cx, plug| queue.submit(cx, &mut submission, plug));
        assert_eq!(submitted, Submitted::Done);
    }

    fn unplug(&mut self) {
        self.call(|queue, cx, plug| queue.flush_plug(cx, plug.unwrap()));
        self.plug = None;
    }

    /// Ends everything, a number of microseconds from now, and carries out what follows.
    fn finish_after(&mut self, us: u64) {
        self.now += Nanos::from_micros(us);
        loop {
            let now = self.moment();
            let mut cx =
                self.caller.cx::<(Script, DiskStats)>(now, CpuId(0), &mut self.driver, &mut self.stats, &NoMeter);
            self.agenda.carry_out(&self.queue, &mut cx, |_, _| {});
            let Some(rq) = self.driver.in_flight.pop_front() else { return };
            self.call(|queue, cx, _| queue.complete(cx, rq, Status::Ok));
        }
    }
}

#[test]
fn a_thousand_reads_of_4_kib_are_a_thousand_reads_and_8000_sectors() {
    for scheduler in SCHEDULERS {
        let mut disk = Watched::new(Kernel::V6_18, scheduler);
        for n in 0..1000 {
            disk.submit(read(n * 1000));
            assert_eq!(disk.stats.in_flight(), 1, "{scheduler}");
            disk.finish_after(100);
        }
        let expected = IoCounts { ios: 1000, merges: 0, sectors: 8000, nanos: 100_000_000 };
        assert_eq!((disk.stats.reads(), disk.stats.in_flight()), (expected, 0), "{scheduler}");
    }
}

#[test]
fn a_merged_bio_adds_to_merges_and_sectors_but_is_not_done_itself() {
    for scheduler in SCHEDULERS {
        let mut disk = Watched::new(Kernel::V6_18, scheduler);
        disk.plug = Some(Plug::new());
        (0..4).for_each(|n| disk.submit(write(n * 8)));
        disk.unplug();
        disk.finish_after(1000);
        let expected = IoCounts { ios: 1, merges: 3, sectors: 32, nanos: 1_000_000 };
        assert_eq!(disk.stats.writes(), expected, "{scheduler}");
    }
}

#[test]
fn a_request_that_joins_another_counts_as_merged_and_ends_with_it() {
    let mut disk = Watched::new(Kernel::V6_18, "mq-deadline");
    disk.queue.set_quiesced(true);
    [write(0), write(16), write(8)].into_iter().for_each(|bio| disk.submit(bio));
    assert_eq!(disk.stats.in_flight(), 1);
    disk.queue.set_quiesced(false);
    disk.call(|queue, cx, _| queue.run_hctx(cx, HctxId(0)));
    disk.finish_after(1000);
    assert_eq!((disk.stats.writes().ios, disk.stats.writes().merges), (1, 2), "a bio, and the request behind the gap");
}

#[test]
fn the_time_that_a_device_is_busy_never_exceeds_the_time_that_passes() {
    for kernel in Kernel::EXAMPLES {
        let mut disk = Watched::new(kernel, "none");
        for n in 0..300 {
            disk.submit(read(n * 1000));
            disk.finish_after(n * 37 % 20_000);
            disk.now += Nanos::from_micros(n * 91 % 7_000);
            let (now, tick_ms) = (disk.moment(), 1000 / u64::from(disk.queue.generation().hz.0));
            assert!(disk.stats.io_ticks_ms(now) <= disk.now.0 / 1_000_000 + tick_ms, "{kernel}");
        }
        let now = disk.moment();
        assert!(disk.stats.io_ticks_ms(now) > 0, "{kernel}");
    }
}

#[test]
fn an_fsync_on_a_write_back_device_is_one_flush_and_a_write_of_no_sectors() {
    for scheduler in SCHEDULERS {
        let mut disk = Watched::new(Kernel::V6_18, scheduler);
        disk.submit(Bio { flags: BioFlags::PREFLUSH, ..Bio::new(Op::Write, Sector(0), 0) });
        disk.finish_after(500);
        disk.finish_after(0);
        let (flushes, writes) = (disk.stats.flushes(), disk.stats.writes());
        assert_eq!((flushes.ios, writes.ios, writes.sectors, disk.stats.in_flight()), (1, 1, 0, 0), "{scheduler}");
    }
}

#[test]
fn the_milliseconds_count_from_the_allocation_and_include_the_wait_in_the_plug() {
    let mut disk = Watched::new(Kernel::V6_18, "none");
    disk.plug = Some(Plug::new());
    disk.submit(read(8));
    disk.now += Nanos::from_millis(3);
    disk.unplug();
    let (start, issued) = (disk.driver.in_flight[0].start, disk.driver.in_flight[0].issued);
    assert_eq!(issued.since(start), Nanos::from_millis(3));
    disk.finish_after(2000);
    assert_eq!(disk.stats.reads().nanos, 5_000_000);
}

#[test]
fn the_fields_are_those_of_the_release() {
    let fields = |kernel| {
        let mut disk = Watched::new(kernel, "none");
        disk.submit(bio(Op::Discard, 8));
        disk.finish_after(2000);
        let now = disk.moment();
        disk.stats.line(now)
    };
    assert_eq!(fields(Kernel::V4_12), "0 0 0 0 1 0 8 2 0 2 2");
    assert_eq!(fields(Kernel::V4_19), "0 0 0 0 0 0 0 0 0 2 2 1 0 8 2");
    assert_eq!(fields(Kernel::V6_18), "0 0 0 0 0 0 0 0 0 0 2 1 0 8 2 0 0");
}

#[test]
fn inflight_counts_only_requests_at_the_driver() {
    let mut disk = Watched::new(Kernel::V6_18, "mq-deadline");
    disk.submit(write(8));
    assert_eq!(disk.stats.at_driver(), [0, 1]);
    disk.queue.set_quiesced(true);
    disk.submit(read(1000));
    assert_eq!((disk.stats.at_driver(), disk.stats.in_flight()), ([0, 1], 2));
}

#[test]
fn io_ticks_exclude_idle_time_and_until_6_9_count_a_tick_at_the_start() {
    // From 100 to 120 ms, without a look before the end.
    let busy_ms = |kernel| {
        let mut disk = Watched::new(kernel, "none");
        disk.now += Nanos::from_millis(100);
        disk.submit(read(8));
        disk.finish_after(20_000);
        let now = disk.moment();
        disk.stats.io_ticks_ms(now)
    };
    assert_eq!([Kernel::V4_19, Kernel::V5_10, Kernel::V6_3, Kernel::V6_18].map(busy_ms), [20, 24, 24, 20]);
}
