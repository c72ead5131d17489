//! Converts a fio command line to an equivalent job file.
//!
//! Used by: crate `hoistway`.
//! Tests: below.
//!
//! ```text
//! fio --ioengine=libaio --direct=1 --name=a --rw=randread --name=b --rw=write
//!
//! [global]            options before the first --name, or after --name=global
//! ioengine=libaio
//! direct=1
//! [a]                 each --name begins a job
//! rw=randread
//! [b]
//! rw=write
//! ```
//!
//! Tried with fio 3.33. A value may follow `=` or be a separate argument.

use crate::options::OptionIndex;

/// Options of fio that only affect its output.
const OUTPUT_OPTIONS: [&str; 17] = [
    "alloc-size",
    "append-terse",
    "bandwidth-log",
    "eta",
    "eta-interval",
    "eta-newline",
    "kb_base",
    "max-jobs",
    "minimal",
    "output",
    "output-format",
    "readonly",
    "runtime-log",
    "status-interval",
    "terse-version",
    "unit_base",
    "warnings-fatal",
];

/// Why a command line cannot be converted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandLineError(String);

impl std::fmt::Display for CommandLineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CommandLineError {}

/// Converts arguments of fio to a job file. `fio` may come first, preceded by a command that starts it, such as `sudo`
/// or `nice -n 5`. Options may be abbreviated if unambiguous. Options that only affect fio's output are left out.
///
/// # Errors
/// If an argument is not an option, or not one of a job.
///
/// ```
/// let text = hoistway_fio::job_text(["fio", "--direct=1", "--name=a", "--rw", "randread"]).unwrap();
/// assert_eq!(text, "[global]\ndirect=1\n\n[a]\nrw=randread\n");
/// ```
pub fn job_text<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<String, CommandLineError> {
    let index = OptionIndex::all();
    let arguments: Vec<&str> = arguments.into_iter().collect();
    let first_argument = match arguments.iter().position(|argument| *argument == "fio" || argument.ends_with("/fio")) {
        Some(fio) if arguments.first().is_some_and(|first| !first.starts_with("--")) => fio + 1,
        _ => 0,
    };
    let mut arguments = arguments[first_argument..].iter().copied().peekable();
    let (mut text, mut has_section, mut has_job) = (String::new(), false, false);
    while let Some(argument) = arguments.next() {
        // fio accepts one dash as well as two.
        let Some(option) = argument.strip_prefix('-').map(|rest| rest.strip_prefix('-').unwrap_or(rest)) else {
            let expected = "expected options with two dashes; `hoistway compare FILE` takes a job file";
            return Err(CommandLineError(format!("{argument:?} is not an option ({expected})")));
        };
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, arguments.next_if(|next| !next.starts_with('-'))),
        };
        let name = full_name(index, name)?;
        if OUTPUT_OPTIONS.contains(&name) {
            continue;
        }
        // Each of these ends a line or value in a job file.
        if value.is_some_and(|value| value.contains(['\n', '\r', ';', '#'])) {
            return Err(CommandLineError(format!(
                "--{name}: a job file cannot express this value (expected one without ; # or newline)"
            )));
        }
        if name == "name" {
            let job = value.filter(|job| !job.is_empty());
            let job = job.ok_or_else(|| CommandLineError("--name: expected the name of a job".to_owned()))?;
            text += &format!("{}[{job}]\n", if has_section { "\n" } else { "" });
            (has_section, has_job) = (true, has_job || job != "global");
            continue;
        }
        if index.find(name).is_none() {
            let hint = index.nearest(name).map(|known| format!("did you mean --{known}? ")).unwrap_or_default();
            let expected = format!("({hint}expected options of a job, such as --rw=randread)");
            return Err(CommandLineError(format!("--{name}: not an option of a fio job {expected}")));
        }
        if !has_section {
            text += "[global]\n";
            has_section = true;
        }
        text += name;
        text += &value.map(|value| format!("={value}")).unwrap_or_default();
        text.push('\n');
    }
    if has_job { Ok(text) } else { Err(CommandLineError("no job (expected --name=NAME)".to_owned())) }
}

/// Whether fio's command line has an option of this name, or exactly one that begins with it.
#[must_use]
pub fn is_fio_option(name: &str) -> bool {
    let index = OptionIndex::all();
    full_name(index, name)
        .is_ok_and(|full| full == "name" || OUTPUT_OPTIONS.contains(&full) || index.find(full).is_some())
}

/// The option with this name, or the only option that begins with it, as in fio.
fn full_name<'a>(index: &OptionIndex, name: &'a str) -> Result<&'a str, CommandLineError> {
    if name == "name" || OUTPUT_OPTIONS.contains(&name) || index.find(name).is_some() {
        return Ok(name);
    }
    let other_names = ["name"].into_iter().chain(OUTPUT_OPTIONS);
    let mut matching: Vec<&'static str> =
        other_names.chain(index.names()).filter(|known| known.starts_with(name)).collect();
    matching.sort_unstable();
    // An option and its alias count as one.
    let mut seen = Vec::new();
    matching.retain(|known| {
        let id = index.find(known).map(|(id, _)| id);
        let is_new = id.is_none() || !seen.contains(&id);
        seen.push(id);
        is_new
    });
    match matching[..] {
        [only] if !name.is_empty() => Ok(only),
        [_, _, ..] if !name.is_empty() => {
            Err(CommandLineError(format!("--{name}: ambiguous (expected one of --{})", matching.join(", --"))))
        }
        _ => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job_file(line: &str) -> Result<String, String> {
        job_text(line.split_whitespace()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_beginning_of_an_option_is_that_option_or_names_those_that_it_may_be() {
        let index = OptionIndex::all();
        let mut cut_short = 0;
        for name in index.names() {
            for length in 1..name.len() {
                let begin = &name[..length];
                let id_of = |name: &str| index.find(name).map(|(id, _)| id);
                match full_name(index, begin) {
                    Ok(whole) if whole == begin => {
                        assert!(id_of(begin).is_some() || OUTPUT_OPTIONS.contains(&begin), "{begin}")
                    }
                    Ok(whole) => {
                        cut_short += 1;
                        assert_eq!(id_of(whole), id_of(name), "{begin}");
                    }
                    Err(error) => assert!(error.0.contains("expected one of --"), "{error}"),
                }
            }
        }
        assert!(cut_short > 500, "{cut_short}");
    }

    #[test]
    fn prefixes_such_as_sudo_and_nice_are_dropped() {
        let bare = job_file("fio --name=a --rw=read");
        assert!(bare.is_ok());
        for start in
            ["sudo fio", "sudo -u root /usr/bin/fio", "nice -n 5 ionice -c 3 fio", "env A=b fio", "time fio", ""]
        {
            assert_eq!(job_file(&format!("{start} --name=a --rw=read")), bare, "{start}");
        }
        assert!(job_file("sudo --name=a").unwrap_err().contains("is not an option"));
    }

    #[test]
    fn each_name_starts_a_job_and_earlier_options_are_global() {
        let line =
            "fio --ioengine=libaio --direct 1 --name=a --rw=randread --group_reporting --name=b -rw=write --output=x";
        let text = "[global]\nioengine=libaio\ndirect=1\n\n[a]\nrw=randread\ngroup_reporting\n\n[b]\nrw=write\n";
        assert_eq!(job_file(line).as_deref(), Ok(text));
        assert_eq!(job_file("--name=global --bs=8k --name=a").as_deref(), Ok("[global]\nbs=8k\n\n[a]\n"));
        assert_eq!(job_file("/usr/bin/fio --eta=never --name=a --size=${SIZE}").as_deref(), Ok("[a]\nsize=${SIZE}\n"));
    }

    #[test]
    fn an_invalid_fio_command_line_is_refused() {
        for (line, words) in [
            ("fio --name=a --iodpeth=4", "did you mean --iodepth? "),
            ("fio job.fio", "`hoistway compare FILE` takes a job file"),
            ("fio --rw=randread", "expected --name=NAME"),
            ("fio", "expected --name=NAME"),
            ("--name=global --rw=read", "expected --name=NAME"),
            ("--name= --rw=read", "--name: expected the name of a job"),
            ("--name=a --client=host", "--client: not an option of a fio job"),
        ] {
            let error = job_file(line).unwrap_err();
            assert!(error.contains(words), "{line}: {error}");
        }
        assert!(job_text(["--name=a", "--filename=/dev/sda\nrw=read"]).is_err());
    }
}
