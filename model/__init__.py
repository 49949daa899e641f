"""Theory: what a forward pass costs on a machine, and what a strategy makes of it."""
