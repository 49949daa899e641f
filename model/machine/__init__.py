"""Machines: what a network runs on, as constants with their uncertainty."""
