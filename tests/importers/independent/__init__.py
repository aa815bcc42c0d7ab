"""Real files read a second time by a few lines that share nothing with the importers: both must see one number."""
