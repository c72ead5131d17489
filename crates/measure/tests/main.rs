//! Histograms and fio's JSON, as one program.

mod fio_output;
mod histogram;
