"""Evidence: what was measured, on this machine or by others, and how the theory compares."""
