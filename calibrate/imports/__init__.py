"""What other tools print when they measure, turned into published runs."""
