"""Scripts that record where nothing can be installed: a part per target, and the frame that runs them."""
