//! Files as streams of bytes: plain, gzip or zstd, by content.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

use super::error::{Position, ReadError};

/// How gzip data begins.
const GZIP: &[u8] = &[0x1f, 0x8b];
/// How zstd data begins.
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// How text of some editors begins.
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];
/// Compressed formats that are not read: how they begin, and what reads them.
const UNREAD: [(&[u8], &str); 3] = [(b"\xfd7zXZ\0", "xz"), (b"BZh", "bzip2"), (b"\x04\x22\x4d\x18", "lz4")];
/// Bytes per read.
const CHUNK_BYTES: usize = 256 << 10;
/// Maximum length of a line, in bytes.
const LINE_BYTES_MAX: usize = 64 << 10;

/// A recording's bytes, decompressed as they are read.
pub struct Input {
    name: String,
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Number of bytes before `start`.
    position: u64,
    lines: u64,
    is_at_end: bool,
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input").field("name", &self.name).field("position", &self.position).finish_non_exhaustive()
    }
}

impl Input {
    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    /// If it cannot be opened or read.
    pub fn open(path: &Path) -> Result<Input, ReadError> {
        let name = path.display().to_string();
        if path == Path::new("-") {
            return Input::new("standard input", Box::new(io::stdin()));
        }
        let file = File::open(path).map_err(|error| read_failed(&name, Position::File, &error))?;
        Input::new(&name, Box::new(file))
    }

    /// Whether bytes that begin like this are compressed.
    #[must_use]
    pub fn is_compressed(head: &[u8]) -> bool {
        head.starts_with(GZIP) || head.starts_with(ZSTD)
    }

    /// Wraps any reader, with a name for messages.
    ///
    /// # Errors
    /// If its beginning cannot be read.
    pub fn new(name: &str, reader: Box<dyn Read + Send>) -> Result<Input, ReadError> {
        let mut raw = Input::from_reader(name, reader);
        let head = raw.fill(6)?;
        if let Some((_, tool)) = UNREAD.into_iter().find(|(magic, _)| head.starts_with(magic)) {
            let expected = format!("plain text, gzip or zstd, as of {tool} -dc {name} > PLAIN");
            return Err(ReadError::file(name, format!("is compressed by {tool}, which is not read here"), expected));
        }
        if head.starts_with(BYTE_ORDER_MARK) {
            raw.consume(BYTE_ORDER_MARK.len());
            return Ok(raw);
        }
        let (is_gzip, is_zstd) = (head.starts_with(GZIP), head.starts_with(ZSTD));
        if is_gzip {
            Ok(Input::from_reader(name, Box::new(MultiGzDecoder::new(raw))))
        } else if is_zstd {
            let decoder = StreamingDecoder::new(raw)
                .map_err(|error| ReadError::file(name, format!("zstd: {error}"), "a whole zstd frame"))?;
            Ok(Input::from_reader(name, Box::new(decoder)))
        } else {
            Ok(raw)
        }
    }

    fn from_reader(name: &str, reader: Box<dyn Read + Send>) -> Input {
        Input {
            name: name.to_owned(),
            reader,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            position: 0,
            lines: 0,
            is_at_end: false,
        }
    }

    /// The name for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes that have been consumed.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Number of lines that have been read.
    #[must_use]
    pub const fn lines(&self) -> u64 {
        self.lines
    }

    /// The next bytes, at least `count` unless the file ends before.
    ///
    /// # Errors
    /// If they cannot be read.
    #[inline]
    pub fn fill(&mut self, count: usize) -> Result<&[u8], ReadError> {
        if self.end - self.start < count && !self.is_at_end {
            self.read_more(count)?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    #[cold]
    fn read_more(&mut self, count: usize) -> Result<(), ReadError> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let size = count.max(CHUNK_BYTES);
        if self.buffer.len() < size {
            self.buffer.resize(size, 0);
        }
        while self.end < count {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.is_at_end = true;
                    break;
                }
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(read_failed(&self.name, Position::File, &error)),
            }
        }
        Ok(())
    }

    /// Consumes bytes that [`Input::fill`] has returned.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        self.start += count;
        self.position += count as u64;
    }

    /// Consumes all bytes that [`Input::fill`] has returned.
    pub fn consume_all(&mut self) {
        self.consume(self.end - self.start);
    }

    /// Skips `count` bytes, which may exceed the buffer.
    ///
    /// # Errors
    /// If they cannot be read. Returns `false` if there are fewer.
    pub fn skip(&mut self, mut count: usize) -> Result<bool, ReadError> {
        while count > 0 {
            let available = self.fill(count.min(CHUNK_BYTES))?.len().min(count);
            if available == 0 {
                return Ok(false);
            }
            self.consume(available);
            count -= available;
        }
        Ok(true)
    }

    /// The next line without its end; `None` at the end of the file.
    ///
    /// # Errors
    /// If it cannot be read, or is too long for a line.
    #[inline]
    pub fn line(&mut self) -> Result<Option<&[u8]>, ReadError> {
        let mut needed = 1;
        loop {
            let bytes = self.fill(needed)?;
            if bytes.is_empty() {
                return Ok(None);
            }
            if let Some(length) = memchr::memchr(b'\n', bytes) {
                let line_start = self.start;
                self.consume(length + 1);
                self.lines += 1;
                let line = &self.buffer[line_start..line_start + length];
                return Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)));
            }
            let length = bytes.len();
            if length > LINE_BYTES_MAX {
                let position = Position::Line(self.lines + 1);
                let message = format!("the line is longer than {LINE_BYTES_MAX} bytes");
                return Err(ReadError::at(&self.name, position, message, "text in lines"));
            }
            if self.is_at_end {
                let line_start = self.start;
                self.consume(length);
                self.lines += 1;
                return Ok(Some(&self.buffer[line_start..line_start + length]));
            }
            needed = length + 1;
        }
    }

    /// An error at the line that was read last.
    #[must_use]
    pub fn line_error(&self, message: impl Into<String>, expected: impl Into<String>) -> ReadError {
        ReadError::at(&self.name, Position::Line(self.lines), message, expected)
    }
}

/// Decompressors read through this, because detection has already buffered the first bytes.
impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill(1).map_err(|error| io::Error::other(error.message))?;
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        self.consume(count);
        Ok(count)
    }
}

fn read_failed(name: &str, position: Position, error: &io::Error) -> ReadError {
    ReadError::at(name, position, format!("cannot be read: {error}"), "a recording that can be read to its end")
}
