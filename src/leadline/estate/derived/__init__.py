"""Tables over all entities of a capture, each computed once for all rules (`leadline.core.model.derived`)."""
