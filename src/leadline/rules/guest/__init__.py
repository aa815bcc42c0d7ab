"""Rules of the guest layer."""
