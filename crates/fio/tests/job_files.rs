//! Whole job files: the resulting jobs, and the messages about faulty ones.

use std::io;
use std::path::Path;

use hoistway_blk::bio::{IoPriority, PriorityClass};
use hoistway_blk::ground::Nanos;
use hoistway_fio::{Environment, JobFile, JobFileError};
use hoistway_load::{Ends, Engine, Process, RateLimits, ThinkBlocks, WriteSync};

fn parse(text: &str) -> Result<JobFile, JobFileError> {
    let variable = |name: &str| match name {
        "DEV" => Some("/dev/nvme0n1".to_owned()),
        "SCHED" => Some("bfq".to_owned()),
        "NBG" | "NPROC" => Some("4".to_owned()),
        "DIR" => Some("/mnt".to_owned()),
        _ => None,
    };
    JobFile::parse(text, "jobs.fio", &Environment { variable: &variable, cpus: 8, ..Environment::empty() })
}

fn valid(text: &str) -> JobFile {
    parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The error message for a job with these options from line 2 on, which is otherwise valid.
fn refused(options: &str) -> String {
    let text = format!("[a]\n{options}\nfilename=/dev/sda\ndirect=1\n");
    parse(&text).map(|_| ()).expect_err(options).to_string()
}

/// The only process of a job with these options.
fn process(options: &str) -> hoistway_load::Process {
    valid(&format!("[a]\nfilename=/dev/sda\ndirect=1\n{options}\n")).load.processes.remove(0)
}

#[test]
fn regular_files_of_a_directory_are_said_to_be_disks_of_their_own() {
    let two = |one: &str, other: &str| {
        let text = format!("[a]\nfilename={one}\nsize=1m\n[b]\nfilename={other}\nsize=1m\n");
        let notices = valid(&text).notices;
        notices.into_iter().find(|notice| notice.contains("each filename is one"))
    };
    let notice = two("/mnt/usb/film", "/mnt/usb/index").unwrap();
    assert!(notice.starts_with("/mnt/usb/film and /mnt/usb/index are simulated as 2 disks"), "{notice}");
    assert!(notice.ends_with("use directory=/mnt/usb and no filename."), "{notice}");
    for (one, other) in [("/dev/sda", "/dev/sdb"), ("/data1/x", "/data2/x"), ("sda", "sdb"), ("/mnt/x", "/mnt/x")] {
        assert_eq!(two(one, other), None, "{one} {other}");
    }
}

#[test]
fn the_ssd_test_is_ten_writers_and_two_mixed_readers() {
    let job_file = valid(include_str!("data/habr-ssd.fio"));
    assert_eq!(job_file.load.files, ["/dev/sda1"]);
    assert_eq!(job_file.notices, [""; 0]);
    let names: Vec<_> =
        job_file.load.processes.iter().map(|p| (p.name.as_str(), p.schedule.job, p.schedule.clone)).collect();
    assert_eq!(names[..2], [("writers", 0, 0), ("writers", 0, 1)]);
    assert_eq!(names[9..], [("writers", 0, 9), ("reader_20", 1, 0), ("reader_20", 1, 1)]);
    for process in &job_file.load.processes {
        assert_eq!(
            (process.issue.engine, process.issue.depth, process.schedule.group, process.schedule.phase),
            (Engine::Libaio, 4, 0, 0)
        );
        assert_eq!(
            (process.schedule.runtime, process.plan.pattern.volume.time_based),
            (Some(Nanos::from_secs(7200)), false)
        );
        assert_eq!(process.plan.block_bytes_max(), 4096);
    }
    let options = &job_file.load.processes[11].options;
    assert_eq!(**options, [("numjobs", "2"), ("rw", "randrw"), ("rwmixread", "20")].map(owned));
    assert!(job_file.load.options.contains(&owned(("bs", "4k"))));
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn groups_are_numbered_as_fio_does_and_phases_follow_stonewalls() {
    let job_file = valid(include_str!("data/groups.fio"));
    let groups: Vec<_> = job_file.load.processes.iter().map(|p| p.schedule.group).collect();
    assert_eq!(groups, [0, 1, 1, 2, 3, 3]);
    let phases: Vec<_> = job_file.load.processes.iter().map(|p| p.schedule.phase).collect();
    assert_eq!(phases, [0, 1, 1, 1, 2, 2]);
}

#[test]
fn published_job_files_are_understood() {
    for (text, processes) in [
        (include_str!("data/habr-hdd.fio"), 3),
        (include_str!("data/axboe-contention.fio"), 32),
        (include_str!("data/icpe24-interference-11a.fio"), 5),
        (include_str!("data/icpe24-lapp-inter-1core.fio"), 4),
        (include_str!("data/icpe24-precondition.fio"), 2),
        (include_str!("data/suse-cfq-dd.fio"), 32),
    ] {
        let job_file = valid(text);
        assert_eq!(job_file.load.processes.len(), processes, "{text}");
        for process in &job_file.load.processes {
            assert!(process.generator(0, 1, |_| 1 << 33).unwrap().next().is_some());
        }
    }
}

#[test]
fn options_simulated_differently_are_reported_once_and_not_when_disabled() {
    let notices = valid(
        "[global]\nfilename=x\ndirect=1\nhipri_percentage=9\nrate_min=1m\ncontinue_on_error=none\nnowait=0\n[a]\nrate_iops_min=1\nhipri_percentage=9\n[b]\n",
    )
    .notices;
    assert_eq!(
        notices,
        [
            "Not simulated: rate_iops_min, rate_min; a slow job does not fail; see its rate in the results.",
            "Not simulated: hipri_percentage; completions come by interrupt, or by polling all of them (hipri).",
        ]
    );
}

#[test]
fn jobs_wait_for_others_by_name_and_end_those_named_by_exit_what() {
    let text = "[global]\nfilename=x\ndirect=1\n[a]\nname=first\n[b]\nwait_for=first\nexit_what=all\n[c]\nexitall\nwait_for=b\n";
    let processes = valid(text).load.processes;
    assert_eq!(processes.iter().map(|process| process.schedule.wait_for).collect::<Vec<_>>(), [None, Some(0), Some(1)]);
    let ends = [Ends::Group, Ends::All, Ends::Group].map(Some);
    assert_eq!(processes.iter().map(|process| process.schedule.ends).collect::<Vec<_>>(), ends);
    let without = valid(&text.replace("exitall\n", "")).load.processes;
    assert!(without.iter().all(|process| process.schedule.ends.is_none()));
}

#[test]
fn a_mask_of_cpus_is_a_list_of_them() {
    assert_eq!(process("cpumask=0x15").standing.cpus, process("cpus_allowed=0,2,4").standing.cpus);
}

#[test]
fn ignored_options_share_one_notice_and_the_scheduler_has_another() {
    let job_file = valid(include_str!("data/icpe24-lapp-inter-1core.fio"));
    assert_eq!(
        job_file.notices,
        [
            "ioscheduler=bfq of the job file is ignored; the command chooses the schedulers.",
            "Ignored, without effect on a simulation: allow_file_create, fixedbufs, registerfiles.",
        ]
    );
    assert_eq!(job_file.load.processes[0].standing.cpus.as_deref(), Some(&[1][..]));
}

#[test]
fn clones_without_a_filename_have_files_side_by_side() {
    let job_file = valid(include_str!("data/suse-cfq-dd.fio"));
    assert_eq!(job_file.load.files, ["/mnt"]);
    let ranges: Vec<_> = job_file.load.processes.iter().map(|p| p.ranges(1 << 30).unwrap()[0]).collect();
    assert_eq!(ranges[0], (0, 10_485_760));
    assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
    let error = job_file.load.processes[31].generator(0, 1, |_| 1 << 28).unwrap_err().to_string();
    assert!(error.starts_with("jobs.fio:6: [dd] size: the files of the jobs need 335544320 bytes"), "{error}");
    let delays: Vec<_> = job_file.load.processes.iter().map(|p| p.schedule.start_delay).collect();
    assert!(delays.iter().all(|&d| d <= Nanos::from_millis(100)) && delays.windows(2).any(|pair| pair[0] != pair[1]));
}

#[test]
fn a_global_section_concerns_only_the_jobs_after_it() {
    let text = "[global]\nfilename=/dev/a\ndirect=1\n[a]\n[global]\nbs=8k\nfilename=/dev/b\n[b]\nbs=512\n[c]\n";
    let job_file = valid(text);
    let blocks: Vec<_> = job_file.load.processes.iter().map(|p| (p.plan.block_bytes_min(), p.files.to_vec())).collect();
    assert_eq!(blocks, [(4096, vec![0]), (512, vec![0, 1]), (8192, vec![0, 1])]);
    assert_eq!(job_file.load.files, ["/dev/a", "/dev/b"]);
    assert_eq!(job_file.load.options, [("filename", "/dev/b"), ("direct", "1"), ("bs", "8k")].map(owned));
}

#[test]
fn depths_and_batches_are_corrected_as_in_fio() {
    let depths = |options: &str| {
        let p = process(options);
        (
            p.issue.depth,
            p.issue.batch,
            p.issue.complete_min,
            p.issue.complete_max,
            p.issue.depth_low.unwrap_or(p.issue.depth),
        )
    };
    assert_eq!(depths("iodepth=16"), (1, 1, 1, 1, 1));
    assert_eq!(depths("ioengine=libaio\niodepth=16"), (16, 1, 1, 1, 16));
    let batches = "iodepth_batch=8\niodepth_batch_complete=4\niodepth_low=8";
    assert_eq!(depths(&format!("ioengine=io_uring\niodepth=16\n{batches}")), (16, 8, 4, 4, 8));
    assert_eq!(depths(&format!("ioengine=io_uring\niodepth=2\n{batches}")), (2, 2, 2, 2, 2));
    assert_eq!(depths("ioengine=posixaio\niodepth=4\niodepth_batch=0\niodepth_batch_complete=0"), (4, 4, 0, 1, 4));
}

#[test]
fn a_synchronous_engine_says_that_it_has_no_depth() {
    let job_file = valid("[a]\nfilename=x\ndirect=1\niodepth=32\n");
    assert_eq!(job_file.notices, ["[a] ioengine=psync is synchronous: iodepth=32 becomes 1."]);
}

#[test]
fn io_that_is_not_direct_has_a_depth_of_one_and_is_reported_once() {
    const SKETCH: &str = "I/O that is not direct (direct=0, fio's default) goes through a simplified page cache: \
                          see docs/page-cache.md.";
    let job_file =
        valid("[global]\nfilename=x\niodepth=32\n[a]\nioengine=libaio\n[b]\nioengine=io_uring\nbuffered=1\n");
    let depths = [
        "[a] ioengine=libaio without direct=1 has one I/O in flight as in Linux: iodepth=32 becomes 1.",
        "[b] ioengine=io_uring without direct=1 has one I/O in flight here, unlike in Linux: iodepth=32 becomes 1.",
    ];
    assert_eq!(job_file.notices, [SKETCH, depths[0], depths[1]]);
    for process in &job_file.load.processes {
        assert_eq!(
            (process.caching.direct, process.issue.depth, process.issue.batch, process.issue.complete_max),
            (false, 1, 1, 1)
        );
    }
}

#[test]
fn the_files_of_a_process_without_filename_have_a_place_of_their_own() {
    let job_file = valid("[a]\nsize=10000\nnrfiles=2\nbs=512\nnumjobs=2\n[b]\nfilename=x\n");
    let places: Vec<_> = job_file.load.processes.iter().map(|process| process.plan.own_bytes(0)).collect();
    assert_eq!(places, [Some(0..8192 + 4608), Some(16384..24576 + 4608), None]);
}

#[test]
fn priorities_are_set_as_in_fio() {
    let priority = |options: &str| process(options).standing.io_priority;
    assert_eq!(priority(""), None);
    assert_eq!(priority("prio=3"), Some(IoPriority(0x4003)));
    assert_eq!(priority("prioclass=2"), Some(IoPriority(0x4000)));
    assert_eq!(priority("prioclass=1\nprio=5"), Some(IoPriority::new(PriorityClass::RealTime, 5)));
    assert_eq!(priority("prioclass=3").map(IoPriority::class), Some(PriorityClass::Idle));
    assert_eq!(process("nice=-5").standing.nice, -5);
}

#[test]
fn several_files_are_devices_of_their_own_or_lie_side_by_side() {
    let named = valid("[a]\nfilename=/dev/a:/dev/b\\:1:/dev/a\ndirect=1\n[b]\nfilename=/dev/b\\:1\ndirect=1\n").load;
    assert_eq!(named.files, ["/dev/a", "/dev/b:1"]);
    assert_eq!(*named.processes[0].files, [0, 1]);
    assert_eq!(*named.processes[1].files, [1]);
    assert_eq!(named.processes[0].ranges(1 << 20).unwrap(), [(0, 1 << 20); 3]);
    let own = valid("[a]\ndirectory=/x:/y\nnrfiles=2\nsize=16k\nnumjobs=3\ndirect=1\n").load;
    assert_eq!(own.files, ["/x", "/y"]);
    let places: Vec<_> = own.processes.iter().map(|p| (p.files[0], p.ranges(1 << 20).unwrap())).collect();
    let (first, second) = (vec![(0, 8192), (8192, 8192)], vec![(16384, 8192), (24576, 8192)]);
    // As in fio, the second clone is number 2, the third is number 1.
    assert_eq!(places, [(0, first.clone()), (0, second), (1, first)]);
}

#[test]
fn files_of_the_same_made_name_are_shared() {
    let text = "[global]\ndirect=1\nsize=8k\nnrfiles=2\nfilename_format=f.$filenum\n[a]\n[b]\n[c]\nfilename_format=$jobname.$jobnum.$filenum\n";
    let job_file = valid(text);
    let ranges: Vec<_> = job_file.load.processes.iter().map(|p| p.ranges(1 << 20).unwrap()).collect();
    assert_eq!(ranges[0], ranges[1]);
    assert_eq!(ranges[2], [(8192, 4096), (12288, 4096)]);
    let grown = parse(&format!("{text}[d]\nsize=16k\n")).unwrap_err().to_string();
    assert!(grown.contains("filename_format: \"f.0\" has 4096 bytes in an earlier process, but 8192 here"), "{grown}");
}

#[test]
fn pace_and_durability_arrive() {
    let think =
        process("thinktime=100\nthinktime_spin=20us\nthinktime_blocks=4\nthinktime_blocks_type=issue").pace.think;
    let think = think.unwrap();
    assert_eq!((think.sleep, think.spin, think.blocks), (Nanos::from_micros(80), Nanos::from_micros(20), 4));
    assert_eq!(think.counting, ThinkBlocks::Issued);
    assert_eq!(process("rate_iops=400,200").pace.rate.unwrap().limits, RateLimits::Ios([400, 200, 200]));
    assert_eq!(process("rate=,1m").pace.rate.unwrap().limits, RateLimits::Bytes([0, 1 << 20, 1 << 20]));
    assert!(process("rate=1m").pacer(0, 1).is_some() && process("").pacer(0, 1).is_none());
    assert_eq!(process("sync=dsync").caching.write_sync, WriteSync::Dsync);
    let timed = process("runtime=1m\nramp_time=5\nstartdelay=500ms\ntime_based");
    assert_eq!((timed.schedule.runtime, timed.schedule.ramp), (Some(Nanos::from_secs(60)), Nanos::from_secs(5)));
    assert_eq!((timed.schedule.start_delay, timed.plan.pattern.volume.time_based), (Nanos::from_millis(500), true));
}

#[test]
fn only_the_first_clone_is_renamed() {
    let job_file =
        valid("[a]\nfilename=x\ndirect=1\nname=b\nnumjobs=2\ncpus_allowed=4-5,0\ncpus_allowed_policy=split\n");
    let names: Vec<_> = job_file.load.processes.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    let cpus: Vec<_> = job_file.load.processes.iter().map(|p| p.standing.cpus.as_deref().unwrap().to_vec()).collect();
    assert_eq!(cpus, [[0], [4]]);
}

#[test]
fn values_may_come_from_variables_words_and_includes() {
    let include = |path: &Path| match path.to_str() {
        Some("common.inc") => Ok("bs=8k\niodepth=$ncpus\n".to_owned()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let variable = |name: &str| (name == "DEV").then(|| "/dev/sdb".to_owned());
    let environment = Environment { variable: &variable, include: &include, cpus: 8, ..Environment::empty() };
    let text = "[a]\ninclude common.inc\nfilename=${DEV}\ndirect = 1\nioengine=libaio\n";
    let job_file = JobFile::parse(text, "jobs.fio", &environment).unwrap();
    assert_eq!((job_file.load.processes[0].issue.depth, job_file.load.files[0].as_str()), (8, "/dev/sdb"));
    let bad = |_: &Path| Ok("bs=8k\niodepth=x\n".to_owned());
    let error = JobFile::parse(text, "jobs.fio", &Environment { include: &bad, ..environment }).unwrap_err();
    assert_eq!(
        error.to_string(),
        "common.inc:2: [a] iodepth: \"x\" is not a number (expected a whole number from 1 to 1048576)"
    );
}

#[test]
fn errors_name_place_option_fault_and_remedy() {
    for (options, message) in [
        ("iodepth=x", "[a] iodepth: \"x\" is not a number (expected a whole number from 1 to 1048576)"),
        ("iodepth=0", "[a] iodepth: \"0\" is out of range (expected a whole number from 1 to 1048576)"),
        ("iodpeth=4", "[a] iodpeth: this option does not exist (did you mean \"iodepth\"?)"),
        ("bs=4x", "[a] bs: \"4x\" has an unknown unit \"x\" (the units are k, m, g, t and p)"),
        (
            "bs=4k-16k",
            "[a] bs: \"4k-16k\" has an unknown unit \"k-16k\" (expected a single size: fio would drop what follows it; bsrange takes a range of block sizes)",
        ),
        ("bs=", "[a] bs: the value is empty (expected read,write,trim: bytes such as 4k)"),
        ("bs", "[a] bs: needs a value (expected read,write,trim: bytes such as 4k)"),
        (
            "bs=1000",
            "[a] bs: 1000 bytes are not a multiple of a sector of 512 (direct I/O and trims need whole sectors)",
        ),
        (
            "size=2k",
            "[a] size: 2048 bytes are smaller than a block of 4096 (use a larger size, or a smaller block (bs))",
        ),
        ("direct=yes", "[a] direct: \"yes\" is not a number (expected 0 or 1)"),
        (
            "rw=rnd",
            "[a] rw: \"rnd\" is not one of its values (expected read, write, trim, rw, trimwrite, or one of these prefixed with rand)",
        ),
        (
            "ioengine=mmap",
            "[a] ioengine: the engine \"mmap\" is not supported: it works on the pages of the page cache (use psync without direct=1, which also goes through the page cache)",
        ),
        ("rw=read:-1", "[a] rw: -1 bytes cannot be skipped (use a multiple of 512 bytes)"),
        (
            "filename=/dev/a::/dev/b",
            "[a] filename: the name of a file is empty (names are separated by colons; write \\: for a colon in a name)",
        ),
        ("nrfiles=0", "[a] nrfiles: \"0\" is out of range (expected a whole number from 1 to 65536)"),
        (
            "file_service_type=roundrobin:x",
            "[a] file_service_type: \"x\" is not a number (expected a whole number from 1 to 4294967295)",
        ),
        (
            "file_service_type=best",
            "[a] file_service_type: \"best\" is not one of its values (expected roundrobin, sequential, random, zipf, pareto, normal or gauss)",
        ),
        (
            "filesize=4k-8k",
            "[a] filesize: a range of sizes is only possible for files without names (give one size, or remove filename)",
        ),
        (
            "cmdprio_percentage=20",
            "[a] cmdprio_percentage: ioengine=psync cannot set the priority of single I/Os (use libaio or io_uring, or prio for the whole job)",
        ),
        (
            "cmdprio_bssplit=4k/60:4k/50",
            "[a] cmdprio_bssplit: the percentages for 4096 bytes add up to 110 (expected at most 100 for each size)",
        ),
        (
            "cmdprio_bssplit=4k/60/1",
            "[a] cmdprio_bssplit: \"4k/60/1\" is not an entry (expected size/percent or size/percent/class/level)",
        ),
        ("replay_align=3000", "[a] replay_align: \"3000\" is not a power of two (such as 512 or 4k)"),
        (
            "replay_skip=flush",
            "[a] replay_skip: \"flush\" is not one of its values (expected read, write, trim or sync)",
        ),
        (
            "read_iolog=log",
            "[a] read_iolog: cannot read the log \"log\": there are no logs to read here (expected an I/O log of fio, version 2 or 3)",
        ),
        (
            "zonemode=zbd",
            "[a] zonemode: \"zbd\" is not supported: zoned devices are not modelled (use strided, or none)",
        ),
        ("wait_for=b", "[a] wait_for: there is no job \"b\" before this one (expected the name of an earlier job)"),
        (
            "ioengine=rbd",
            "[a] ioengine: the engine \"rbd\" is not supported: the server does the I/O (use one of libaio, io_uring, posixaio, psync, sync, vsync, pvsync, pvsync2)",
        ),
        (
            "verify=sha256\nrw=randwrite\nnorandommap",
            "[a] verify: not supported for a job without a random map (set do_verify=0 to skip the reads, or use the random map)",
        ),
        (
            "bssplit=4k/60:8k/60",
            "[a] bssplit: the percentages add up to 120, not to 100 (expected the shares of all I/Os)",
        ),
        (
            "runtime=1h30m",
            "[a] runtime: \"1h30m\" is not a time (expected one number and one unit, such as 90m; fio would drop what follows the first unit)",
        ),
        (
            "random_generator=mt",
            "[a] random_generator: \"mt\" is not one of its values (expected tausworthe | lfsr | tausworthe64)",
        ),
        ("numjobs=0", "[a] numjobs: \"0\" is out of range (expected a whole number from 1 to 10000)"),
        (
            "random_distribution=zipf:1",
            "[a] random_distribution: theta of zipf is out of range (above 0, not 1, at most 100)",
        ),
        (
            "random_distribution=zoned:60/50:30/50",
            "[a] random_distribution: the percentages add up to 90, not to 100 (expected the shares of all I/Os)",
        ),
        (
            "random_distribution=zoned_abs:60/1g:40",
            "[a] random_distribution: \"40\" is not a zone (a zone is a share of the I/Os and a size, such as 60/20g)",
        ),
    ] {
        let full = refused(options);
        let expected = format!("jobs.fio:2: {message}");
        assert_eq!(full, expected);
    }
}

#[test]
fn faults_of_the_whole_file_are_reported() {
    for (text, message) in [
        ("", "jobs.fio: no jobs are defined (a job starts with a line [name])"),
        ("[global]\nbs=4k\n", "jobs.fio: no jobs are defined (add a job section)"),
        ("bs=4k\n", "jobs.fio:1: \"bs=4k\" is outside any section (put it after a [job] or [global] line)"),
        ("\u{1}\u{2}\u{0}", "jobs.fio: not a text file (expected a fio job file)"),
        (
            "[a]\ndirect=1\n",
            "jobs.fio:1: [a] size: the job has no filename, so its size must be given in bytes (set filename to the device, or size in bytes for each process)",
        ),
        (
            "[global]\ndirect=1\nfilename=x\nrate=1m\n[a]\nrate_iops=5\n",
            "jobs.fio:6: [a] rate_iops: rate and rate_iops exclude each other (use one of them)",
        ),
        (
            "[global]\ndirect=1\nfilename=x\nnumjobs=6000\n[a]\n[b]\n",
            "jobs.fio:4: [b] numjobs: the jobs make more than 10000 processes (use fewer jobs or clones)",
        ),
    ] {
        assert_eq!(parse(text).map(|_| ()).unwrap_err().to_string(), message);
    }
}

#[test]
fn a_job_that_does_not_fit_the_device_is_refused_with_its_line() {
    let error = |options: &str, device_bytes: u64| {
        process(options).generator(0, 1, |_| device_bytes).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(
        error("size=1g", 1 << 20),
        "jobs.fio:4: [a] size: the job ends at byte 1073741824, but the device has 1048576 (use size=100%, or a larger device)"
    );
    assert_eq!(
        error("offset=1m", 1 << 20),
        "jobs.fio:4: [a] offset: the job starts beyond the end of the device, which has 1048576 bytes (use a larger device, or a smaller offset)"
    );
    assert_eq!(
        error("offset=6k", 8192),
        "jobs.fio:1: [a] size: the region of 2048 bytes is smaller than a block of 4096 (use a larger device or size, or a smaller block (bs))"
    );
    assert!(
        error("rw=randrw\nbs=4k,8k", 4096).contains("the region of 4096 bytes is smaller than a block of 8192"),
        "the reads would fit"
    );
    assert!(error("", 0).contains("starts beyond the end"));
    assert_eq!(
        error("rw=randread\nrandom_distribution=zoned_abs:60/1m:40/1m", 1 << 20),
        "jobs.fio:5: [a] random_distribution: the zones end at byte 2097152, the region has 1048576 (use smaller zones, or a larger device or size)"
    );
}

#[test]
fn regions_follow_offset_size_and_increment() {
    let ranges = |options: &str| {
        let text = format!("[a]\nfilename=x\ndirect=1\nnumjobs=3\n{options}\n");
        let range = |p: &hoistway_load::Process| p.ranges(1 << 20).unwrap()[0];
        valid(&text).load.processes.iter().map(range).collect::<Vec<_>>()
    };
    assert_eq!(ranges("")[0], (0, 1 << 20));
    assert_eq!(ranges("offset=25%\nsize=50%")[0], (1 << 18, 1 << 19));
    assert_eq!(ranges("offset=75%\nsize=50%")[0], (3 << 18, 1 << 18));
    // As in fio, the second clone is the last one.
    assert_eq!(ranges("offset=4k\noffset_increment=64k\nsize=64k"), [(4096, 65536), (135_168, 65536), (69632, 65536)]);
    // 10 % and 20 % are rounded up to whole blocks.
    assert_eq!(ranges("offset_increment=10%\nsize=64k"), [(0, 65536), (212_992, 65536), (106_496, 65536)]);
}

#[test]
fn reversed_units_and_overruled_options_get_a_notice() {
    for (options, notice) in [
        ("bs=4KiB\nkb_base=1000", None),
        ("size=512kib", Some("size=512kib: as in fio, kib is 1000 bytes and k is 1024, unless kb_base=1000 is set.")),
        ("time_based", Some("[a] time_based has no effect without runtime: the job runs once.")),
        ("time_based\nruntime=1\nloops=2", Some("[a] loops has no effect with time_based, as in fio.")),
        ("randseed=4", Some("[a] randseed has no effect without randrepeat=0, as in fio.")),
        ("bs=4k\nbsrange=4k-8k", Some("[a] bsrange overrides bs, as in fio.")),
        ("bs=4k\nbssplit=4k/50:8k/50", Some("[a] bssplit overrides bs and bsrange, as in fio.")),
        ("norandommap", Some("[a] options for random offsets have no effect on a sequential job.")),
    ] {
        let job_file = valid(&format!("[a]\nfilename=/dev/sdib\ndirect=1\n{options}\n"));
        assert_eq!(job_file.notices.first().map(String::as_str), notice, "{options}");
    }
}

#[test]
fn a_runtime_from_outside_applies_to_every_job_and_keeps_time_based() {
    let environment = Environment { runtime: Some(Nanos::from_millis(5)), ..Environment::empty() };
    let text = "[global]\nfilename=x\ndirect=1\nsize=64k\n[a]\ntime_based\n[b]\nruntime=9\n";
    let job_file = JobFile::parse(text, "jobs.fio", &environment).unwrap();
    assert!(job_file.notices.is_empty(), "{:?}", job_file.notices);
    let of = |process: &Process| (process.schedule.runtime, process.plan.pattern.volume.time_based);
    let five = Some(Nanos::from_millis(5));
    assert_eq!(job_file.load.processes.iter().map(of).collect::<Vec<_>>(), [(five, true), (five, false)]);
}

#[test]
fn trims_of_verified_blocks_are_refused_because_fio_aborts() {
    let parsed = |percentage: u32| {
        let text =
            format!("[a]\nfilename=x\ndirect=1\nrw=write\nverify=meta\ntrim_backlog=4\ntrim_percentage={percentage}\n");
        JobFile::parse(&text, "jobs.fio", &Environment::empty())
    };
    assert!(parsed(0).is_ok());
    let error = parsed(50).unwrap_err().to_string();
    assert!(error.starts_with("jobs.fio:7: [a] trim_percentage: ") && error.contains("aborts at the first"), "{error}");
}

#[test]
fn jobs_of_a_flow_have_to_run_together() {
    let text = |second: &str| format!("[global]\nflow=2\n[a]\nfilename=x\n[b]\nfilename=x\n{second}");
    let parsed = |second: &str| JobFile::parse(&text(second), "jobs.fio", &Environment::empty());
    let job_file = parsed("flow=3\nflow_id=1\nflow_sleep=10\nstonewall\n").unwrap();
    let flows = [0, 1].map(|process: usize| job_file.load.processes[process].pace.flow.unwrap());
    assert_eq!(flows.map(|flow| (flow.id, flow.weight, flow.sleep)), [(0, 2, Nanos::ZERO), (1, 3, Nanos(10_000))]);
    for later in ["stonewall\n", "wait_for=a\n"] {
        let error = parsed(later).unwrap_err().to_string();
        assert!(error.starts_with("jobs.fio:2: [b] flow: the job starts later than others with flow_id=0"), "{error}");
        assert!(parsed(&format!("flow=0\n{later}")).is_ok());
    }
}

#[test]
fn zone_options_that_cannot_work_are_refused_or_reported() {
    let parsed =
        |options: &str| JobFile::parse(&format!("[a]\nfilename=x\n{options}\n"), "jobs.fio", &Environment::empty());
    for (options, expected) in [
        ("zonemode=strided", "jobs.fio:3: [a] zonemode: strided needs zonesize (give the bytes"),
        ("zonemode=zbd", "jobs.fio:3: [a] zonemode: \"zbd\" is not supported: zoned devices are not modelled"),
        ("zonemode=zoned", "jobs.fio:3: [a] zonemode: \"zoned\" is not one of its values (expected none or strided)"),
        ("zonemode=none\nzonesize=1m", "jobs.fio:4: [a] zonesize: zonemode=none and zonesize exclude each other"),
        ("zonesize=10%", "jobs.fio:3: [a] zonesize: percentages are not supported (expected bytes such as 256m)"),
        ("zonesize=1m\nzoneskip=100", "jobs.fio:4: [a] zoneskip: 100 bytes are not a multiple of a sector"),
        ("zonesize=1m\nloops=2", "jobs.fio:4: [a] loops: loops of a job with zones"),
        ("zonesize=1m\nfilename=x:y", "jobs.fio:3: [a] zonesize: zones in a job with several files"),
        ("zonesize=1m\nzonerange=10k\nrw=randread", "jobs.fio:4: [a] zonerange: zones of 10240 bytes are not whole"),
    ] {
        let error = parsed(options).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    for (options, expected) in [
        ("zonesize=1m", "[a] zonesize without zonemode means zonemode=strided, as in older versions of fio."),
        ("zoneskip=1m", "[a] zoneskip has no effect without zonemode=strided and zonesize."),
        (
            "zonesize=1m\nzonemode=strided\nrw=randread\nrandom_distribution=zipf",
            "[a] zones have no effect with random_distribution, as in fio.",
        ),
    ] {
        let notices = parsed(options).unwrap().notices;
        assert!(notices.iter().any(|notice| notice == expected), "{notices:?}");
    }
}

#[test]
fn pauses_by_time_count_ios_only_if_asked_to() {
    let think = |options: &str| {
        let text = format!("[a]\nfilename=x\nthinktime=1ms\n{options}\n");
        JobFile::parse(&text, "jobs.fio", &Environment::empty()).unwrap().load.processes[0].pace.think.unwrap()
    };
    let of = |options| (think(options).blocks, think(options).io_time, think(options).is_lost_to_rate);
    assert_eq!(of(""), (1, Nanos::ZERO, false));
    assert_eq!(of("thinktime_iotime=2\nrate_ignore_thinktime=1"), (0, Nanos::from_millis(2000), true));
    assert_eq!(of("thinktime_iotime=2ms\nthinktime_blocks=1"), (1, Nanos::from_millis(2), false));
    let text = "[a]\nfilename=x\nthinktime_iotime=1s\n";
    let notices = JobFile::parse(text, "jobs.fio", &Environment::empty()).unwrap().notices;
    assert!(notices.contains(&"[a] thinktime_iotime has no effect without thinktime.".to_owned()), "{notices:?}");
}

#[test]
fn latency_and_steady_state_limits_have_units_and_errors_their_line() {
    let parsed =
        |options: &str| JobFile::parse(&format!("[a]\nfilename=x\n{options}\n"), "jobs.fio", &Environment::empty());
    let process = |options: &str| parsed(options).unwrap().load.processes.remove(0);
    let of = process("latency_target=500\nlatency_window=5s\nlatency_percentile=99.9\nmax_latency=1ms,2ms");
    let target = of.latency.target.unwrap();
    assert_eq!((target.target, target.window, target.percentile), (Nanos(500_000), Nanos::from_millis(5000), 99.9));
    assert_eq!(of.latency.max, [1, 2, 2].map(Nanos::from_millis));
    assert_eq!(process("latency_target=500\nlatency_window=5s").latency.max, [Nanos(500_000); 3]);
    let steady = process("ss=bw_slope:0.3%\nss_dur=30s\nss_ramp=10").steady_state.unwrap();
    assert_eq!((steady.seconds, steady.ramp, steady.steadiness.limit), (30, Nanos::from_millis(10_000), 0.3));
    assert!(steady.steadiness.is_slope && steady.steadiness.is_percent);
    assert_eq!(process("ss=iops:3%").steady_state, None);
    for (options, expected) in [
        ("latency_target=500", "jobs.fio:3: [a] latency_target: the search for a depth needs a window (say"),
        (
            "latency_percentile=101",
            "jobs.fio:3: [a] latency_percentile: out of range (expected a percentage from 0 to 100)",
        ),
        ("ss=iops", "jobs.fio:3: [a] ss: the limit is missing (expected iops, iops_slope"),
        ("ss=latency:3", "jobs.fio:3: [a] ss: not a criterion (expected iops"),
        ("ss=iops:x%", "jobs.fio:3: [a] ss: the limit is not a number (expected iops"),
        (
            "ss_dur=10ms",
            "jobs.fio:3: [a] steadystate_duration: out of range (samples are one second long: expected 1 s to",
        ),
    ] {
        let error = parsed(options).map(|_| ()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_second_filename_adds_to_the_first_as_in_fio() {
    let job_file = valid("[global]\nfilename=x\n[a]\nfilename=y\n[b]\n");
    assert_eq!(job_file.load.files, ["x", "y"]);
    assert_eq!(job_file.load.processes.iter().map(|process| process.files.len()).collect::<Vec<_>>(), [2, 1]);
    let expected = "[a] filename is given more than once: as in fio, the job uses all 2 names.";
    assert!(job_file.notices.iter().any(|notice| notice == expected), "{:?}", job_file.notices);
}

#[test]
fn an_engine_that_is_not_supported_is_the_reason_and_not_its_options() {
    let refused = |text: &str| JobFile::parse(text, "jobs.fio", &Environment::empty()).unwrap_err().to_string();
    let error = refused("[a]\nnfs_url=nfs://x\nioengine=nfs\n");
    assert!(error.starts_with("jobs.fio:3: [a] ioengine: the engine \"nfs\" is not supported: the server"), "{error}");
    let error = refused("[a]\nioengine=mmap\n");
    assert!(error.ends_with("(use psync without direct=1, which also goes through the page cache)"), "{error}");
}

#[test]
fn offload_submit_threads_give_a_synchronous_engine_a_depth_and_a_notice() {
    let job_file =
        valid("[a]\nfilename=x\ndirect=1\niodepth=8\nio_submit_mode=offload\n[b]\nfilename=x\ndirect=1\niodepth=8\n");
    assert_eq!([job_file.load.processes[0].issue.depth, job_file.load.processes[1].issue.depth], [8, 1]);
    assert!(job_file.notices.iter().any(|notice| notice.contains("the thread pool is not simulated")));
}
