//! How near simulated figures are to those of recorded kernels: `cargo test -p hoistway-experiment --test evidence`.

mod closed_loop;
mod coarse_order;
mod io_cost_kernel;
mod io_latency_kernel;
mod on_null_device;
