"""Predictions: what a strategy does on a machine, whether it fits, and what it would need."""
