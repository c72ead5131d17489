//! Documents, analyses and verdicts, as one program: each test program links the simulation and its libraries anew.

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
