//! Stacked devices of a comparison: their text form, and their place in the load.

use std::sync::Arc;

use hoistway_load::Load;
use hoistway_sim::{Encryption, StackKind, StackMember, StackedDevice};

use crate::comparison::Load as RequestedLoad;
use crate::comparison::environment::Options;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::nearest;
use crate::plan::files::in_full;

/// An example of a stacked device.
pub const EXAMPLE: &str = "such as \"/dev/md0 = raid1(/dev/sda, /dev/sdb)\"";

/// The kinds, as written.
const KINDS: [&str; 6] = ["linear", "raid0", "raid1", "raid5", "raid6", "crypt"];
/// Bytes of a chunk unless it is given, as of mdadm.
const CHUNK_BYTES: u64 = 512 << 10;

/// A stacked device as written.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Written {
    name: String,
    kind: StackKind,
    members: Vec<String>,
}

/// The stacked devices of a load, and the load's files with them.
#[derive(Debug, Default)]
pub(crate) struct ChosenStacks {
    /// The devices, each after those that it lies on.
    pub(crate) devices: Vec<StackedDevice>,
    /// The load's files: disks, then the outermost stacked devices. Empty without stacked devices.
    files: Vec<String>,
    /// The new number of each of the load's files as they were.
    moved: Vec<u32>,
    pub(crate) notices: Vec<String>,
}

impl ChosenStacks {
    /// Gives a load its files.
    pub(crate) fn place(&self, load: &mut Load) {
        if self.devices.is_empty() {
            return;
        }
        load.files.clone_from(&self.files);
        for process in &mut load.processes {
            process.files = process.files.iter().map(|&file| self.moved[file as usize]).collect::<Arc<[u32]>>();
        }
    }

    /// The files of a load that are disks.
    pub(crate) fn disks<'a>(&'a self, load: &'a Load) -> &'a [String] {
        if self.devices.is_empty() {
            return &load.files;
        }
        &self.files[..self.files.len() - StackedDevice::outermost(&self.devices).count()]
    }

    /// Bytes of the stacked device that the load's first file is on, over disks with these bytes.
    pub(crate) fn bytes_of_first(&self, disks: &[u64]) -> Option<u64> {
        let first = *self.moved.first()? as usize;
        let outermost = StackedDevice::outermost(&self.devices).nth(first.checked_sub(disks.len())?)?;
        StackedDevice::capacities(&self.devices, disks).get(outermost).copied()
    }
}

/// The stacked devices of a load.
pub(crate) fn choose(options: &Options<'_>, load: &Load, in_guests: bool) -> Result<ChosenStacks, Error> {
    let texts = &options.comparison.stacks;
    let refuse =
        |(index, problem): (usize, String)| options.refuse(Field::Stacks, format_args!("{:?}", texts[index]), problem);
    if texts.is_empty() {
        return Ok(ChosenStacks::default());
    }
    if in_guests {
        let problem = "stacked devices below guests are not modelled (expected a load without guests)";
        return Err(refuse((0, problem.to_owned())));
    }
    let written = read(texts, &load.files).map_err(refuse)?;
    check_members(&written).map_err(refuse)?;
    let order = in_order(&written).map_err(|index| {
        refuse((index, format!("{} lies on itself (expected members below it)", written[index].name)))
    })?;
    let is_outermost = |&index: &usize| !written.iter().any(|device| device.members.contains(&written[index].name));
    let tops: Vec<usize> = order.iter().copied().filter(is_outermost).collect();
    let (moved_to_top, mut notices) = files_on_top(options, load, &written, &tops).map_err(refuse)?;
    check_direct(load, &moved_to_top).map_err(|(file, job)| {
        let problem = format!(
            "job {job} does buffered I/O, which is not modelled on a stacked device (expected direct=1 in the job)"
        );
        refuse((tops[moved_to_top[file].unwrap_or(0)], problem))
    })?;
    notices.push(format!("Stacked devices: {}.", texts.join("; ")));
    notices.extend(tops.iter().map(|&top| scheduler_notice(&written, top)));
    Ok(assemble(&written, &order, load, &moved_to_top, notices))
}

/// The devices with their names in full; or the number of a text that is wrong, and the problem.
fn read(texts: &[String], files: &[String]) -> Result<Vec<Written>, Refused> {
    let mut written: Vec<Written> = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let Written { name, kind, members } = parse(text).map_err(|problem| (index, problem))?;
        let members = members.into_iter().map(|member| in_full(member, files)).collect();
        let device = Written { name: in_full(name, files), kind, members };
        if written.iter().any(|other| other.name == device.name) {
            let problem = format!("{} is given twice (expected each stacked device once)", device.name);
            return Err((index, problem));
        }
        written.push(device);
    }
    Ok(written)
}

/// The number of a text that is wrong, and the problem.
type Refused = (usize, String);

/// For each of the load's files the outermost device that it is on, if it is on any, by its number among them; and a notice if the
/// file has another name.
fn files_on_top(
    options: &Options<'_>,
    load: &Load,
    written: &[Written],
    tops: &[usize],
) -> Result<(Vec<Option<usize>>, Vec<String>), Refused> {
    if let [top] = tops
        && !load.files.contains(&written[*top].name)
        && is_without_name_of_its_own(options, load)
    {
        let notice = format!("The load is on {}, the only stacked device.", written[*top].name);
        return Ok((vec![Some(0)], vec![notice]));
    }
    for file in &load.files {
        if let Some(index) = written.iter().position(|device| device.members.contains(file)) {
            let problem = format!("the load uses {file} itself (expected jobs on {} alone)", written[index].name);
            return Err((index, problem));
        }
    }
    let mut moved_to_top = vec![None; load.files.len()];
    for (number, &top) in tops.iter().enumerate() {
        let name = &written[top].name;
        let Some(used) = load.files.iter().position(|file| file == name) else {
            let known = load.files.join(", ");
            let problem = format!("no job uses {name} (expected it as a filename of the job file, which has {known})");
            return Err((top, problem));
        };
        moved_to_top[used] = Some(number);
    }
    Ok((moved_to_top, Vec::new()))
}

/// Whether the load's only file is no device that a user chose: that of a recording or of a bundled load.
fn is_without_name_of_its_own(options: &Options<'_>, load: &Load) -> bool {
    let is_bundled = matches!(options.comparison.load, RequestedLoad::Example | RequestedLoad::Scenario(_));
    load.files.len() == 1 && (is_bundled || !load.files[0].starts_with("/dev/"))
}

/// The first job that does buffered I/O on a stacked device, with the file.
fn check_direct(load: &Load, moved_to_top: &[Option<usize>]) -> Result<(), (usize, String)> {
    for process in load.processes.iter().filter(|process| !process.caching.direct) {
        let mut files = process.files.iter().map(|&file| file as usize);
        if let Some(file) = files.find(|&file| moved_to_top[file].is_some()) {
            return Err((file, process.name.clone()));
        }
    }
    Ok(())
}

/// The load's files with the disks below stacked devices, and the devices by number.
fn assemble(
    written: &[Written],
    order: &[usize],
    load: &Load,
    moved_to_top: &[Option<usize>],
    notices: Vec<String>,
) -> ChosenStacks {
    let mut files: Vec<String> =
        load.files.iter().zip(moved_to_top).filter(|(_, top)| top.is_none()).map(|(file, _)| file.clone()).collect();
    let mut devices: Vec<StackedDevice> = Vec::with_capacity(order.len());
    for &index in order {
        let Written { name, kind, members } = &written[index];
        let mut member = |name: &String| match devices.iter().position(|device| device.name == *name) {
            Some(stack) => StackMember::Stack(stack as u32),
            None => {
                files.push(name.clone());
                StackMember::Disk(files.len() as u32 - 1)
            }
        };
        let members = members.iter().map(&mut member).collect();
        devices.push(StackedDevice { name: name.clone(), kind: *kind, members });
    }
    let (disks, mut next) = (files.len() as u32, 0);
    let moved = moved_to_top.iter().map(|top| match top {
        Some(number) => disks + *number as u32,
        None => {
            next += 1;
            next - 1
        }
    });
    let moved = moved.collect();
    files.extend(StackedDevice::outermost(&devices).map(|number| devices[number].name.clone()));
    ChosenStacks { devices, files, moved, notices }
}

/// Says where the schedulers are.
fn scheduler_notice(written: &[Written], top: usize) -> String {
    fn disks<'a>(written: &'a [Written], index: usize, into: &mut Vec<&'a str>) {
        for member in &written[index].members {
            match written.iter().position(|device| device.name == *member) {
                Some(stack) => disks(written, stack, into),
                None => into.push(member),
            }
        }
    }
    let mut below = Vec::new();
    disks(written, top, &mut below);
    let (name, below) = (&written[top].name, below.join(", "));
    format!(
        "{name} has no scheduler and no queue: those of the disks below it ({below}) act, and settings and advice are for these. \
         Latencies are those of {name} (docs/stacks.md)."
    )
}

/// Checks that no device is a member twice.
fn check_members(written: &[Written]) -> Result<(), (usize, String)> {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (index, device) in written.iter().enumerate() {
        for member in &device.members {
            if let Some((_, other)) = seen.iter().find(|(name, _)| name == member) {
                let twice = if *other == device.name {
                    "a member twice".to_owned()
                } else {
                    format!("a member of {other}, too")
                };
                return Err((index, format!("{member} is {twice} (expected each device as a member once)")));
            }
            seen.push((member, &device.name));
        }
    }
    Ok(())
}

/// The devices, each after those that it lies on; or one that lies on itself.
fn in_order(written: &[Written]) -> Result<Vec<usize>, usize> {
    let mut order: Vec<usize> = Vec::with_capacity(written.len());
    while order.len() < written.len() {
        let is_placed = |name: &String| {
            written.iter().position(|device| device.name == *name).is_none_or(|index| order.contains(&index))
        };
        let is_next = |index: &usize| !order.contains(index) && written[*index].members.iter().all(is_placed);
        let next = (0..written.len()).find(is_next);
        match next {
            Some(index) => order.push(index),
            None => return Err((0..written.len()).find(|index| !order.contains(index)).unwrap_or(0)),
        }
    }
    Ok(order)
}

/// A stacked device from `NAME = KIND(MEMBER, ...)`.
fn parse(text: &str) -> Result<Written, String> {
    let form = || format!("expected NAME = KIND(MEMBER, ...), {EXAMPLE}");
    let (name, rest) = text.split_once('=').ok_or_else(form)?;
    let (kind, arguments) = rest.trim().strip_suffix(')').and_then(|rest| rest.split_once('(')).ok_or_else(form)?;
    let (name, kind) = (name.trim(), kind.trim());
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(form());
    }
    if !KINDS.contains(&kind) {
        let hint = nearest::hint(kind, KINDS);
        return Err(format!("{kind:?} is no kind of stacked device ({hint}expected one of {})", KINDS.join(", ")));
    }
    let (mut members, mut details) = (Vec::new(), Details::default());
    for argument in arguments.split(',').map(str::trim) {
        if argument.is_empty() || argument.contains(char::is_whitespace) && !argument.contains('=') {
            return Err(form());
        }
        if !details.take(kind, argument)? {
            members.push(argument.to_owned());
        }
    }
    let kind = details.kind(kind, members.len())?;
    Ok(Written { name: name.to_owned(), kind, members })
}

/// The options of a kind, as far as they are given.
struct Details {
    chunk_sectors: u32,
    bitmap: bool,
    encryption: Encryption,
}

impl Default for Details {
    fn default() -> Details {
        let encryption = Encryption { read_queue: true, write_queue: true, ns_per_kib: Encryption::NS_PER_KIB };
        Details { chunk_sectors: (CHUNK_BYTES / 512) as u32, bitmap: false, encryption }
    }
}

impl Details {
    /// Takes an argument if it is an option of this kind; others are members.
    fn take(&mut self, kind: &str, argument: &str) -> Result<bool, String> {
        let option = argument.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        match (kind, option) {
            ("raid0" | "raid5" | "raid6", Some(("chunk", value))) => self.chunk_sectors = chunk_sectors(value)?,
            ("crypt", Some(("ns_per_kib", value))) => {
                let expected = || format!("ns_per_kib={value}: expected a whole number of ns from 0 to 1000000");
                let ns = value.parse().ok().filter(|ns| *ns <= 1_000_000);
                self.encryption.ns_per_kib = ns.ok_or_else(expected)?;
            }
            ("raid1", None) if argument == "bitmap" => self.bitmap = true,
            ("crypt", None) if argument == "no_read_workqueue" => self.encryption.read_queue = false,
            ("crypt", None) if argument == "no_write_workqueue" => self.encryption.write_queue = false,
            (_, Some((key, _))) => return Err(unknown_option(kind, key)),
            (_, None) => return Ok(false),
        }
        Ok(true)
    }

    /// The kind with its options, over this many members.
    fn kind(&self, kind: &str, members: usize) -> Result<StackKind, String> {
        let chunk_sectors = self.chunk_sectors;
        let (kind_of, least) = match kind {
            "linear" => (StackKind::Linear, 1),
            "raid0" => (StackKind::Raid0 { chunk_sectors }, 2),
            "raid1" => (StackKind::Raid1 { bitmap: self.bitmap }, 2),
            "raid5" => (StackKind::Raid5 { chunk_sectors }, 3),
            "raid6" => (StackKind::Raid6 { chunk_sectors }, 4),
            _ => (StackKind::Crypt(self.encryption), 1),
        };
        let is_single = kind == "crypt";
        if members < least || is_single && members > 1 {
            let expected = if is_single { "one".to_owned() } else { format!("{least} or more") };
            return Err(format!("{kind} has {members} member(s) (expected {expected})"));
        }
        Ok(kind_of)
    }
}

fn unknown_option(kind: &str, key: &str) -> String {
    let known = match kind {
        "raid0" | "raid5" | "raid6" => "chunk=SIZE",
        "raid1" => "bitmap",
        "crypt" => "no_read_workqueue, no_write_workqueue or ns_per_kib=N",
        _ => "members alone",
    };
    format!("{kind} has no option {key:?} (expected {known})")
}

/// The sectors of a chunk: `512K`.
fn chunk_sectors(text: &str) -> Result<u32, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit: Option<u64> = match &text[digits.len()..] {
        "" => Some(1),
        "K" | "k" | "KiB" => Some(1 << 10),
        "M" | "m" | "MiB" => Some(1 << 20),
        _ => None,
    };
    let bytes = digits.parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    bytes
        .filter(|bytes| bytes.is_power_of_two() && (4096..=1 << 30).contains(bytes))
        .map(|bytes| (bytes / 512) as u32)
        .ok_or_else(|| format!("chunk={text}: expected a power of two from 4K to 1024M, such as chunk=512K"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stacked_device_is_read_as_written() {
        let device = parse("/dev/md0=raid0( /dev/sda,/dev/sdb , chunk = 64K)").unwrap();
        let members = ["/dev/sda", "/dev/sdb"].map(str::to_owned).to_vec();
        assert_eq!(
            device,
            Written { name: "/dev/md0".to_owned(), kind: StackKind::Raid0 { chunk_sectors: 128 }, members }
        );
        assert_eq!(parse("v = linear(a)").unwrap().kind, StackKind::Linear);
        assert_eq!(parse("v = raid6(a,b,c,d)").unwrap().kind, StackKind::Raid6 { chunk_sectors: 1024 });
        assert_eq!(parse("v = raid1(a, b, bitmap)").unwrap().kind, StackKind::Raid1 { bitmap: true });
        let encryption = Encryption { read_queue: true, write_queue: false, ns_per_kib: 250 };
        let crypt = parse("c = crypt(a, no_write_workqueue, ns_per_kib = 250)").unwrap();
        assert_eq!((crypt.kind, crypt.members), (StackKind::Crypt(encryption), vec!["a".to_owned()]));
        assert_eq!(parse("v = raid0(a, b)").unwrap().kind, StackKind::Raid0 { chunk_sectors: 1024 });
    }

    #[test]
    fn what_is_wrong_is_named_with_what_was_expected() {
        for (text, expected) in [
            ("md0", "expected NAME = KIND(MEMBER, ...), such as"),
            (" = linear(a)", "expected NAME = KIND(MEMBER, ...), such as"),
            ("md0 = linear(a", "expected NAME = KIND(MEMBER, ...), such as"),
            ("md0 = linear(a,)", "expected NAME = KIND(MEMBER, ...), such as"),
            ("md0 = raid7(a, b)", "\"raid7\" is no kind of stacked device (did you mean"),
            ("md0 = raid1(a)", "raid1 has 1 member(s) (expected 2 or more)"),
            ("md0 = raid5(a, b)", "raid5 has 2 member(s) (expected 3 or more)"),
            ("md0 = raid6(a, b, c)", "raid6 has 3 member(s) (expected 4 or more)"),
            ("c = crypt(a, b)", "crypt has 2 member(s) (expected one)"),
            ("c = crypt(a, no_workqueue=1)", "crypt has no option \"no_workqueue\" (expected no_read_workqueue, no_w"),
            ("c = crypt(a, ns_per_kib=fast)", "ns_per_kib=fast: expected a whole number of ns from 0 to 1000000"),
            ("md0 = raid0(a, b, chunk=3K)", "chunk=3K: expected a power of two from 4K to 1024M"),
            ("md0 = raid0(a, b, chunk=2K)", "chunk=2K: expected a power of two from 4K to 1024M"),
            ("md0 = raid0(a, b, chunk=4P)", "chunk=4P: expected a power of two from 4K to 1024M"),
            ("md0 = raid1(a, b, chunk=4K)", "raid1 has no option \"chunk\" (expected bitmap)"),
            ("md0 = raid0(a, b, size=4K)", "raid0 has no option \"size\" (expected chunk=SIZE)"),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }

    #[test]
    fn devices_come_after_those_that_they_lie_on() {
        let written = ["c = raid1(a, b)", "a = linear(d)", "b = raid0(e, f)"].map(|text| parse(text).unwrap());
        assert_eq!(in_order(&written), Ok(vec![1, 2, 0]));
        let written = ["a = linear(b)", "c = linear(d)", "b = linear(a)"].map(|text| parse(text).unwrap());
        assert_eq!(in_order(&written), Err(0));
    }
}
