//! Loads, as one program: each test program links the simulation and its libraries anew.

mod bounds;
mod checking;
mod files;
mod process;
mod regions;
mod replays;
