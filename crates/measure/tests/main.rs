//! Tests of histograms and fio's JSON, in a single program.

mod fio_output;
mod histogram;
mod setting;
