"""The claims of two articles on fewer weight reads per token, re-examined with the model."""
