//! What is said of options that are accepted and do nothing.

use hoistway_blk::Nanos;

use super::{JobContext, rate};
use crate::error::printable;
use crate::generator::{RandomGenerator, Sizes};
use crate::plan::JobPlan;
use crate::settings::Modifier;
use crate::workload::{Engine, RateProcess};

/// Tells of options that are given but have no effect, with fio as here.
pub(crate) fn notices(context: &JobContext<'_>, plan: &JobPlan, tell: &mut dyn FnMut(String)) {
    let s = context.settings;
    let given = |option: &str| context.given(option).is_some();
    let name = printable(&context.section.name);
    if s.time_based && !plan.time_based {
        tell(format!("[{name}] time_based has no effect without runtime: the job runs once."));
    }
    if plan.time_based {
        for option in ["number_ios", "io_size", "loops"] {
            if given(option) {
                tell(format!("[{name}] {option} has no effect with time_based, as in fio."));
            }
        }
    }
    if s.offload {
        tell(format!(
            "[{name}] io_submit_mode=offload: iodepth holds for any engine, but the threads of the pool are not simulated: \
             the process submits its I/Os itself."
        ));
    }
    if !s.engine.is_asynchronous() && !s.offload && s.iodepth > 1 {
        tell(format!("[{name}] ioengine={} is synchronous: iodepth={} becomes 1.", s.engine.name(), s.iodepth));
    }
    if !s.direct {
        tell(
            "I/O that is not direct (direct=0, fio's default) goes through a page cache that is a sketch: see \
             docs/page-cache.md."
                .to_owned(),
        );
        if s.engine.is_asynchronous() && s.iodepth > 1 {
            let like = if s.engine == Engine::Libaio { "as in Linux" } else { "here, unlike in Linux" };
            let (engine, depth) = (s.engine.name(), s.iodepth);
            tell(format!(
                "[{name}] ioengine={engine} without direct=1 has one I/O in flight {like}: iodepth={depth} becomes 1."
            ));
        }
    }
    if !s.replay.logs.is_empty() {
        replay_notices(context, name.as_ref(), tell);
        return;
    }
    if s.filename_lines > 1 {
        tell(format!("[{name}] filename is given more than once: as in fio, the job uses all {} names.", plan.files));
    }
    if s.nrfiles > 1 && !s.filenames.is_empty() {
        tell(format!("[{name}] nrfiles has no effect with filename, as in fio: there are {} files.", plan.files));
    }
    if plan.files == 1 && given("file_service_type") {
        tell(format!("[{name}] file_service_type has no effect on a job with one file."));
    }
    if plan.priorities.is_none() && (given("cmdprio") || given("cmdprio_class")) {
        tell(format!(
            "[{name}] cmdprio and cmdprio_class have no effect without cmdprio_percentage or cmdprio_bssplit."
        ));
    }
    if s.rand_seed.is_some() && s.rand_repeat {
        tell(format!("[{name}] randseed has no effect without randrepeat=0, as in fio."));
    }
    let lanes = s.direction.lanes();
    let split = lanes.iter().any(|&lane| !s.bs_split.0[lane].is_empty());
    let ranged = lanes.iter().any(|&lane| s.bs_range.0[lane].is_some());
    if split && (given("bs") || ranged) {
        tell(format!("[{name}] bssplit is stronger than bs and bsrange, as in fio."));
    } else if ranged && given("bs") {
        tell(format!("[{name}] bsrange is stronger than bs, as in fio."));
    }
    let varied = lanes.iter().any(|&lane| !matches!(plan.sizes[lane], Sizes::Fixed(_)));
    if s.random && plan.random_map && varied && s.random_generator != RandomGenerator::Lfsr {
        tell(format!(
            "[{name}] with several block sizes the random map covers the starts of blocks: blocks may overlap, \
             where fio would cut them."
        ));
    }
    if !s.random && (given("percentage_random") || given("random_distribution") || given("norandommap")) {
        tell(format!("[{name}] options for random offsets have no effect on a sequential job."));
    }
    if s.cgroup_weight.is_some() && s.cgroup.is_none() {
        tell(format!("[{name}] cgroup_weight has no effect without cgroup."));
    }
    if s.rate_process == RateProcess::Poisson && rate(s).is_none() {
        tell(format!("[{name}] rate_process has no effect without rate or rate_iops."));
    }
    if s.zone_bytes == 0 && (given("zonerange") || given("zoneskip")) {
        tell(format!("[{name}] zonerange and zoneskip have no effect without zonemode=strided and zonesize."));
    }
    if s.zone_bytes > 0 && s.zone_mode.is_none() {
        tell(format!("[{name}] zonesize without zonemode means zonemode=strided, as in older versions of fio."));
    }
    if s.zone_bytes > 0 && plan.strided.is_none() {
        tell(format!("[{name}] zones have no effect with random_distribution, as in fio."));
    }
    if s.latency_target > Nanos::ZERO && s.latency_percentile >= 100.0 {
        tell(format!(
            "[{name}] latency_target with latency_percentile=100: as in fio 3.33, the job fails at the first I/O above it."
        ));
    }
    for option in ["latency_window", "latency_percentile", "latency_run"] {
        if s.latency_target == Nanos::ZERO && given(option) {
            tell(format!("[{name}] {option} has no effect without latency_target."));
        }
    }
    if s.steady_duration == Nanos::ZERO && (given("steadystate") || given("steadystate_ramp_time")) {
        tell(format!("[{name}] steadystate has no effect without steadystate_duration."));
    }
    let of_thinktime =
        ["thinktime_spin", "thinktime_blocks", "thinktime_blocks_type", "thinktime_iotime", "rate_ignore_thinktime"];
    for option in of_thinktime.into_iter().filter(|option| s.think_time == Nanos::ZERO && given(option)) {
        tell(format!("[{name}] {option} has no effect without thinktime."));
    }
    if s.flow == 0 && (given("flow_id") || given("flow_sleep")) {
        tell(format!("[{name}] flow_id and flow_sleep have no effect without flow."));
    }
    if s.modifier == Modifier::None && given("rw_sequencer") {
        tell(format!("[{name}] rw_sequencer has no effect without rw=...:N."));
    }
}

/// What a replay makes of the other options of its job, with fio as here (tried with fio 3.33).
fn replay_notices(context: &JobContext<'_>, name: &str, tell: &mut dyn FnMut(String)) {
    const NOT_READ: [&str; 20] = [
        "rw",
        "bs",
        "bsrange",
        "bssplit",
        "size",
        "io_size",
        "filesize",
        "offset",
        "zonesize",
        "number_ios",
        "loops",
        "time_based",
        "filename",
        "nrfiles",
        "directory",
        "rate",
        "rate_iops",
        "fsync",
        "fdatasync",
        "randseed",
    ];
    let given: Vec<_> = NOT_READ.into_iter().filter(|option| context.given(option).is_some()).collect();
    if !given.is_empty() {
        tell(format!(
            "[{name}] a replay takes its I/Os from the log, as in fio: without effect are {}.",
            given.join(", ")
        ));
    }
    if context.settings.replay.skipped.contains(&true) {
        tell(format!(
            "[{name}] replay_skip is done as the manual says; fio 3.33 does it only for blktrace recordings."
        ));
    }
}
