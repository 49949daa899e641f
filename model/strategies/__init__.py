"""Strategies: each turns forward passes into output tokens, and states its equation."""
