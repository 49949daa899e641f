"""Evidence of others: measured runs that were published, as records with their sources."""
