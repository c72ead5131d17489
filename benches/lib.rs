//! Only benchmarks; the layers that they measure are crates of their own.
