//! The files of a multi-queue device's `queue/`: the common ones (`sysfs.rs`), scheduler, number of requests, and
//! tunables.

use super::Queue;
use super::state::Current;
use crate::drive::effects::Effects;
use crate::ground::ids::CpuId;
use crate::ground::kernel::SysfsGeneration;
use crate::ground::sharing::{ReadMostly, Sharing};
use crate::ground::time::Now;
use crate::ground::tunables::Tunable;
use crate::policy::SchedulerEvent;
use crate::schedulers::{Layer, NONE};
use crate::sysfs::{self, AttributeError, number, timeout};

impl<Sh: Sharing> Queue<Sh> {
    /// The content of a file, including its newline.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn attribute(&self, file: &str) -> Result<String, AttributeError> {
        self.during(CpuId(0), |queue| queue.attribute(file)).map(|text| text + "\n")
    }

    /// The tunables of the current scheduler, in the order of their files.
    #[must_use]
    pub fn tunables(&self) -> Vec<&'static Tunable> {
        self.during(CpuId(0), |queue| queue.state.elevator.tunables())
    }

    /// Writes `text` to a file. Scheduler and number of requests can only be changed while the queue is
    /// [frozen and empty](Self::is_drained), other files at any time.
    ///
    /// # Errors
    /// If the kernel would reject the text; then nothing has changed.
    pub fn set_attribute(&self, now: Now, file: &str, text: &str, effects: &mut Effects) -> Result<(), AttributeError> {
        let device = &self.device;
        match file {
            "scheduler" => self.switch_scheduler(text, effects)?,
            "nr_requests" => self.set_nr_requests(number(text)?)?,
            "async_depth" => self.set_async_depth(text)?,
            "rq_affinity" => device.set_affinity(number(text)?),
            "io_timeout" => device.timeouts.set_timeout(timeout(text)?),
            "wbt_lat_usec" => self.during(CpuId(0), |queue| queue.set_wbt_lat_usec(text, effects))?,
            file => match file.strip_prefix("iosched/") {
                Some(tunable) => self.set_tunable(now, tunable, text, effects)?,
                None => {
                    let rotational = self.state.change(|state| {
                        sysfs::store(&mut state.rules, &device.config.limits, &device.generation, file, text)?;
                        Ok::<_, AttributeError>(state.rules.limits.rotational)
                    })?;
                    self.notify(now, effects, SchedulerEvent::Rotational(rotational));
                }
            },
        }
        Ok(())
    }
}

impl<Sh: Sharing> Current<'_, Sh> {
    /// The content of a file, without its newline.
    fn attribute(self, file: &str) -> Result<String, AttributeError> {
        let state = self.state;
        Ok(match file {
            "scheduler" => self.scheduler_list(),
            "nr_requests" => state.nr_requests.to_string(),
            "async_depth" if self.generation.queue_async_depth => state.async_depth.to_string(),
            "rq_affinity" => (self.affinity() as u8).to_string(),
            "io_timeout" => (self.timeouts.timeout().0 / 1_000_000).to_string(),
            "wbt_lat_usec" => self.wbt_lat_usec()?,
            "io_poll" => u8::from(self.config.poll_queues > 0).to_string(),
            file => match file.strip_prefix("iosched/") {
                Some(tunable) => state.elevator.tunable(tunable)?.to_string(),
                None => sysfs::show(&state.rules, &self.config.limits, file).ok_or(AttributeError::Unknown)?,
            },
        })
    }

    /// The schedulers, with the current one in brackets. A scheduler that Linux does not have is listed only while it
    /// is the current one.
    fn scheduler_list(self) -> String {
        let current = self.state.elevator.name();
        let bracket_current = |name: &str| if name == current { format!("[{name}]") } else { name.to_string() };
        let names = self
            .config
            .schedulers
            .of(Layer::MultiQueue)
            .filter(|row| row.name != NONE.name && (row.outside_linux().is_none() || row.name == current));
        let names: String = names.map(|row| bracket_current(row.name) + " ").collect();
        if self.generation.sysfs == SysfsGeneration::NoneLast && current != NONE.name {
            names + NONE.name
        } else {
            format!("{} {names}", bracket_current(NONE.name))
        }
    }
}
