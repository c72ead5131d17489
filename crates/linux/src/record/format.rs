//! Parses the kernel's descriptions of events and ring-buffer pages: the files `format` and `header_page`.

/// A field of an event: its offset and length in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Field {
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
}

/// A parsed `format` file of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Format {
    /// The event ID at the start of each record.
    pub(crate) id: u16,
    fields: Vec<(String, Field)>,
}

/// Maximum offset of a field; no event is larger.
const OFFSET_MAX: usize = 1 << 16;

impl Format {
    /// Parses the text; `None` if it does not describe an event.
    pub(crate) fn parse(text: &str) -> Option<Format> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let fields = text.lines().filter_map(field).collect();
        Some(Format { id, fields })
    }

    pub(crate) fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(candidate, _)| candidate == name).map(|(_, field)| *field)
    }
}

/// Parses a line of fields: `field:char rwbs[10];`, `offset:34;`, `size:10;`, separated by tabs.
fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?;
    // The name is the last word, without the length of an array. A local_t is `field: local_t commit`.
    let name = declaration.rsplit(' ').next()?;
    let name = name.split('[').next().unwrap_or(name);
    let (mut offset, mut bytes) = (None, None);
    for part in parts {
        let number = |prefix: &str| part.strip_prefix(prefix).and_then(|text| text.trim().parse::<usize>().ok());
        offset = offset.or(number("offset:"));
        bytes = bytes.or(number("size:"));
    }
    let field = Field { offset: offset?, bytes: bytes? };
    (field.offset.checked_add(field.bytes)? <= OFFSET_MAX).then(|| (name.to_owned(), field))
}

/// The layout of a page in the ring buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PageLayout {
    /// Bytes of a page.
    pub(crate) bytes: usize,
    /// The field `commit`, the number of used bytes; 4 or 8 bytes long.
    pub(crate) commit: Field,
    /// The offset of the first event.
    pub(crate) data: usize,
}

impl PageLayout {
    /// Parses the text of `header_page`; `None` if the layout is not supported.
    pub(crate) fn parse(text: &str) -> Option<PageLayout> {
        let find = |name: &str| {
            text.lines().filter_map(field).find(|(candidate, _)| candidate == name).map(|(_, field)| field)
        };
        let (time, commit, data) = (find("timestamp")?, find("commit")?, find("data")?);
        let is_supported = time == Field { offset: 0, bytes: 8 }
            && matches!(commit.bytes, 4 | 8)
            && commit.offset + commit.bytes <= data.offset
            && data.offset % 4 == 0;
        is_supported.then_some(PageLayout { bytes: data.offset + data.bytes, commit, data: data.offset })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ISSUE: &str = "name: block_rq_issue\nID: 2104\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
        \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"%d\", REC->dev\n";

    #[test]
    fn fields_are_found_by_their_names() {
        let format = Format::parse(ISSUE).unwrap();
        assert_eq!(format.id, 2104);
        assert_eq!(format.field("common_pid"), Some(Field { offset: 4, bytes: 4 }));
        assert_eq!(format.field("rwbs"), Some(Field { offset: 34, bytes: 10 }));
        assert_eq!(format.field("cmd"), Some(Field { offset: 60, bytes: 4 }));
        assert_eq!(format.field("dev"), None);
    }

    #[test]
    fn a_page_is_as_the_kernel_describes_it() {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
            \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
            \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
            \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
        let commit = Field { offset: 8, bytes: 8 };
        assert_eq!(PageLayout::parse(text), Some(PageLayout { bytes: 4096, commit, data: 16 }));
        let of_32_bits = text
            .replace("offset:8;\tsize:8", "offset:8;\tsize:4")
            .replace("offset:16;\tsize:4080", "offset:12;\tsize:4084");
        assert_eq!(PageLayout::parse(&of_32_bits).unwrap().data, 12);
        assert_eq!(PageLayout::parse("field: u64 timestamp; offset:0; size:8;"), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(ID: [0-9]{0,9}\n|\tfield:[a-z \\[\\]]{0,9};?|\toffset:[0-9]{0,30};|\tsize:[0-9]{0,30};|\n|.){0,40}") {
            let _ = Format::parse(&text);
            let _ = PageLayout::parse(&text);
        }
    }
}
