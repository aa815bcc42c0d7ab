"""What deduplication and compression would save of real data, read and never written."""
