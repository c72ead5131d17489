//! blkparse's default text output, and the text of the kernel's `blk` tracer with the option `blk_classic`, which lacks
//! sequence numbers.

use hoistway_blk::bio::IoPriority;

use super::error::{Losses, ReadError, quoted};
use super::event::{Action, Event, Flags, Payload};
use super::input::Input;
use super::names::Names;
use super::sorter::Sorter;
use super::tail;
use super::text::{Words, decimal, decimal_nanos, decimal_u32};

const WINDOW_NS: u64 = 1_000_000_000;
const EXPECTED: &str = "DEVICE CPU SEQUENCE TIME PID ACTION RWBS ..., as blkparse prints without -f";

/// A parsed line. `name` is the task's, if the line has one.
enum Line<'a> {
    Event { event: Event, name: Option<&'a [u8]> },
    Message,
    UnknownAction,
}

/// Whether a line is an event, for format detection.
pub(crate) fn is_event(line: &[u8]) -> bool {
    parse(line).is_some()
}

fn parse(line: &[u8]) -> Option<Line<'_>> {
    let mut words = Words::new(line);
    let device = tail::device(words.word()?)?;
    let cpu = decimal_u32(words.word()?)?;
    let mut word = words.word()?;
    // Gaps in sequence numbers are no evidence of losses: blkparse omits filtered events.
    if !word.contains(&b'.') {
        decimal(word)?;
        word = words.word()?;
    }
    if !word.contains(&b'.') {
        return None;
    }
    let time_ns = decimal_nanos(word)?;
    let pid = decimal_u32(words.word()?)?;
    let letters = words.word()?;
    if letters == b"m" {
        return Some(Line::Message);
    }
    let flags = words.word()?;
    let Some(action) = Action::from_letters(letters) else {
        return letters.iter().all(u8::is_ascii_uppercase).then_some(Line::UnknownAction);
    };
    let mut event = Event {
        time_ns,
        sector: 0,
        bytes: 0,
        pid,
        device,
        cpu,
        error: 0,
        action,
        flags: Flags::default(),
        priority: IoPriority::UNSET,
        cgroup: 0,
        payload: Payload::None,
    };
    let name = tail::parse_tail(&mut event, words, flags)?;
    Some(Line::Event { event, name })
}

/// What is wrong with a line that begins with a device, and what was expected; none for other lines and for events. The
/// guards follow the order of the fields, so that the first wrong field is named.
#[cold]
pub(crate) fn parse_failure(line: &[u8]) -> Option<(&'static str, &'static str)> {
    const WORDS_MIN: usize = 5;
    let words: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    if words.len() < WORDS_MIN || tail::device(words[0]).is_none() || parse(line).is_some() {
        return None;
    }
    let is_time = |word: &[u8]| word.contains(&b'.') && decimal_nanos(word).is_some();
    let time_index = 2 + usize::from(!words[2].contains(&b'.') && decimal(words[2]).is_some());
    let problem = match words.get(time_index + 1) {
        _ if decimal_u32(words[1]).is_none() => "there is no CPU behind the device",
        _ if !is_time(words[time_index]) => "there is no time in seconds with decimals",
        None => "there is no pid behind the time",
        Some(pid) if decimal_u32(pid).is_none() => "there is no pid behind the time",
        Some(_) => "what follows the pid is no action with what it has",
    };
    Some((problem, EXPECTED))
}

/// The reader.
#[derive(Debug)]
pub(crate) struct Blkparse {
    input: Input,
    sorter: Sorter,
    is_at_end: bool,
    has_events: bool,
}

impl Blkparse {
    pub(crate) fn new(input: Input) -> Blkparse {
        Blkparse { input, sorter: Sorter::new(WINDOW_NS), is_at_end: false, has_events: false }
    }

    pub(crate) fn next(&mut self, names: &mut Names, losses: &mut Losses) -> Result<Option<Event>, ReadError> {
        loop {
            if let Some(event) = if self.is_at_end { self.sorter.pop_remaining() } else { self.sorter.pop() } {
                return Ok(Some(event));
            }
            if self.is_at_end {
                losses.step_back_ns = self.sorter.step_back_ns();
                return Ok(None);
            }
            self.read_line(names, losses)?;
        }
    }

    fn read_line(&mut self, names: &mut Names, losses: &mut Losses) -> Result<(), ReadError> {
        let Some(line) = self.input.line()? else {
            self.is_at_end = true;
            return Ok(());
        };
        match parse(line) {
            Some(Line::Message) => {
                losses.messages += 1;
                losses.bfq_messages += u64::from(memchr::memmem::find(line, b" bfq").is_some());
                Ok(())
            }
            Some(Line::UnknownAction) => {
                losses.unknown_actions += 1;
                Ok(())
            }
            Some(Line::Event { event, name }) => {
                if let Some(name) = name {
                    // blkparse prints this for a task whose name it does not know.
                    if name != b"(null)" {
                        names.learn(event.pid, name);
                    }
                }
                self.push_event(event)
            }
            None => {
                let line = quoted(line.trim_ascii());
                self.skip_non_event(line, losses)
            }
        }
    }

    /// Handles a line that is not an event. Lines before the first event are remarks of blkparse, and lines after the last
    /// event are its summary. If an event follows, the line was a malformed event.
    #[cold]
    fn skip_non_event(&mut self, line: String, losses: &mut Losses) -> Result<(), ReadError> {
        losses.foreign_lines += 1;
        if !self.has_events {
            return Ok(());
        }
        let error = self.input.line_error(format!("this is not an event: {line}"), EXPECTED);
        let is_cut_event = line[1..].trim_start().starts_with(|letter: char| letter.is_ascii_digit());
        self.is_at_end = true;
        let mut lines_after = 0;
        while let Some(line) = self.input.line()? {
            if parse(line).is_some() {
                return Err(error);
            }
            lines_after += 1;
        }
        losses.foreign_lines += lines_after;
        losses.truncated += u64::from(lines_after == 0 && is_cut_event);
        Ok(())
    }

    fn push_event(&mut self, event: Event) -> Result<(), ReadError> {
        self.has_events = true;
        self.sorter.advance_to(event.time_ns);
        self.sorter.push(event).map_err(|late_ns| {
            self.input.line_error(format!("the time goes back by {late_ns} ns"), "times that differ by at most 1 s")
        })
    }
}
