"""From samples to a profile: which regimes a device has, its rates, and how sure they are."""
