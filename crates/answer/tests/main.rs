//! Tests of documents, analyses and verdicts in a single program, because each test program links the simulation and its libraries again.

mod diff;
mod document;
mod figure_name;
mod format1;
mod integrity;
mod judgement;
mod latency_summary;
mod parties;
mod parts;
mod rows;
mod support;
mod verdict;
