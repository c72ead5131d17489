//! Parses lines into sections: comments, blanks, section headers and includes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::expand;
use crate::JobFileError;
use crate::document::{Document, Entry, Position, Section};
use crate::environment::Environment;
use crate::error::quoted;
use crate::options::OptionIndex;

/// Maximum depth of nested includes.
const INCLUDE_DEPTH_MAX: usize = 16;
/// Maximum options in a file, including its includes: ten times the largest job file's.
const ENTRIES_MAX: usize = 1_000_000;
/// Maximum number of include lines.
const INCLUDES_MAX: usize = 1_000;
/// Maximum bytes of all includes together; a file included twice counts twice.
const INCLUDED_BYTES_MAX: usize = 64 << 20;

/// Reads the job file `text`, called `file_name` in messages.
pub(crate) fn read(
    text: &str,
    file_name: &str,
    index: &OptionIndex,
    environment: &Environment<'_>,
) -> Result<Document, JobFileError> {
    let name: Arc<str> = file_name.into();
    if text.contains('\0') {
        return Err(JobFileError::new(&name, "not a text file").with_hint("expected a fio job file"));
    }
    let document = Document { files: vec![name], sections: Vec::new(), entries: Vec::new() };
    let mut reader = Reader { document, index, environment, including: Vec::new(), included_bytes: 0 };
    reader.lines(text, 0)?;
    Ok(reader.document)
}

struct Reader<'e> {
    document: Document,
    index: &'e OptionIndex,
    environment: &'e Environment<'e>,
    /// The open include files, outermost first.
    including: Vec<PathBuf>,
    included_bytes: usize,
}

impl Reader<'_> {
    fn lines(&mut self, text: &str, file: u16) -> Result<(), JobFileError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (number, line) in (1..).zip(text.lines()) {
            let line = without_comment(line);
            let position = Position { file, line: number };
            if line.starts_with('[') {
                self.section(line, position)?;
            } else if !line.is_empty() {
                self.option(line, position)?;
            }
        }
        Ok(())
    }

    fn section(&mut self, line: &str, position: Position) -> Result<(), JobFileError> {
        if !self.including.is_empty() {
            let error = self.error(position, "an included file cannot have sections");
            return Err(error.with_hint("fio reads only options from included files"));
        }
        // As in fio, a name may contain brackets: the last bracket ends it.
        let Some(name) = line[1..].strip_suffix(']') else {
            return Err(self.error(position, "a section needs a closing bracket").with_hint("write [name]"));
        };
        let first = self.document.entries.len();
        if name != "global" && name.starts_with("global") {
            let message = format!("fio treats the section {} as [global]", quoted(name));
            return Err(self.error(position, &message).with_hint("write [global], or give the job another name"));
        }
        self.document.sections.push(Section { name: name.into(), position, entries: first..first });
        Ok(())
    }

    fn option(&mut self, line: &str, position: Position) -> Result<(), JobFileError> {
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim_end(), Some(value.trim_start())),
            None => (line, None),
        };
        if self.document.sections.is_empty() {
            // The text is not quoted, since it may come from any kind of file.
            let subject = if self.index.find(name).is_some() { quoted(line) } else { "this line".to_owned() };
            let error = self.error(position, &format!("{subject} is outside any section"));
            return Err(error.with_hint("put it after a [job] or [global] line"));
        }
        if let Some(path) = included_path(line) {
            return self.include(path, position);
        }
        if !self.including.is_empty() && self.index.find(name).is_none() && self.index.nearest(name).is_none() {
            // Do not quote an included file either: the author of the job may not be allowed to read it.
            let error = self.error(position, "this line is not an option of fio");
            return Err(error.with_hint("expected one option per line in an included file"));
        }
        let value = match value {
            None => None,
            Some(value) => match expand::expand(value, self.environment) {
                Ok(value) => Some(value.into_owned()),
                Err(refusal) => {
                    let error = self.error(position, &refusal.message).on_option(name);
                    return Err(match refusal.hint {
                        Some(hint) => error.with_hint(hint),
                        None => error,
                    });
                }
            },
        };
        if self.document.entries.len() >= ENTRIES_MAX {
            return Err(self.error(position, &format!("more than {ENTRIES_MAX} options")));
        }
        self.document.entries.push(Entry { name: name.to_owned(), value, position });
        if let Some(section) = self.document.sections.last_mut() {
            section.entries.end = self.document.entries.len();
        }
        Ok(())
    }

    fn include(&mut self, path: &str, position: Position) -> Result<(), JobFileError> {
        if path.is_empty() {
            return Err(self.error(position, "include needs a file name"));
        }
        let name = path;
        let path = Path::new(path);
        if self.including.iter().any(|open| open == path) {
            return Err(self.error(position, &format!("{} includes itself", quoted(name))));
        }
        if self.including.len() == INCLUDE_DEPTH_MAX {
            return Err(self.error(position, &format!("includes are nested deeper than {INCLUDE_DEPTH_MAX}")));
        }
        if self.document.files.len() > INCLUDES_MAX {
            return Err(self.error(position, &format!("more than {INCLUDES_MAX} includes")));
        }
        let text = (self.environment.include)(path)
            .map_err(|e| self.error(position, &format!("cannot read the include file {}: {e}", quoted(name))))?;
        self.included_bytes += text.len();
        if self.included_bytes > INCLUDED_BYTES_MAX {
            let error = self.error(position, &format!("with {} the includes exceed 64 MiB in total", quoted(name)));
            return Err(error.with_hint("fio reads a file again each time it is included"));
        }
        let file = self.document.files.len() as u16;
        self.document.files.push(name.into());
        self.including.push(path.to_owned());
        self.lines(&text, file)?;
        self.including.pop();
        Ok(())
    }

    fn error(&self, position: Position, message: &str) -> JobFileError {
        self.document.error_at(position, self.document.sections.last(), message)
    }
}

/// Strips surrounding blanks and the comment from a line. As in fio, `;` and `#` begin a comment anywhere.
fn without_comment(line: &str) -> &str {
    let end = line.find([';', '#']).unwrap_or(line.len());
    line[..end].trim_matches(|c: char| c.is_whitespace() || c.is_control())
}

/// The file named by an `include FILE` line.
fn included_path(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("include")?;
    if rest.is_empty() { Some(rest) } else { rest.starts_with(char::is_whitespace).then(|| rest.trim()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn read(text: &str, name: &str, environment: &Environment<'_>) -> Result<Document, JobFileError> {
        super::read(text, name, OptionIndex::all(), environment)
    }

    fn outline(text: &str) -> Vec<(String, Vec<String>)> {
        let document = read(text, "t.fio", &Environment::empty()).unwrap();
        let entry = |e: &Entry| match &e.value {
            Some(value) => format!("{}:{}={value}", e.position.line, e.name),
            None => format!("{}:{}", e.position.line, e.name),
        };
        let sections = document.sections.iter();
        sections
            .map(|s| (s.name.to_string(), document.entries[s.entries.clone()].iter().map(entry).collect()))
            .collect()
    }

    #[test]
    fn sections_hold_their_options_with_line_numbers() {
        let text = "; a comment\n[global]\nbs=4k\n\n # another\n[ my job ]\r\n\trw = randread ;x\nstonewall\n";
        let expected = [("global", vec!["3:bs=4k"]), (" my job ", vec!["7:rw=randread", "8:stonewall"])];
        let expected = expected.map(|(n, e)| (n.to_owned(), e.into_iter().map(str::to_owned).collect::<Vec<_>>()));
        assert_eq!(outline(text), expected);
    }

    #[test]
    fn comments_cut_a_line_anywhere() {
        assert_eq!(outline("[a]\nsize=1m;x\nbs=4k #y\nname=q#r")[0].1, ["2:size=1m", "3:bs=4k", "4:name=q"]);
    }

    #[test]
    fn errors_name_the_line() {
        for (text, message) in [
            ("bs=4k\n", "t.fio:1: \"bs=4k\" is outside any section"),
            ("[a\n", "t.fio:1: a section needs a closing bracket"),
            ("[global2]\n", "t.fio:1: fio treats the section \"global2\" as [global]"),
            ("[a]\nfilename=${X}\n", "t.fio:2: [a] filename: the environment variable \"X\" is not set"),
            ("[a]\ninclude x\n", "t.fio:2: [a] cannot read the include file \"x\""),
            ("[a]\n\0", "t.fio: not a text file"),
        ] {
            let error = read(text, "t.fio", &Environment::empty()).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn includes_insert_options_and_may_nest_but_not_loop() {
        let files = |path: &Path| match path.to_str() {
            Some("one") => Ok("bs=4k\ninclude two\niodepth=8\n".to_owned()),
            Some("two") => Ok("rw=read\n".to_owned()),
            Some("loop") => Ok("include loop\n".to_owned()),
            Some("section") => Ok("[b]\n".to_owned()),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        let environment = Environment { include: &files, ..Environment::empty() };
        let document = read("[a]\ninclude one\nsize=1m\n", "t.fio", &environment).unwrap();
        let positions: Vec<_> = document
            .entries
            .iter()
            .map(|e| (&*document.files[usize::from(e.position.file)], e.position.line))
            .collect();
        assert_eq!(positions, [("one", 1), ("two", 1), ("one", 3), ("t.fio", 3)]);
        assert_eq!(document.sections[0].entries, 0..4);
        for (name, message) in [("loop", "includes itself"), ("section", "cannot have sections")] {
            let error = read(&format!("[a]\ninclude {name}\n"), "t.fio", &environment).unwrap_err();
            assert!(error.to_string().starts_with(&format!("{name}:1:")), "{error}");
            assert!(error.message.contains(message), "{error}");
        }
    }

    #[test]
    fn endless_includes_stop_at_the_depth_limit() {
        let next = |path: &Path| Ok(format!("include {}x\n", path.display()));
        let environment = Environment { include: &next, ..Environment::empty() };
        let error = read("[a]\ninclude x\n", "t.fio", &environment).unwrap_err();
        assert!(error.message.contains("nested deeper than 16"), "{error}");
    }

    #[test]
    fn the_total_size_of_includes_is_bounded() {
        let large = "#".repeat(INCLUDED_BYTES_MAX / 3);
        let files = |_: &Path| Ok(large.clone());
        let environment = Environment { include: &files, ..Environment::empty() };
        assert!(read("[a]\ninclude x\ninclude x\ninclude x\n", "t.fio", &environment).is_ok());
        let error = read(&format!("[a]\n{}", "include x\n".repeat(4)), "t.fio", &environment).unwrap_err().to_string();
        assert!(error.starts_with("t.fio:5: [a] with \"x\" the includes exceed 64 MiB in total"), "{error}");
    }

    #[test]
    fn the_content_of_an_include_that_is_no_job_file_is_not_reported() {
        for secret in ["root:$6$salt$hash:19000:0:99999:7:::", "password = hunter2", "KEY=${HOME}", "hunter2"] {
            let files = |_: &Path| Ok(format!("{secret}\n"));
            let environment = Environment { include: &files, ..Environment::empty() };
            let error = read("[a]\ninclude /etc/x\n", "t.fio", &environment).unwrap_err().to_string();
            assert_eq!(
                error,
                "/etc/x:1: [a] this line is not an option of fio (expected one option per line in an included file)"
            );
            let error = read(&format!("{secret}\n"), "t.fio", &Environment::empty()).unwrap_err().to_string();
            assert!(error.starts_with("t.fio:1: this line is outside any section"), "{error}");
        }
        let slip = |_: &Path| Ok("iodpeth=4\n".to_owned());
        let environment = Environment { include: &slip, ..Environment::empty() };
        assert!(read("[a]\ninclude x\n", "t.fio", &environment).is_ok(), "a typo is reported with its remedy later");
    }
}
