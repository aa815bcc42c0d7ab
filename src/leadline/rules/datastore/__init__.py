"""Rules of the datastore layer."""
