//! `hoistway sweep` and `hoistway merge` from outside.

mod array;
mod data_sets;
mod refusals;
mod support;
mod tables;
