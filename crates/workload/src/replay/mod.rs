//! Replays: `read_iolog` and the options that go with it.

mod log;
mod record;

use hoistway_blk::Nanos;

pub(crate) use log::{Log, read};
pub(crate) use record::{Pause, Replay};

/// The options of a replay.
#[derive(Clone, Debug)]
pub(crate) struct ReplaySettings {
    /// None for no replay. Each clone takes the next one.
    pub(crate) logs: Vec<String>,
    pub(crate) no_stall: bool,
    /// Speed, percent.
    pub(crate) time_scale: u32,
    pub(crate) redirect: Option<String>,
    pub(crate) scale: u64,
    /// A power of two, or 0.
    pub(crate) align: u64,
    /// Reads, writes, trims, syncs.
    pub(crate) skipped: [bool; 4],
}

impl Default for ReplaySettings {
    fn default() -> Self {
        ReplaySettings {
            logs: Vec::new(),
            no_stall: false,
            time_scale: 100,
            redirect: None,
            scale: 1,
            align: 0,
            skipped: [false; 4],
        }
    }
}

impl ReplaySettings {
    /// A pause of the log as it is to be kept.
    fn pause(&self, pause: Pause) -> Pause {
        match pause {
            _ if self.no_stall => Pause::After(Nanos::ZERO),
            Pause::After(gap) => {
                let ns = u128::from(gap.0) * 100 / u128::from(self.time_scale.max(1));
                Pause::After(Nanos(u64::try_from(ns).unwrap_or(u64::MAX)))
            }
            until => until,
        }
    }

    /// An offset of the log as it is to be used.
    fn offset(&self, bytes: u64) -> u64 {
        let scaled = bytes / self.scale.max(1);
        if self.align > 1 { scaled & !(self.align - 1) } else { scaled }
    }
}
