//! Runs `hoistway sweep` and `hoistway merge` as a user does.

mod array;
mod data_sets;
mod refusals;
mod support;
mod tables;
