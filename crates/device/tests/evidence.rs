//! How near the presets are to what was measured of their drives: `cargo test -p hoistway-device --test evidence`.

mod closed_loop;
mod coarse;
mod samsung_980pro;
