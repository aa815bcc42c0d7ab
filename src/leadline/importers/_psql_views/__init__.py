"""Parts of the importer of views that psql printed."""
