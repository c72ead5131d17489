//! Texts, as one program: each test program links the simulation and its libraries anew.

mod advice;
mod conclusion;
mod formats;
mod places;
mod refuted;
mod support;
mod table;
mod tuning;
mod weighing;
