"""Machine profiles from runs that others published, and a scaling model for chips without any."""
