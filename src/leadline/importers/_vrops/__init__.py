"""Parts of the importer of vROps' statistics."""
