//! `hoistway apply`: writes the settings that a comparison recommends, and undoes them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::{Args, ValueEnum};
use hoistway_answer::advice::recommended;
use hoistway_linux::Root;
use hoistway_linux::apply::{Applied, Applier, Match, Persist, Plan, Restored, Udevadm, is_setuid};
use hoistway_linux::dump::System;

use crate::input::CommandLine;
use crate::stored;
use hoistway_terminal::output::Output;
use hoistway_terminal::{Ending, printable};

/// The folder of the journal unless another is named.
const JOURNAL: &str = "/var/lib/hoistway";

/// Apply the settings that a comparison recommends to devices, or undo them.
///
/// Without --yes nothing is written: the plan is printed. Changes are journalled first; each value is read back, and any mismatch
/// rolls everything back. The next run rolls back what a killed run left incomplete. Only the named devices are touched.
/// docs/apply.md explains the details.
///
/// Examples:
///   hoistway compare my-load.fio --repeat 5 --format json -o result.json
///   hoistway apply result.json --device sda
///   hoistway apply result.json --device sda --persist udev --yes
///   hoistway apply --status
///   hoistway apply --undo
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The document of hoistway compare --format json; - for standard input.
    #[arg(required_unless_present_any = ["undo", "status"], conflicts_with_all = ["undo", "status"])]
    result: Option<PathBuf>,
    /// The device to set, as in /sys/block; may be given several times. With --undo the device to restore. [default with --undo:
    /// all]
    #[arg(long, value_name = "DEVICE")]
    device: Vec<String>,
    /// Write the settings instead of printing the plan.
    #[arg(long, conflicts_with_all = ["undo", "status"])]
    yes: bool,
    /// What makes the change survive a reboot.
    #[arg(long, value_enum, default_value_t, conflicts_with_all = ["undo", "status"])]
    persist: PersistOption,
    /// Match the device by its name instead of its serial number; names can change across reboots. tuned and systemd can match by
    /// name only.
    #[arg(long, conflicts_with_all = ["undo", "status"])]
    by_name: bool,
    /// Restore the previous values, newest change first. What another program has changed since is left alone.
    #[arg(long, conflicts_with = "status")]
    undo: bool,
    /// List the applied settings, and whether they are still in force.
    #[arg(long)]
    status: bool,
    /// The folder of the journal.
    #[arg(long, value_name = "DIR", default_value = JOURNAL)]
    journal: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum PersistOption {
    /// Nothing: the change is lost at the next reboot.
    #[default]
    None,
    /// A udev rule, /etc/udev/rules.d/90-hoistway-DEVICE.rules.
    Udev,
    /// A tuned profile that includes the active one.
    Tuned,
    /// A systemd unit that is started with the device.
    Systemd,
    /// Text for the configuration of NixOS, printed to be pasted.
    Nixos,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    ensure!(!is_setuid(), "hoistway apply: runs setuid (expected to be run by root itself)");
    let root = Root::open(Path::new("/")).context("/")?;
    let text = if arguments.undo {
        undo(arguments, &root)?
    } else if arguments.status {
        status(arguments, &root)?
    } else {
        apply(arguments, &root)?
    };
    Output::open(None)?.write(printable::text(&text))?;
    Ok(Ending::Done)
}

fn apply(arguments: &Arguments, root: &Root) -> Result<String> {
    let file = arguments.result.as_ref().ok_or_else(|| anyhow!("expected a document of hoistway compare"))?;
    ensure!(!arguments.device.is_empty(), "--device: expected the name of the device to set, as in /sys/block");
    let persist = persist(arguments)?;
    let document = stored::document(&CommandLine::default(), file)?;
    let recommended =
        recommended(&hoistway_answer::Analysis::of(&document)).with_context(|| file.display().to_string())?;
    if !recommended.is_change {
        let plans = plans(arguments, root, &recommended.files, Persist::No)?;
        let kept = format!("The verdict keeps {}: nothing is worth a change.\n", recommended.label);
        return Ok(kept
            + &plans.iter().filter_map(|plan| other_scheduler_notice(plan, &recommended.label)).collect::<String>());
    }
    if !arguments.yes {
        let plans = plans(arguments, root, &recommended.files, persist)?;
        let text: String = plans.iter().map(plan_text).collect();
        return Ok(text + "Nothing was written. Add --yes to write it.\n");
    }
    let applier = applier(arguments, root)?;
    // A plan must start from a consistent machine, without incomplete changes.
    let mut text = restored(&applier.recover()?);
    let (done, plans): (Vec<_>, Vec<_>) =
        plans(arguments, root, &recommended.files, persist)?.into_iter().partition(|plan| plan.is_done(root));
    text += &done.iter().map(|plan| format!("{}: already set\n", plan.device)).collect::<String>();
    for written in applier.apply(&plans)? {
        let shown = if written.shown == written.value {
            String::new()
        } else {
            format!(", which the kernel made {}", written.shown)
        };
        text += &format!("/sys/block/{}/queue/{}: set to {}{shown}\n", written.device, written.file, written.value);
    }
    for plan in &plans {
        text += &plan.persisted.iter().map(|file| format!("/{}: made\n", file.path)).collect::<String>();
        text += &nixos_text(plan);
        text += &overruled_text(plan);
    }
    Ok(text)
}

/// A notice if the device runs another scheduler than the one that the verdict keeps: the verdict did not compare the two.
fn other_scheduler_notice(plan: &Plan, label: &str) -> Option<String> {
    let write = plan.writes.iter().find(|write| write.file == "scheduler" && write.value != write.before)?;
    let (device, has) = (&plan.device, &write.before);
    Some(format!("{device} has {has}: compare with --baseline {has} to see whether {label} is better.\n"))
}

fn applier<'a>(arguments: &Arguments, root: &'a Root) -> Result<Applier<'a>> {
    Ok(Applier::open(root, root, &arguments.journal, Udevadm::find("udevadm"))?)
}

fn persist(arguments: &Arguments) -> Result<Persist> {
    let device_match = if arguments.by_name { Match::Name } else { Match::Serial };
    let require_by_name = |persist, what: &str| {
        let expected = "expected --by-name with it, or --persist udev";
        ensure!(
            arguments.by_name,
            "--persist {what}: names the device as the kernel does, and kernel names can change across reboots ({expected})"
        );
        Ok(persist)
    };
    match arguments.persist {
        PersistOption::None => {
            ensure!(
                !arguments.by_name,
                "--by-name: only applies to a persistent change (expected --persist udev or another with it)"
            );
            Ok(Persist::No)
        }
        PersistOption::Udev => Ok(Persist::Udev(device_match)),
        PersistOption::Tuned => require_by_name(Persist::Tuned, "tuned"),
        PersistOption::Systemd => require_by_name(Persist::Systemd, "systemd"),
        PersistOption::Nixos => Ok(Persist::NixOs(device_match)),
    }
}

fn plans(arguments: &Arguments, root: &Root, files: &[(String, String)], persist: Persist) -> Result<Vec<Plan>> {
    let system = System::open(None, false)?;
    let host = system.host()?;
    let mut plans: Vec<Plan> = Vec::new();
    for name in &arguments.device {
        let device = host.device_called(name)?;
        if plans.iter().all(|plan| plan.device != device.name) {
            plans.push(Plan::make(root, &host, device, files, persist)?);
        }
    }
    ensure!(
        plans.len() < 2 || persist != Persist::Tuned,
        "--persist tuned: a profile sets one device (expected one --device, or --persist udev)"
    );
    Ok(plans)
}

fn plan_text(plan: &Plan) -> String {
    let mut text = format!("{}:\n", plan.device);
    for write in &plan.writes {
        text += &format!("  /sys/block/{}/queue/{}: {} -> {}\n", plan.device, write.file, write.before, write.value);
    }
    for file in &plan.persisted {
        text += &format!("  /{}:\n", file.path);
        text += &file.content.lines().map(|line| format!("    {line}\n")).collect::<String>();
    }
    text + &nixos_text(plan) + &overruled_text(plan)
}

fn nixos_text(plan: &Plan) -> String {
    let lines = plan.to_paste.iter().flat_map(|text| text.lines());
    let lines: String = lines.map(|line| format!("    {line}\n")).collect();
    if lines.is_empty() { lines } else { format!("  for /etc/nixos/configuration.nix:\n{lines}") }
}

fn overruled_text(plan: &Plan) -> String {
    plan.overruled_by.iter().map(|by| format!("  might be overruled by {by}\n")).collect()
}

fn undo(arguments: &Arguments, root: &Root) -> Result<String> {
    let applier = applier(arguments, root)?;
    let mut all = Vec::new();
    if arguments.device.is_empty() {
        all = applier.undo(None)?;
    }
    for name in &arguments.device {
        let name = name.strip_prefix("/dev/").unwrap_or(name);
        let device_restored = applier.undo(Some(name))?;
        ensure!(
            !device_restored.is_empty(),
            "{name}: nothing is applied to it (expected a device that --status lists)"
        );
        all.extend(device_restored);
    }
    if all.is_empty() {
        return Ok("Nothing is applied.\n".to_owned());
    }
    Ok(restored(&all))
}

fn restored(all: &[Restored]) -> String {
    let line = |(file, value): &(String, Option<String>)| match value {
        Some(value) => format!("{file}: back to {value}\n"),
        None => format!("{file}: removed\n"),
    };
    let mut text = String::new();
    for restored in all {
        if restored.was_half_done {
            text += &format!("{}: rolled back what a killed run had left incomplete\n", restored.device);
        }
        if restored.files.is_empty() && restored.kept.is_empty() {
            text += &format!("{}: unchanged\n", restored.device);
        }
        text += &restored.files.iter().map(line).collect::<String>();
        text +=
            &restored.kept.iter().map(|kept| format!("{}: left alone, {}\n", kept.file, kept.why)).collect::<String>();
    }
    text
}

fn status(arguments: &Arguments, root: &Root) -> Result<String> {
    if !arguments.journal.is_dir() {
        return Ok("Nothing is applied.\n".to_owned());
    }
    let mut text = String::new();
    for applied in applier(arguments, root)?.status()? {
        let device = &applied.device;
        let state = if applied.is_half_done {
            left_incomplete(arguments, &applied)
        } else if applied.is_in_force {
            "in force".to_owned()
        } else {
            "no longer in force: another program changed it, or the machine was rebooted".to_owned()
        };
        text += &format!("{device}: {state}\n");
        for (file, before, after) in &applied.files {
            text += &format!("  queue/{file}: {before} -> {after}\n");
        }
        text += &applied.persisted.iter().map(|file| format!("  {file}\n")).collect::<String>();
    }
    Ok(if text.is_empty() { "Nothing is applied.\n".to_owned() } else { text })
}

/// Says that a killed run has left a change incomplete, and the command that undoes it.
fn left_incomplete(arguments: &Arguments, applied: &Applied) -> String {
    let Applied { device, files, persisted, .. } = applied;
    let left = if files.is_empty() && persisted.is_empty() { "nothing is changed yet" } else { "changed until then" };
    let journal = arguments.journal.display().to_string();
    let mut command = format!("hoistway apply --undo --device {}", shell_words::quote(device));
    if journal != JOURNAL {
        command += &format!(" --journal {}", shell_words::quote(&journal));
    }
    format!("left incomplete by a killed run; {left}. Undo it with: {command}")
}
