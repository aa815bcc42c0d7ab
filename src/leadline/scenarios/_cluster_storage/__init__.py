"""Parts of cluster storage."""
