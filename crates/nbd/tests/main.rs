//! The protocol, as one program: each test program links the simulation and its libraries anew.

mod any_bytes;
mod handshake;
mod requests;
