//! Hardware queues, tags and contention options of the devices' queues.

use hoistway_blk::policy::ContentionOptions;
use hoistway_blk::schedulers::Layer;
use hoistway_blk::tags::TagLayout;
use hoistway_device::{Preset, PresetFile};
use hoistway_load::Load;
use hoistway_sim::QueueSettings;

use crate::comparison::environment::Options;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;

pub use hoistway_blk::queue::HW_QUEUES_MAX;
/// Maximum hardware queues for reads, and for polling.
pub const TYPED_QUEUES_MAX: u16 = 1024;

/// Sets the requested hardware queues of the devices, and those of each type in `queue`.
pub(crate) fn choose(
    options: &Options<'_>,
    devices: Vec<Preset>,
    queue: &mut QueueSettings,
) -> Result<Vec<Preset>, Error> {
    let comparison = options.comparison;
    for (field, count) in [(Field::ReadQueues, comparison.read_queues), (Field::PollQueues, comparison.poll_queues)] {
        if count > TYPED_QUEUES_MAX {
            return Err(options.refuse(field, count, format!("expected 0 to {TYPED_QUEUES_MAX}")));
        }
        if count > 0 && !queue.kernel.generation().queue_types {
            let (kernel, later) = (queue.kernel, options.given(Field::Kernels, "5.10"));
            let problem =
                format!("Linux {kernel} has no hardware queues for reads or polling (expected {later} or later)");
            return Err(options.refuse(field, count, problem));
        }
    }
    if let Some(count) = comparison.hw_queues.filter(|count| !(1..=HW_QUEUES_MAX).contains(count)) {
        return Err(options.refuse(Field::HwQueues, count, format!("expected 1 to {HW_QUEUES_MAX}")));
    }
    // More queues than CPUs are never used.
    queue.read_queues = comparison.read_queues.min(queue.cpus);
    queue.poll_queues = comparison.poll_queues.min(queue.cpus);
    let typed = queue.read_queues + queue.poll_queues;
    if comparison.hw_queues.is_none() && typed == 0 {
        return Ok(devices);
    }
    let with_queues = |preset: Preset| {
        let base_count = comparison.hw_queues.unwrap_or(preset.shape().hw_queues);
        let count = if typed == 0 { base_count } else { base_count.min(queue.cpus) + typed };
        with_hw_queues(preset, count)
    };
    devices.into_iter().map(with_queues).collect()
}

/// Sets the requested contention options of the queues. Returns a notice about them.
pub(crate) fn apply_contention_options(
    options: &Options<'_>,
    queue: &mut QueueSettings,
) -> Result<Option<String>, Error> {
    let Some(requested) = &options.comparison.techniques else { return Ok(None) };
    let refuse = |problem: String| options.refuse(Field::ContentionOptions, requested, problem);
    queue.contention_options = requested.parse().map_err(refuse)?;
    let are_used = queue.contention_options != ContentionOptions::default();
    Ok(are_used.then(|| {
        format!(
            "Contention options are in use ({requested}), which no Linux release has: they affect mq-deadline, bfq and custom \
             schedulers, not none, kyber and the legacy schedulers."
        )
    }))
}

fn with_hw_queues(preset: Preset, count: u16) -> Result<Preset, Error> {
    let name = preset.name.clone();
    let mut file = PresetFile::from(preset);
    file.shape.hw_queues = count;
    let refused = |error| Error::new(Field::HwQueues, format!("{count} hardware queues with {name}: {error}"));
    Preset::try_from(file).map_err(refused)
}

/// Checks that the devices can share their tags, if requested.
pub(crate) fn check_shared_tags(
    options: &Options<'_>,
    queue: &QueueSettings,
    devices: &[Preset],
    schedulers: &[String],
) -> Result<(), Error> {
    if !queue.shared_tags {
        return Ok(());
    }
    let refuse =
        |problem: String| Err(Error::new(Field::SharedTags, format!("{}: {problem}", options.name(Field::SharedTags))));
    let [first, others @ ..] = devices else { return Ok(()) };
    if others.is_empty() {
        return refuse(
            "sharing tags needs several devices (expected several in the job file, such as filename=/dev/sda:/dev/sdb)"
                .to_owned(),
        );
    }
    let layout = |preset: &Preset| queue.config(&preset.shape()).tag_layout();
    let in_words = |preset: &Preset| {
        let TagLayout { hctxs, depth, host_wide, .. } = layout(preset);
        let host_wide_text = if host_wide { " in common" } else { "" };
        format!("{} has {depth} tags{host_wide_text} for each of {hctxs} hardware queues", preset.name)
    };
    if let Some(other) = others.iter().find(|other| layout(other) != layout(first)) {
        return refuse(format!("{}, {} (expected devices with equal numbers)", in_words(first), in_words(other)));
    }
    if let Some(legacy) = schedulers.iter().find(|name| queue.schedulers.is_legacy(name)) {
        let option = options.name(Field::Schedulers);
        let others: Vec<&str> = queue.schedulers.of(Layer::MultiQueue).map(|row| row.name).collect();
        return refuse(format!(
            "with {legacy} devices cannot share tags (expected {option} with some of {})",
            others.join(", ")
        ));
    }
    Ok(())
}

/// A notice about polling, if one is needed.
pub(crate) fn polling_notice(
    options: &Options<'_>,
    workload: &Load,
    queue: &QueueSettings,
    schedulers: &[String],
) -> Option<String> {
    if !workload.processes.iter().any(|process| process.issue.polls) {
        return None;
    }
    if queue.poll_queues == 0 {
        let remedy = options.given(Field::PollQueues, 1);
        return Some(format!(
            "hipri: completions come by interrupt, because no device has hardware queues for polling ({remedy} adds \
             one)."
        ));
    }
    let legacy: Vec<&str> =
        schedulers.iter().map(String::as_str).filter(|name| queue.schedulers.is_legacy(name)).collect();
    (!legacy.is_empty()).then(|| {
        format!("hipri: with {} completions come by interrupt; the legacy queue cannot be polled.", legacy.join(", "))
    })
}
