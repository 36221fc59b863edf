"""Stand-in for Triton's native `onnxruntime` backend, on the CPU."""
