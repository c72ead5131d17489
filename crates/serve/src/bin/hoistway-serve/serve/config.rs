//! The configuration file: command-line options by their names, as TOML, and exports as `[[export]]`.
//!
//! The parser of the command line also parses each option of the file, so there is one set of names, values and messages. The command
//! line overrides the file: it replaces an option with a single value, and adds to one that may be given several times.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};
use hoistway_serve::{DeviceNumber, ExportSpec};
use hoistway_serve_options::ServeOptions;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::target::read_text;

/// Options that can change while the server runs.
const RELOADABLE_OPTIONS: [&str; 4] = ["export", "scheduler", "set", "nr_requests"];

/// Prefix of an export's name in quotes, in errors and in `config_locations`.
const EXPORT: &str = "export ";

/// Suggest known options at least this similar to an unknown one.
const SUGGESTION_SIMILARITY_PERCENT: u32 = 75;

/// The options of the command line and the configuration file.
pub(super) struct Configuration {
    pub(super) options: ServeOptions,
    pub(super) exports: Vec<ExportSpec>,
    /// Values of options that cannot change while the server runs, by name.
    pub(super) fixed: BTreeMap<String, Vec<OsString>>,
    /// The position in the file of each option that the command line does not override, and of each export.
    config_locations: BTreeMap<String, String>,
}

impl Configuration {
    /// Reads the command line after `serve` again, and the file that it names.
    pub(super) fn read(line: &[OsString]) -> Result<Configuration> {
        let (matches, options) = parse(line).map_err(|error| anyhow!(first_line(&error)))?;
        Configuration::with_file(line, options, &matches)
    }

    /// Adds the file named on a command line to the options parsed from that line.
    pub(super) fn with_file(
        line: &[OsString],
        line_options: ServeOptions,
        line_matches: &ArgMatches,
    ) -> Result<Configuration> {
        let (mut exports, mut config_locations) = (Vec::new(), BTreeMap::new());
        let (options, matches) = match line_options.config.clone() {
            None => (line_options, line_matches.clone()),
            Some(path) => {
                let text = read_text(&path).with_context(|| format!("--config {}", path.display()))?;
                let mut all = Vec::new();
                File { path: &path, text: &text }.read(&mut all, &mut exports, &mut config_locations)?;
                config_locations.retain(|option, _| {
                    let is_on_command_line = |id| line_matches.value_source(id) == Some(ValueSource::CommandLine);
                    option.starts_with(EXPORT) || !is_on_command_line(&option.replace('-', "_"))
                });
                // Later options override earlier ones, so the command line wins.
                all.extend_from_slice(line);
                let (matches, options) = parse(&all).map_err(|error| anyhow!(first_line(&error)))?;
                (options, matches)
            }
        };
        for text in &options.export {
            exports.push(ExportSpec::parse(text).with_context(|| format!("--export {text}"))?);
        }
        if exports.is_empty() {
            exports.push(ExportSpec::default());
        }
        exports.iter_mut().for_each(|spec| spec.read_only |= options.read_only);
        if let Some(path) = &options.vhost_user
            && let Some(other) = exports[0].vhost_user.replace(path.clone())
        {
            bail!("--vhost-user {}: the first export has vhost-user={} already", path.display(), other.display());
        }
        if let Some(number) = options.ublk
            && exports[0].ublk.replace(number.map_or(DeviceNumber::Any, DeviceNumber::Given)).is_some()
        {
            bail!("--ublk: the first export has ublk already");
        }
        let fixed = fixed(&matches);
        Ok(Configuration { options, exports, fixed, config_locations })
    }

    /// Prefixes an error of an option with its place in the file.
    pub(super) fn with_config_location(&self, option: &str, error: anyhow::Error) -> anyhow::Error {
        match self.config_locations.get(option) {
            Some(location) => error.context(location.clone()),
            None => error,
        }
    }

    /// The same for errors that begin with a file of the queue, a tunable or an export.
    pub(super) fn with_setting_location(&self, error: anyhow::Error) -> anyhow::Error {
        let message = error.to_string();
        if let Some(export) =
            self.config_locations.keys().find(|key| key.starts_with(EXPORT) && message.starts_with(*key))
        {
            return self.with_config_location(export, error);
        }
        let Some((name, _)) = message.split_once(['=', ':']) else { return error };
        match name {
            "scheduler" => self.with_config_location("scheduler", error),
            "nr_requests" => self.with_config_location("nr-requests", error),
            tunable if tunable.contains('.') && !tunable.contains(' ') => self.with_config_location("set", error),
            _ => error,
        }
    }

    /// An option that differs from the server's start and cannot change.
    pub(super) fn differs_in<'a>(&'a self, started: &'a Configuration) -> Option<&'a str> {
        let options = self.fixed.keys().chain(started.fixed.keys());
        options.map(String::as_str).find(|option| self.fixed.get(*option) != started.fixed.get(*option))
    }
}

fn command() -> Command {
    ServeOptions::augment_args(Command::new("serve")).no_binary_name(true).args_override_self(true)
}

fn parse(line: &[OsString]) -> Result<(ArgMatches, ServeOptions), clap::Error> {
    let matches = command().try_get_matches_from(line)?;
    let options = ServeOptions::from_arg_matches(&matches)?;
    Ok((matches, options))
}

fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

fn fixed(matches: &ArgMatches) -> BTreeMap<String, Vec<OsString>> {
    let ids =
        matches.ids().map(clap::Id::as_str).filter(|id| !RELOADABLE_OPTIONS.contains(id) && *id != "ServeOptions");
    let values = |id| matches.get_raw(id).map(|values| values.map(OsString::from).collect()).unwrap_or_default();
    ids.map(|id| (id.replace('_', "-"), values(id))).collect()
}

struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    /// The file and the line.
    fn location_of(&self, offset: usize) -> String {
        let line =
            1 + self.text.as_bytes()[..offset.min(self.text.len())].iter().filter(|&&byte| byte == b'\n').count();
        format!("{}:{line}", self.path.display())
    }

    fn error_at(&self, offset: usize, message: impl std::fmt::Display) -> anyhow::Error {
        anyhow!("{}: {message}", self.location_of(offset))
    }

    /// Adds its options to those of a command line, and its exports to the existing ones.
    fn read(
        &self,
        line: &mut Vec<OsString>,
        exports: &mut Vec<ExportSpec>,
        config_locations: &mut BTreeMap<String, String>,
    ) -> Result<()> {
        let document = DeTable::parse(self.text).map_err(|error| {
            self.error_at(error.span().map_or(0, |span| span.start), error.message().replace('\n', ", "))
        })?;
        for (key, value) in document.get_ref() {
            let (name, offset) = (key.get_ref().as_ref(), key.span().start);
            if name == "export" {
                self.read_exports(value, exports, config_locations)?;
                continue;
            }
            let command = command();
            let Some(option) =
                command.get_arguments().find(|argument| argument.get_long() == Some(name) && name != "config")
            else {
                let known = command
                    .get_arguments()
                    .filter_map(|argument| argument.get_long())
                    .filter(|argument| *argument != "config");
                return Err(self.error_at(offset, unknown(name, known)));
            };
            let may_lack_value = option.get_num_args().is_some_and(|values| values.min_values() == 0);
            let is_boolean = may_lack_value && matches!(value.get_ref(), DeValue::Boolean(_));
            let words = if option.get_action().takes_values() && !is_boolean {
                let is_list = matches!(option.get_action(), clap::ArgAction::Append);
                let values = self.values(name, value, is_list)?;
                values.into_iter().map(|value| OsString::from(format!("--{name}={value}"))).collect()
            } else {
                match value.get_ref() {
                    DeValue::Boolean(true) => vec![OsString::from(format!("--{name}"))],
                    DeValue::Boolean(false) => Vec::new(),
                    _ => return Err(self.error_at(value.span().start, format!("{name}: expected true or false"))),
                }
            };
            parse(&words).map_err(|error| self.error_at(offset, format!("{name}: {}", first_line(&error))))?;
            line.extend(words);
            config_locations.insert(name.to_owned(), self.location_of(offset));
        }
        Ok(())
    }

    fn values(&self, name: &str, value: &Spanned<DeValue<'_>>, is_list: bool) -> Result<Vec<String>> {
        let offset = value.span().start;
        match value.get_ref() {
            DeValue::Array(values) if is_list => {
                let texts = values.iter().map(|value| (value.span().start, text(value.get_ref())));
                let texts = texts.map(|(offset, text)| {
                    text.ok_or_else(|| self.error_at(offset, format!("{name}: expected a string")))
                });
                texts.collect()
            }
            value => match text(value) {
                Some(text) => Ok(vec![text]),
                None if is_list => {
                    Err(self.error_at(offset, format!("{name}: expected a string or a list of strings")))
                }
                None => Err(self.error_at(offset, format!("{name}: expected a string or a number"))),
            },
        }
    }

    fn read_exports(
        &self,
        value: &Spanned<DeValue<'_>>,
        exports: &mut Vec<ExportSpec>,
        config_locations: &mut BTreeMap<String, String>,
    ) -> Result<()> {
        let expected = "export: expected a section [[export]] for each";
        let DeValue::Array(tables) = value.get_ref() else { bail!(self.error_at(value.span().start, expected)) };
        for table in tables {
            let DeValue::Table(settings) = table.get_ref() else { bail!(self.error_at(table.span().start, expected)) };
            let mut spec = ExportSpec::default();
            for (key, value) in settings {
                let (key, offset) = (key.get_ref().as_ref(), key.span().start);
                let export_error =
                    |message: &dyn std::fmt::Display| self.error_at(offset, format!("export: {message}"));
                let taken = match (key, value.get_ref()) {
                    ("read-only" | "shared" | "ublk", DeValue::Boolean(false)) => Ok(()),
                    ("read-only" | "shared" | "ublk", DeValue::Boolean(true)) => spec.take(key, None),
                    ("read-only" | "shared", _) => return Err(export_error(&format!("{key}: expected true or false"))),
                    (_, value) => match text(value) {
                        Some(text) => spec.take(key, Some(&text)),
                        None => return Err(export_error(&format!("{key}: expected a string or a number"))),
                    },
                };
                taken.map_err(|error| export_error(&error))?;
            }
            if exports.iter().any(|other| other.name == spec.name) {
                return Err(self.error_at(table.span().start, format!("duplicate export {:?}", spec.name)));
            }
            config_locations.insert(format!("{EXPORT}{:?}", spec.name), self.location_of(table.span().start));
            exports.push(spec);
        }
        Ok(())
    }
}

fn text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().replace('_', "")),
        _ => None,
    }
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.collect();
    let similarity = |option: &&&str| (strsim::jaro_winkler(option, name) * 100.0) as u32;
    let nearest =
        known.iter().max_by_key(similarity).filter(|option| similarity(option) >= SUGGESTION_SIMILARITY_PERCENT);
    let hint = nearest.map(|option| format!("did you mean \"{option}\"? ")).unwrap_or_default();
    format!("unknown option `{name}` ({hint}expected one of {}, [[export]])", known.join(", "))
}
