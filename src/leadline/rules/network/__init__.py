"""Rules of the network layer."""
