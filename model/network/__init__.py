"""Networks: what is run, matrix by matrix, and the bytes it has in a weight format."""
