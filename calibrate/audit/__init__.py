"""What measured runs cannot be: inequalities that published numbers break, one module a family."""
