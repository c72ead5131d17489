//! Advice: the sysfs writes and udev rule that apply a verdict, from the document and the device names alone.
//!
//! Used by: crates `hoistway`, `experiment`.
//! Tests: `crates/answer/src/advice/block_device.rs`, `crates/render/tests/advice.rs`.

mod block_device;
mod cgroup_writes;
mod io_cost;
mod io_latency;
mod recommended;
mod settings;

use hoistway_measure::Setting;

pub use self::block_device::layer;
use self::block_device::{BlockDevice, Kind};
pub use self::cgroup_writes::{CgroupWrites, cgroup_writes};
pub use self::recommended::{NoRecommendation, Recommended, recommended};
use self::settings::{path, rule, write, write_files, write_scheduler};
use crate::analysis::{Analysis, Variant};
use crate::document::{Advice, Caution, Check, Decision, Front, ResultsDocument, Run, UdevRule, Verdict};

/// Placeholder in commands when no device was named.
pub const UNNAMED: &str = "DEVICE";

/// A name that no block device has.
#[derive(Debug, thiserror::Error)]
#[error("\"{0}\" is not a block device name (expected a name as in /sys/block, such as sda or nvme0n1)")]
pub struct NoDevice(String);

/// Checks that a block device can have this name, with or without `/dev/`.
///
/// # Errors
/// If none can; the error says what is expected.
pub fn check_name(name: &str) -> Result<(), NoDevice> {
    BlockDevice::named(name).map(|_| ()).ok_or_else(|| NoDevice(name.to_owned()))
}

/// The advice for each verdict on each of these devices (`sda`, `/dev/nvme0n1`). If `names` is empty: for the devices that the load
/// names, or else for [`UNNAMED`]. Empty for a document that was cut short.
///
/// # Errors
/// If no block device can have one of the names.
pub fn advice(analysis: &Analysis<'_>, names: &[String]) -> Result<Vec<Advice>, NoDevice> {
    let document = analysis.document;
    let mut devices: Vec<BlockDevice> = Vec::new();
    for name in names {
        let device = BlockDevice::named(name).ok_or_else(|| NoDevice(name.clone()))?;
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
    if names.is_empty() {
        devices = named_by_load(document);
    }
    if document.partial {
        return Ok(Vec::new());
    }
    let is_about = |verdict: &Verdict, device: &BlockDevice| {
        let names = || verdict.files.iter().filter_map(|file| BlockDevice::named(file));
        // A device that the load does not name may be any of them.
        let is_named = document
            .verdicts
            .iter()
            .flat_map(|it| &it.files)
            .filter_map(|it| BlockDevice::named(it))
            .any(|it| it == *device);
        !is_named || names().any(|named| named == *device)
    };
    let advice_for = |verdict: &Verdict, device| {
        if is_about(verdict, device) { Adviser::of(analysis, verdict)?.advice(device) } else { None }
    };
    Ok(document
        .verdicts
        .iter()
        .flat_map(|verdict| devices.iter().filter_map(move |device| advice_for(verdict, device)))
        .collect())
}

/// The devices that the load's files name.
fn named_by_load(document: &ResultsDocument) -> Vec<BlockDevice> {
    let files = document.runs.first().into_iter().flat_map(|run| &run.disks).map(|disk| disk.file.as_str());
    // With guests, these are names of virtual disks, not of the host's device.
    let files = files.filter(|file| document.guests.is_none() && file.starts_with("/dev/"));
    let mut devices: Vec<BlockDevice> = files.filter_map(BlockDevice::named).collect();
    devices.dedup();
    if devices.is_empty() {
        devices.extend(BlockDevice::named(UNNAMED));
    }
    devices
}

/// Makes the advice for one verdict.
struct Adviser<'a> {
    verdict: &'a Verdict,
    kernel: &'a str,
    /// A run of the recommended variant.
    run: &'a Run,
    /// A run of the reference.
    from_run: &'a Run,
    /// Whether the recommended variant needs the other of the two queue kinds of old kernels, which takes a reboot.
    is_other_queue: bool,
    /// The kernel's default scheduler, if it was not compared although no baseline was named and no guests are involved.
    uncompared_default: Option<&'a str>,
    from: Setting,
    to: Setting,
    /// The scheduler of the guests' disks, if the load ran in guests.
    guest_scheduler: Option<String>,
}

impl<'a> Adviser<'a> {
    fn of(analysis: &Analysis<'a>, verdict: &'a Verdict) -> Option<Self> {
        let document = analysis.document;
        let run_of = |label: &str| {
            let mut labelled = analysis.variants.iter().filter(|variant| variant.label == label);
            labelled.find(|variant| variant.first().setup == verdict.setup).map(|variant| variant.first())
        };
        let (from, run) = (run_of(&verdict.reference)?, run_of(&verdict.recommended)?);
        let (to, guest) = run.setting(document.guests.is_some());
        let default = document.setups.get(verdict.setup as usize);
        let default = default.map_or(&document.default_scheduler, |setup| &setup.default_scheduler).as_deref();
        let default = document.disk_group(&verdict.files).map(|group| group.default_scheduler.as_str()).or(default);
        let is_compared = |default: &str| {
            let mut runs = analysis.variants.iter().map(Variant::first).filter(|run| run.setup == verdict.setup);
            runs.any(|run| run.scheduler == default)
        };
        let has_chosen_reference = document.baseline.is_some() || document.guests.is_some();
        let uncompared_default = default.filter(|default| !has_chosen_reference && !is_compared(default));
        let front = match uncompared_default {
            Some("noop" | "deadline" | "cfq") => Front::Legacy,
            Some(_) => Front::Mq,
            None => from.front,
        };
        let is_other_queue = front != run.front;
        let kernel = document.setup_of(run).1;
        Some(Self {
            verdict,
            kernel,
            run,
            from_run: from,
            is_other_queue,
            uncompared_default,
            from: from.setting(document.guests.is_some()).0,
            to,
            guest_scheduler: guest.map(str::to_owned),
        })
    }

    fn advice(&self, device: &BlockDevice) -> Option<Advice> {
        let mut advice = Advice {
            setup: self.verdict.setup,
            device: device.name.clone(),
            decision: self.verdict.decision,
            recommended: self.verdict.recommended.clone(),
            guest_scheduler: self.guest_scheduler.clone(),
            now: Vec::new(),
            back: Vec::new(),
            rule: None,
            check: Vec::new(),
            cautions: Vec::new(),
        };
        if matches!(self.verdict.decision, Decision::Alone | Decision::OneRun) {
            return Some(advice);
        }
        if device.name == UNNAMED {
            advice.cautions.push(Caution::Unnamed);
        }
        advice.cautions.extend(device.partition.clone().map(|partition| Caution::Partition { partition }));
        if let Some(why) = self.reason_without_effect(device) {
            advice.cautions.push(why);
            return Some(advice);
        }
        let other_default = self.other_default(device);
        advice.cautions.extend(other_default.clone());
        if self.verdict.decision == Decision::Keep && other_default.is_some() {
            return Some(advice);
        }
        advice.check = self.check(&device.name);
        let uncompared_default = self.uncompared_default(device);
        advice.cautions.extend(uncompared_default.map(|default| Caution::NotCompared { default: default.to_owned() }));
        if self.verdict.decision == Decision::Change || uncompared_default.is_some() {
            self.write(device, &mut advice);
        }
        Some(advice)
    }

    /// The reason why a change would have no effect or is impossible; `None` if it would take effect.
    fn reason_without_effect(&self, device: &BlockDevice) -> Option<Caution> {
        let (scheduler, kernel) = (self.to.scheduler.clone(), self.kernel.to_owned());
        match device.kind {
            Kind::OnOthers(what) => Some(Caution::OnOthers { what }),
            Kind::InMemory => Some(Caution::InMemory),
            Kind::InFile => Some(Caution::InFile),
            _ if self.run.ran_as.is_some() || self.run.research.is_some() => {
                Some(Caution::NotInKernel { kernel, scheduler })
            }
            // NVMe has always been multi-queue.
            Kind::Nvme if self.run.front == Front::Legacy => Some(Caution::SingleQueue { scheduler }),
            _ => None,
        }
    }

    /// A caution if the default that others were compared with is not this device's default.
    fn other_default(&self, device: &BlockDevice) -> Option<Caution> {
        let is_other = device.kind == Kind::Nvme && self.verdict.reference_is_default && self.from.scheduler != "none";
        is_other.then(|| Caution::OtherDefault { compared_with: self.from.scheduler.clone() })
    }

    /// The device's default scheduler, if it was not among those compared.
    fn uncompared_default(&self, device: &BlockDevice) -> Option<&'a str> {
        let default = self.uncompared_default.map(|default| if device.kind == Kind::Nvme { "none" } else { default });
        default.filter(|&default| default != self.from.scheduler)
    }

    /// The device's settings before a change, as far as they are known.
    fn settings_before(&self, device: &BlockDevice) -> Setting {
        match self.uncompared_default(device) {
            Some(default) => Setting::untouched(default),
            None => self.from.clone(),
        }
    }

    /// Adds the writes, the rule and the cautions of a change.
    fn write(&self, device: &BlockDevice, advice: &mut Advice) {
        self.write_queue(device, advice);
        cgroup_writes::add(self.from_run, self.run, device, advice);
    }

    /// Adds those of the scheduler and of files of `queue/`.
    fn write_queue(&self, device: &BlockDevice, advice: &mut Advice) {
        let (from, to, name) = (&self.settings_before(device), &self.to, device.name.as_str());
        let is_changed = from.scheduler != to.scheduler;
        // The change may concern the guests' disks only.
        if from == to {
            return;
        }
        if device.kind == Kind::Nvme && to.scheduler == "none" && to.is_kernel_default() {
            advice.cautions.push(Caution::IsDefault);
        }
        if is_changed {
            advice.now.push(write_scheduler(to, name));
        }
        advice.now.extend(write_files(to, name));
        advice.back = self.undo_commands(device, &mut advice.cautions);
        let file = format!("/etc/udev/rules.d/90-hoistway-{name}.rules");
        let reload = "udevadm control --reload".to_owned();
        advice.rule = Some(UdevRule {
            lines: rule(to, name),
            load: vec![
                reload.clone(),
                format!("udevadm trigger --action=change --subsystem-match=block --sysname-match={name}"),
            ],
            remove: vec![format!("rm {file}"), reload],
            file,
        });
        advice.cautions.extend(self.module().filter(|_| is_changed));
        if device.kind == Kind::Scsi {
            advice.cautions.extend(self.boot());
            advice.cautions.push(Caution::MayBeRenumbered);
        }
    }

    /// The writes that undo a change. Switching schedulers resets the tunables and `nr_requests` to their defaults.
    fn undo_commands(&self, device: &BlockDevice, cautions: &mut Vec<Caution>) -> Vec<String> {
        if self.is_other_queue {
            return Vec::new();
        }
        let (to, is_default_unknown) = (&self.to, self.other_default(device).is_some());
        let nvme_settings = Setting { scheduler: "none".to_owned(), ..self.from.clone() };
        let from = if is_default_unknown { &nvme_settings } else { &self.settings_before(device) };
        let device = device.name.as_str();
        let is_reset_by_switch = |file: &str| file == "nr_requests" || file.starts_with("iosched/");
        let needs_reset = to.writes.iter().any(|(file, _)| is_reset_by_switch(file) && from.text(file).is_none());
        let mut lines = Vec::new();
        if from.scheduler != to.scheduler {
            lines.push(write_scheduler(from, device));
        } else if needs_reset {
            let temporary_scheduler = match (self.run.front, to.scheduler.as_str()) {
                (Front::Legacy, "noop") => "deadline",
                (Front::Legacy, _) => "noop",
                (Front::Mq, "none") => "mq-deadline",
                (Front::Mq, _) => "none",
            };
            lines.push(write(device, "scheduler", temporary_scheduler));
            lines.push(write_scheduler(from, device));
        }
        lines.extend(write_files(from, device));
        for (file, _) in to.writes.iter().filter(|(file, _)| !is_reset_by_switch(file) && from.text(file).is_none()) {
            if file == "wbt_lat_usec" {
                // Writing -1 makes the kernel restore its default.
                lines.push(write(device, file, "-1"));
            } else {
                cautions.push(Caution::HeldBefore { file: path(device, file) });
            }
        }
        lines
    }

    fn check(&self, device: &str) -> Vec<Check> {
        let shown = |file: &str, expected: String| Check { command: format!("cat {}", path(device, file)), expected };
        let files = self.to.writes.iter().map(|(file, text)| shown(file, text.clone()));
        std::iter::once(shown("scheduler", format!("[{}]", self.to.scheduler))).chain(files).collect()
    }

    /// The boot parameter that a kernel with both queue kinds needs. (NVMe drives are always multi-queue.)
    fn boot(&self) -> Option<Caution> {
        let is_mq = self.run.front == Front::Mq;
        let (kernel, parameter) = (self.kernel.to_owned(), format!("scsi_mod.use_blk_mq={}", u8::from(is_mq)));
        is_before_5(self.kernel).then_some(Caution::Boot { kernel, parameter, is_other_queue: self.is_other_queue })
    }

    fn module(&self) -> Option<Caution> {
        let module = match self.to.scheduler.as_str() {
            "bfq" => "bfq",
            "kyber" => "kyber-iosched",
            _ => return None,
        };
        Some(Caution::Module { scheduler: self.to.scheduler.clone(), module: module.to_owned() })
    }
}

/// Whether a release still has the legacy single queue, which Linux 5.0 removed.
fn is_before_5(kernel: &str) -> bool {
    kernel.split('.').next().and_then(|major| major.parse::<u32>().ok()).is_some_and(|major| major < 5)
}
