//! Tests of rendered texts in a single program, because each test program links the simulation and its libraries again.

mod advice;
mod conclusion;
mod formats;
mod places;
mod refuted;
mod support;
mod table;
mod tuning;
mod weighing;
