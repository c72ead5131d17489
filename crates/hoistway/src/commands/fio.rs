//! `hoistway fio`: compares schedulers under a complete fio command line.

use anyhow::{Context as _, Result};
use clap::error::{ContextKind, ErrorKind};
use clap::{Args, FromArgMatches as _};
use hoistway_experiment::Load;
use hoistway_fio::{is_fio_option, job_text};

use super::compare;
use hoistway_terminal::Ending;
use hoistway_terminal::output::Output;

/// Compare schedulers under a fio command line: paste all of it, with or without `sudo` and `fio` itself, or in quotes.
///
/// Options of `hoistway compare` that fio does not have may stand anywhere; all of them may follow after --.
///
/// Examples:
///   hoistway fio --name=x --filename=/dev/sda --direct=1 --rw=randread --runtime=10 --time_based
///   hoistway fio fio --name=x --filename=/dev/sda --rw=randread --device samsung-980pro-1tb
///   hoistway fio --name=x --rw=randread -- --host desktop
///   hoistway fio "sudo fio --name=x --filename=/dev/sdb --rw=randwrite" --device hdd
///   hoistway fio --print-job --direct=1 --name=a --rw=read --name=b --rw=write
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Print the equivalent job file instead of comparing.
    #[arg(long)]
    print_job: bool,
    /// Options of fio; after --, options of `hoistway compare`.
    #[arg(
        value_name = "FIO OPTIONS [-- COMPARE OPTIONS]",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    line: Vec<String>,
}

/// The right command, if `compare` was given an option that only fio has.
pub(crate) fn suggest_fio_command(error: &clap::Error) -> Option<String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = arguments.split_first()?;
    if error.kind() != ErrorKind::UnknownArgument || command != "compare" {
        return None;
    }
    let unknown = error.get(ContextKind::InvalidArg)?.to_string();
    let name = unknown.trim_start_matches('-').split('=').next()?.to_owned();
    let line: Vec<&str> = rest.iter().map(String::as_str).filter(|argument| *argument != "--").collect();
    is_fio_option(&name)
        .then(|| format!("compare: --{name} is an option of fio (try: hoistway fio {})", line.join(" ")))
}

/// The name of the job in messages and results.
const NAME: &str = "fio command line";

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let mut parts = arguments.line.splitn(2, |argument| argument == "--");
    let command = compare::Arguments::augment_args(clap::Command::new("hoistway compare"));
    let given = parts.next().unwrap_or_default().to_vec();
    let (mut words, mut own_options) = without_options_of_compare(given, &command);
    // Recognised at any position: fio has no option with this name.
    let print_job = arguments.print_job || words.iter().any(|word| word == "--print-job");
    words.retain(|word| word != "--print-job");
    // A quoted command is a single argument.
    if let [whole] = &words[..]
        && whole.contains(char::is_whitespace)
    {
        let unquoted =
            shell_words::split(whole).with_context(|| format!("{NAME}: expected every quotation mark to be closed"))?;
        let (of_fio, of_compare) = without_options_of_compare(unquoted, &command);
        words = of_fio;
        own_options.extend(of_compare);
    }
    let text = job_text(words.iter().map(String::as_str)).context(NAME)?;
    if print_job {
        Output::open(None)?.write(&text)?;
        return Ok(Ending::Done);
    }
    let names = ["hoistway compare".to_owned()];
    let compare_arguments = names.iter().chain(&own_options).chain(parts.next().unwrap_or_default());
    let matches = command.try_get_matches_from(compare_arguments).unwrap_or_else(|error| error.exit());
    let options = compare::Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    compare::run_load(&options, Load::Text { name: NAME.to_owned(), text })
}

/// The words of a fio command line, and those that are options of `hoistway compare` and none of fio, with their values.
fn without_options_of_compare(words: Vec<String>, compare: &clap::Command) -> (Vec<String>, Vec<String>) {
    let takes_value = |word: &str| {
        let name = word.strip_prefix("--")?.split('=').next()?;
        let argument = compare.get_arguments().find(|argument| argument.get_long() == Some(name))?;
        (!is_fio_option(name)).then(|| argument.get_action().takes_values() && !word.contains('='))
    };
    let (mut of_fio, mut of_compare) = (Vec::new(), Vec::new());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match takes_value(&word) {
            None => of_fio.push(word),
            Some(takes_value) => {
                of_compare.push(word);
                if takes_value {
                    of_compare.extend(words.next());
                }
            }
        }
    }
    (of_fio, of_compare)
}
