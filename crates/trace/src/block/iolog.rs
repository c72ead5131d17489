//! fio's I/O logs, as written by `write_iolog` and replayed by `read_iolog`.

use std::io::{self, Write};

/// A version of the format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IologVersion {
    /// `wait` lines between the I/Os, in milliseconds.
    V2,
    /// Each line has its time, in microseconds.
    #[default]
    V3,
}

/// The action of a log line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IologAction {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Discards. fio 3.33 writes such lines, but skips them on replay with a message.
    Trim,
    /// Syncs earlier writes.
    Sync,
}

impl IologAction {
    const fn name(self) -> &'static str {
        match self {
            IologAction::Read => "read",
            IologAction::Write => "write",
            IologAction::Trim => "trim",
            IologAction::Sync => "sync",
        }
    }
}

/// A log of one file.
#[derive(Debug)]
pub struct IologWriter<W> {
    out: W,
    file: String,
    version: IologVersion,
    /// Time of the last line, in the version's unit.
    last: u64,
}

impl<W: Write> IologWriter<W> {
    /// Begins the log of a file, whose name must not contain blanks.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(mut out: W, file: &str, version: IologVersion) -> io::Result<IologWriter<W>> {
        match version {
            IologVersion::V2 => write!(out, "fio version 2 iolog\n{file} add\n{file} open\n")?,
            IologVersion::V3 => write!(out, "fio version 3 iolog\n0 {file} add\n0 {file} open\n")?,
        }
        Ok(IologWriter { out, file: file.to_owned(), version, last: 0 })
    }

    /// Adds an I/O, issued `time_ns` nanoseconds after the start of the log and not before the previous one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&mut self, time_ns: u64, action: IologAction, offset_bytes: u64, bytes: u32) -> io::Result<()> {
        let (file, name) = (&self.file, action.name());
        match self.version {
            IologVersion::V2 => {
                let time_ms = time_ns / 1_000_000;
                // fio measures `wait` from the start of the replay, not from the previous line.
                if time_ms > self.last {
                    self.last = time_ms;
                    writeln!(self.out, "{file} wait {time_ms} 0")?;
                }
                writeln!(self.out, "{file} {name} {offset_bytes} {bytes}")
            }
            IologVersion::V3 => {
                self.last = self.last.max(time_ns / 1000);
                writeln!(self.out, "{} {file} {name} {offset_bytes} {bytes}", self.last)
            }
        }
    }

    /// Ends the log and returns its writer.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        match self.version {
            IologVersion::V2 => writeln!(self.out, "{} close", self.file)?,
            IologVersion::V3 => writeln!(self.out, "{} {} close", self.last, self.file)?,
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(version: IologVersion) -> String {
        let mut log = IologWriter::new(Vec::new(), "8,0", version).unwrap();
        log.write(1_500, IologAction::Write, 0, 4096).unwrap();
        log.write(2_000_000, IologAction::Read, 8192, 512).unwrap();
        log.write(2_900_000, IologAction::Sync, 0, 0).unwrap();
        String::from_utf8(log.finish().unwrap()).unwrap()
    }

    #[test]
    fn version_3_has_microseconds_in_each_line() {
        let expected = "fio version 3 iolog\n0 8,0 add\n0 8,0 open\n1 8,0 write 0 4096\n2000 8,0 read 8192 512\n2900 8,0 sync 0 0\n\
                        2900 8,0 close\n";
        assert_eq!(log(IologVersion::V3), expected);
    }

    #[test]
    fn version_2_waits_until_milliseconds_since_the_start() {
        let expected = "fio version 2 iolog\n8,0 add\n8,0 open\n8,0 write 0 4096\n8,0 wait 2 0\n8,0 read 8192 512\n8,0 sync 0 0\n\
                        8,0 close\n";
        assert_eq!(log(IologVersion::V2), expected);
    }
}
