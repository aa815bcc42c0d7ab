"""Rules of the database layer."""
