//! Device models, as one program: each test program links the simulation and its libraries anew.

mod closed_loop;
mod conservation;
mod exact;
mod exact_disks;
mod fill;
mod models;
mod presets;
mod reckoned;
mod service;
mod support;
