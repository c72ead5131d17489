//! BL-49 to BL-52, BL-130: hardware queues for reads alone and for polled I/O.

use super::*;
use crate::caller::block_queue::Submission as _;

fn types(kernel: Kernel) -> QueueConfig {
    QueueConfig { hw_queues: 2, read_queues: 2, poll_queues: 1, ..config(kernel) }
}

fn polled(bio: Bio) -> Bio {
    Bio { flags: bio.flags.with(BioFlags::POLLED), ..bio }
}

#[test]
fn reads_take_read_queues_polled_io_poll_queues_and_all_else_the_default_ones() {
    for scheduler in SCHEDULERS {
        let mut bench = Bench::with(&types(Kernel::V6_18), scheduler);
        let flushed = Bio { flags: BioFlags::PREFLUSH, ..write(400) };
        for (bio, hctx) in
            [(read(8), 3), (polled(read(100)), 4), (polled(write(200)), 4), (write(300), 1), (flushed, 1)]
        {
            let sector = bio.sector.0;
            bench.on(3).submit(bio);
            bench.work();
            let at_driver = bench.driver.in_flight.iter().find(|rq| rq.sector.0 == sector).map(|rq| rq.hctx);
            assert_eq!(at_driver, Some(HctxId(hctx)), "{scheduler}, sector {sector}");
            bench.drain();
        }
    }
}

#[test]
fn without_read_queues_reads_take_the_default_queues() {
    let mut bench = Bench::with(&QueueConfig { hw_queues: 2, ..config(Kernel::V6_18) }, "none");
    bench.on(3).submit(read(8));
    assert_eq!(bench.driver.in_flight[0].hctx, HctxId(1));
    bench.drain();
}

#[test]
fn polled_io_fails_without_poll_queues_and_is_ordinary_on_older_kernels() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.submit(polled(read(8)));
    assert_eq!(bench.asked(), ["end 8"]);
    assert_eq!(bench.ended, [(8, Status::NotSupported)]);
    let mut bench = Bench::new(Kernel::V4_19, "none");
    bench.submit(polled(read(8)));
    bench.drain();
    assert_eq!(bench.ended, [(8, Status::Ok)]);
}

#[test]
fn io_poll_says_whether_there_are_queues_to_poll() {
    let io_poll = |config: &QueueConfig| Bench::with(config, "none").queue.attribute("io_poll").unwrap();
    assert_eq!(io_poll(&types(Kernel::V6_18)), "1\n");
    assert_eq!(io_poll(&config(Kernel::V6_18)), "0\n");
}

#[test]
fn a_polled_bio_that_is_split_is_no_longer_polled() {
    let limits = Limits { max_sectors: 4, ..Limits::default() };
    let mut bench = Bench::with(&QueueConfig { limits, ..types(Kernel::V6_18) }, "none");
    bench.submit(polled(read(8)));
    assert_eq!(bench.calls().iter().map(|call| call.hctx).collect::<Vec<_>>(), [2, 2], "a queue for reads");
    bench.drain();
}

#[test]
fn kernels_before_5_0_have_one_type_of_hardware_queue() {
    let Err(error) = Queue::<Local>::new(&types(Kernel::V4_19), "none") else { panic!("it has no read queues") };
    assert!(error.to_string() == "read_queues: Linux 4.19 has no such hardware queues", "{error}");
}

#[test]
fn impossible_configurations_are_refused_with_what_was_expected() {
    let refused = |what: &str, change: &dyn Fn(&mut QueueConfig)| {
        let mut config = config(Kernel::V6_18);
        change(&mut config);
        let error =
            Queue::<Local>::new(&config, "mq-deadline").err().unwrap_or_else(|| panic!("{what} is not refused"));
        assert!(error.to_string().contains(what), "{error}");
    };
    refused("hw_queues: 0 is not in 1 to 2048", &|config| config.hw_queues = 0);
    refused("hw_queues: 5000 is not in 1 to 2048", &|config| config.hw_queues = 5000);
    refused("poll_queues: 5000 is not in 0 to 2048", &|config| config.poll_queues = 5000);
    refused("cpus: 0", &|config| config.cpus = 0);
    refused("queue_depth: 0", &|config| config.queue_depth = 0);
    refused("nr_requests: 2049 is not in 0 to 2048", &|config| config.nr_requests = Some(2049));
    refused("limits.max_sectors: 4 is less than the logical block size of 8", &|config| {
        (config.limits.logical_block, config.limits.physical_block, config.limits.max_sectors) = (8, 8, 4);
    });
    refused("limits.max_segments: must be at least 1", &|config| config.limits.max_segments = 0);
    refused("limits.physical_block: 12 is not a multiple", &|config| {
        (config.limits.logical_block, config.limits.physical_block) = (8, 12);
    });
    refused("limits.chunk_sectors: 100", &|config| {
        (config.limits.logical_block, config.limits.physical_block, config.limits.chunk_sectors) = (8, 8, 100);
    });
    refused("limits.actuators", &|config| config.limits.actuators = vec![Sector(2000), Sector(1000)]);
    // Every CPU has a hardware queue of each type, however few there are: none can be left without.
    let map = QueueConfig { cpus: 7, hw_queues: 3, ..config(Kernel::V6_18) }.cpu_map();
    assert!((0..7).all(|cpu| QueueType::ALL.into_iter().all(|kind| map.hctx_of(CpuId(cpu), kind).0 < map.hctxs())));
}

#[test]
fn the_block_queue_trait_delegates_to_the_queue() {
    use crate::caller::block_queue::BlockQueue;
    fn submit(bench: &mut Bench, bio: Bio) {
        let mut submission = BlockQueue::submission(&bench.queue, Waiter(1));
        submission.begin(bio.clone());
        assert_eq!(submission.withdraw().map(|bio| bio.sector), Some(bio.sector));
        submission.begin(bio);
        bench.call(|queue, cx, plug| BlockQueue::submit(queue, cx, &mut submission, plug));
    }
    let mut bench = super::wbt::four(Kernel::V6_18, "none");
    bench.forget();
    bench.now = Instant::ZERO + Nanos::from_millis(100);
    bench.call(|queue, cx, _| BlockQueue::wbt_window_expired(queue, cx));
    assert!(std::iter::from_fn(|| bench.caller.effects.pop()).any(|effect| matches!(effect, Effect::SetWindow(_))));
    bench.now = Instant::ZERO + Nanos::from_secs(31);
    bench.call(|queue, cx, _| BlockQueue::scan_timeouts(queue, cx));
    assert_eq!(bench.asked().iter().filter(|effect| effect.starts_with("timed out")).count(), 4);
    let id = bench.driver.in_flight[0].id();
    bench.call(|queue, cx, _| BlockQueue::timed_out(queue, cx, id));
    assert_eq!(bench.driver.expired.iter().map(|&(_, id)| id).collect::<Vec<_>>(), [id]);
    let rq = bench.take(0);
    bench.call(|queue, cx, _| BlockQueue::requeue(queue, cx, rq));
    assert_eq!(bench.asked(), ["kick"]);
    bench.call(|queue, cx, _| BlockQueue::kick_requeue(queue, cx));
    bench.work();
    assert_eq!(bench.issued(), [0]);
    let rq = bench.take(0);
    bench.call(|queue, cx, _| BlockQueue::complete(queue, cx, rq, Status::Ok));
    bench.asked();
    assert_eq!(bench.ended, [(0, Status::Ok)]);
    bench.plug();
    submit(&mut bench, read(7000));
    bench.call(|queue, cx, plug| BlockQueue::flush_plug(queue, cx, plug.expect("a plug is open")));
    bench.plug = None;
    bench.work();
    assert_eq!(bench.issued(), [7000]);
    bench.drain();
    bench.queue.set_quiesced(true);
    let mut submission = QueueSubmission::new(read(9000), Waiter(1));
    submission.withdraw();
    assert_eq!(bench.call(|queue, cx, _| BlockQueue::cancel(queue, cx, &mut submission)), None, "it has nothing");
    // A scheduler that idles for one process continues with the other's request when its timer comes.
    let limits = Limits { rotational: true, ..Limits::default() };
    let mut bench = Bench::with(&QueueConfig { limits, ..config(Kernel::V6_18) }, "bfq");
    let of = |process, sector| Bio { io_context: crate::ground::ids::IoContextId(process), ..read(sector) };
    bench.set("low_latency", "0");
    bench.submit(of(1, 8));
    bench.work();
    bench.now = Instant::ZERO + Nanos::from_millis(1);
    bench.complete(8);
    bench.submit(of(2, 1 << 30));
    bench.work();
    bench.forget();
    bench.now = Instant::ZERO + Nanos::from_millis(500);
    bench.call(|queue, cx, _| BlockQueue::timer(queue, cx));
    bench.work();
    assert_eq!(bench.issued(), [1 << 30]);
    bench.drain();
}
