"""Rules of the host layer."""
