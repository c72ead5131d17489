//! Block events as text: ftrace's `trace` and `trace_pipe`, `trace-cmd report`, `perf script`, and the tracer `blk`.
//!
//! Lines are `TASK-PID [CPU] FLAGS TIME: EVENT: TEXT`; perf separates task and pid by blanks, and flags may be missing. Times are
//! seconds with decimals. The clocks `counter` and `x86-tsc` print plain counts; these are refused unless their rate is given. With
//! the option latency-format, lines are `TASK-PID CPUFLAGS MICROSECONDSus : EVENT: TEXT`.

use std::num::NonZeroU64;

use hoistway_blk::bio::{IoPriority, PriorityClass};

use super::error::{Losses, ReadError};
use super::event::{Action, Device, Event, Flags, Payload};
use super::input::Input;
use super::names::Names;
use super::sorter::Sorter;
use super::tail;
use super::text::{Words, decimal, decimal_nanos, decimal_u32, in_brackets, sectors_as_bytes};

const WINDOW_NS: u64 = 1_000_000_000;
const EXPECTED: &str = "TASK-PID [CPU] FLAGS TIME: EVENT: TEXT, as ftrace, trace-cmd report and perf script print";

/// The layout of an event's text.
#[derive(Clone, Copy)]
enum Layout {
    /// The same as blkparse's, after device and flags.
    Bio,
    /// With bytes, command and priority.
    Request,
    /// With command and priority, and an error at the end.
    Completion,
    /// About a task, without a device.
    Plug,
}

fn event_named(name: &[u8]) -> Option<(Action, Layout)> {
    Some(match name {
        b"block_bio_queue" => (Action::Queue, Layout::Bio),
        b"block_bio_backmerge" => (Action::BackMerge, Layout::Bio),
        b"block_bio_frontmerge" => (Action::FrontMerge, Layout::Bio),
        b"block_bio_bounce" => (Action::Bounce, Layout::Bio),
        b"block_bio_complete" => (Action::Complete, Layout::Bio),
        b"block_bio_remap" => (Action::Remap, Layout::Bio),
        b"block_getrq" => (Action::GetRequest, Layout::Bio),
        b"block_split" => (Action::Split, Layout::Bio),
        b"block_plug" => (Action::Plug, Layout::Plug),
        b"block_unplug" => (Action::Unplug, Layout::Plug),
        b"block_rq_insert" => (Action::Insert, Layout::Request),
        b"block_rq_issue" => (Action::Issue, Layout::Request),
        b"block_rq_requeue" => (Action::Requeue, Layout::Completion),
        b"block_rq_complete" => (Action::Complete, Layout::Completion),
        _ => return None,
    })
}

/// The fields before an event's text.
struct Head<'a> {
    task: &'a [u8],
    pid: u32,
    cpu: u32,
    time_ns: u64,
    /// Whether the time is a plain count (`counter`, `x86-tsc`) instead of seconds.
    is_count: bool,
    rest: Words<'a>,
}

/// Parses the fields with the option latency-format: CPU number and flags are joined, and a mark for long times may follow the
/// unit.
fn parse_latency_head(line: &[u8]) -> Option<Head<'_>> {
    let unit = memchr::memmem::find_iter(line, b"us").find(|&index| {
        index > 0
            && line[index - 1].is_ascii_digit()
            && line.get(index + 3..).is_some_and(|rest| rest.starts_with(b": "))
    })?;
    let mut before = line[..unit].rsplitn(3, |letter| *letter == b' ').filter(|word| !word.is_empty());
    let (time, flags) = (before.next()?, before.next()?);
    let digits = flags.iter().take_while(|letter| letter.is_ascii_digit()).count();
    let (task, pid) = task_and_pid(before.next()?.trim_ascii())?;
    let time_ns = decimal(time)?.checked_mul(1000)?;
    let rest = Words::new(&line[unit + 5..]);
    Some(Head { task, pid, cpu: decimal_u32(&flags[..digits])?, time_ns, is_count: false, rest })
}

/// `TASK-PID`, of perf `TASK PID`, with the fields pid and tid `TASK PROCESS/PID`, and without the field comm no task.
fn task_and_pid(text: &[u8]) -> Option<(&[u8], u32)> {
    let digits_start =
        |text: &[u8]| text.len() - text.iter().rev().take_while(|letter| letter.is_ascii_digit()).count();
    let (before, pid) = text.split_at(digits_start(text));
    if let Some(task) = before.strip_suffix(b"-") {
        return Some((task, decimal_u32(pid)?));
    }
    let before = match before.strip_suffix(b"/") {
        Some(process) if process.last().is_some_and(u8::is_ascii_digit) => &process[..digits_start(process)],
        _ => before,
    };
    let is_task = before.last().is_none_or(|letter| *letter == b' ');
    is_task.then_some((before.trim_ascii_end(), decimal_u32(pid)?))
}

/// The positions of the brackets around the CPU: the first brackets with only a number in them. A task's name may contain
/// brackets, but hardly with a number.
fn cpu_brackets(line: &[u8]) -> Option<(usize, usize)> {
    memchr::memchr_iter(b'[', line).find_map(|open| {
        let close = open + memchr::memchr(b']', &line[open..])?;
        let is_cpu = open > 0 && line[open - 1] == b' ' && close > open + 1;
        (is_cpu && line[open + 1..close].iter().all(u8::is_ascii_digit)).then_some((open, close))
    })
}

/// The text before the CPU, without the process that the option record-tgid adds.
fn before_cpu(line: &[u8]) -> Option<&[u8]> {
    let before = line.trim_ascii();
    if before.last() != Some(&b')') {
        return Some(before);
    }
    Some(before[..memchr::memrchr(b'(', before)?].trim_ascii_end())
}

fn parse_head(line: &[u8]) -> Option<Head<'_>> {
    let (open, close) = cpu_brackets(line)?;
    let (task, pid) = task_and_pid(before_cpu(&line[..open])?)?;
    let cpu = decimal_u32(&line[open + 1..close])?;
    let mut rest = Words::new(&line[close + 1..]);
    let mut word = rest.word()?;
    if word.last() != Some(&b':') {
        word = rest.word()?;
    }
    let time = word.strip_suffix(b":")?;
    let is_count = !time.contains(&b'.');
    let time_ns = if is_count { decimal(time)? } else { decimal_nanos(time)? };
    Some(Head { task, pid, cpu, time_ns, is_count, rest })
}

/// A parsed line: an event and the other fields.
struct Line<'a> {
    event: Event,
    task: &'a [u8],
    is_count: bool,
}

/// Parses a line; the inner `None` means that it is another kernel event.
fn parse(line: &[u8]) -> Option<Option<Line<'_>>> {
    let mut head = parse_head(line).or_else(|| parse_latency_head(line))?;
    let mut event = Event {
        time_ns: head.time_ns,
        sector: 0,
        bytes: 0,
        pid: head.pid,
        device: Device::default(),
        cpu: head.cpu,
        error: 0,
        action: Action::Queue,
        flags: Flags::default(),
        priority: IoPriority::UNSET,
        cgroup: 0,
        payload: Payload::None,
    };
    let word = head.rest.word()?;
    if let Some(device) = tail::device(word) {
        // The `blk` tracer prints an action's letters instead of an event's name.
        event.device = device;
        event.action = Action::from_letters(head.rest.word()?)?;
        let letters = head.rest.word()?;
        tail::parse_tail(&mut event, head.rest, letters)?;
        return Some(Some(Line { event, task: head.task, is_count: head.is_count }));
    }
    let name = word.strip_suffix(b":")?;
    let Some((action, layout)) = event_named(name.strip_prefix(b"block:").unwrap_or(name)) else { return Some(None) };
    event.action = action;
    match layout {
        Layout::Plug => {
            tail::parse_tail(&mut event, head.rest, b"N")?;
        }
        Layout::Bio => {
            event.device = tail::device(head.rest.word()?)?;
            let letters = head.rest.word()?;
            tail::parse_tail(&mut event, head.rest, letters)?;
        }
        Layout::Request | Layout::Completion => {
            event.device = tail::device(head.rest.word()?)?;
            let letters = head.rest.word()?;
            let mut words = head.rest;
            if matches!(layout, Layout::Request) {
                words.number()?;
            }
            parse_request(&mut event, words.rest(), matches!(layout, Layout::Completion))?;
            event.flags |= Flags::from_letters(letters).without_read_if_empty(event.bytes);
        }
    }
    Some(Some(Line { event, task: head.task, is_count: head.is_count }))
}

/// Parses `(CDB) SECTOR + SECTORS PRIORITY [NAME OR ERROR]`; older kernels omit the priority.
fn parse_request(event: &mut Event, text: &[u8], has_error: bool) -> Option<()> {
    let text = text.strip_prefix(b"(")?;
    let command = memchr::memchr(b')', text)?;
    if !text[..command].trim_ascii().is_empty() {
        event.flags |= Flags::PASSTHROUGH;
    }
    let mut words = Words::new(&text[command + 1..]);
    event.sector = words.number()?;
    words.expect(b"+")?;
    event.bytes = sectors_as_bytes(words.word()?)?;
    let mut last = words.rest();
    if last.first() != Some(&b'[') {
        event.priority = parse_priority(words.word()?)?;
        last = words.rest();
    }
    let inside = in_brackets(last)?;
    if has_error {
        event.error = u16::try_from(decimal_u32(inside.strip_prefix(b"-").unwrap_or(inside))?).ok()?;
    }
    Some(())
}

/// Parses `class,hint,level`, with the class as a word or a hexadecimal number.
fn parse_priority(text: &[u8]) -> Option<IoPriority> {
    let mut parts = text.split(|letter| *letter == b',');
    let class = match parts.next()? {
        b"none" | b"0x0" => return Some(IoPriority::UNSET),
        b"rt" | b"0x1" => PriorityClass::RealTime,
        b"be" | b"0x2" => PriorityClass::BestEffort,
        b"idle" | b"0x3" => PriorityClass::Idle,
        _ => return None,
    };
    let level = decimal_u32(parts.nth(1)?)?;
    Some(IoPriority::new(class, u8::try_from(level).ok().filter(|level| *level < 8)?))
}

/// Whether a line is a block event, for format detection.
pub(crate) fn is_event(line: &[u8]) -> bool {
    parse(line).flatten().is_some()
}

/// What is wrong with a line that names a block event, and what was expected; none for other lines and for events. The first
/// guard comes first because a line whose head can be parsed has a wrong event text.
#[cold]
pub(crate) fn parse_failure(line: &[u8]) -> Option<(&'static str, &'static str)> {
    let is_event_name = |index: &usize| {
        let is_word = *index == 0 || matches!(line[index - 1], b' ' | b'\t' | b':');
        let name = line[*index..].split(|letter| *letter == b':').next().unwrap_or_default();
        is_word && name.len() < line.len() - index && event_named(name).is_some()
    };
    let index = memchr::memmem::find_iter(line, b"block_").find(is_event_name)?;
    let is_comment = matches!(line.trim_ascii_start().first(), Some(b'#' | b';'));
    if is_comment || parse(line).is_some() {
        return None;
    }
    let problem = match cpu_brackets(&line[..index]) {
        _ if parse_head(line).or_else(|| parse_latency_head(line)).is_some() => {
            "what follows the event is not what it has"
        }
        None => "there is no CPU in brackets before the event",
        Some((open, _)) if before_cpu(&line[..open]).and_then(task_and_pid).is_none() => {
            "there is no task with its pid before the CPU"
        }
        Some(_) => "there is no time between the CPU and the event",
    };
    Some((problem, EXPECTED))
}

/// The reader.
#[derive(Debug)]
pub(crate) struct TracefsText {
    input: Input,
    sorter: Sorter,
    is_at_end: bool,
    /// Whether there was an event of an I/O, not only of plugs.
    has_ios: bool,
    /// The first line that names an event and cannot be read.
    first_unreadable: Option<ReadError>,
    /// Rate of a clock that counts, in counts a second; none if it is unknown.
    clock_hz: Option<NonZeroU64>,
}

impl TracefsText {
    pub(crate) fn new(input: Input) -> TracefsText {
        TracefsText {
            input,
            sorter: Sorter::new(WINDOW_NS),
            is_at_end: false,
            has_ios: false,
            first_unreadable: None,
            clock_hz: None,
        }
    }

    pub(crate) fn set_clock_hz(&mut self, hz: NonZeroU64) {
        self.clock_hz = Some(hz);
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
            let Some(line) = self.input.line()? else {
                self.is_at_end = true;
                if let Some(first_unreadable) = self.first_unreadable.take().filter(|_| !self.has_ios) {
                    return Err(first_unreadable);
                }
                continue;
            };
            let Some(parsed) = parse(line) else {
                losses.foreign_lines += 1;
                losses.lost_events += count_lost(line);
                if let Some((what, expected)) = parse_failure(line) {
                    losses.lost_events += 1;
                    if self.first_unreadable.is_none() {
                        self.first_unreadable = Some(self.input.line_error(what, expected));
                    }
                }
                continue;
            };
            let Some(Line { mut event, task, is_count }) = parsed else { continue };
            if is_count {
                let Some(hz) = self.clock_hz else {
                    let message = format!("the time {} is a count of the clock counter or x86-tsc", event.time_ns);
                    return Err(self.input.line_error(message, "seconds with decimals, as of the trace_clock mono"));
                };
                let ns = u128::from(event.time_ns) * 1_000_000_000 / u128::from(hz.get());
                event.time_ns = u64::try_from(ns).unwrap_or(u64::MAX);
            }
            self.has_ios |= !matches!(event.action, Action::Plug | Action::Unplug);
            // perf has no task without its field comm.
            if !task.starts_with(b"<") && !task.is_empty() {
                names.learn(event.pid, task);
            }
            self.sorter.advance_to(event.time_ns);
            self.sorter.push(event).map_err(|late_ns| {
                let message = format!("the time goes back by {late_ns} ns");
                self.input.line_error(message, "one recording, with times that differ by at most 1 s")
            })?;
        }
    }
}

/// Number of lost events that a line reports: `CPU:n [LOST m EVENTS]`, or entries written but no longer in the buffer.
fn count_lost(line: &[u8]) -> u64 {
    const ENTRIES: &[u8] = b"# entries-in-buffer/entries-written: ";
    if let Some(entries) = line.strip_prefix(ENTRIES) {
        let word = Words::new(entries).word().unwrap_or_default();
        let mut numbers = word.split(|letter| *letter == b'/').map(decimal);
        let (buffered, written) = (numbers.next().flatten(), numbers.next().flatten());
        return written.zip(buffered).map_or(0, |(written, buffered)| written.saturating_sub(buffered));
    }
    let Some(index) = memchr::memmem::find(line, b"[LOST ") else { return 0 };
    Words::new(&line[index + 6..]).number().unwrap_or(0)
}
