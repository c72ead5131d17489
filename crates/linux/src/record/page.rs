//! Parses raw pages of the kernel's trace ring buffer.
//!
//! A page has a timestamp, the number of used bytes, and events. An event is a word with its type and the time since the
//! previous event, followed by data. The page also tells how many events were lost before it.

use super::format::PageLayout;

/// Mask of the byte count in the field `commit`.
const USED_BITS: u64 = 0xf_ffff;
/// Flag in `commit`: events were lost before the page.
const LOST: u64 = 1 << 31;
/// Flag in `commit`: the number of lost events follows the data.
const HAS_NUMBER: u64 = 1 << 30;
/// Bits of the type in an event's first word; the other bits are the time since the previous event.
const TYPE_BITS: u32 = 5;
/// Bits of the time in the first word.
const TIME_BITS: u32 = 27;
/// Bits of an absolute time; the higher bits are taken from the previous time.
const ABSOLUTE_BITS: u32 = 59;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const ABSOLUTE_TIME: u32 = 31;

/// An event of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry<'a> {
    /// Time of the trace clock.
    pub(crate) time_ns: u64,
    /// The event ID, followed by the event's fields.
    pub(crate) data: &'a [u8],
}

/// Iterates over the events of a page in order, up to the first invalid one.
#[derive(Clone, Debug)]
pub(crate) struct Page<'a> {
    data: &'a [u8],
    time_ns: u64,
    /// Events lost before the page; 1 if the number is unknown.
    pub(crate) lost: u64,
    /// Whether the page ends within an event, or claims to be longer than it is.
    pub(crate) is_torn: bool,
}

impl<'a> Page<'a> {
    /// The page in these bytes; `None` if there are too few.
    pub(crate) fn new(bytes: &'a [u8], layout: &PageLayout) -> Option<Page<'a>> {
        let time_ns = read_u64(bytes, 0)?;
        let commit = match layout.commit.bytes {
            4 => u64::from(read_u32(bytes, layout.commit.offset)?),
            _ => read_u64(bytes, layout.commit.offset)?,
        };
        let used = (commit & USED_BITS) as usize;
        let data = bytes.get(layout.data..)?;
        let is_torn = used > data.len();
        let lost = match commit {
            commit if commit & LOST == 0 => 0,
            commit if commit & HAS_NUMBER == 0 => 1,
            _ => read_u64(data, used).unwrap_or(1),
        };
        Some(Page { data: &data[..used.min(data.len())], time_ns, lost, is_torn })
    }

    /// Drops the rest of the page after an invalid event.
    #[cold]
    fn skip_torn_rest(&mut self) -> Option<Entry<'a>> {
        self.is_torn |= !self.data.is_empty();
        self.data = &[];
        None
    }
}

impl<'a> Iterator for Page<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            let Some(head) = read_u32(self.data, 0) else { return self.skip_torn_rest() };
            let (kind, delta) = (head & ((1 << TYPE_BITS) - 1), u64::from(head >> TYPE_BITS));
            let (data, bytes) = match kind {
                1..PADDING => (4, 4 * kind as usize),
                PADDING if delta == 0 => {
                    self.data = &[];
                    return None;
                }
                _ => {
                    let Some(second) = read_u32(self.data, 4) else { return self.skip_torn_rest() };
                    match kind {
                        TIME_EXTEND | ABSOLUTE_TIME => {
                            let time_ns = u64::from(second) << TIME_BITS | delta;
                            self.time_ns = match kind {
                                TIME_EXTEND => self.time_ns.wrapping_add(time_ns),
                                _ => self.time_ns >> ABSOLUTE_BITS << ABSOLUTE_BITS | time_ns,
                            };
                            self.data = &self.data[8..];
                            continue;
                        }
                        // The length includes itself.
                        _ => match (second as usize).checked_sub(4) {
                            Some(bytes) => (8, bytes),
                            None => return self.skip_torn_rest(),
                        },
                    }
                }
            };
            self.time_ns = self.time_ns.wrapping_add(delta);
            let Some(end) = usize::checked_add(data, bytes).filter(|end| *end <= self.data.len()) else {
                return self.skip_torn_rest();
            };
            let (entry, rest) = self.data.split_at(end);
            self.data = rest;
            if kind != PADDING {
                return Some(Entry { time_ns: self.time_ns, data: &entry[data..] });
            }
        }
    }
}

fn read_u32(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn read_u64(bytes: &[u8], offset: usize) -> Option<u64> {
    bytes.get(offset..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::format::Field;
    use super::*;

    const LAYOUT: PageLayout = PageLayout { bytes: 4096, commit: Field { offset: 8, bytes: 8 }, data: 16 };

    /// A page with these words as data, and these flags in its used length.
    fn page(time_ns: u64, bits: u64, words: &[u32], behind: &[u8]) -> Vec<u8> {
        let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut bytes = time_ns.to_le_bytes().to_vec();
        bytes.extend((data.len() as u64 | bits).to_le_bytes());
        bytes.extend(data);
        bytes.extend(behind);
        bytes.resize(4096.max(bytes.len()), 0xee);
        bytes
    }

    fn head(kind: u32, delta: u32) -> u32 {
        delta << TYPE_BITS | kind
    }

    fn all(bytes: &[u8]) -> (Vec<(u64, Vec<u8>)>, bool, u64) {
        let mut page = Page::new(bytes, &LAYOUT).unwrap();
        let entries = page.by_ref().map(|entry| (entry.time_ns, entry.data.to_vec())).collect();
        (entries, page.is_torn, page.lost)
    }

    #[test]
    fn times_add_up_over_events_extensions_and_padding() {
        let words = [
            head(1, 5),
            0x1111_1111,
            // A time extension: 2^27, plus 3.
            head(TIME_EXTEND, 3),
            1,
            head(0, 7),
            12,
            0x2222_2222,
            0x3333_3333,
            // A discarded event.
            head(PADDING, 1),
            8,
            0,
            head(1, 2),
            0x4444_4444,
            // An absolute time, with the higher bits of the previous time.
            head(ABSOLUTE_TIME, 9),
            2,
            head(1, 0),
            0x5555_5555,
        ];
        let (entries, is_torn, lost) = all(&page(1 << 60 | 1000, 0, &words, &[]));
        let times: Vec<u64> = entries.iter().map(|(time, _)| time - (1 << 60)).collect();
        let extended = 1000 + 5 + (1 << 27) + 3 + 7;
        assert_eq!(times, [1005, extended, extended + 1 + 2, (2 << 27) + 9]);
        assert_eq!(entries[1].1, [0x22, 0x22, 0x22, 0x22, 0x33, 0x33, 0x33, 0x33]);
        assert!(!is_torn && lost == 0);
    }

    #[test]
    fn padding_without_a_time_ends_a_page() {
        let (entries, is_torn, _) = all(&page(0, 0, &[head(1, 5), 1, head(PADDING, 0), head(1, 1), 1], &[]));
        assert!(entries.len() == 1 && !is_torn);
    }

    #[test]
    fn losses_are_in_the_length() {
        let words = [head(1, 5), 1];
        assert_eq!(all(&page(0, LOST | HAS_NUMBER, &words, &6209_u64.to_le_bytes())).2, 6209);
        // The kernel extends the sign of the length.
        let extended = 0xffff_ffff_c000_0000;
        assert_eq!(all(&page(0, extended, &words, &7_u64.to_le_bytes())).2, 7);
        assert_eq!(all(&page(0, LOST, &words, &6209_u64.to_le_bytes())).2, 1, "the number is not known");
    }

    #[test]
    fn an_event_beyond_the_end_is_torn() {
        for words in [&[head(28, 1), 0][..], &[head(0, 1), u32::MAX], &[head(0, 1), 3], &[head(TIME_EXTEND, 1)]] {
            let (entries, is_torn, _) = all(&page(0, 0, words, &[]));
            assert!(entries.is_empty() && is_torn, "{words:x?}");
        }
        assert!(all(&page(0, 0xf_f000, &[], &[])).1, "longer than the page");
        assert!(Page::new(&[0; 15], &LAYOUT).is_none());
    }

    proptest! {
        #[test]
        fn random_pages_do_not_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..4200),
            used in any::<u16>(),
            kinds in prop::collection::vec((0u32..32, 0u32..40), 0..40),
        ) {
            let mut bytes = bytes;
            for (at, (kind, delta)) in kinds.into_iter().enumerate() {
                if let Some(field) = bytes.get_mut(16 + at * 12..20 + at * 12) {
                    field.copy_from_slice(&head(kind, delta).to_le_bytes());
                }
            }
            if let Some(field) = bytes.get_mut(8..10) {
                field.copy_from_slice(&used.to_le_bytes());
            }
            if let Some(page) = Page::new(&bytes, &LAYOUT) {
                let total: usize = page.map(|entry| entry.data.len()).sum();
                prop_assert!(total <= bytes.len());
            }
        }
    }
}
