//! Tests of job files, also in comparison with the real fio. They are one program, since linking the simulation and its
//! libraries takes long.

mod examples;
mod examples_directory;
mod fio;
mod fio_devices;
mod fio_examples;
mod fio_files;
mod fio_job_files;
mod fio_output;
mod fio_replay;
mod fio_run;
mod fio_trace;
mod generator;
mod job_files;
mod robust;
