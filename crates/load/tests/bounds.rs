//! Each field of a process has its bounds: what is just within is taken, what is just beyond is refused by the name of the field.

use hoistway_blk::bio::IoPriority;
use hoistway_blk::ground::Nanos;
use hoistway_load::limits::{BLOCK_BYTES, DEPTH, DEVICES, FILES, REGION_BYTES, SHARES, ZONES};
use hoistway_load::{
    Amount, Distribution, Extent, FileService, Flow, Issue, LatencyTarget, Offsets, OwnFile, Pattern, PlacedFile,
    Popularity, PriorityRule, Process, Random, Share, Sizes, Steadiness, SteadyState, Strided, Think, Zone,
};

const TEN_YEARS: Nanos = Nanos(3_653 * 86_400 * 1_000_000_000);

/// What becomes of a process of random writes that is changed like this: the field that is refused, if any.
fn refused(change: impl FnOnce(&mut Process)) -> Option<&'static str> {
    let mut process = Process::new("p", 0, Pattern::write(4096).random());
    change(&mut process);
    process.check().err().map(|error| {
        assert!(error.to_string().starts_with(&format!("process \"p\": {}: ", error.field)), "{error}");
        error.field
    })
}

/// The same of its pattern.
fn pattern(change: impl FnOnce(&mut Pattern)) -> Option<&'static str> {
    refused(|process| change(process.plan.pattern_mut()))
}

/// Whether of these values all but the last are taken, and the last is refused for this field.
fn ends_at<T: Copy + std::fmt::Debug>(field: &str, taken: &[T], beyond: &[T], put: impl Fn(&mut Process, T)) {
    for value in taken {
        assert_eq!(refused(|process| put(process, *value)), None, "{field}: {value:?}");
    }
    for value in beyond {
        assert_eq!(refused(|process| put(process, *value)), Some(field), "{field}: {value:?}");
    }
}

#[test]
fn times_are_at_most_ten_years() {
    let ends = |field, put: fn(&mut Process, Nanos)| ends_at(field, &[TEN_YEARS], &[TEN_YEARS + Nanos(1)], put);
    ends("schedule.start_delay", |process, time| process.schedule.start_delay = time);
    ends("schedule.ramp", |process, time| process.schedule.ramp = time);
    ends("schedule.runtime", |process, time| process.schedule.runtime = Some(time));
    ends("latency.max", |process, time| process.latency.max[2] = time);
    ends("pace.think", |process, time| process.pace.think = Some(Think { spin: time, ..Think::default() }));
    let flow = |sleep, weight| Some(Flow { sleep, weight, ..Flow::default() });
    ends_at(
        "pace.flow",
        &[(TEN_YEARS, 1)],
        &[(TEN_YEARS + Nanos(1), 1), (TEN_YEARS, 0)],
        |process, (sleep, weight)| {
            process.pace.flow = flow(sleep, weight);
        },
    );
    let target = |window, percentile| Some(LatencyTarget { window, percentile, ..LatencyTarget::default() });
    let taken = [(Nanos(1), 0.0), (TEN_YEARS, 100.0)];
    let beyond = [(Nanos::ZERO, 50.0), (TEN_YEARS + Nanos(1), 50.0), (Nanos(1), 100.1), (Nanos(1), -0.1)];
    ends_at("latency.target", &taken, &beyond, |process, (window, percentile)| {
        process.latency.target = target(window, percentile);
    });
}

#[test]
fn depths_standings_and_devices_have_their_ranges() {
    ends_at("issue.depth", &[1, DEPTH], &[0, DEPTH + 1], |process, depth| process.issue = Issue::asynchronous(depth));
    // Through the page cache one I/O is in flight.
    ends_at("issue.depth", &[1], &[2], |process, depth| {
        process.caching.direct = false;
        process.issue = Issue::asynchronous(depth);
    });
    ends_at("standing.nice", &[-20, 19], &[-21, 20], |process, nice| process.standing.nice = nice);
    ends_at("standing.cgroup_weight", &[1, 1000], &[0, 1001], |process, weight| {
        process.standing.cgroup_weight = Some(weight);
    });
    ends_at("standing.cpus", &[1], &[0], |process, cpus| process.standing.cpus = Some((0..cpus).collect()));
    ends_at("files", &[1, DEVICES], &[0, DEVICES + 1], |process, devices| {
        process.files = vec![0; devices].into();
        process.plan.files = vec![PlacedFile::default(); devices.min(1)].into();
    });
    ends_at("plan.files", &[1], &[2], |process, device| {
        process.files = [0, 0].into();
        process.plan.files = [PlacedFile { device, own: None }].into();
    });
    let steady = |seconds, limit| {
        Some(SteadyState { seconds, ramp: Nanos::ZERO, steadiness: Steadiness { limit, ..Steadiness::default() } })
    };
    ends_at(
        "steady_state",
        &[(1, 0.0), (86_400, 1.0)],
        &[(0, 1.0), (86_401, 1.0), (1, -0.1)],
        |process, (s, limit)| {
            process.steady_state = steady(s, limit);
        },
    );
    ends_at("schedule.runtime", &[true], &[false], |process, has_runtime| {
        process.plan.pattern_mut().volume.time_based = true;
        process.schedule.runtime = has_runtime.then_some(Nanos(1));
    });
}

#[test]
fn files_and_their_ios_fit_any_device_in_whole_sectors() {
    ends_at("plan.files", &[1, FILES], &[0, FILES + 1], |process, files| {
        process.plan.files = vec![PlacedFile::default(); files].into();
    });
    let own = |start_bytes, bytes| [PlacedFile { device: 0, own: Some(OwnFile { start_bytes, bytes }) }].into();
    let taken = [(REGION_BYTES, 512), (0, REGION_BYTES)];
    let beyond = [(REGION_BYTES + 512, 512), (512, REGION_BYTES + 512), (511, 512), (512, 511)];
    ends_at("plan.files", &taken, &beyond, |process, (start, bytes)| process.plan.files = own(start, bytes));

    let bytes = |bytes| Amount::Bytes(bytes);
    let sizes = [bytes(4096), bytes(REGION_BYTES), Amount::Percent(1), Amount::Percent(100)];
    let no_sizes = [bytes(4095), bytes(REGION_BYTES + 1), Amount::Percent(0), Amount::Percent(101)];
    ends_at("plan.pattern.volume.size", &sizes, &no_sizes, |process, size| {
        process.plan.pattern_mut().volume.size = Some(size);
    });
    // As much as there is in each of several files.
    ends_at("plan.pattern.volume.size", &[8192], &[8191], |process, size| {
        process.plan.files = vec![PlacedFile::default(); 2].into();
        process.plan.pattern_mut().volume.size = Some(bytes(size));
    });
    let offsets = [bytes(0), bytes(REGION_BYTES), Amount::Percent(0), Amount::Percent(100)];
    let no_offsets = [bytes(513), bytes(REGION_BYTES + 512), Amount::Percent(101)];
    ends_at("plan.pattern.volume.offset", &offsets, &no_offsets, |process, offset| {
        process.plan.pattern_mut().volume.offset = offset;
    });
    let (files, no_files) =
        ([(512, 512), (0, REGION_BYTES)], [(1024, 512), (0, REGION_BYTES + 512), (1, 512), (0, 511)]);
    ends_at("plan.pattern.volume.file_bytes", &files, &no_files, |process, range| {
        process.plan.pattern_mut().volume.file_bytes = Some(range);
    });
    ends_at("plan.pattern.volume.loops", &[1], &[0], |process, loops| process.plan.pattern_mut().volume.loops = loops);
}

#[test]
fn blocks_are_of_whole_sectors_and_the_shares_of_their_sizes_add_up() {
    let sizes = |sizes: Sizes| pattern(|pattern| pattern.sizes[1] = sizes);
    const FIELD: Option<&str> = Some("plan.pattern.sizes");
    for (bytes, field) in [(512, None), (BLOCK_BYTES as u32, None), (0, FIELD), (513, FIELD)] {
        assert_eq!(sizes(Sizes::Fixed(bytes)), field, "{bytes}");
    }
    assert_eq!(sizes(Sizes::Fixed(BLOCK_BYTES as u32 + 512)), FIELD);
    for ([min, max, step], field) in
        [([512, 512, 512], None), ([1024, 512, 512], FIELD), ([1536, 4096, 1024], FIELD), ([512, 1024, 0], FIELD)]
    {
        assert_eq!(sizes(Sizes::Range { min, max, step }), field, "{min} to {max} by {step}");
    }
    let shares = |shares: Vec<f64>| {
        sizes(Sizes::Split(shares.into_iter().map(|percent| Share { bytes: 4096, percent }).collect()))
    };
    assert_eq!(shares(vec![50.0, 50.005]), None, "rounded");
    assert_eq!(shares(vec![50.0, 50.02]), FIELD);
    assert_eq!(shares(vec![50.0, 49.98]), FIELD);
    assert_eq!(shares(vec![101.0, -1.0]), FIELD);
    assert_eq!(shares(vec![100.0 / SHARES as f64; SHARES]), None);
    assert_eq!(shares(vec![100.0 / (SHARES + 1) as f64; SHARES + 1]), FIELD);
    // Only direct I/O needs whole sectors.
    let through_cache = |bytes| {
        refused(|process| {
            process.caching.direct = false;
            process.plan.pattern_mut().sizes[1] = Sizes::Fixed(bytes);
        })
    };
    assert_eq!((through_cache(513), through_cache(0)), (None, FIELD));
}

#[test]
fn orders_of_offsets_have_their_ranges() {
    let skip = |skip_bytes| pattern(|pattern| pattern.offsets = Offsets::Sequential { skip_bytes });
    let field = Some("plan.pattern.offsets");
    assert_eq!(
        [skip(-512), skip(REGION_BYTES as i64), skip(-1), skip(REGION_BYTES as i64 + 512)],
        [None, None, field, field]
    );
    let random = |change: &dyn Fn(&mut Random)| {
        let mut random = Random::default();
        change(&mut random);
        pattern(|pattern| pattern.offsets = Offsets::Random(random))
    };
    let align = |bytes| random(&|random| random.align_bytes[1] = Some(bytes));
    let field = Some("plan.pattern.offsets.align_bytes");
    assert_eq!(
        [align(512), align(REGION_BYTES), align(0), align(513), align(REGION_BYTES + 512)],
        [None, None, field, field, field]
    );
    let percent = |percent| random(&|random| random.percent[2] = percent);
    assert_eq!([percent(100), percent(101)], [None, Some("plan.pattern.offsets.percent")]);
    let every = |every| random(&|random| random.every = every);
    assert_eq!([every(1), every(0)], [None, Some("plan.pattern.offsets.every")]);
    let backlog = |map, blocks| {
        pattern(|pattern| {
            pattern.verify_backlog = Some(blocks);
            pattern.offsets = Offsets::Random(Random { map, ..Random::default() });
        })
    };
    let field = Some("plan.pattern.verify_backlog");
    assert_eq!([backlog(true, 1), backlog(true, 0), backlog(false, 1)], [None, field, field]);
    let rule = |lane, percent| {
        let rule = PriorityRule { lane, bytes: 0, percent, priority: IoPriority::UNSET };
        pattern(|pattern| pattern.priorities = [rule].into())
    };
    let field = Some("plan.pattern.priorities");
    assert_eq!([rule(1, 100), rule(2, 100), rule(0, 101)], [None, field, field]);
    let service = |ios| pattern(|pattern| pattern.service = FileService::RoundRobin { ios });
    assert_eq!([service(1), service(0)], [None, Some("plan.pattern.service")]);
}

#[test]
fn distributions_have_their_ranges() {
    let field = Some("plan.pattern.offsets.distribution");
    let error_of = |distribution: Distribution| {
        let is_valid = distribution.check().is_ok();
        let error = pattern(|pattern| pattern.offsets = Offsets::Random(Random { distribution, ..Random::default() }));
        assert_eq!(is_valid, error.is_none());
        error
    };
    let skewed = |popularity| error_of(Distribution::Skewed { popularity, centre: None });
    for (theta, expected) in [(0.99, None), (100.0, None), (0.0, field), (1.0, field), (100.1, field)] {
        assert_eq!(skewed(Popularity::Zipf { theta }), expected, "{theta}");
    }
    for (h, expected) in [(0.01, None), (0.99, None), (0.0, field), (1.0, field)] {
        assert_eq!(skewed(Popularity::Pareto { h }), expected, "{h}");
    }
    for (spread_percent, expected) in [(0.0, None), (99.9, None), (100.0, field), (-1.0, field)] {
        assert_eq!(skewed(Popularity::Normal { spread_percent }), expected, "{spread_percent}");
    }
    for (centre, expected) in [(0.0, None), (1.0, None), (1.1, field)] {
        let popularity = Popularity::Zipf { theta: 2.0 };
        assert_eq!(error_of(Distribution::Skewed { popularity, centre: Some(centre) }), expected, "{centre}");
    }
    let zoned = |percents: &[f64]| {
        let zones: Vec<Zone> = percents
            .iter()
            .map(|&size| Zone { access_percent: 100.0 / percents.len() as f64, extent: Extent::Percent(size) })
            .collect();
        let each: [_; 3] = std::array::from_fn(|_| zones.clone().into());
        error_of(Distribution::Zoned(each))
    };
    assert_eq!([zoned(&[40.0, 60.0]), zoned(&[40.0, 60.1]), zoned(&[-1.0, 50.0])], [None, field, field]);
    assert_eq!([zoned(&vec![0.1; ZONES]), zoned(&vec![0.1; ZONES + 1])], [None, field]);
}

#[test]
fn strided_zones_have_bytes_are_of_one_file_and_hold_whole_blocks_of_a_random_job() {
    let strided = |zone_bytes, range_bytes, skip_bytes| {
        pattern(|pattern| pattern.zones = Some(Strided { zone_bytes, range_bytes, skip_bytes }))
    };
    const ZONE: Option<&str> = Some("plan.pattern.zones.zone_bytes");
    const RANGE: Option<&str> = Some("plan.pattern.zones.range_bytes");
    const SKIP: Option<&str> = Some("plan.pattern.zones.skip_bytes");
    assert_eq!(strided(1, 4096, 0), None);
    assert_eq!(strided(REGION_BYTES, REGION_BYTES, REGION_BYTES), None);
    assert_eq!([strided(0, 4096, 0), strided(4096, 0, 0), strided(REGION_BYTES + 1, 4096, 0)], [ZONE; 3]);
    assert_eq!(
        [strided(4096, 4097, 0), strided(4096, REGION_BYTES + 4096, 0), strided(4096, 4096 + 512, 0)],
        [RANGE; 3]
    );
    assert_eq!([strided(4096, 4096, 1), strided(4096, 4096, REGION_BYTES + 512)], [SKIP; 2]);
    let zones = Some(Strided { zone_bytes: 4096, range_bytes: 4608, skip_bytes: 0 });
    let sequential = |loops| {
        pattern(|pattern| {
            (pattern.offsets, pattern.zones) = (Offsets::Sequential { skip_bytes: 0 }, zones);
            pattern.volume.loops = loops;
        })
    };
    assert_eq!([sequential(1), sequential(2)], [None, Some("plan.pattern.volume.loops")]);
    let several = refused(|process| {
        process.plan.files = vec![PlacedFile::default(); 2].into();
        process.plan.pattern_mut().zones = Some(Strided { zone_bytes: 4096, range_bytes: 4096, skip_bytes: 0 });
    });
    assert_eq!(several, ZONE);
}
