//! `hoistway scenarios`: lists the bundled loads.

use anyhow::{Result, bail};
use clap::Args;
use hoistway_experiment::nearest;
use hoistway_experiment::scenarios::{EXAMPLE, EXAMPLE_JOB, Scenario, named, names, tags};
use hoistway_render::text::{figure_in_words, wrapped};

use hoistway_render::text::aligned;
use hoistway_terminal::Ending;
use hoistway_terminal::output::Output;

/// List the bundled loads, or describe one: the load, what to look at, reports of real systems.
///
/// Examples:
///   hoistway scenarios
///   hoistway scenarios --for ai
///   hoistway scenarios database
///   hoistway scenarios database --job > my-load.fio
///   hoistway compare database
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The name of a load.
    name: Option<String>,
    /// List only the loads for this: ai, database, desktop and others, which the list names.
    #[arg(long = "for", value_name = "TAG", conflicts_with_all = ["name", "job"])]
    tag: Option<String>,
    /// Print only its job file, to start a load of your own.
    #[arg(long, requires = "name")]
    job: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let output = Output::open(None)?;
    let width = output.text_width();
    let text = match &arguments.name {
        None => list(arguments.tag.as_deref(), width)?,
        Some(name) if name == EXAMPLE && arguments.job => EXAMPLE_JOB.to_owned(),
        Some(name) if name == EXAMPLE => {
            wrapped(&format!("{EXAMPLE}: {EXAMPLE_TITLE}"), width, 0)
                + "\nIts job file (--job prints only that):\n\n"
                + EXAMPLE_JOB
        }
        Some(name) => {
            let Some(scenario) = named(name) else {
                let known: Vec<_> = [EXAMPLE].into_iter().chain(names()).collect();
                let hint = nearest::hint(name, known.iter().copied());
                bail!("scenarios {name}: unknown load ({hint}expected one of {})", known.join(", "));
            };
            if arguments.job { scenario.job.to_owned() } else { described(name, &scenario, width) }
        }
    };
    output.write(&text)?;
    Ok(Ending::Done)
}

/// The example in one line.
const EXAMPLE_TITLE: &str = "the load that `hoistway compare` runs by default";

/// The loads with this tag, or all.
fn list(tag: Option<&str>, width: usize) -> Result<String> {
    let tags = tags();
    if let Some(tag) = tag
        && !tags.iter().any(|known| known == tag)
    {
        let hint = nearest::hint(tag, tags.iter().map(String::as_str));
        bail!("--for {tag}: no load is for that ({hint}expected one of {})", tags.join(", "));
    }
    let mut rows = Vec::new();
    if tag.is_none() {
        rows.push([EXAMPLE.to_owned(), EXAMPLE_TITLE.to_owned()]);
    }
    for name in names() {
        let Some(scenario) = named(name) else { continue };
        if tag.is_none_or(|tag| scenario.page.tags.iter().any(|known| known == tag)) {
            rows.push([name.to_owned(), scenario.page.title]);
        }
    }
    let hint = "`hoistway scenarios NAME` describes a load, `hoistway compare NAME` runs it.";
    let mut text = aligned(&rows) + "\n" + &wrapped(hint, width, 0);
    if tag.is_none() {
        text += &wrapped(&format!("`hoistway scenarios --for TAG` lists some: {}.", tags.join(", ")), width, 0);
    }
    Ok(text)
}

fn described(name: &str, scenario: &Scenario, width: usize) -> String {
    let page = &scenario.page;
    let mut text = wrapped(&format!("{name}: {}", page.title), width, 0);
    let chapters = [("The load", &page.load), ("What to look at", &page.look_at), ("Real systems", &page.reports)];
    for (title, paragraph) in chapters {
        text += &format!("\n{title}\n{}", wrapped(paragraph, width, 2));
    }
    text += &format!("\nDevice\n{}", wrapped(&format!("{} (another one: --device)", page.device_in_words()), width, 2));
    text += &format!("\nIn one figure\n{}", wrapped(&figure_in_words(&page.focus), width, 2));
    text += &format!("\nTry\n  hoistway compare {name}\n");
    for command in &page.try_also {
        text += &format!("  {command}\n");
    }
    text += "\nThe job file\n";
    for line in scenario.job.lines() {
        text += format!("  {line}").trim_end();
        text.push('\n');
    }
    text
}
