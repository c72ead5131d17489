//! Decodes trace records to block events, using the `format` files of the running kernel.

use hoistway_blk::bio::IoPriority;
use hoistway_trace::block::{Action, Device, Event, Flags, Payload};

use super::format::{Field, Format};

/// Bytes of a task's name in a record.
const NAME_BYTES: usize = 16;
/// Bytes of a record's id.
const ID_BYTES: usize = 2;

/// A kind of recorded event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kind {
    /// Its folder in `events/block`.
    pub(crate) name: &'static str,
    action: Action,
    /// Whether recordings are useless without it.
    pub(crate) is_required: bool,
}

const fn kind(name: &'static str, action: Action, is_required: bool) -> Kind {
    Kind { name, action, is_required }
}

/// The events of a recording. `block_rq_merge` is left out: a request merged into another one completes with it, and readers
/// would take the event for the merge of a bio.
pub(crate) const KINDS: [Kind; 13] = [
    kind("block_bio_queue", Action::Queue, true),
    kind("block_getrq", Action::GetRequest, true),
    kind("block_bio_backmerge", Action::BackMerge, false),
    kind("block_bio_frontmerge", Action::FrontMerge, false),
    kind("block_rq_insert", Action::Insert, false),
    kind("block_rq_issue", Action::Issue, true),
    kind("block_rq_requeue", Action::Requeue, false),
    kind("block_rq_complete", Action::Complete, true),
    // Only for bio-based devices, such as device mapper.
    kind("block_bio_complete", Action::Complete, false),
    kind("block_split", Action::Split, false),
    kind("block_bio_remap", Action::Remap, false),
    kind("block_plug", Action::Plug, false),
    kind("block_unplug", Action::Unplug, false),
];

impl Kind {
    /// Whether its records contain the device, so that the kernel can filter by it.
    pub(crate) fn has_device(self) -> bool {
        !matches!(self.action, Action::Plug | Action::Unplug)
    }
}

/// The offsets of an event's fields in a record; `None` for fields that it lacks.
#[derive(Clone, Debug)]
struct Layout {
    action: Action,
    pid: usize,
    sector: Option<usize>,
    sectors: Option<usize>,
    bytes: Option<usize>,
    error: Option<usize>,
    priority: Option<usize>,
    flags: Option<Field>,
    task: Option<usize>,
    command: Option<usize>,
    rest_sector: Option<usize>,
    old_device: Option<usize>,
    old_sector: Option<usize>,
    requests: Option<usize>,
}

impl Layout {
    /// Finds the fields; an error is the name of a missing one.
    fn find(kind: Kind, format: &Format) -> Result<Layout, &'static str> {
        let offset_of = |name: &str, bytes: usize| {
            format.field(name).filter(|field| field.bytes == bytes).map(|field| field.offset)
        };
        let is_bio = kind.name.starts_with("block_bio") || matches!(kind.action, Action::GetRequest | Action::Split);
        let layout = Layout {
            action: kind.action,
            pid: offset_of("common_pid", 4).ok_or("common_pid")?,
            sector: offset_of("sector", 8),
            sectors: offset_of("nr_sector", 4),
            bytes: offset_of("bytes", 4),
            error: offset_of("error", 4).or_else(|| offset_of("errors", 4)),
            priority: offset_of("ioprio", 2),
            flags: format.field("rwbs"),
            task: offset_of("comm", NAME_BYTES),
            command: offset_of("cmd", 4).filter(|_| !is_bio),
            rest_sector: offset_of("new_sector", 8),
            old_device: offset_of("old_dev", 4),
            old_sector: offset_of("old_sector", 8),
            requests: offset_of("nr_rq", 4),
        };
        let has_device = kind.has_device();
        let missing = [
            ("sector", has_device && layout.sector.is_none()),
            ("nr_sector", has_device && kind.action != Action::Split && layout.sectors.is_none()),
            ("rwbs", has_device && layout.flags.is_none()),
            ("comm", matches!(kind.action, Action::Queue | Action::Plug) && layout.task.is_none()),
            ("error", kind.action == Action::Complete && layout.error.is_none()),
            ("new_sector", kind.action == Action::Split && layout.rest_sector.is_none()),
            ("old_dev", kind.action == Action::Remap && layout.old_device.is_none()),
            ("old_sector", kind.action == Action::Remap && layout.old_sector.is_none()),
            ("nr_rq", kind.action == Action::Unplug && layout.requests.is_none()),
        ];
        missing.into_iter().find(|(_, missing)| *missing).map_or(Ok(layout), |(name, _)| Err(name))
    }
}

/// An event, with the name of the task in whose context it happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Decoded<'a> {
    pub(crate) event: Event,
    /// The task's name, ended or padded by NUL.
    pub(crate) task: Option<&'a [u8; NAME_BYTES]>,
}

/// The layouts of all recorded events.
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    device: Device,
    layouts: Vec<Layout>,
    /// By event id: 1 + the index of its layout, or 0.
    by_id: Vec<u8>,
}

impl Decoder {
    /// A decoder for the events of a device.
    pub(crate) fn new(device: Device) -> Decoder {
        Decoder { device, layouts: Vec::new(), by_id: Vec::new() }
    }

    /// Adds an event.
    ///
    /// # Errors
    /// The name of the field that is missing in its description.
    pub(crate) fn add(&mut self, kind: Kind, format: &Format) -> Result<(), &'static str> {
        self.layouts.push(Layout::find(kind, format)?);
        let id = usize::from(format.id);
        if self.by_id.len() <= id {
            self.by_id.resize(id + 1, 0);
        }
        self.by_id[id] = self.layouts.len() as u8;
        Ok(())
    }

    /// The event in a record; `None` if the record is of another kind, or shorter than described.
    #[inline]
    pub(crate) fn decode<'a>(&self, data: &'a [u8], time_ns: u64, cpu: u32) -> Option<Decoded<'a>> {
        let id = u16::from_le_bytes(*data.first_chunk::<ID_BYTES>()?);
        let index = usize::from(*self.by_id.get(usize::from(id))?).checked_sub(1)?;
        let layout = &self.layouts[index];
        let sector = match layout.sector {
            Some(offset) => read_u64(data, offset)?,
            None => 0,
        };
        let mut event = Event {
            time_ns,
            cpu,
            pid: read_u32(data, layout.pid)?,
            device: self.device,
            sector,
            ..Event::new(layout.action)
        };
        if let Some(offset) = layout.sectors {
            event.bytes = read_u32(data, offset)?.saturating_mul(512);
        }
        if let Some(offset) = layout.bytes {
            event.bytes = read_u32(data, offset)?;
        }
        if let Some(offset) = layout.error {
            let error = i32::from_le_bytes(*data.get(offset..)?.first_chunk()?);
            event.error = error.unsigned_abs().min(u32::from(u16::MAX)) as u16;
        }
        if let Some(offset) = layout.priority {
            event.priority = IoPriority(u16::from_le_bytes(*data.get(offset..)?.first_chunk()?));
        }
        match layout.action {
            Action::Split => {
                let rest = read_u64(data, layout.rest_sector?)?;
                event.payload = Payload::Rest(rest);
                event.bytes = u32::try_from(rest.saturating_sub(sector).saturating_mul(512)).unwrap_or(u32::MAX);
            }
            Action::Remap => {
                let device = Device::from_number(read_u32(data, layout.old_device?)?);
                event.payload = Payload::From { device, sector: read_u64(data, layout.old_sector?)? };
            }
            Action::Unplug => event.payload = Payload::Requests(u64::from(read_u32(data, layout.requests?)?)),
            _ => {}
        }
        if let Some(field) = layout.flags {
            event.flags = flags(data.get(field.offset..field.offset + field.bytes)?).without_read_if_empty(event.bytes);
        }
        if layout.command.is_some_and(|offset| has_command(data, offset)) {
            event.flags |= Flags::PASSTHROUGH;
        }
        let task = match layout.task {
            Some(offset) => Some(data.get(offset..)?.first_chunk()?),
            None => None,
        };
        Some(Decoded { event, task })
    }
}

/// Parses `rwbs` letters up to the first NUL.
fn flags(letters: &[u8]) -> Flags {
    let end = letters.iter().position(|letter| *letter == 0).unwrap_or(letters.len());
    Flags::from_letters(&letters[..end])
}

/// Whether a `__data_loc` text is not empty: the low 16 bits of the word are its offset, the high 16 bits its length.
fn has_command(data: &[u8], offset: usize) -> bool {
    let location = read_u32(data, offset).unwrap_or(0);
    let (offset, bytes) = ((location & 0xffff) as usize, location >> 16);
    bytes > 1 && data.get(offset).is_some_and(|letter| *letter != 0)
}

#[inline]
fn read_u32(data: &[u8], offset: usize) -> Option<u32> {
    data.get(offset..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

#[inline]
fn read_u64(data: &[u8], offset: usize) -> Option<u64> {
    data.get(offset..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
pub(crate) mod tests {
    use hoistway_trace::block::{Input, Recording};
    use proptest::prelude::*;

    use super::super::format::PageLayout;
    use super::super::page::Page;
    use super::*;

    const FORMATS: &str = include_str!("../../tests/pages/formats.txt");
    const LOOP: Device = Device { major: 7, minor: 0 };

    fn format(kind: Kind) -> &'static str {
        let name = format!("name: {}\n", kind.name);
        let begin = FORMATS.find(&name).unwrap();
        let end = FORMATS[begin + 1..].find("name: ").map_or(FORMATS.len(), |end| begin + 1 + end);
        &FORMATS[begin..end]
    }

    /// A decoder for the recorded pages.
    pub(crate) fn decoder() -> Decoder {
        let mut decoder = Decoder::new(LOOP);
        for kind in KINDS {
            decoder.add(kind, &Format::parse(format(kind)).unwrap()).unwrap();
        }
        decoder
    }

    /// The layout of the recorded pages.
    pub(crate) fn pages() -> PageLayout {
        PageLayout::parse(include_str!("../../tests/pages/header_page.txt")).unwrap()
    }

    /// Compares the events of a page with the kernel's text of them.
    fn check(page: &[u8], text: &'static str) -> u64 {
        let decoder = decoder();
        let mut page = Page::new(page, &pages()).unwrap();
        let mut recording = Recording::read(Input::new("text", Box::new(text.as_bytes())).unwrap()).unwrap();
        for entry in page.by_ref() {
            let Decoded { event, task } = decoder.decode(entry.data, entry.time_ns, 1).unwrap();
            let expected = recording.next_event().unwrap().unwrap();
            assert!(event.time_ns.abs_diff(expected.time_ns) <= 1000, "{event:?} {expected:?}");
            // The text of plug events has no device.
            assert_eq!(event, Event { time_ns: event.time_ns, device: LOOP, ..expected });
            if let Some(task) = task.filter(|_| !matches!(event.action, Action::Complete)) {
                let end = task.iter().position(|letter| *letter == 0).unwrap();
                assert_eq!(recording.names().get(event.pid), Some(str::from_utf8(&task[..end]).unwrap()));
            }
        }
        assert!(!page.is_torn && recording.next_event().unwrap().is_none());
        page.lost
    }

    #[test]
    fn recorded_pages_decode_to_what_the_kernel_prints() {
        let lost = check(include_bytes!("../../tests/pages/gaps.page"), include_str!("../../tests/pages/gaps.txt"));
        assert_eq!(lost, 0);
        let lost = check(include_bytes!("../../tests/pages/loss.page"), include_str!("../../tests/pages/loss.txt"));
        assert_eq!(lost, 882, "as the kernel counted");
    }

    #[test]
    fn a_description_without_a_field_is_refused_with_its_name() {
        for (kind, field) in [(KINDS[0], "sector"), (KINDS[0], "comm"), (KINDS[7], "error"), (KINDS[12], "nr_rq")] {
            let without =
                format(kind).replace(&format!(" {field};"), " other;").replace(&format!(" {field}["), " other[");
            let refused = Decoder::new(LOOP).add(kind, &Format::parse(&without).unwrap());
            assert_eq!(refused, Err(field));
        }
    }

    proptest! {
        #[test]
        fn records_of_any_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), kind in 0..KINDS.len()) {
            let decoder = decoder();
            let mut bytes = bytes;
            if let Some(id) = bytes.get_mut(..2) {
                id.copy_from_slice(&Format::parse(format(KINDS[kind])).unwrap().id.to_le_bytes());
            }
            if let Some(decoded) = decoder.decode(&bytes, 0, 0) {
                prop_assert_eq!(decoded.event.action, KINDS[kind].action);
            }
        }

        #[test]
        fn a_recorded_page_with_other_bytes_does_not_panic(changes in prop::collection::vec((0usize..4096, any::<u8>()), 0..20)) {
            let mut page = include_bytes!("../../tests/pages/loss.page").to_vec();
            changes.into_iter().for_each(|(at, byte)| page[at] = byte);
            let decoder = decoder();
            let events = Page::new(&page, &pages()).unwrap().filter_map(|entry| decoder.decode(entry.data, entry.time_ns, 0));
            prop_assert!(events.count() <= 4096 / 8);
        }
    }
}
