"""Files in and out: sources, pipes, archives, YAML, Parquet, clocks."""
