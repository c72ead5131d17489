//! Tests of whole comparisons in a single program, because each test program links the simulation and its libraries again.

mod chance;
mod comparison;
mod cpu_cost;
mod io_cost;
mod io_latency;
mod lasting;
mod locks;
mod metamorphic;
mod own_scheduler;
mod principles;
mod published;
mod recordings;
mod refusals;
mod sweep;
mod trials;
mod tune;
mod variants;
mod verdicts;
mod verify;
