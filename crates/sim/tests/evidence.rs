//! How near whole runs are to published tables: `cargo test -p hoistway-sim --test evidence`.

mod habr;
mod support;
