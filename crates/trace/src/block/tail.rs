//! Parses the part of a line after the action, in blkparse's text, in that of the kernel's `blk` tracer, and in the text of
//! trace events.

use super::event::{Action, Device, Event, Flags, Payload};
use super::text::{Words, decimal, decimal_u32, sectors_as_bytes};

/// Parses `major,minor`.
pub(crate) fn device(text: &[u8]) -> Option<Device> {
    let comma = text.iter().position(|&letter| letter == b',')?;
    let (major, minor) = (decimal_u32(&text[..comma])?, decimal_u32(&text[comma + 1..])?);
    Some(Device { major: u16::try_from(major).ok()?, minor })
}

/// Fills an event from what follows the action and the flags in a line: usually the sector, the length and the task's name.
/// `flag_letters` is the RWBS column. Returns the task's name, `Some(None)` if the line has none, and `None` if the text does
/// not match the action.
pub(crate) fn parse_tail<'a>(event: &mut Event, mut words: Words<'a>, flag_letters: &[u8]) -> Option<Option<&'a [u8]>> {
    let mut name = None;
    match event.action {
        Action::Plug => name = super::text::in_brackets(words.rest()),
        Action::Unplug | Action::UnplugScheduled => {
            let rest = words.rest();
            let end = memchr::memrchr(b']', rest)?;
            name = super::text::in_brackets(&rest[..=end]);
            event.payload = Payload::Requests(decimal(rest[end + 1..].trim_ascii())?);
        }
        Action::Split => {
            event.sector = words.number()?;
            words.expect(b"/")?;
            let rest = words.number()?;
            event.payload = Payload::Rest(rest);
            event.bytes = u32::try_from(rest.saturating_sub(event.sector).saturating_mul(512)).ok()?;
            name = super::text::in_brackets(words.rest());
        }
        Action::Remap => {
            parse_extent(event, &mut words)?;
            words.expect(b"<-")?;
            let from = words.word()?;
            let from = device(from.strip_prefix(b"(")?.strip_suffix(b")")?)?;
            event.payload = Payload::From { device: from, sector: words.number()? };
        }
        Action::Complete | Action::Requeue => {
            parse_extent_if_present(event, &mut words)?;
            // The error comes last, in brackets.
            let rest = words.rest();
            let last = memchr::memrchr(b'[', rest)?;
            let error = rest[last + 1..].strip_suffix(b"]")?;
            let error = decimal_u32(error.strip_prefix(b"-").unwrap_or(error))?;
            event.error = u16::try_from(error).ok()?;
        }
        _ => {
            parse_extent_if_present(event, &mut words)?;
            // Latencies and command bytes may precede the name.
            let rest = words.rest();
            let first = memchr::memchr(b'[', rest)?;
            name = Some(super::text::in_brackets(&rest[first..])?);
        }
    }
    event.flags = Flags::from_letters(flag_letters).without_read_if_empty(event.bytes);
    Some(name)
}

/// Parses `SECTOR + SECTORS`, or a sector alone.
fn parse_extent(event: &mut Event, words: &mut Words<'_>) -> Option<()> {
    event.sector = words.number()?;
    if words.rest().first() == Some(&b'+') {
        words.expect(b"+")?;
        event.bytes = sectors_as_bytes(words.word()?)?;
    }
    Some(())
}

/// The same unless it is a passthrough command, which has its command bytes in parentheses and no sector.
fn parse_extent_if_present(event: &mut Event, words: &mut Words<'_>) -> Option<()> {
    if words.rest().first().is_some_and(u8::is_ascii_digit) { parse_extent(event, words) } else { Some(()) }
}
