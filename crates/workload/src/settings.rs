//! The options of one job as typed values, before they are checked against each other.

use std::sync::Arc;

use hoistway_blk::Nanos;

use crate::generator::{Distribution, RandomGenerator};
use crate::options;
use crate::replay::ReplaySettings;
use crate::service::FileService;
use crate::values::{Amount, KbBase, PerDirection};
use crate::workload::{Ends, Engine, LogSettings, RateProcess, Steadiness, SteadyFigure, ThinkBlocks, WriteSync};

/// `rw` without its modifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Read,
    Write,
    Trim,
    /// Reads and writes by `rwmixread`.
    Mixed,
    /// Each range is trimmed, then written.
    TrimWrite,
}

/// What `rw=...:N` asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Modifier {
    None,
    /// Random: a new position only every so many I/Os.
    Every(u32),
    /// Sequential: bytes to skip after each I/O, backwards if negative.
    Skip(i64),
}

/// `zonemode`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ZoneMode {
    None,
    Strided,
}

/// `rw_sequencer`: what the I/Os between two new positions do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sequencer {
    Sequential,
    Identical,
}

/// One entry of `bssplit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    pub(crate) bytes: u64,
    /// `None` takes an even part of what the others leave.
    pub(crate) percent: Option<u8>,
}

/// One entry of `cmdprio_bssplit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PrioShare {
    pub(crate) bytes: u64,
    pub(crate) percent: u8,
    /// Class and level of its own.
    pub(crate) prio: Option<(u8, u8)>,
}

/// The options `cmdprio...`, for reads, writes and trims; trims have none.
#[derive(Clone, Debug)]
pub(crate) struct CommandPrio {
    pub(crate) percent: PerDirection<u8>,
    pub(crate) class: PerDirection<u8>,
    pub(crate) level: PerDirection<u8>,
    pub(crate) split: PerDirection<Vec<PrioShare>>,
}

impl Default for CommandPrio {
    fn default() -> Self {
        CommandPrio {
            percent: PerDirection([0; 3]),
            class: PerDirection([1; 3]),
            level: PerDirection([0; 3]),
            split: PerDirection(Default::default()),
        }
    }
}

/// The options of one job. Defaults are fio's.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    // Groups and phases.
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) numjobs: i64,
    pub(crate) stonewall: bool,
    pub(crate) wait_for: Option<String>,
    pub(crate) exit_all: bool,
    pub(crate) ends: Ends,
    pub(crate) new_group: bool,
    pub(crate) group_reporting: bool,
    pub(crate) start_delay: (Nanos, Nanos),
    pub(crate) runtime: Nanos,
    pub(crate) time_based: bool,
    pub(crate) ramp_time: Nanos,
    // Files and volume.
    /// None for files of the process's own.
    pub(crate) filenames: Vec<String>,
    /// How many lines gave them.
    pub(crate) filename_lines: u32,
    pub(crate) directories: Vec<String>,
    pub(crate) filename_format: Option<String>,
    pub(crate) nrfiles: i64,
    /// 0 for all.
    pub(crate) openfiles: i64,
    pub(crate) service: FileService,
    /// Least and most bytes of a file.
    pub(crate) filesize: Option<(u64, u64)>,
    pub(crate) replay: ReplaySettings,
    pub(crate) direct: bool,
    pub(crate) invalidate: bool,
    pub(crate) kb_base: KbBase,
    pub(crate) size: Option<Amount>,
    pub(crate) io_size: Option<Amount>,
    pub(crate) offset: Amount,
    pub(crate) offset_increment: Amount,
    pub(crate) number_ios: i64,
    pub(crate) loops: i64,
    /// None if it is not given.
    pub(crate) zone_mode: Option<ZoneMode>,
    pub(crate) zone_bytes: u64,
    /// 0 for `zone_bytes`.
    pub(crate) zone_range: u64,
    pub(crate) zone_skip: u64,
    // Pattern.
    pub(crate) direction: Direction,
    pub(crate) random: bool,
    pub(crate) modifier: Modifier,
    pub(crate) sequencer: Sequencer,
    pub(crate) read_percent: u8,
    pub(crate) bs: PerDirection<u64>,
    pub(crate) bs_range: PerDirection<Option<(u64, u64)>>,
    pub(crate) bs_split: PerDirection<Vec<Share>>,
    pub(crate) bs_unaligned: bool,
    pub(crate) block_align: PerDirection<Option<u64>>,
    pub(crate) percent_random: PerDirection<u8>,
    pub(crate) no_random_map: bool,
    pub(crate) random_generator: RandomGenerator,
    pub(crate) distribution: Distribution,
    pub(crate) rand_seed: Option<i64>,
    pub(crate) rand_repeat: bool,
    // Depth and submission.
    pub(crate) engine: Engine,
    pub(crate) iodepth: i64,
    pub(crate) iodepth_batch: i64,
    pub(crate) iodepth_batch_complete_min: i64,
    pub(crate) iodepth_batch_complete_max: i64,
    pub(crate) iodepth_low: i64,
    pub(crate) offload: bool,
    pub(crate) serialize_overlap: bool,
    pub(crate) fsync: i64,
    pub(crate) fdatasync: i64,
    pub(crate) end_fsync: bool,
    pub(crate) fsync_on_close: bool,
    pub(crate) write_sync: WriteSync,
    pub(crate) verify: bool,
    pub(crate) do_verify: bool,
    pub(crate) verify_backlog: i64,
    pub(crate) verify_backlog_batch: i64,
    // Pace.
    pub(crate) think_time: Nanos,
    pub(crate) think_spin: Nanos,
    pub(crate) think_blocks: i64,
    pub(crate) think_io_time: Nanos,
    pub(crate) rate_ignore_thinktime: bool,
    pub(crate) think_blocks_type: ThinkBlocks,
    pub(crate) rate_bytes: PerDirection<u64>,
    pub(crate) rate_ios: PerDirection<u64>,
    pub(crate) rate_process: RateProcess,
    pub(crate) latency_target: Nanos,
    pub(crate) latency_window: Nanos,
    pub(crate) latency_percentile: f64,
    pub(crate) latency_run: bool,
    pub(crate) max_latency: [Nanos; 3],
    pub(crate) steadiness: Steadiness,
    pub(crate) steady_duration: Nanos,
    pub(crate) steady_ramp: Nanos,
    pub(crate) flow: i64,
    pub(crate) flow_id: i64,
    pub(crate) flow_sleep_us: i64,
    // Priority and placement.
    pub(crate) prio: Option<u8>,
    pub(crate) prio_class: Option<u8>,
    pub(crate) command_prio: CommandPrio,
    pub(crate) nice: i8,
    pub(crate) hipri: bool,
    pub(crate) cgroup: Option<String>,
    pub(crate) cgroup_weight: Option<u32>,
    pub(crate) cpus_allowed: Option<Arc<[u32]>>,
    pub(crate) cpus_split: bool,
    // Reports.
    pub(crate) log: LogSettings,
    /// For each option of the table: 1 + the index of the line that gave it last; 0 if none did.
    pub(crate) given: [u32; options::COUNT],
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            name: None,
            description: None,
            numjobs: 1,
            stonewall: false,
            wait_for: None,
            exit_all: false,
            ends: Ends::Group,
            new_group: false,
            group_reporting: false,
            start_delay: (Nanos::ZERO, Nanos::ZERO),
            runtime: Nanos::ZERO,
            time_based: false,
            ramp_time: Nanos::ZERO,
            filenames: Vec::new(),
            filename_lines: 0,
            directories: Vec::new(),
            filename_format: None,
            nrfiles: 1,
            openfiles: 0,
            service: FileService::default(),
            filesize: None,
            replay: ReplaySettings::default(),
            direct: false,
            invalidate: true,
            kb_base: KbBase::default(),
            size: None,
            io_size: None,
            offset: Amount::Bytes(0),
            offset_increment: Amount::Bytes(0),
            number_ios: 0,
            loops: 1,
            zone_mode: None,
            zone_bytes: 0,
            zone_range: 0,
            zone_skip: 0,
            direction: Direction::Read,
            random: false,
            modifier: Modifier::None,
            sequencer: Sequencer::Sequential,
            read_percent: 50,
            bs: PerDirection([4096; 3]),
            bs_range: PerDirection([None; 3]),
            bs_split: PerDirection(Default::default()),
            bs_unaligned: false,
            block_align: PerDirection([None; 3]),
            percent_random: PerDirection([100; 3]),
            no_random_map: false,
            random_generator: RandomGenerator::Tausworthe,
            distribution: Distribution::Uniform,
            rand_seed: None,
            rand_repeat: true,
            engine: Engine::Psync,
            iodepth: 1,
            iodepth_batch: 1,
            iodepth_batch_complete_min: 1,
            iodepth_batch_complete_max: 1,
            iodepth_low: 0,
            offload: false,
            serialize_overlap: false,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            fsync_on_close: false,
            write_sync: WriteSync::None,
            verify: false,
            do_verify: true,
            verify_backlog: 0,
            verify_backlog_batch: 0,
            think_time: Nanos::ZERO,
            think_spin: Nanos::ZERO,
            think_blocks: 1,
            think_io_time: Nanos::ZERO,
            rate_ignore_thinktime: false,
            think_blocks_type: ThinkBlocks::Completed,
            rate_bytes: PerDirection([0; 3]),
            rate_ios: PerDirection([0; 3]),
            rate_process: RateProcess::Linear,
            latency_target: Nanos::ZERO,
            latency_window: Nanos::ZERO,
            latency_percentile: 100.0,
            latency_run: false,
            max_latency: [Nanos::ZERO; 3],
            steadiness: Steadiness { figure: SteadyFigure::Ios, is_slope: true, limit: 0.01, is_percent: true },
            steady_duration: Nanos::ZERO,
            steady_ramp: Nanos::ZERO,
            flow: 0,
            flow_id: 0,
            flow_sleep_us: 0,
            prio: None,
            prio_class: None,
            command_prio: CommandPrio::default(),
            nice: 0,
            hipri: false,
            cgroup: None,
            cgroup_weight: None,
            cpus_allowed: None,
            cpus_split: false,
            log: LogSettings::default(),
            given: [0; options::COUNT],
        }
    }
}
