//! Documents, analyses and verdicts, as one program: each test program links the simulation and its libraries anew.

mod diff;
mod document;
mod figure_name;
mod fio_output;
mod histogram;
mod integrity;
mod judgement;
mod rows;
mod support;
mod verdict;
