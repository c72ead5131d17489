//! Renders [advice](hoistway_answer::advice) as text with shell commands.

use hoistway_answer::analysis::Analysis;
use hoistway_answer::document::{Advice, Caution, Decision, Stack};

use crate::text::words::device_name;
use crate::text::wrap::wrap_hanging;

/// All advice of a document as text, prose wrapped at `width`; empty if there is none.
pub(crate) fn advice(analysis: &Analysis<'_>, width: usize) -> String {
    let mut text = String::new();
    let document = analysis.document;
    for advice in &document.advice {
        let setup_text = match document.setups.get(advice.setup as usize) {
            Some(setup) => format!(" ({}, Linux {})", device_name(&setup.device), setup.kernel),
            None => String::new(),
        };
        text += &format!("\n{}", wrap_hanging(&format!("Commands for {}{setup_text}:", advice.device), width, 0, 2));
        Page { text: &mut text, width, analysis }.write(advice);
    }
    text
}

/// The text of advice: prose, and lines to copy.
struct Page<'a> {
    text: &'a mut String,
    width: usize,
    analysis: &'a Analysis<'a>,
}

impl Page<'_> {
    /// The recommendation, in a sentence that names the setup.
    fn recommendation(&self, advice: &Advice) -> String {
        let variant = self.analysis.variants.iter().find(|variant| variant.label == advice.recommended);
        variant.map_or_else(|| advice.recommended.clone(), |variant| variant.in_words())
    }

    fn prose(&mut self, prose: &str) {
        *self.text += &wrap_hanging(prose, self.width, 2, 2);
    }

    fn lines(&mut self, prose: &str, lines: &[String]) {
        if !lines.is_empty() {
            self.prose(prose);
            lines.iter().for_each(|line| *self.text += &format!("    {line}\n"));
        }
    }

    fn write(&mut self, advice: &Advice) {
        let device = &advice.device;
        match advice.decision {
            Decision::OneRun => self.prose("Nothing yet: a single run cannot show what is noise. Use --repeat 3."),
            Decision::Alone => self.prose("Nothing: only one scheduler ran, so there was no comparison."),
            Decision::Keep if advice.check.is_empty() => {}
            Decision::Keep if !advice.now.is_empty() => {
                self.prose(&format!(
                    "Keep {} if it is the current scheduler (check below).",
                    self.recommendation(advice)
                ));
            }
            Decision::Keep => self.prose(&format!("Nothing: keep {}.", self.recommendation(advice))),
            Decision::Change => {}
        }
        let cautions = |first: bool| advice.cautions.iter().filter(move |caution| is_leading_caution(caution) == first);
        cautions(true).for_each(|caution| self.prose(&caution_text(caution, device)));
        if let Some(guests) = advice.guest_scheduler.as_ref().filter(|_| advice.decision == Decision::Change) {
            let write = format!("echo {guests} > /sys/block/vda/queue/scheduler");
            self.lines("In each guest, if its virtual disk is vda:", &[write]);
            self.prose("On the host:");
        }
        self.lines("Until the next boot, as root:", &advice.now);
        self.lines("To undo:", &advice.back);
        if let Some(rule) = &advice.rule {
            self.lines(&format!("At every boot: {} with", rule.file), &rule.lines);
            self.lines("which takes effect without a reboot after", &rule.load);
            self.lines("To remove the rule (and undo as above):", &rule.remove);
        }
        let check = advice.check.iter().map(|check| format!("{}    # {}", check.command, check.expected));
        self.lines("To check:", &check.collect::<Vec<_>>());
        cautions(false).for_each(|caution| self.prose(&caution_text(caution, device)));
    }
}

/// Whether a caution comes before the commands: it explains why there are none, or which device they are for.
fn is_leading_caution(caution: &Caution) -> bool {
    !matches!(
        caution,
        Caution::Module { .. }
            | Caution::MayBeRenumbered
            | Caution::Boot { .. }
            | Caution::HeldBefore { .. }
            | Caution::UntilBoot
            | Caution::TargetsUntilBoot { .. }
    )
}

fn caution_text(caution: &Caution, device: &str) -> String {
    match caution {
        Caution::Unnamed => {
            format!("Replace {device} by the name of your device (lsblk -d lists them), or give it: --advice sda.")
        }
        Caution::Partition { partition } => {
            format!("{partition} is a partition; a scheduler belongs to the whole disk: {device}.")
        }
        Caution::OnOthers { what } => {
            let (is, except) = match what {
                Stack::DeviceMapper => ("a device-mapper device, as LVM and dm-crypt create them", ""),
                Stack::Multipath => (
                    "several paths to one disk",
                    " If multipath is request-based, this file lists more than none: \
                     cat /sys/block/dm-N/queue/scheduler.",
                ),
                Stack::Md => ("an md RAID", ""),
                Stack::Other => ("stacked on other devices", ""),
            };
            format!(
                "Writing to {device} has no effect: it is {is}, and the schedulers of the disks below it apply. lsblk -s \
                 /dev/{} shows them; use --advice with their names.{except}",
                if matches!(what, Stack::DeviceMapper | Stack::Multipath) && !device.starts_with("dm-") {
                    format!("mapper/{device}")
                } else {
                    device.to_owned()
                }
            )
        }
        Caution::InMemory => format!("Nothing to change: {device} is in memory and has no scheduler."),
        Caution::InFile => format!(
            "Do not write to {device}: the scheduler of the disk that holds its file applies (losetup /dev/{device} \
             shows the file)."
        ),
        Caution::IsDefault => format!(
            "Linux gives NVMe drives none by default: check the current scheduler first (below). If it is none, there is \
             nothing to change for {device}."
        ),
        Caution::OtherDefault { compared_with } => format!(
            "Linux gives NVMe drives none by default, and the results above are differences from {compared_with}: for {device} \
             compare with --baseline none."
        ),
        Caution::NotCompared { default } => {
            format!("By default Linux gives {device} {default}, which was not compared (add default to --schedulers).")
        }
        Caution::NotInKernel { kernel, scheduler } => {
            format!("Nothing to change: Linux {kernel} does not have {scheduler}.")
        }
        Caution::SingleQueue { scheduler } => format!(
            "Nothing to change: {scheduler} is a scheduler of the legacy queue, which NVMe drives such as {device} never had."
        ),
        Caution::Boot { kernel, parameter, is_other_queue } => format!(
            "Linux {kernel} has this scheduler for {device} only if it was booted with {parameter} or configured that way{}.",
            if *is_other_queue { "; to undo, boot without it" } else { "" }
        ),
        Caution::Module { scheduler, module } => format!(
            "{scheduler} is a module in most distributions. If the write fails with \"Invalid argument\", try modprobe {module}; if \
             that finds nothing, this kernel was built without it."
        ),
        Caution::MayBeRenumbered => format!(
            "{device} may be another disk after the next boot. To bind the rule to this one put \
             ENV{{ID_SERIAL}}==\"...\" for KERNEL==\"{device}\"; udevadm info --query=property /dev/{device} shows the value."
        ),
        Caution::UntilBoot => {
            "The files of io.cost keep these lines until the next boot, and exist if the kernel was built with it. \
                               The groups are those of the load, below /sys/fs/cgroup: put your own in their place."
                .to_owned()
        }
        Caution::TargetsUntilBoot { properties } => format!(
            "io.latency keeps these lines until the group is removed or the next boot, and exists if the kernel was built with it. The \
             groups are those of the load, below /sys/fs/cgroup: put your own in their place. Of a group that is a unit of systemd, this \
             property sets the target whenever it starts: {}.",
            properties.join("; ")
        ),
        Caution::HeldBefore { file } => format!("Note the value of {file} first, to restore it later."),
    }
}
