"""Cost: what one forward pass takes, from a matrix and its rows to the whole pass."""
