"""Parts of the importer of query plans."""
