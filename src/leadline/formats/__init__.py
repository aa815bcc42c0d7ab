"""What several importers share: clocks, tables and encodings of one family of tools."""
