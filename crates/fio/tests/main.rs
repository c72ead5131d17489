//! Job files, alone and beside the real fio, as one program: each test program links the simulation and its libraries anew.

mod examples;
mod examples_directory;
mod fio;
mod fio_devices;
mod fio_examples;
mod fio_files;
mod fio_job_files;
mod fio_replay;
mod fio_run;
mod fio_trace;
mod generator;
mod job_files;
mod robust;
