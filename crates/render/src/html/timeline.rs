//! Excerpts for the page's timeline, as compact rows of numbers.

use hoistway_answer::document::{Excerpt, ExcerptAnswer, ExcerptRequest};
use serde::Serialize;
use serde_json::{Value, json};

/// An excerpt. Times are in ns since its start, and may be negative.
#[derive(Debug, Serialize)]
pub(crate) struct Timeline<'a> {
    /// Index of the variant.
    variant: usize,
    begin_ns: u64,
    end_ns: i64,
    answers_end_ns: i64,
    devices: &'a [String],
    processes: &'a [String],
    /// The reasons of the scheduler's decisions, as sentences.
    reasons: Vec<&'a str>,
    /// Rows in the format that `assets/timeline.js` unpacks.
    requests: Vec<Value>,
    answers: Vec<Value>,
}

impl<'a> Timeline<'a> {
    pub(crate) fn of(variant: usize, excerpt: &'a Excerpt) -> Self {
        let begin_ns = excerpt.begin_ns;
        let since = |ns: u64| ns as i64 - begin_ns as i64;
        let since_if_any = |ns: Option<u64>| ns.map(since);
        let request = |request: &ExcerptRequest| {
            json!([
                request.device,
                request.process,
                request.op,
                request.sector,
                request.sectors,
                since_if_any(request.queued_ns),
                since(request.made_ns),
                since_if_any(request.inserted_ns),
                since_if_any(request.chosen_ns),
                request.reason,
                since_if_any(request.issued_ns),
                since_if_any(request.ended_ns),
                u8::from(request.absorbed),
            ])
        };
        let answer = |answer: &ExcerptAnswer| {
            json!([
                since(answer.at_ns),
                answer.device,
                answer.request,
                answer.process,
                u8::from(answer.gave),
                answer.reason
            ])
        };
        Timeline {
            variant,
            begin_ns,
            end_ns: since(excerpt.end_ns),
            answers_end_ns: since(excerpt.answers_end_ns),
            devices: &excerpt.devices,
            processes: &excerpt.processes,
            reasons: excerpt.reasons.iter().map(|reason| &*reason.why).collect(),
            requests: excerpt.requests.iter().map(request).collect(),
            answers: excerpt.answers.iter().map(answer).collect(),
        }
    }
}
