//! The page.

use hoistway_report::{Mark, cells, conclusion, shift_in_words};
use hoistway_results::ResultsDocument;
use hoistway_results::comparison::Comparison;
use hoistway_results::document::{Candidate, Decision, Outcome, Verdict};
use hoistway_results::verdict::verdicts;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment};
use serde_json::{Value, json};

use crate::data::Data;
use crate::fairness::shares;

/// Charts that are shown before one asks for more.
const OPEN_CHARTS: usize = 2;

/// The page of a document: one file that needs nothing else and asks no network.
///
/// # Panics
/// Never: its template is a part of the program, and a test renders it.
pub fn html(document: &ResultsDocument) -> String {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    let template = include_str!("../assets/page.html");
    environment.render_str(template, Serde(content(document))).expect("the template fits what it is filled with")
}

fn content(document: &ResultsDocument) -> Value {
    let comparison = Comparison::of(document);
    let data = Data::of(&comparison);
    let (set_up, tables, remarks) = cells(document);
    let (doubts, sentences): (Vec<String>, Vec<String>) =
        conclusion(document).into_iter().partition(|sentence| sentence.starts_with(hoistway_report::DOUBT));
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
        "document": head(document),
        "set_up": set_up,
        "remarks": remarks,
        "lead": lead,
        "rest": rest,
        "doubts": doubts,
        "charts": charts,
        "verdicts": verdicts(document).iter().filter(|verdict| is_certain(verdict)).map(verdict_told).collect::<Vec<_>>(),
        "tables": tables.iter().map(table).collect::<Vec<_>>(),
        "variants": comparison.variants.iter().map(|variant| &variant.label).collect::<Vec<_>>(),
        "shares": shares(&comparison),
        "has_timeline": !data.timelines.is_empty(),
        "data": data.embedded().expect("all keys are strings"),
        "styles": [include_str!("../assets/uplot/uPlot.min.css"), include_str!("../assets/page.css")],
        "scripts": [
            include_str!("../assets/uplot/uPlot.iife.min.js"),
            include_str!("../assets/units.js"),
            include_str!("../assets/charts.js"),
            include_str!("../assets/why.js"),
            include_str!("../assets/timeline.js"),
            include_str!("../assets/page.js"),
        ],
        "chart_library_licence": include_str!("../assets/uplot/LICENSE"),
    })
}

/// What a reader needs to repeat it, without the figures.
fn head(document: &ResultsDocument) -> Value {
    let pretty = |value| serde_json::to_string_pretty(value).unwrap_or_default();
    let place = |kernel: &str, numbers: [u32; 3], device, host| {
        let [cpus, hw_queues, nr_requests] = numbers;
        json!({
            "kernel": kernel, "cpus": cpus, "hw_queues": hw_queues, "nr_requests": nr_requests,
            "device": pretty(device), "host": pretty(host),
        })
    };
    let first = [document.cpus, document.hw_queues, document.nr_requests];
    let mut places: Vec<Value> = document
        .setups
        .iter()
        .map(|at| place(&at.kernel, [at.cpus, at.hw_queues, at.nr_requests], &at.device, &at.host))
        .collect();
    if places.is_empty() {
        places.push(place(&document.kernel, first, &document.device, &document.host));
    }
    let comparison = Comparison::of(document);
    let tunables = comparison.variants.iter().map(|variant| match variant.setting() {
        set if set.is_empty() => format!("{}: defaults", variant.label),
        set => format!("{}: {set}", variant.label),
    });
    json!({
        "job_file": document.job_file, "job_text": document.job_text, "command": document.command,
        "version": document.version, "seed": document.seed, "seeds": document.seeds, "is_real": document.is_real,
        "guests": document.guests.as_ref().map(|guests| serde_json::to_string_pretty(guests).unwrap_or_default()),
        "places": places, "tunables": tunables.collect::<Vec<_>>(),
    })
}

fn table(job: &hoistway_report::JobCells) -> Value {
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

/// Whether it rests on more than one run.
fn is_certain(verdict: &Verdict) -> bool {
    matches!(verdict.decision, Decision::Change | Decision::Keep)
}

/// What became of every candidate, with all that it loses and gains.
fn verdict_told(verdict: &Verdict) -> Value {
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
        Outcome::Better => "better in focus, and no loss outweighs that",
        Outcome::BetterElsewhere => "no different in focus, better elsewhere and nowhere worse",
        Outcome::Outweighed => "better in focus, but a loss outweighs that",
        Outcome::NoDifference => "no different in focus",
        Outcome::WithinNoise => "no different in focus beyond the noise",
        Outcome::Worse => "worse in focus",
        Outcome::Incomparable => "cannot be compared",
    }
}
