//! The files of a single-queue device's `queue/` (LQ-8 to LQ-13, LQ-32 to LQ-34). The scheduler is changed
//! [separately](LegacyQueue::begin_switch), because the queue is in use meanwhile.

use std::sync::atomic::Ordering::Relaxed;

use hoistway_blk::drive::Effects;
use hoistway_blk::ground::{CpuId, Lock, Now, ReadMostly, Sharing, Word};
use hoistway_blk::kit::attributes::{self, number, timeout};
use hoistway_blk::policy::SchedulerEvent;
use hoistway_blk::queue::Affinity;
use hoistway_blk::sysfs::AttributeError;

use super::LegacyQueue;

impl<Sh: Sharing> LegacyQueue<Sh> {
    /// The content of a file, including its newline.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn attribute(&self, file: &str) -> Result<String, AttributeError> {
        let text = match file {
            "scheduler" => return Ok(self.show_scheduler()),
            "nr_requests" => self.nr_requests().to_string(),
            "rq_affinity" => self.affinity.load(Relaxed).to_string(),
            "wbt_lat_usec" if !self.generation.wbt => return Err(AttributeError::Unknown),
            // Write-back throttling is off by default in this block layer, and turning it on is not implemented.
            "wbt_lat_usec" if self.has_wbt_file.load(Relaxed) != 0 => "0".into(),
            "wbt_lat_usec" => return Err(AttributeError::Invalid),
            "io_timeout" => (self.io_timeout().0 / 1_000_000).to_string(),
            file => match file.strip_prefix("iosched/") {
                Some(tunable) => self.tunable(tunable)?.to_string(),
                None => {
                    let text = self.rules.read(CpuId(0), |rules| attributes::show(rules, &self.config.limits, file));
                    text.ok_or(AttributeError::Unknown)?
                }
            },
        };
        Ok(text + "\n")
    }

    /// Writes `text` to a file other than `scheduler`.
    ///
    /// # Errors
    /// If the kernel would reject the text, or the queue was not made for this number of requests; then nothing has
    /// changed.
    pub fn set_attribute(&self, now: Now, file: &str, text: &str, effects: &mut Effects) -> Result<(), AttributeError> {
        match file {
            "scheduler" => return Err(AttributeError::Busy),
            "nr_requests" => {
                let result = self.set_nr_requests(number(text)?, effects);
                result.map_err(|_| AttributeError::Invalid)?;
            }
            "rq_affinity" => {
                let number = number(text)?.into();
                if Affinity::from_number(number).is_some() {
                    self.affinity.store(number, Relaxed);
                }
            }
            "wbt_lat_usec" if !self.generation.wbt => return Err(AttributeError::Unknown),
            "wbt_lat_usec" if text.trim() == "0" => self.has_wbt_file.store(1, Relaxed),
            "wbt_lat_usec" => return Err(AttributeError::Invalid),
            "io_timeout" => self.timeouts.set_timeout(timeout(text)?),
            file => match file.strip_prefix("iosched/") {
                Some(tunable) => self.set_tunable(now, tunable, text, effects)?,
                None => {
                    let (rotational, write_cache) = self.rules.change(|rules| {
                        attributes::store(rules, &self.config.limits, &self.generation, file, text)?;
                        Ok::<_, AttributeError>((rules.limits.rotational, rules.limits.write_cache))
                    })?;
                    self.notify(now, effects, SchedulerEvent::Rotational(rotational));
                    self.locked.aside(|queue| queue.cache.write_cache = write_cache);
                }
            },
        }
        Ok(())
    }
}
