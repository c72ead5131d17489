//! `hoistway decide`: the quality of decisions based on simulations.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use hoistway_evidence::reproduction::Party;
use hoistway_evidence::reproduction::decisions::{DecisionRule, PublishedChoice, RIGHT, Score, parties};
use hoistway_evidence::reproduction::whole_loads::of_whole_load;
use hoistway_evidence::reproduction::{KnownDecision, Length, TABLES, Table, known};
use hoistway_terminal::Ending;
use hoistway_terminal::output::Output;

use super::tables;

/// Score the choice of schedulers, in Markdown.
///
/// Compares the scheduler that is best in published tables with the one that is best here, and with rules of thumb; what a verdict
/// recommends with the right decision where that is known; and the job that it is about with the one that the source watches.
///
/// Examples:
///   hoistway decide > docs/internals/decision-score.md
///   hoistway reproduce --format json > tables.json
///   hoistway decide --tables tables.json
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Documents of `reproduce --format json`, instead of simulating all tables.
    #[arg(long, value_name = "FILE")]
    tables: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let output = Output::open(None)?;
    let tables = if arguments.tables.is_empty() {
        let all: Vec<&Table> = TABLES.iter().collect();
        tables::simulated(&all, |table| Ok(table.reproduce(Length::Settled)?))?
    } else {
        tables::read(&arguments.tables)?
    };
    let choices: Vec<PublishedChoice> = tables.iter().flat_map(PublishedChoice::all).collect();
    let load_choices: Vec<PublishedChoice> =
        tables.iter().flat_map(|table| of_whole_load(&table.name, PublishedChoice::all(table))).collect();
    output.write(page(&choices, &load_choices, &known()?, &parties()?))?;
    Ok(Ending::Done)
}

const HEAD: &str = "# How good the decisions are

This page is the output of `hoistway decide`. A choice is one published figure of a load under several schedulers
([reproduction.md](reproduction.md)). By our figures, the scheduler that is best here is chosen; that is right if it was within 2 % of the best when it
was measured. The regret is by how much what was chosen was worse than the best. Of the loads whose right decision is known, our figures
choose what the verdict recommends.

";

const BY_LOADS: &str = "
## By whole loads

A scheduler is chosen for a load and not for a figure. Here the figures of one load are one choice: the geometric mean over its jobs, half of a job its I/Os a second and half its mean latency, as a
verdict weighs jobs that wait. At a fixed depth a rate and its latency are the same figure (Little's law), and so are the reads and the writes of a job with a fixed share of reads: above, such a
choice counts two to four times.

";

fn page(
    choices: &[PublishedChoice],
    load_choices: &[PublishedChoice],
    known: &[KnownDecision],
    parties: &[Party],
) -> String {
    let mut text = HEAD.to_owned();
    text += "| rule | right | mean regret | right of known decisions |\n| --- | ---: | ---: | ---: |\n";
    for rule in DecisionRule::ALL {
        let decided: Vec<bool> = known.iter().filter_map(|decision| decision.is_right(rule)).collect();
        let right = decided.iter().filter(|is_right| **is_right).count();
        text += &format!("{} {right} of {} |\n", rule_cells(choices, rule), decided.len());
    }
    text += "\n## Where our figures choose wrongly\n\n";
    text += &wrong_choices(choices);
    text += BY_LOADS;
    text += "| rule | right | mean regret |\n| --- | ---: | ---: |\n";
    for rule in DecisionRule::ALL {
        text += &format!("{}\n", rule_cells(load_choices, rule));
    }
    text += "\n";
    text += &wrong_choices(load_choices);
    text += "\n## Loads whose right decision is known\n\n| load | device | right | the verdict | why |\n| --- | --- | --- | --- | --- |\n";
    for KnownDecision { load, device, right, recommended, why, .. } in known {
        text += &format!("| {load} | {device} | {right} | {recommended} | {why} |\n");
    }
    let watched = parties.iter().filter(|party| party.is_watched()).count();
    text += &format!(
        "\n## Whose figures a verdict is about\n\nWithout `--focus`, the verdict is about the job that the source watches in {watched} of {} loads.\n\n\
         | load | the source watches | the verdict is about |\n| --- | --- | --- |\n",
        parties.len()
    );
    for Party { load, watched, figure, .. } in parties {
        text += &format!("| {load} | {watched} | {figure} |\n");
    }
    text
}

/// The first cells of a rule's row.
fn rule_cells(choices: &[PublishedChoice], rule: DecisionRule) -> String {
    let regrets: Vec<f64> = choices.iter().filter_map(|choice| choice.regret(rule)).collect();
    let Score { right, total, mean_regret } = Score::of(&regrets);
    let share = 100.0 * right as f64 / total.max(1) as f64;
    format!("| {} | {right} of {total} ({share:.0} %) | {:.1} % |", rule.name(), 100.0 * mean_regret)
}

/// The choices in which our best is not the best, and which figure is the cause.
fn wrong_choices(choices: &[PublishedChoice]) -> String {
    let mut text =
        "| choice | best here | best published | regret | the cause |\n| --- | --- | --- | ---: | --- |\n".to_owned();
    for choice in choices {
        let regret = choice.regret(DecisionRule::OurFigures).unwrap_or(0.0);
        if let (true, Some((ours, published))) = (regret > RIGHT, choice.best_of_both()) {
            let (lead, error) = (choice.lead_here(), choice.largest_error());
            let cause = match error {
                _ if lead <= RIGHT => format!("no difference here: {:.1} %", 100.0 * lead),
                Some((scheduler, error)) => format!("{scheduler} is {:+.0} % off the published figure", 100.0 * error),
                None => String::new(),
            };
            text += &format!("| {} | {ours} | {published} | {:.1} % | {cause} |\n", choice.name, 100.0 * regret);
        }
    }
    text
}
