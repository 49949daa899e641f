"""Planners: which settings of a trick would pay, and what progress they would need."""
