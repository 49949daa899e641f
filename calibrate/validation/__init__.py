"""Predictions beside what others measured: questions, scores, and groups held out of the fit."""
