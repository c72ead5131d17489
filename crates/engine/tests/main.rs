//! The engine over files and simulated devices, as one program: each test program links the simulation and its libraries anew.

mod example;
mod files;
mod jobs;
mod model;
mod simulated;
mod unaligned;
