//! Alters the text of a recording as a faulty tool, a bad disk or an attacker would.

use std::ops::Range;

/// Random numbers from a seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }
}

/// Alters a recording, given as lines. Usually the order of times and the number of events are corrected afterwards, so
/// that the alteration gets past the reader of the file.
pub fn alter(lines: &[String], random: &mut Random) -> Vec<String> {
    let mut lines = lines.to_vec();
    for _ in 0..random.one_of(&[1, 1, 2, 4, 12]) {
        alter_once(&mut lines, random);
    }
    if random.percent(90) {
        mend(&mut lines);
    }
    if random.percent(2) {
        let kept = 1 + random.below(lines.len());
        lines.truncate(kept);
    }
    lines
}

fn alter_once(lines: &mut Vec<String>, random: &mut Random) {
    if random.percent(12) {
        return if random.percent(20) { rename(&mut lines[0], random) } else { renumber(&mut lines[0], random) };
    }
    let [at, other] = [0; 2].map(|_| 1 + random.below(lines.len() - 1));
    match random.below(100) {
        0..12 if lines.len() > 2 => drop(lines.remove(at)),
        12..18 => lines.insert(other, lines[at].clone()),
        // A line near by more likely concerns a request that still exists.
        18..32 => lines.insert((at + 1 + random.below(6)).min(lines.len()), lines[at].clone()),
        32..36 => lines.swap(at, other),
        36..46 => {
            let near = (at + 1 + random.below(4)).min(lines.len() - 1);
            lines.swap(at, near);
        }
        46 => {
            let kept = random.below(lines[at].len() + 1);
            lines[at].truncate(kept);
        }
        47..54 => rename(&mut lines[at], random),
        54..59 => {
            // Follows an event of a request with another event of the same request.
            lines.insert(at + 1, lines[at].clone());
            become_another(&mut lines[at + 1], random);
        }
        59..62 => become_another(&mut lines[at], random),
        62..64 => remove_key(&mut lines[at], random),
        64..76 => {
            let near = (at + random.below(30)).clamp(1, lines.len() - 1);
            borrow_value(lines, at, near, random);
        }
        76..82 => borrow_value(lines, at, other, random),
        _ => renumber(&mut lines[at], random),
    }
}

/// The numbers on a line, without those inside strings.
fn numbers(line: &str) -> Vec<Range<usize>> {
    let bytes = line.as_bytes();
    let (mut found, mut at, mut quoted) = (Vec::new(), 0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => quoted = !quoted,
            b'-' | b'0'..=b'9' if !quoted => {
                let end = bytes[at + 1..].iter().position(|byte| !byte.is_ascii_digit());
                let end = end.map_or(bytes.len(), |length| at + 1 + length);
                found.push(at..end);
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

fn renumber(line: &mut String, random: &mut Random) {
    let found = numbers(line);
    if found.is_empty() {
        return;
    }
    let place = found[random.below(found.len())].clone();
    let before: i128 = line[place.clone()].parse().unwrap_or(0);
    let near = random.below(20) as i128 - 10;
    let number = match random.below(24) {
        0 => 0,
        1 => 1,
        2 => -1,
        3 => before + 1,
        4 => before - 1,
        5 => before * 2,
        6 => before / 2,
        7..10 => before + near,
        10..13 => random.below(8) as i128,
        13..16 => random.below(2000) as i128,
        16 => random.one_of(&[i128::from(u8::MAX), i128::from(u16::MAX), i128::from(u32::MAX), i128::from(u64::MAX)]),
        17 => i128::from(u32::MAX) + 1,
        18 => i128::from(i32::MAX) + near,
        19 => i128::from(i64::MAX) + near,
        // The largest values that the reader accepts.
        20 => random.one_of(&[3_600_000_000_000, 8_388_607, 8192, 2048, 10_240, 4_194_304, 10_000, 900_000]),
        21 => (1 << 54) - 8_388_607,
        _ => 1 << random.below(64),
    };
    line.replace_range(place, &number.to_string());
}

/// The words of a list.
fn words(text: &'static str) -> Vec<&'static str> {
    text.split(' ').filter(|word| !word.is_empty()).collect()
}

/// The value of `key` on a line: a number, a word in quotes, a pair.
fn value_of(line: &str, key: &str) -> Option<Range<usize>> {
    let start = line.find(&format!("\"{key}\":"))? + key.len() + 3;
    let rest = &line.as_bytes()[start..];
    let end = match rest.first()? {
        b'"' => 2 + rest[1..].iter().position(|&byte| byte == b'"')?,
        b'[' => 1 + rest.iter().position(|&byte| byte == b']')?,
        _ => rest.iter().position(|&byte| byte == b',' || byte == b'}')?,
    };
    Some(start..start + end)
}

const KEYS: &str = "rq rq rq bio pid cpu sector n op rwbs hint prio hctx ctx tag stag j asked by e q cg absorbed \
                    from_sector from_n token depth domain bucket nr msg text head at k queued t";

/// Gives a line a value of another line: valid in itself, but inconsistent.
fn borrow_value(lines: &mut [String], at: usize, other: usize, random: &mut Random) {
    let key = random.one_of(&words(KEYS));
    if let (Some(to), Some(from)) = (value_of(&lines[at], key), value_of(&lines[other], key)) {
        let value = lines[other][from].to_owned();
        lines[at].replace_range(to, &value);
    }
}

fn remove_key(line: &mut String, random: &mut Random) {
    let key = random.one_of(&words(KEYS));
    if let Some(value) = value_of(line, key) {
        let start = value.start - key.len() - 3;
        let comma = usize::from(line.as_bytes().get(value.end) == Some(&b','));
        line.replace_range(start..value.end + comma, "");
    }
}

/// The kinds of events of a request.
const KINDS: &str = "backmerge frontmerge insert rqmerge dispatch issue requeue requeue complete sample finish free free \
                     getrq exit unheard-of";

fn become_another(line: &mut String, random: &mut Random) {
    if let (Some(kind), Some(_)) = (value_of(line, "e"), value_of(line, "rq")) {
        line.replace_range(kind, &format!("\"{}\"", random.one_of(&words(KINDS))));
    }
}

/// Changes a word to another one of the format, or to nonsense.
fn rename(line: &mut String, random: &mut Random) {
    const WORDS: [(&str, &str); 29] = [
        ("\"sched\"", "\"core\""),
        ("\"core\"", "\"sched\""),
        ("\"by\":\"sched\"", "\"by\":\"sched\",\"head\":true"),
        ("\"op\":\"R\",\"rwbs\":\"R", "\"op\":\"W\",\"rwbs\":\"W"),
        ("\"op\":\"W\",\"rwbs\":\"W", "\"op\":\"D\",\"rwbs\":\"D"),
        ("\"op\":\"W\",\"rwbs\":\"W", "\"op\":\"F\",\"rwbs\":\"F"),
        ("[2,4]", "[1,0]"),
        ("[2,4]", "[3,7]"),
        ("[0,0]", "[2,0]"),
        ("\"WS\"", "\"W\""),
        ("\"rwbs\":\"R\"", "\"rwbs\":\"FRF\""),
        ("READ", "OTHER"),
        ("WRITE", "DISCARD"),
        ("6.18.15", "4.12.1"),
        ("6.18.15", "4.19"),
        ("6.18.15", "5.10"),
        ("6.18.15", "no number"),
        ("4.19.95", "4.4"),
        ("icount", "realtime"),
        ("virtual", "realtime"),
        ("default 100", "default 1000"),
        ("\"mq-deadline\"", "\"bfq\""),
        ("\"bfq\"", "\"kyber\""),
        ("\"kyber\"", "\"none\""),
        ("\"none\"", "\"mq-deadline\""),
        ("\"deadline\"", "\"cfq\""),
        ("\"cfq\"", "\"deadline\""),
        ("begin", "end"),
        ("\":", "x\":"),
    ];
    let fitting: Vec<&(&str, &str)> = WORDS.iter().filter(|(from, _)| line.contains(from)).collect();
    if !fitting.is_empty() {
        let (from, to) = *random.one_of(&fitting);
        *line = line.replacen(from, to, 1);
    }
}

/// Sorts the times again, and corrects the number of events in the header.
fn mend(lines: &mut [String]) {
    let mut latest = 0u64;
    for line in &mut lines[1..] {
        let Some(place) = value_of(line, "t") else { continue };
        match line[place.clone()].parse::<u64>() {
            Ok(t) if t < latest => line.replace_range(place, &latest.to_string()),
            Ok(t) => latest = t,
            Err(_) => {}
        }
    }
    let events = lines.len() - 1;
    if let Some(place) = value_of(&lines[0], "events") {
        lines[0].replace_range(place, &events.to_string());
    }
}
