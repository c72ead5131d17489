"""Real kernels in guests: what scripts/record-kernel, scripts/check-kernel and the other scripts with a guest share."""
