"""Parts of cache tiers."""
