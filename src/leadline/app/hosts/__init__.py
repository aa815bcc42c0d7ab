"""The same load on many machines."""
