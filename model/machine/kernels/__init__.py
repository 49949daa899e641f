"""Which of MLX's kernels runs when, what it costs where nobody measured, and what upgrades do."""
