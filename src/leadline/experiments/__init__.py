"""Published figures, a file each: what Leadline gets for them."""
