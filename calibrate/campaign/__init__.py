"""Plans of many runs, and conducting them: in a good order, and again from where they stopped."""
