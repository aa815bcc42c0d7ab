"""Rules of the storage-path layer."""
