//! What everything stands on: names of things, time, how memory is shared and locked, containers, the table of kernels, how a
//! tunable is declared. Nothing here knows of a bio.

pub mod id_list;
pub mod ids;
pub mod kernel;
pub mod lost;
pub mod meter;
pub mod sharing;
pub mod sorted_tree;
pub mod time;
pub mod tunables;
