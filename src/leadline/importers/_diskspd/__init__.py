"""Parts of the importer of diskspd."""
