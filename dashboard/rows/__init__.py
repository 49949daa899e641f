"""Answers as rows of charts: records of plain values, in the units in which they are shown."""
