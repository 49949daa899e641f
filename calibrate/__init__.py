"""Evidence: what was measured, on this machine or by others, and how the theory compares."""

import os

# MLX's CUDA back end gives up when it has to plan attention again and again, as it does for every
# pass of several rows at a new context. It reads this when it is first imported.
os.environ.setdefault("MLX_ENABLE_CACHE_THRASHING_CHECK", "0")
