"""The vocabulary as types: what every importer, rule and face shares."""
