//! Validation of a pattern.

use crate::LoadError;
use crate::check::{Checked, ensure, whole_sectors};
use crate::limits::{BLOCK_BYTES, REGION_BYTES, SHARES, ZONES};
use crate::pattern::{
    Amount, Direction, Distribution, Extent, FileService, Offsets, Pattern, Popularity, Random, Sizes, Strided,
};

impl Pattern {
    /// Whether all reads, writes and trims are whole sectors, as direct I/O requires.
    pub(crate) fn check_whole_blocks(&self) -> Checked {
        self.active_sizes().try_for_each(whole_blocks)
    }

    /// Checks what a generator with `files` files relies on.
    pub(crate) fn check(&self, files: u64) -> Checked {
        let percent = self.read_percent;
        ensure(percent <= 100, "plan.pattern.read_percent", "out of range", "expected 0 to 100")?;
        for lane in 0..3 {
            sizes(&self.sizes[lane])?;
        }
        if self.direction.lanes().contains(&TRIMS) {
            whole_blocks(&self.sizes[TRIMS])?;
        }
        match &self.offsets {
            Offsets::Sequential { skip_bytes } => {
                let skip = skip_bytes.unsigned_abs();
                let is_possible = skip.is_multiple_of(512) && skip <= REGION_BYTES;
                let message = format_args!("{skip_bytes} bytes cannot be skipped");
                ensure(is_possible, "plan.pattern.offsets", message, "use a multiple of 512 bytes")?;
            }
            Offsets::Random(random) => offsets(random, self.direction)?,
        }
        volume(self, files)?;
        zones(self, files)?;
        service(self.service)?;
        for rule in self.priorities.iter() {
            let is_valid = rule.lane < 2 && rule.percent <= 100;
            ensure(is_valid, "plan.pattern.priorities", "a rule is out of range", "reads or writes, 0 to 100 %")?;
        }
        let reads = matches!(self.direction, Direction::Read | Direction::Trim);
        if let Some(backlog) = self.verify_backlog {
            let field = "plan.pattern.verify_backlog";
            ensure(backlog > 0 && !reads, field, "nothing is written that could be verified", "expected writes")?;
            // Without a random map fio reads each block once, sorted by offset, and has to remember all of them.
            let has_map = self.random_offsets().is_none_or(Random::has_map);
            ensure(
                has_map,
                field,
                "not supported for a job without a random map",
                "set do_verify=0 to skip the reads, or use the random map",
            )?;
        }
        Ok(())
    }
}

/// The lane of trims, which never use the page cache.
const TRIMS: usize = 2;
const SIZES: &str = "plan.pattern.sizes";

/// Checks that all sizes are whole sectors.
fn whole_blocks(sizes: &Sizes) -> Checked {
    match sizes {
        Sizes::Fixed(bytes) => whole_sectors(SIZES, u64::from(*bytes)),
        Sizes::Range { min, max, step } => {
            [min, max, step].into_iter().try_for_each(|bytes| whole_sectors(SIZES, u64::from(*bytes)))
        }
        Sizes::Split(shares) => shares.iter().try_for_each(|share| whole_sectors(SIZES, u64::from(share.bytes))),
    }
}

fn sizes(sizes: &Sizes) -> Checked {
    let check = |bytes: u32| {
        let is_valid = (1..=BLOCK_BYTES).contains(&u64::from(bytes));
        ensure(is_valid, SIZES, format_args!("a block of {bytes} bytes is out of range"), "expected 1 byte to 1 GiB")
    };
    match sizes {
        Sizes::Fixed(bytes) => check(*bytes),
        Sizes::Range { min, max, step } => {
            check(*min)?;
            check(*max)?;
            let is_range = min <= max && *step > 0 && min.is_multiple_of(*step);
            ensure(is_range, SIZES, "not a range of multiples", "the smallest, then the largest, and a divisor of both")
        }
        Sizes::Split(shares) => {
            ensure(shares.len() <= SHARES, SIZES, format_args!("more than {SHARES} sizes"), "leave some out")?;
            shares.iter().try_for_each(|share| check(share.bytes))?;
            add_up(SIZES, shares.iter().map(|share| share.percent))
        }
    }
}

fn add_up(field: &'static str, percents: impl Iterator<Item = f64>) -> Checked {
    let mut total = 0.0;
    for percent in percents {
        ensure(percent >= 0.0, field, "a share is negative", "expected percentages")?;
        total += percent;
    }
    let message = format_args!("the percentages add up to {total}, not to 100");
    ensure((total - 100.0).abs() < 0.01, field, message, "expected the shares of all I/Os")
}

fn offsets(random: &Random, direction: Direction) -> Checked {
    const ALIGN: &str = "plan.pattern.offsets.align_bytes";
    for &lane in direction.lanes() {
        if let Some(align) = random.align_bytes[lane] {
            whole_sectors(ALIGN, align)?;
            let is_valid = (1..=REGION_BYTES).contains(&align);
            ensure(is_valid, ALIGN, "the alignment is out of range", "expected 512 bytes to 1 EiB")?;
        }
    }
    let percents_in_range = random.percent.iter().all(|&percent| percent <= 100);
    ensure(percents_in_range, "plan.pattern.offsets.percent", "out of range", "expected 0 to 100")?;
    ensure(random.every > 0, "plan.pattern.offsets.every", "out of range", "expected at least 1")?;
    distribution(&random.distribution)
}

pub fn distribution(distribution: &Distribution) -> Checked {
    const DISTRIBUTION: &str = "plan.pattern.offsets.distribution";
    match distribution {
        Distribution::Uniform => Ok(()),
        Distribution::Skewed { popularity, centre } => {
            let centre_in_range = centre.is_none_or(|centre| (0.0..=1.0).contains(&centre));
            ensure(
                centre_in_range,
                DISTRIBUTION,
                "the centre is out of range",
                "expected a fraction of the region, 0 to 1",
            )?;
            self::popularity(*popularity, DISTRIBUTION)
        }
        Distribution::Zoned(lists) => lists.iter().try_for_each(|zones| {
            ensure(zones.len() <= ZONES, DISTRIBUTION, format_args!("more than {ZONES} zones"), "leave some out")?;
            let sizes = zones.iter().map(|zone| match zone.extent {
                Extent::Percent(percent) => percent,
                Extent::Bytes(_) => 0.0,
            });
            let sizes_fit = sizes.clone().all(|size| size >= 0.0) && sizes.sum::<f64>() <= 100.01;
            let message = "the sizes of the zones add up to more than 100 % of the region";
            ensure(sizes_fit, DISTRIBUTION, message, "expected at most 100 %")?;
            add_up(DISTRIBUTION, zones.iter().map(|zone| zone.access_percent))
        }),
    }
}

fn popularity(popularity: Popularity, field: &'static str) -> Checked {
    let (is_valid, what, hint) = match popularity {
        Popularity::Zipf { theta } => {
            let is_valid = theta > 0.0 && theta <= 100.0 && theta != 1.0;
            (is_valid, "theta of zipf is out of range", "above 0, not 1, at most 100")
        }
        Popularity::Pareto { h } => (h > 0.0 && h < 1.0, "h of pareto is out of range", "above 0 and below 1"),
        Popularity::Normal { spread_percent } => {
            ((0.0..100.0).contains(&spread_percent), "the deviation is out of range", "below 100 percent")
        }
    };
    ensure(is_valid, field, what, hint)
}

fn volume(pattern: &Pattern, files: u64) -> Checked {
    let volume = &pattern.volume;
    const SIZE: &str = "plan.pattern.volume.size";
    let amounts = [
        (SIZE, volume.size, true),
        ("plan.pattern.volume.io_size", volume.io_size, true),
        ("plan.pattern.volume.offset", Some(volume.offset), false),
        ("plan.pattern.volume.offset_increment", Some(volume.offset_increment), false),
    ];
    for (field, amount, is_size) in amounts {
        match amount {
            Some(Amount::Bytes(bytes)) => {
                ensure(bytes <= REGION_BYTES, field, "larger than any device", "expected at most 1 EiB")?;
                if !is_size {
                    whole_sectors(field, bytes)?;
                }
            }
            Some(Amount::Percent(percent)) => {
                ensure(percent <= 100, field, "out of range", "expected at most 100 %")?;
                ensure(percent > 0 || !is_size, field, "nothing is left to do", "expected more than 0")?;
            }
            None => {}
        }
    }
    if let Some((least, most)) = volume.file_bytes {
        const FIELD: &str = "plan.pattern.volume.file_bytes";
        ensure(
            least <= most && most <= REGION_BYTES,
            FIELD,
            "out of range",
            "the minimum, then the maximum, at most 1 EiB",
        )?;
        whole_sectors(FIELD, least)?;
        whole_sectors(FIELD, most)?;
    }
    ensure(volume.loops > 0, "plan.pattern.volume.loops", "out of range", "expected at least 1")?;
    if let (Some(Amount::Bytes(whole)), None) = (volume.size, volume.file_bytes)
        && let Amount::Bytes(size) = Amount::Bytes(whole).part_of(files)
    {
        let smallest = u64::from(pattern.active_sizes().map(Sizes::min).min().unwrap_or(0));
        if size < smallest && files > 1 {
            let message =
                format!("{whole} bytes give each of {files} files {size} bytes, less than a block of {smallest}");
            return Err(LoadError::new(SIZE, message, "use a larger size, or a smaller block (bs)"));
        }
        let message = format_args!("{size} bytes are smaller than a block of {smallest}");
        ensure(size >= smallest, SIZE, message, "use a larger size, or a smaller block (bs)")?;
    }
    Ok(())
}

fn zones(pattern: &Pattern, files: u64) -> Checked {
    const ZONE: &str = "plan.pattern.zones.zone_bytes";
    const RANGE: &str = "plan.pattern.zones.range_bytes";
    const SKIP: &str = "plan.pattern.zones.skip_bytes";
    let Some(Strided { zone_bytes, range_bytes, skip_bytes }) = pattern.zones else { return Ok(()) };
    for (field, bytes) in [(ZONE, zone_bytes), (RANGE, range_bytes), (SKIP, skip_bytes)] {
        ensure(bytes <= REGION_BYTES, field, "larger than any device", "expected at most 1 EiB")?;
    }
    ensure(zone_bytes > 0 && range_bytes > 0, ZONE, "the size of a zone is 0", "expected at least a block")?;
    whole_sectors(RANGE, range_bytes)?;
    whole_sectors(SKIP, skip_bytes)?;
    // fio counts the bytes of a zone over all files, but then moves only the current file to the next zone.
    ensure(files <= 1, ZONE, "zones in a job with several files are not supported", "use a job for each file")?;
    let hint = "use io_size, which continues in the zones";
    ensure(
        pattern.volume.loops == 1,
        "plan.pattern.volume.loops",
        "loops of a job with zones are not supported",
        hint,
    )?;
    if pattern.random_offsets().is_some() {
        for &lane in pattern.direction.lanes() {
            // fio ends the job when it draws a block that is cut off by the zone.
            let align = pattern.align_bytes(lane);
            let message = format_args!("zones of {range_bytes} bytes are not whole blocks of {align}");
            ensure(
                range_bytes.is_multiple_of(align),
                RANGE,
                message,
                "a random job needs a multiple of its block (bs)",
            )?;
        }
    }
    Ok(())
}

fn service(service: FileService) -> Checked {
    const FIELD: &str = "plan.pattern.service";
    match service {
        FileService::Sequential => Ok(()),
        FileService::RoundRobin { ios } | FileService::Random { ios } => {
            ensure(ios > 0, FIELD, "no I/Os for each file", "expected at least 1")
        }
        FileService::Skewed(popularity) => self::popularity(popularity, FIELD),
    }
}
