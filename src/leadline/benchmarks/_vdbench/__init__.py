"""Parts of the vdbench driver."""
