"""Progress: tokens that a pass commits. A pair of models and a task know it, a machine never."""
