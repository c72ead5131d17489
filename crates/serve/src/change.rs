//! What of a running server changes: its exports, and how its queue works. All of a change holds, or none of it.

use std::sync::{Arc, PoisonError};

use hoistway_blk::sysfs::AttributeError;
use hoistway_engine::Engine;
use hoistway_nbd::Export;

use crate::control::ExportState;
use crate::served::{Offer, Served, Site};
use crate::server::{Placed, ServerError};
use crate::spec::{check_names, check_overlaps};

/// How a server should work.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Its exports, in their order.
    pub exports: Vec<Placed>,
    /// Its scheduler.
    pub scheduler: String,
    /// Files of the queue, `nr_requests` say, or tunables as `SCHEDULER.NAME`, and what they should hold. All others get back
    /// what they held when the scheduler was new.
    pub settings: Vec<(String, String)>,
}

impl Placed {
    /// Which bytes of which volume it is, as clients see it.
    fn lay_out(&self, engine: &Engine) -> Result<(Export, std::ops::Range<u64>, u32), ServerError> {
        let Placed { spec, volume } = self;
        let on = engine.volumes().into_iter().nth(*volume).ok_or(std::io::ErrorKind::NotFound);
        let on = on.map_err(std::io::Error::from)?;
        let range = spec.range(on.bytes(), u64::from(on.block_bytes()))?;
        if on.is_read_only() && !spec.read_only {
            let name = &spec.name;
            return Err(ServerError::Refused(format!(
                "export {name:?}: its target was opened read-only (expected read-only)"
            )));
        }
        let export = Export {
            description: spec.description.clone(),
            read_only: spec.read_only,
            rotational: on.is_rotational(),
            block_bytes_min: 1,
            block_bytes_preferred: on.preferred_block_bytes().max(4096),
            ..Export::new(&spec.name, range.end - range.start)
        };
        Ok((export, range, on.block_bytes()))
    }
}

/// An export before and after a change.
enum Step {
    Stays(Arc<Served>),
    /// An export, its range, and the block of its target.
    Begins(Box<Export>, std::ops::Range<u64>, u32),
}

impl Site {
    /// Offers these exports and no others. Those that were there go on with other weights, priorities and limits.
    ///
    /// # Errors
    /// If one of them cannot be, or is another part of the target than it was: then nothing has changed.
    pub fn offer_these(&self, exports: &[Placed]) -> Result<(), ServerError> {
        self.carry_out(exports, self.plan(exports)?)
    }

    fn plan(&self, exports: &[Placed]) -> Result<Vec<Step>, ServerError> {
        let specs: Vec<_> = exports.iter().map(|placed| placed.spec.clone()).collect();
        check_names(&specs)?;
        let laid_out = exports.iter().map(|placed| {
            let (_, range, _) = placed.lay_out(&self.engine)?;
            Ok((&placed.spec, placed.volume, range))
        });
        check_overlaps(&laid_out.collect::<Result<Vec<_>, ServerError>>()?)?;
        let offer = self.offer();
        let step = |placed: &Placed| {
            let (export, range, block_bytes) = placed.lay_out(&self.engine)?;
            let Some(served) = offer.named(&placed.spec.name) else {
                return Ok(Step::Begins(Box::new(export), range, block_bytes));
            };
            if (&served.export, &served.range, served.volume) != (&export, &range, placed.volume) {
                let name = &placed.spec.name;
                return Err(ServerError::Refused(format!(
                    "export {name:?}: path, offset, size, description and read-only cannot change while the server runs"
                )));
            }
            Ok(Step::Stays(Arc::clone(served)))
        };
        exports.iter().map(step).collect()
    }

    fn carry_out(&self, exports: &[Placed], steps: Vec<Step>) -> Result<(), ServerError> {
        let before = self.offer();
        let mut after = Vec::new();
        for (Placed { spec, volume }, step) in exports.iter().zip(steps) {
            let served = match step {
                Step::Stays(served) => {
                    self.engine.set_weight(served.group, spec.settings.weight)?;
                    served.set(spec.settings);
                    served
                }
                Step::Begins(export, range, block_bytes) => {
                    let group = self.engine.add_group(spec.settings.weight)?;
                    Arc::new(Served::new(*export, *volume, (range, block_bytes), group, spec.settings))
                }
            };
            served.throttle.set_limits(self.engine.now(), spec.limits);
            after.push(served);
        }
        let is_gone = |served: &&Arc<Served>| !after.iter().any(|other| Arc::ptr_eq(other, served));
        let gone: Vec<_> = before.served.iter().filter(is_gone).cloned().collect();
        *self.offer.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(Offer::of(after));
        gone.iter().for_each(|served| served.withdraw());
        self.withdrawn.lock().unwrap_or_else(PoisonError::into_inner).extend(gone);
        drop(before);
        self.forget_withdrawn();
        // Throttled requests may be allowed sooner, priorities change, and connections of withdrawn exports have to end.
        self.inboxes.notify_all();
        Ok(())
    }

    /// Removes the scheduler's groups of withdrawn exports without connections.
    pub(crate) fn forget_withdrawn(&self) {
        let mut withdrawn = self.withdrawn.lock().unwrap_or_else(PoisonError::into_inner);
        withdrawn.retain(|served| {
            let is_used = Arc::strong_count(served) > 1;
            if !is_used {
                self.engine.remove_group(served.group);
            }
            is_used
        });
    }

    /// Changes the server to this state. Returns a line for each change.
    ///
    /// # Errors
    /// If something of it cannot be: then nothing has changed.
    pub fn change_to(&self, wanted: &Wanted) -> Result<Vec<String>, ServerError> {
        let steps = self.plan(&wanted.exports)?;
        let before = (self.files(), self.exports_state());
        self.set_all(&wanted.scheduler, &wanted.settings)?;
        self.carry_out(&wanted.exports, steps)?;
        let after = (self.files(), self.exports_state());

        let mut changes: Vec<String> = after
            .0
            .iter()
            .filter(|file| !before.0.contains(file))
            .map(|(file, value)| format!("{}={value}", file.trim_start_matches("iosched/")))
            .collect();
        for export in &after.1 {
            let settings = |it: &ExportState| (it.weight, it.ioprio.clone(), it.limits.clone());
            match before.1.iter().find(|other| other.name == export.name) {
                None => changes.push(format!("export {:?} added", export.name)),
                Some(other) if settings(other) != settings(export) => changes.push(format!(
                    "export {:?} weight={} ioprio={} {}",
                    export.name, export.weight, export.ioprio, export.limits
                )),
                Some(_) => {}
            }
        }
        let is_gone = |export: &&ExportState| !after.1.iter().any(|other| other.name == export.name);
        changes.extend(before.1.iter().filter(is_gone).map(|export| format!("export {:?} removed", export.name)));
        // The order matters: the empty name selects the first.
        let in_both = |these: &[ExportState], others: &[ExportState]| -> Vec<String> {
            let stays = |it: &&ExportState| others.iter().any(|other| other.name == it.name);
            these.iter().filter(stays).map(|it| format!("{:?}", it.name)).collect()
        };
        let order = in_both(&after.1, &before.1);
        if order != in_both(&before.1, &after.1) {
            changes.push(format!("exports in the order {}", order.join(", ")));
        }
        Ok(changes)
    }

    /// The scheduler, and the files that it has a say in, in the order in which they can be written.
    fn files(&self) -> Vec<(String, String)> {
        let state = self.state();
        let mut files = vec![("scheduler".to_owned(), state.scheduler().to_owned())];
        files.push(("nr_requests".to_owned(), state.nr_requests.clone()));
        files.extend(state.tunables.into_iter().map(|(name, value)| (format!("iosched/{name}"), value)));
        files
    }

    /// Sets the scheduler and those of its files that are named; the others get back what they held when it was new.
    ///
    /// # Errors
    /// If it does not take them: then nothing has changed.
    pub fn set_all(&self, scheduler: &str, settings: &[(String, String)]) -> Result<(), ServerError> {
        let before = self.files();
        self.try_to_set_all(scheduler, settings).map_err(|why| {
            for (file, value) in &before {
                // It held that a moment ago.
                let _ = self.write(file, value);
            }
            ServerError::Refused(why)
        })
    }

    fn try_to_set_all(&self, scheduler: &str, settings: &[(String, String)]) -> Result<(), String> {
        if self.state().scheduler() != scheduler {
            self.set("scheduler", scheduler)?;
        }
        let defaults = self.defaults.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let files = self.files();
        // Before what is named: some tunables are two names of one thing.
        for (file, value) in defaults.iter().filter(|file| !files.contains(file)) {
            self.write(file, value).map_err(|error| format!("{file}={value}: {error}"))?;
        }
        settings.iter().try_for_each(|(key, value)| self.set(key, value))
    }

    /// Writes a file of the queue, as its path below `queue/`.
    pub(crate) fn write(&self, file: &str, value: &str) -> Result<(), AttributeError> {
        let is_new = file == "scheduler" && self.state().scheduler() != value;
        self.engine.set_attribute(file, value)?;
        if is_new {
            self.remember_defaults();
        }
        Ok(())
    }

    /// The scheduler is new: what its files hold now is what they hold by themselves.
    pub(crate) fn remember_defaults(&self) {
        let files = self.files().split_off(1);
        *self.defaults.lock().unwrap_or_else(PoisonError::into_inner) = files;
    }
}
