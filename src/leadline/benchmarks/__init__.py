"""Load drivers: one file per tool; the tool itself does the work."""
