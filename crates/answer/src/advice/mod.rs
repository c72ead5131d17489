//! What to write where for a verdict: decided from the document and from the names of devices alone.

mod block_device;
mod settings;

pub use self::block_device::layer;
use self::block_device::{BlockDevice, Kind};
use self::settings::{Settings, path, write};
use crate::analysis::{Analysis, Variant};
use crate::document::{Advice, Caution, Check, Decision, Front, ResultsDocument, Run, UdevRule, Verdict};

/// Stands for the name of a device that is not named.
pub const UNNAMED: &str = "DEVICE";

/// A name that no block device has.
#[derive(Debug, thiserror::Error)]
#[error("\"{0}\" is no name of a block device (expected one as in /sys/block, such as sda or nvme0n1)")]
pub struct NoDevice(String);

/// Whether this can be the name of a block device, with or without `/dev/`.
///
/// # Errors
/// Says that it cannot be, and what is expected.
pub fn check_name(name: &str) -> Result<(), NoDevice> {
    BlockDevice::named(name).map(|_| ()).ok_or_else(|| NoDevice(name.to_owned()))
}

/// What to write for each verdict on these devices (`sda`, `/dev/nvme0n1`); without any, on those that the load names, or one
/// called [`UNNAMED`]. Nothing of a document that was cut short.
///
/// # Errors
/// A name that no block device has.
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
    let of = |verdict, device| Adviser::of(analysis, verdict)?.advice(device);
    Ok(document
        .verdicts
        .iter()
        .flat_map(|verdict| devices.iter().filter_map(move |device| of(verdict, device)))
        .collect())
}

/// The devices that the load's files are called.
fn named_by_load(document: &ResultsDocument) -> Vec<BlockDevice> {
    let files = document.runs.first().into_iter().flat_map(|run| &run.disks).map(|disk| disk.file.as_str());
    // In guests, their disks have these names, and the host's device another one.
    let files = files.filter(|file| document.guests.is_none() && file.starts_with("/dev/"));
    let mut devices: Vec<BlockDevice> = files.filter_map(BlockDevice::named).collect();
    devices.dedup();
    if devices.is_empty() {
        devices.extend(BlockDevice::named(UNNAMED));
    }
    devices
}

/// What a document recommends, as files of `queue/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recommended {
    /// The label of the scheduler with its settings.
    pub label: String,
    /// Whether that is a change.
    pub is_change: bool,
    /// Files below `queue/` and their contents, in the order in which they are to be written: the scheduler first.
    pub files: Vec<(String, String)>,
}

/// Why nothing can be written for a document.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NoRecommendation {
    /// It was cut short.
    #[error("was interrupted, and has no verdict (expected a whole comparison)")]
    Partial,
    /// Its device is not the observed one.
    #[error(
        "is of a device model that does not fit the observed disk (expected one that does, see its first sentence)"
    )]
    OtherDevice,
    /// There are none, or several.
    #[error("has {0} verdicts (expected one: a comparison of schedulers on one device, host and kernel)")]
    Verdicts(usize),
    /// There is nothing to choose from.
    #[error(
        "compares too little for a verdict (expected several schedulers or settings, and several runs of each, as with --repeat 5)"
    )]
    TooLittle,
    /// It is about virtual disks.
    #[error("is about guests, whose disks are set in the guests (expected a comparison without guests)")]
    Guests,
    /// No kernel has the scheduler.
    #[error("recommends {0}, which that kernel does not have (expected a scheduler of Linux)")]
    NotInKernel(String),
}

/// What the only verdict of a document sets.
///
/// # Errors
/// There is none, or it cannot be written to a device of this system.
pub fn recommended(analysis: &Analysis<'_>) -> Result<Recommended, NoRecommendation> {
    let document = analysis.document;
    if document.partial {
        return Err(NoRecommendation::Partial);
    }
    if document.verdicts.is_empty() && document.device_mismatch(0).is_some() {
        return Err(NoRecommendation::OtherDevice);
    }
    let [verdict] = document.verdicts.as_slice() else {
        return Err(NoRecommendation::Verdicts(document.verdicts.len()));
    };
    if document.guests.is_some() {
        return Err(NoRecommendation::Guests);
    }
    let adviser = Adviser::of(analysis, verdict).ok_or(NoRecommendation::TooLittle)?;
    if matches!(verdict.decision, Decision::Alone | Decision::OneRun) {
        return Err(NoRecommendation::TooLittle);
    }
    let Settings { scheduler, files, .. } = adviser.to;
    if adviser.run.ran_as.is_some() || adviser.run.research.is_some() {
        return Err(NoRecommendation::NotInKernel(scheduler));
    }
    let files = std::iter::once(("scheduler".to_owned(), scheduler)).chain(files).collect();
    Ok(Recommended { label: verdict.recommended.clone(), is_change: verdict.decision == Decision::Change, files })
}

/// Advises what to do about a verdict.
struct Adviser<'a> {
    verdict: &'a Verdict,
    kernel: &'a str,
    /// A run of what is recommended.
    run: &'a Run,
    /// Whether that is on the other of the two queues that old kernels have: only a boot leads from one to the other.
    is_other_queue: bool,
    /// What the kernel gives the devices by itself, if nothing was compared with that and it is not given what else is set.
    missing: Option<&'a str>,
    from: Settings,
    to: Settings,
}

impl<'a> Adviser<'a> {
    fn of(analysis: &Analysis<'a>, verdict: &'a Verdict) -> Option<Self> {
        let document = analysis.document;
        let here = |label: &str| {
            let mut of_label = analysis.variants.iter().filter(|variant| variant.label == label);
            of_label.find(|variant| variant.first().setup == verdict.setup).map(|variant| variant.first())
        };
        let (from, run) = (here(&verdict.reference)?, here(&verdict.recommended)?);
        let settings = |run| Settings::of(run, document.guests.is_some());
        let default = document.setups.get(verdict.setup as usize);
        let default = default.map_or(&document.default_scheduler, |setup| &setup.default_scheduler).as_deref();
        let is_compared = |default: &str| {
            let mut here = analysis.variants.iter().map(Variant::first).filter(|run| run.setup == verdict.setup);
            here.any(|run| run.scheduler == default)
        };
        let is_asked = document.baseline.is_some() || document.guests.is_some();
        let missing = default.filter(|default| !is_asked && !is_compared(default));
        let front = match missing {
            Some("noop" | "deadline" | "cfq") => Front::Legacy,
            Some(_) => Front::Mq,
            None => from.front,
        };
        let is_other_queue = front != run.front;
        let kernel = document.place_of(run).1;
        Some(Self { verdict, kernel, run, is_other_queue, missing, from: settings(from), to: settings(run) })
    }

    fn advice(&self, device: &BlockDevice) -> Option<Advice> {
        let mut advice = Advice {
            setup: self.verdict.setup,
            device: device.name.clone(),
            decision: self.verdict.decision,
            recommended: self.verdict.recommended.clone(),
            guest_scheduler: self.to.guest_scheduler.clone(),
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
        let missing = self.missing(device);
        advice.cautions.extend(missing.map(|default| Caution::NotCompared { default: default.to_owned() }));
        if self.verdict.decision == Decision::Change || missing.is_some() {
            self.write(device, &mut advice);
        }
        Some(advice)
    }

    /// Why a change would do nothing, or could not be made.
    fn reason_without_effect(&self, device: &BlockDevice) -> Option<Caution> {
        let (scheduler, kernel) = (self.to.scheduler.clone(), self.kernel.to_owned());
        match device.kind {
            Kind::OnOthers(what) => Some(Caution::OnOthers { what }),
            Kind::InMemory => Some(Caution::InMemory),
            Kind::InFile => Some(Caution::InFile),
            _ if self.run.ran_as.is_some() || self.run.research.is_some() => {
                Some(Caution::NotInKernel { kernel, scheduler })
            }
            // NVMe has never been anything but multi-queue.
            Kind::Nvme if self.run.front == Front::Legacy => Some(Caution::SingleQueue { scheduler }),
            _ => None,
        }
    }

    /// What others were compared with as the default, if the device has another one.
    fn other_default(&self, device: &BlockDevice) -> Option<Caution> {
        let is_other = device.kind == Kind::Nvme && self.verdict.reference_is_default && self.from.scheduler != "none";
        is_other.then(|| Caution::OtherDefault { compared_with: self.from.scheduler.clone() })
    }

    /// What the device has by itself, if nothing was compared with that.
    fn missing(&self, device: &BlockDevice) -> Option<&'a str> {
        let default = self.missing.map(|default| if device.kind == Kind::Nvme { "none" } else { default });
        default.filter(|&default| default != self.from.scheduler)
    }

    /// What is set before a change, as far as that is known.
    fn before(&self, device: &BlockDevice) -> Settings {
        match self.missing(device) {
            Some(default) => Settings { scheduler: default.to_owned(), guest_scheduler: None, files: Vec::new() },
            None => self.from.clone(),
        }
    }

    /// What a change takes.
    fn write(&self, device: &BlockDevice, advice: &mut Advice) {
        let (from, to, name) = (&self.before(device), &self.to, device.name.as_str());
        let is_changed = from.scheduler != to.scheduler;
        // In guests the change may be theirs alone.
        if from.scheduler == to.scheduler && from.files == to.files {
            return;
        }
        if device.kind == Kind::Nvme && to.scheduler == "none" && to.files.is_empty() {
            advice.cautions.push(Caution::IsDefault);
        }
        if is_changed {
            advice.now.push(to.write_scheduler(name));
        }
        advice.now.extend(to.write_files(name));
        advice.back = self.back(device, &mut advice.cautions);
        let file = format!("/etc/udev/rules.d/99-hoistway-{name}.rules");
        let reload = "udevadm control --reload".to_owned();
        advice.rule = Some(UdevRule {
            lines: to.rule(name),
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

    /// Back to what it was. A scheduler begins with its defaults, and with the default of `nr_requests`, whenever it is written
    /// after another one.
    fn back(&self, device: &BlockDevice, cautions: &mut Vec<Caution>) -> Vec<String> {
        if self.is_other_queue {
            return Vec::new();
        }
        let (to, is_default_unknown) = (&self.to, self.other_default(device).is_some());
        let of_nvme = Settings { scheduler: "none".to_owned(), ..self.from.clone() };
        let from = if is_default_unknown { &of_nvme } else { &self.before(device) };
        let device = device.name.as_str();
        let is_fresh = |file: &str| file == "nr_requests" || file.starts_with("iosched/");
        let is_lost = to.files.iter().any(|(file, _)| is_fresh(file) && from.file(file).is_none());
        let mut lines = Vec::new();
        if from.scheduler != to.scheduler {
            lines.push(from.write_scheduler(device));
        } else if is_lost {
            let other = match (self.run.front, to.scheduler.as_str()) {
                (Front::Legacy, "noop") => "deadline",
                (Front::Legacy, _) => "noop",
                (Front::Mq, "none") => "mq-deadline",
                (Front::Mq, _) => "none",
            };
            lines.push(write(device, "scheduler", other));
            lines.push(from.write_scheduler(device));
        }
        lines.extend(from.write_files(device));
        for (file, _) in to.files.iter().filter(|(file, _)| !is_fresh(file) && from.file(file).is_none()) {
            if file == "wbt_lat_usec" {
                // The kernel's own word for its default.
                lines.push(write(device, file, "-1"));
            } else {
                cautions.push(Caution::HeldBefore { file: path(device, file) });
            }
        }
        lines
    }

    fn check(&self, device: &str) -> Vec<Check> {
        let shown = |file: &str, expected: String| Check { command: format!("cat {}", path(device, file)), expected };
        let files = self.to.files.iter().map(|(file, text)| shown(file, text.clone()));
        std::iter::once(shown("scheduler", format!("[{}]", self.to.scheduler))).chain(files).collect()
    }

    /// What a kernel with both queues has to be booted with. (NVMe drives have always had the newer one.)
    fn boot(&self) -> Option<Caution> {
        let of_mq = self.run.front == Front::Mq;
        let (kernel, parameter) = (self.kernel.to_owned(), format!("scsi_mod.use_blk_mq={}", u8::from(of_mq)));
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

/// Whether a release is older than the first without the single queue.
fn is_before_5(kernel: &str) -> bool {
    kernel.split('.').next().and_then(|major| major.parse::<u32>().ok()).is_some_and(|major| major < 5)
}
