"""Presentation: the theory and the evidence as pictures."""
