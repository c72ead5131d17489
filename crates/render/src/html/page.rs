//! The page of a comparison.

use crate::text::{Mark, cells, conclusion, shift_in_words};
use hoistway_answer::analysis::Analysis;
use hoistway_answer::document::{Candidate, Decision, Outcome, Verdict};
use hoistway_answer::verdict::verdicts;
use serde_json::{Value, json};

use crate::html::data::Data;
use crate::html::fairness::shares;
use crate::html::template::{
    CHART_LIBRARY_LICENCE, CHARTS, STYLES, THEME, UNITS, UPLOT, embedded, pretty, render_page,
};

/// Number of charts that are initially open.
const OPEN_CHARTS: usize = 2;

/// The page of a document: a single file without network access.
///
/// # Panics
/// Never: its template is built in, and a test renders it.
pub fn html(analysis: &Analysis<'_>) -> String {
    render_page("page.html", content(analysis))
}

fn content(analysis: &Analysis<'_>) -> Value {
    let document = analysis.document;
    let data = Data::of(analysis);
    let (set_up, tables, remarks) = cells(analysis);
    let (doubts, sentences): (Vec<String>, Vec<String>) =
        conclusion(analysis).into_iter().partition(|sentence| sentence.starts_with(crate::text::DOUBT));
    let (lead, rest) = sentences.split_at(sentences.len().min(2));
    let charts: Vec<Value> = data
        .operations
        .iter()
        .zip(0..)
        .map(|(operation, number): (_, usize)| {
            json!({"number": number, "title": operation.title(), "has_series": operation.has_series, "open": number < OPEN_CHARTS})
        })
        .collect();
    json!({
        "version": document.version,
        "title": document.job_file,
        "document": repeat_data(analysis),
        "set_up": set_up,
        "remarks": remarks,
        "lead": lead,
        "rest": rest,
        "doubts": doubts,
        "charts": charts,
        "has_left_out": data.left_out_seconds > 0.0,
        "has_recorded": data.operations.iter().any(|operation| operation.recorded.is_some()),
        "verdicts": verdicts(analysis).iter().filter(|verdict| is_certain(verdict)).map(candidates_of_verdict).collect::<Vec<_>>(),
        "tables": tables.iter().map(table).collect::<Vec<_>>(),
        "variants": analysis.variants.iter().map(|variant| &variant.label).collect::<Vec<_>>(),
        "shares": shares(analysis),
        "has_timeline": !data.timelines.is_empty(),
        "data": embedded(&data),
        "styles": STYLES,
        "scripts": [
            UPLOT,
            THEME,
            UNITS,
            CHARTS,
            include_str!("../../assets/why.js"),
            include_str!("../../assets/timeline.js"),
            include_str!("../../assets/page.js"),
        ],
        "chart_library_licence": CHART_LIBRARY_LICENCE,
    })
}

/// Everything that is needed to repeat the comparison, without the figures.
fn repeat_data(analysis: &Analysis<'_>) -> Value {
    let document = analysis.document;
    let setup_data = |kernel: &str, numbers: [u32; 3], device, host| {
        let [cpus, hw_queues, nr_requests] = numbers;
        json!({
            "kernel": kernel, "cpus": cpus, "hw_queues": hw_queues, "nr_requests": nr_requests,
            "device": pretty(device), "host": pretty(host),
        })
    };
    let first = [document.cpus, document.hw_queues, document.nr_requests];
    let mut setups: Vec<Value> = document
        .setups
        .iter()
        .map(|setup| {
            setup_data(&setup.kernel, [setup.cpus, setup.hw_queues, setup.nr_requests], &setup.device, &setup.host)
        })
        .collect();
    if setups.is_empty() {
        setups.push(setup_data(&document.kernel, first, &document.device, &document.host));
    }
    let tunables = analysis.variants.iter().map(|variant| match variant.tunables_text() {
        set if set.is_empty() => format!("{}: defaults", variant.label),
        set => format!("{}: {set}", variant.label),
    });
    let runs_seeds = Some(&document.seeds).filter(|seeds| seeds.len() > 1).map(|seeds| {
        let seeds: Vec<String> = seeds.iter().map(ToString::to_string).collect();
        seeds.join(", ")
    });
    json!({
        "job_file": document.job_file, "job_text": document.job_text, "command": document.command,
        "version": document.version, "seed": document.seed, "runs_seeds": runs_seeds, "is_real": document.is_real,
        "guests": document.guests.as_ref().map(|guests| pretty(&guests)),
        "places": setups, "tunables": tunables.collect::<Vec<_>>(),
    })
}

fn table(job: &crate::text::JobCells) -> Value {
    let lines = job.lines.iter().map(|line| {
        let cells = line.cells.iter().map(|(text, mark)| {
            let class = match mark {
                Some(Mark::Best) => "best",
                Some(Mark::Worst) => "worst",
                None => "",
            };
            json!({"text": text, "class": class})
        });
        json!({"label": line.label, "operation": line.operation.name(), "cells": cells.collect::<Vec<_>>()})
    });
    json!({"title": job.title, "headers": job.headers, "lines": lines.collect::<Vec<_>>()})
}

/// Whether a verdict is based on more than one run.
fn is_certain(verdict: &Verdict) -> bool {
    matches!(verdict.decision, Decision::Change | Decision::Keep)
}

/// The result for every candidate, with all its losses and gains.
fn candidates_of_verdict(verdict: &Verdict) -> Value {
    let candidate = |candidate: &Candidate| {
        json!({
            "scheduler": candidate.scheduler,
            "outcome": outcome(candidate.outcome),
            "is_recommended": candidate.scheduler == verdict.recommended,
            "losses": candidate.losses.iter().map(shift_in_words).collect::<Vec<_>>(),
            "gains": candidate.gains.iter().map(shift_in_words).collect::<Vec<_>>(),
        })
    };
    json!({
        "reference": verdict.reference,
        "candidates": verdict.candidates.iter().map(candidate).collect::<Vec<_>>(),
    })
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Better => "better in focus and on balance",
        Outcome::BetterElsewhere => "better on balance, though not in focus",
        Outcome::Outweighed => "better somewhere, but losses outweigh that",
        Outcome::NoDifference => "no different on balance",
        Outcome::WithinNoise => "no different on balance beyond the noise",
        Outcome::Worse => "worse on balance",
        Outcome::Incomparable => "cannot be compared",
    }
}
