//! The files in sysfs: BL-48, BL-53 to BL-55, BL-94, BL-101, BL-105 to BL-109, BL-124.

use super::*;
use crate::sysfs::{AttributeError, READ_ONLY_ATTRIBUTES};

impl Bench {
    fn show(&self, file: &str) -> String {
        self.queue.attribute(file).unwrap()
    }

    /// Writes a file of a queue that is empty and frozen for it.
    fn store(&mut self, file: &str, text: &str) -> Result<(), AttributeError> {
        let now = Hz(1000).now(self.now);
        self.call(|queue, cx, _| queue.freeze(cx));
        let answer = self.queue.set_attribute(now, file, text, &mut self.caller.effects);
        self.call(|queue, cx, _| queue.unfreeze(cx));
        self.work();
        answer
    }
}

#[test]
fn the_list_of_schedulers_has_the_present_one_in_brackets() {
    for (kernel, scheduler, list) in [
        (Kernel::V6_18, "mq-deadline", "none [mq-deadline] kyber bfq \n"),
        (Kernel::V6_18, "none", "[none] mq-deadline kyber bfq \n"),
        (Kernel::V5_10, "mq-deadline", "[mq-deadline] kyber bfq none\n"),
        (Kernel::V5_10, "none", "[none] mq-deadline kyber bfq \n"),
    ] {
        assert_eq!(Bench::new(kernel, scheduler).show("scheduler"), list);
    }
}

#[test]
fn nr_requests_is_raised_to_4_and_bounded_by_the_tags_or_2048() {
    let deep = QueueConfig { queue_depth: 128, ..config(Kernel::V6_18) };
    let mut bench = Bench::with(&deep, "none");
    assert_eq!(bench.show("nr_requests"), "128\n");
    assert_eq!(bench.store("nr_requests", "129"), Err(AttributeError::Invalid));
    bench.store("nr_requests", "1").unwrap();
    assert_eq!(bench.show("nr_requests"), "4\n");
    bench.store("scheduler", "bfq").unwrap();
    assert_eq!(bench.show("nr_requests"), "256\n");
    assert_eq!(bench.store("nr_requests", "2049"), Err(AttributeError::Invalid));
    bench.store("nr_requests", "2048").unwrap();
    assert_eq!(bench.show("nr_requests"), "2048\n");
    bench.store("scheduler", "none").unwrap();
    assert_eq!(bench.show("nr_requests"), "128\n");
}

#[test]
fn nr_requests_bounds_the_requests_in_use_after_each_change() {
    for scheduler in SCHEDULERS {
        let mut bench = Bench::with(&QueueConfig { queue_depth: 16, ..config(Kernel::V6_18) }, scheduler);
        let numbers: &[u32] = if scheduler == "none" { &[16, 5, 9] } else { &[32, 2000, 4, 100] };
        for &number in numbers {
            bench.store("nr_requests", &number.to_string()).unwrap();
            bench.driver.budget = Some(0);
            bench.queue.set_quiesced(true);
            let mut submitted = 0;
            while bench.submit_as(submitted, read(u64::from(submitted) * 100)) == Submitted::Done {
                submitted += 1;
            }
            assert_eq!(submitted, number, "{scheduler}");
            bench.driver.budget = None;
            bench.queue.set_quiesced(false);
            bench.run(0);
            bench.drain();
        }
    }
}

#[test]
fn a_policy_keeps_its_tunables_when_nr_requests_changes() {
    let mut bench = Bench::new(Kernel::V6_18, "mq-deadline");
    bench.store("iosched/fifo_batch", "3").unwrap();
    bench.store("nr_requests", "500").unwrap();
    assert_eq!((bench.show("iosched/fifo_batch"), bench.show("iosched/async_depth")), ("3\n".into(), "500\n".into()));
}

#[test]
fn scheduler_and_nr_requests_wait_for_an_empty_queue_and_other_files_do_not() {
    let mut bench = Bench::new(Kernel::V6_18, "mq-deadline");
    bench.submit(read(0));
    let now = Hz(1000).now(Instant::ZERO);
    let mut store = |file, text| bench.queue.set_attribute(now, file, text, &mut bench.caller.effects);
    assert_eq!(store("nr_requests", "100"), Err(AttributeError::Busy));
    assert_eq!(store("scheduler", "none"), Err(AttributeError::Busy));
    assert_eq!(store("nr_requests", "64"), Ok(()), "the present number");
    assert_eq!(store("nomerges", "2"), Ok(()));
    bench.drain();
}

#[test]
fn nomerges_7_reads_back_1() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    for (text, back) in [("7", "1\n"), ("2", "2\n"), ("0\n", "0\n"), ("1", "1\n")] {
        bench.store("nomerges", text).unwrap();
        assert_eq!(bench.show("nomerges"), back);
    }
}

#[test]
fn meaningless_attribute_values_are_invalid() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.store("rq_affinity", "3").unwrap();
    assert_eq!(bench.show("rq_affinity"), "1\n");
    let invalid = Err(AttributeError::Invalid);
    assert_eq!(bench.store("write_cache", "foo"), invalid);
    for text in ["", "x", "-1", "+1", "1x", "4294967296", "0x10"] {
        for file in ["nr_requests", "nomerges", "rq_affinity", "rotational", "max_sectors_kb"] {
            assert_eq!(bench.store(file, text), invalid, "{file} {text:?}");
        }
    }
    assert_eq!(bench.store("wbt_lat_usec", "-2"), invalid);
    assert_eq!(bench.store("iosched/fifo_batch", "1"), Err(AttributeError::Unknown), "none has no tunables");
    assert_eq!(bench.queue.attribute("colour"), Err(AttributeError::Unknown));
    for file in READ_ONLY_ATTRIBUTES {
        assert_eq!(bench.store(file, "1"), Err(AttributeError::ReadOnly), "{file}");
        assert!(bench.show(file).ends_with('\n'));
    }
}

#[test]
fn write_through_turns_an_fsync_into_nothing() {
    let limits = Limits { write_cache: true, ..Limits::default() };
    let mut bench = Bench::with(&QueueConfig { limits, ..config(Kernel::V6_18) }, "none");
    let fsync = || Bio { sectors: 0, flags: BioFlags::PREFLUSH, ..write(0) };
    bench.submit(fsync());
    bench.drain();
    assert!(bench.letters().contains('D'));
    bench.store("write_cache", "write through").unwrap();
    bench.submit(fsync());
    assert_eq!((bench.letters().as_str(), bench.show("write_cache").as_str()), ("", "write through\n"));
    bench.store("write_cache", "write back").unwrap();
    assert_eq!(bench.show("write_cache"), "write back\n");
}

#[test]
fn a_cache_that_is_not_there_stays_off_from_6_11_on() {
    for (kernel, shown) in [(Kernel::V6_18, "write through\n"), (Kernel::V5_10, "write back\n")] {
        let mut bench = Bench::new(kernel, "none");
        bench.store("write_cache", "write back").unwrap();
        assert_eq!(bench.show("write_cache"), shown, "{kernel}");
    }
}

#[test]
fn max_sectors_is_at_least_a_page_and_too_much_is_cut_or_refused() {
    for (kernel, too_much) in [(Kernel::V6_18, Ok(())), (Kernel::V6_3, Err(AttributeError::Invalid))] {
        let limits = Limits::new(1, 8, 1024, kernel.generation().max_sectors_cap, 128);
        let mut bench = Bench::with(&QueueConfig { limits, ..config(kernel) }, "none");
        assert_eq!(bench.show("max_hw_sectors_kb"), "512\n");
        assert_eq!(bench.store("max_sectors_kb", "3"), Err(AttributeError::Invalid));
        bench.store("max_sectors_kb", "64").unwrap();
        assert_eq!(bench.show("max_sectors_kb"), "64\n");
        bench.submit(Bio { sectors: 256, ..write(0) });
        assert_eq!(bench.issued().len(), 2, "{kernel}: the new limit cuts");
        bench.drain();
        assert_eq!(bench.store("max_sectors_kb", "600"), too_much, "{kernel}");
        assert_eq!(bench.store("max_sectors_kb", "512"), Ok(()), "{kernel}: just what the hardware takes");
    }
}

#[test]
fn discards_can_be_made_smaller_in_whole_granules() {
    let limits = Limits { max_discard_sectors: 2048, discard_granularity: 8, ..Limits::default() };
    let mut bench = Bench::with(&QueueConfig { limits, ..config(Kernel::V6_18) }, "none");
    assert_eq!(bench.store("discard_max_bytes", "5000"), Err(AttributeError::Invalid));
    bench.store("discard_max_bytes", "8192").unwrap();
    assert_eq!(
        (bench.show("discard_max_bytes"), bench.show("discard_max_hw_bytes")),
        ("8192\n".into(), "1048576\n".into())
    );
    bench.store("discard_max_bytes", "1073741824").unwrap();
    assert_eq!(bench.show("discard_max_bytes"), "1048576\n", "no more than the device can");
}

#[test]
fn rq_affinity_selects_the_cpu_of_a_completion() {
    let pairs = |one: CpuId, other: CpuId| one.0 / 2 == other.0 / 2;
    let places = |hw_queues: u16, affinity: &str, interrupted: u32| {
        let mut bench = Bench::with(&QueueConfig { hw_queues, ..config(Kernel::V6_18) }, "none");
        bench.store("rq_affinity", affinity).unwrap();
        bench.on(0).submit(read(0));
        let rq = bench.take(0);
        let place = bench.queue.completion_place(&rq, CpuId(interrupted), pairs);
        bench.driver.in_flight.push_back(rq);
        bench.drain();
        place
    };
    let elsewhere = CompletionPlace::Redirected(CpuId(0));
    assert_eq!(places(1, "0", 3), CompletionPlace::Softirq, "one hardware queue: through the softirq");
    assert_eq!(places(2, "0", 3), CompletionPlace::Interrupt, "several: directly");
    assert_eq!(places(1, "1", 1), CompletionPlace::Softirq, "a shared cache");
    assert_eq!(places(1, "1", 3), elsewhere);
    assert_eq!(places(1, "2", 1), elsewhere);
    assert_eq!(places(4, "2", 0), CompletionPlace::Interrupt, "its own queue");
    assert_eq!(places(1, "2", 0), CompletionPlace::Softirq, "its own CPU, but one of several of its queue");
    assert_eq!(places(4, "2", 3), elsewhere, "the only CPU of its queue, but not the one that was interrupted");
}

#[test]
fn max_sectors_are_whole_logical_blocks_and_one_at_least() {
    for (block, kib, sectors) in [(8, "6", 8), (8, "8", 16), (16, "4", 16), (16, "30", 48)] {
        let limits = Limits::new(block, block, 1024, 2560, 128);
        let mut bench = Bench::with(&QueueConfig { limits, ..config(Kernel::V6_18) }, "none");
        bench.store("max_sectors_kb", kib).unwrap();
        assert_eq!(
            bench.show("max_sectors_kb"),
            format!("{}\n", sectors / 2),
            "{kib} KiB in blocks of {block} sectors"
        );
    }
}

#[test]
fn the_scheduler_is_notified_of_events_and_rotational_changes() {
    let (mut bench, lines) = super::completion::diary();
    bench.store("rotational", "1").unwrap();
    bench.store("rotational", "0").unwrap();
    let io_context = crate::ground::ids::IoContextId(3);
    bench.queue.notify(Now::default(), &mut bench.caller.effects, SchedulerEvent::IoContextExited(io_context));
    let told = "Rotational(true), Rotational(false), IoContextExited(IoContextId(3))";
    assert_eq!(super::completion::take(&lines), told);
}

#[test]
fn every_tunable_of_a_scheduler_outside_linux_refuses_what_is_no_number_or_out_of_its_range_and_keeps_its_value() {
    let arbitration = Some(crate::request::Arbitration { weight_max: 256 });
    let transport = Some(crate::request::Transport { batch: 16 });
    let device = QueueConfig { cpus: 2, hw_queues: 6, arbitration, ..config(Kernel::V6_18) };
    let mut count = 0;
    for row in crate::schedulers::OUTSIDE_LINUX {
        let device = match row.needs_transport {
            true => QueueConfig { arbitration: None, transport, ..device.clone() },
            false => device.clone(),
        };
        let mut bench = Bench::with(&device, row.name);
        for tunable in bench.queue.tunables() {
            let file = format!("iosched/{}", tunable.name);
            let shown = bench.show(&file);
            let (below, above) = (tunable.min - 1, (tunable.max + 1).to_string());
            let below_error =
                if below < 0 && tunable.min >= 0 { AttributeError::Invalid } else { AttributeError::Range };
            let refusals = [
                ("", AttributeError::Invalid),
                ("few", AttributeError::Invalid),
                ("1 2", AttributeError::Invalid),
                ("0x1", AttributeError::Invalid),
                (&below.to_string(), below_error),
                (&above, AttributeError::Range),
                ("99999999999999999999", AttributeError::Range),
            ];
            for (text, error) in refusals {
                assert_eq!(bench.store(&file, text), Err(error), "{}.{}={text:?}", row.name, tunable.name);
                assert_eq!(bench.show(&file), shown, "{}.{}={text:?}", row.name, tunable.name);
            }
            count += 1;
        }
    }
    assert_eq!(
        count,
        2 + 21 + 3 + 7 + 4 + 5 + 2 + 1,
        "tunables of k2, adios, mqfq, d2fq, blk-switch, tabs, vfair and cffq"
    );
}
