"""Block traces: described, modelled."""
