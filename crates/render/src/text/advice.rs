//! What to write where, in words and lines for a shell. What is [decided](hoistway_answer::advice) elsewhere is put into words here.

use hoistway_answer::ResultsDocument;
use hoistway_answer::analysis::Analysis;
use hoistway_answer::document::{Advice, Caution, Decision, Stack};

use crate::text::words::device_name;
use crate::text::wrap::hanging;

/// All advice of a document as text, prose wrapped at `width`; empty if there is none.
pub(crate) fn advice(document: &ResultsDocument, width: usize) -> String {
    let mut text = String::new();
    let comparison = Analysis::of(document);
    for advice in &document.advice {
        let place = match document.setups.get(advice.setup as usize) {
            Some(setup) => format!(" ({}, Linux {})", device_name(&setup.device), setup.kernel),
            None => String::new(),
        };
        text += &format!("\n{}", hanging(&format!("What to write for {}{place}:", advice.device), width, 0, 2));
        Page { text: &mut text, width, comparison: &comparison }.write(advice);
    }
    text
}

/// Where advice is written to: prose, and lines that are to be copied as they are.
struct Page<'a> {
    text: &'a mut String,
    width: usize,
    comparison: &'a Analysis<'a>,
}

impl Page<'_> {
    /// What is recommended, as it stands in a sentence that says where it is.
    fn words(&self, advice: &Advice) -> String {
        let variant = self.comparison.variants.iter().find(|variant| variant.label == advice.recommended);
        variant.map_or_else(|| advice.recommended.clone(), |variant| variant.in_words())
    }

    fn prose(&mut self, prose: &str) {
        *self.text += &hanging(prose, self.width, 2, 2);
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
            Decision::OneRun => self.prose("Nothing yet: one run does not say what is noise. --repeat 3 does."),
            Decision::Alone => self.prose("Nothing: there was one scheduler, and no other to compare it with."),
            Decision::Keep if advice.check.is_empty() => {}
            Decision::Keep if !advice.now.is_empty() => {
                self.prose(&format!("Keep {} if that is what is set (below).", self.words(advice)));
            }
            Decision::Keep => self.prose(&format!("Nothing: keep {}.", self.words(advice))),
            Decision::Change => {}
        }
        let cautions = |first: bool| advice.cautions.iter().filter(move |caution| is_told_first(caution) == first);
        cautions(true).for_each(|caution| self.prose(&in_words(caution, device)));
        if let Some(guests) = advice.guest_scheduler.as_ref().filter(|_| advice.decision == Decision::Change) {
            let write = format!("echo {guests} > /sys/block/vda/queue/scheduler");
            self.lines("In each guest, if its virtual disk is vda:", &[write]);
            self.prose("On the host:");
        }
        self.lines("At once and until the next boot, as root:", &advice.now);
        self.lines("Back:", &advice.back);
        if let Some(rule) = &advice.rule {
            self.lines(&format!("At every boot: {} with", rule.file), &rule.lines);
            self.lines("which acts at once after", &rule.load);
            self.lines("Away with it (and back as above):", &rule.remove);
        }
        let check = advice.check.iter().map(|check| format!("{}    # {}", check.command, check.expected));
        self.lines("What is set:", &check.collect::<Vec<_>>());
        cautions(false).for_each(|caution| self.prose(&in_words(caution, device)));
    }
}

/// Whether it says why there is nothing to write, or for what device the lines are.
fn is_told_first(caution: &Caution) -> bool {
    !matches!(
        caution,
        Caution::Module { .. } | Caution::MayBeRenumbered | Caution::Boot { .. } | Caution::HeldBefore { .. }
    )
}

fn in_words(caution: &Caution, device: &str) -> String {
    match caution {
        Caution::Unnamed => {
            format!("Put the name of yours for {device} (lsblk -d lists them), or give it: --advice sda.")
        }
        Caution::Partition { partition } => {
            format!("{partition} is a partition, and a scheduler is of a whole disk: {device}.")
        }
        Caution::OnOthers { what } => {
            let (is, except) = match what {
                Stack::DeviceMapper => ("a device of the device mapper, as LVM and dm-crypt make them", ""),
                Stack::Multipath => (
                    "several paths to one disk",
                    " If multipath passes requests on and not bios, this file shows more than none: \
                     cat /sys/block/dm-N/queue/scheduler.",
                ),
                Stack::Md => ("a RAID of the md driver", ""),
                Stack::Other => ("a device on other devices", ""),
            };
            format!(
                "Writing to {device} would do nothing: it is {is}, and the schedulers of the disks below it act. lsblk -s \
                 /dev/{} shows them; --advice with their names.{except}",
                if matches!(what, Stack::DeviceMapper | Stack::Multipath) && !device.starts_with("dm-") {
                    format!("mapper/{device}")
                } else {
                    device.to_owned()
                }
            )
        }
        Caution::InMemory => format!("Nothing can be written: {device} is in memory and has no scheduler."),
        Caution::InFile => format!(
            "Nothing is worth writing to {device}: what acts is the scheduler of the disk that its file lies on (losetup \
             /dev/{device} shows the file)."
        ),
        Caution::IsDefault => format!(
            "Linux gives NVMe drives none by itself: look first what is set (below). If it is none, there is nothing to write \
             for {device}."
        ),
        Caution::OtherDefault { compared_with } => format!(
            "Linux gives NVMe drives none by itself, and what is said above is the difference from {compared_with}: for {device} \
             compare with --baseline none."
        ),
        Caution::NotCompared { default } => format!(
            "By itself Linux gives {device} {default}, which was not compared (default among --schedulers adds it)."
        ),
        Caution::NotInKernel { kernel, scheduler } => {
            format!("Nothing can be written: Linux {kernel} does not have {scheduler}.")
        }
        Caution::SingleQueue { scheduler } => format!(
            "Nothing can be written: {scheduler} is a scheduler of the single queue, which NVMe drives such as {device} never had."
        ),
        Caution::Boot { kernel, parameter, is_other_queue } => format!(
            "Linux {kernel} has this scheduler for {device} only if it was booted with {parameter}, unless it was built so{}.",
            if *is_other_queue { "; another boot leads back" } else { "" }
        ),
        Caution::Module { scheduler, module } => format!(
            "{scheduler} is a module in most distributions. If the write says \"Invalid argument\", try modprobe {module}; if \
             that finds nothing, this kernel was built without it."
        ),
        Caution::MayBeRenumbered => format!(
            "{device} may be another disk after the next boot. To bind the rule to this one put \
             ENV{{ID_SERIAL}}==\"...\" for KERNEL==\"{device}\"; udevadm info --query=property /dev/{device} shows the value."
        ),
        Caution::HeldBefore { file } => format!("Look first what {file} holds, to write that back."),
    }
}
